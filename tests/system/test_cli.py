# SPDX-License-Identifier: Apache-2.0
"""The lockbroker command, as shells use it."""

import contextlib
import datetime
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time

import pytest

import harness
from mishaps import stopped


OPERATORS_WORDS = ("limit", "revoke", "force-unlock", "reload", "restart", "access", "accounts", "audit", "config", "log", "drain")


def command(daemon, *argv):
    """What is for operators goes to their socket, to which the command goes by itself without -S."""
    socket = "/nonexistent/socket"
    if daemon:
        socket = daemon.operator_socket if argv and argv[0] in OPERATORS_WORDS else daemon.socket
    return [harness.program("lockbroker"), "-S", socket, *map(str, argv)]


def run(daemon, *argv, **options):
    return harness.run(command(daemon, *argv), **options)


def terminal(argv, lines=24, columns=80, **environment):
    """Starts it at a terminal of that size: its process, and our end."""
    pid, fd = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # who runs the tests in the background may ignore it
        # The parent has set the size, and written a byte, before the command asks for it.
        os.read(0, 1)
        os.execvpe(argv[0], argv, {"TERM": "xterm"} | {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | environment)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    os.write(fd, b"\n")
    return pid, fd


def read_until(fd, mark, text=b""):
    """What comes from there, until all of it has the pattern."""
    while not re.search(mark, text):
        text += os.read(fd, 65536)
    return text


def read_to_the_end(pid, fd, text=b""):
    """All that comes from its terminal, and its exit status."""
    with contextlib.suppress(OSError):  # that is how the end of a terminal looks
        while data := os.read(fd, 65536):
            text += data
    os.close(fd)
    return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def on_screen(argv, **size_and_environment):
    """What it writes to a terminal, in lines, and its exit status."""
    text, status = read_to_the_end(*terminal(argv, **size_and_environment))
    return text.decode().replace("\r\n", "\n").removeprefix("\n").split("\n")[:-1], status


def plain(lines):
    """Without what makes them bold."""
    return [re.sub(r"\x1b\[\d*m", "", line) for line in lines]


def start(daemon, *argv, says=None):
    """The command in the background, which says that first; its standard output is a pipe."""
    p = harness.spawn(command(daemon, *argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, text=True)
    assert says is None or p.stdout.readline() == f"{says}\n"
    return p


LOST = 79
READY = ["sh", "-c", 'echo $$; exec "$@"', "sh"]  # says its pid once it runs


def started(daemon, *argv, name="a", options=()):
    p = start(daemon, "lock", *options, name, "--", *READY, *argv)
    return p, int(p.stdout.readline())


def test_the_commands_exit_status_is_ours(broker):
    """Pitfall 24."""
    for status in (0, 1, 7, 75, 255):
        assert run(broker, "lock", "a", "--", "sh", "-c", f"exit {status}").returncode == status


def test_a_signals_end_is_128_plus_its_number(broker):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1):
        assert run(broker, "lock", "a", "--", "sh", "-c", f"kill -{int(number)} $$").returncode == 128 + number


def test_the_command_gets_its_arguments_environment_and_input_untouched(broker):
    done = run(broker, "lock", "orders/42", "--", "printf", "%s|", "two words", "$HOME", "*")
    assert done.stdout == "two words|$HOME|*|"
    done = run(broker, "lock", "orders/42", "--", "sh", "-c", 'echo "$LOCKBROKER_NAME $LOCKBROKER_TOKEN"')
    assert re.fullmatch(r"orders/42 \d+\n", done.stdout)
    done = run(broker, "lock", "a", "--", "cat", input="through")
    assert (done.stdout, done.stderr) == ("through", "")


def test_it_waits_for_the_lock_and_runs_then(broker, clients):
    c = clients(broker)
    c.call("LOCK", "a")
    p = start(broker, "lock", "a", "--", "echo", "run")
    harness.wait_until(lambda: len(c.call("QUEUE", "a")) == 1, "the command to wait")
    assert p.poll() is None
    c.call("UNLOCK", "a")
    assert p.communicate(timeout=harness.PATIENCE)[0] == "run\n"
    assert p.returncode == 0


def test_not_acquired_is_75(broker, clients):
    """Pitfall 24."""
    clients(broker).call("LOCK", "a")
    done = run(broker, "lock", "-n", "a", "--", "echo", "run")
    assert (done.returncode, done.stdout, done.stderr) == (75, "", "")
    began = time.monotonic()
    assert run(broker, "lock", "-w", "0.25", "a", "--", "echo", "run").returncode == 75
    assert time.monotonic() - began >= 0.25
    for options in (["-w", "0"], ["--timeout", "0"], ["--nb"], ["-E", "75", "-n"]):
        assert run(broker, "lock", *options, "a", "echo", "run").returncode == 75


def test_no_broker_is_69(tmp_path):
    """Pitfall 24."""
    done = run(None, "lock", "--connect", "0", "a", "--", "echo", "run")
    assert (done.returncode, done.stdout) == (69, "")
    assert "/nonexistent/socket" in done.stderr
    for words in (["ls"], ["who", "a"], ["why", "a"], ["hosts"], ["ping"], ["info"]):
        assert run(None, *words).returncode == 69
    stale = tmp_path / "stale"
    with harness.socket.socket(harness.socket.AF_UNIX) as s:
        s.bind(str(stale))
    assert subprocess.run([harness.program("lockbroker"), "-S", str(stale), "ping"]).returncode == 69


def test_no_zookeeper_is_69(daemons, root):
    d = daemons(harness.NoZookeeper, root)
    for options in (["-n"], ["-w", "0.2"]):
        done = run(d, "lock", *options, "a", "--", "echo", "run")
        assert (done.returncode, done.stdout) == (69, "")
        assert done.stderr.startswith("lockbroker: ")


@pytest.mark.parametrize("argv", [
    [], ["nonsense"], ["lock"], ["lock", "a"], ["lock", "a", "--"], ["lock", "-w"], ["hold"],
    ["lock", "-w", "soon", "a", "--", "true"], ["lock", "-w", "-1", "a", "--", "true"],
    ["lock", "-w", "nan", "a", "--", "true"], ["lock", "-y", "a", "true"], ["lock", "--nonsense", "a", "--", "true"],
    ["who"], ["who", "a", "b"], ["why"], ["hosts", "a"], ["ping", "x"], ["ls", "a", "b"], ["info", "a", "b"],
    ["--nonsense"],
])
def test_wrong_usage_is_64(argv):
    """Pitfall 24."""
    done = run(None, *argv)
    assert done.returncode == 64
    assert "--help" in done.stderr and done.stdout == ""


def test_a_bad_name_is_64(standalone):
    for name in ("", "..", "x" * 513, "a\nb"):
        assert run(standalone, "lock", name, "--", "true").returncode == 64


def test_exec_failures(standalone, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program")
    done = run(standalone, "lock", "a", "--", str(plain))
    assert done.returncode == 126 and str(plain) in done.stderr
    done = run(standalone, "lock", "a", "--", "no-such-command", env=os.environ | {"PATH": str(tmp_path)})
    assert done.returncode == 127 and "no-such-command" in done.stderr
    assert run(standalone, "lock", "-n", "a", "--", "true").returncode == 0


def test_back_to_back_commands_find_the_lock_free(broker):
    for _ in range(20):
        assert run(broker, "lock", "-n", "a", "--", "true").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
                                    signal.SIGUSR2, signal.SIGALRM, signal.SIGWINCH])
def test_signals_are_forwarded(standalone, number):
    """Pitfall 9."""
    name = number.name[3:]
    p = start(standalone, "lock", "a", "--", "sh", "-c", f"trap 'echo {name}; exit 9' {name}; echo ready; "
              "while :; do sleep 0.05; done", says="ready")
    p.send_signal(number)
    assert p.stdout.readline() == f"{name}\n"
    assert p.wait(harness.PATIENCE) == 9


def test_a_signal_while_waiting_ends_it_and_its_request(broker, clients):
    """Pitfall 10."""
    c = clients(broker)
    c.call("LOCK", "a")
    p = start(broker, "lock", "a", "--", "echo", "run")
    harness.wait_until(lambda: len(c.call("QUEUE", "a")) == 1, "the command to wait")
    assert harness.end(p) == -signal.SIGTERM
    harness.wait_until(lambda: c.call("QUEUE", "a") == [], "the request to go")


def test_the_lock_follows_the_command(broker, clients):
    """Pitfall 9. Killing the lockbroker process does not free the lock under the command, which goes on."""
    c = clients(broker)
    p, child = started(broker, "sleep", "60")
    harness.end(p, signal.SIGKILL)
    assert c.call("LOCK", "a", "WAIT", 100) is None
    os.kill(child, signal.SIGKILL)
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)


def test_the_descriptor_may_be_given_up_by_a_background_process(standalone, clients):
    c = clients(standalone)
    keeps = run(standalone, "lock", "a", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
    assert keeps.returncode == 0
    assert c.call("LOCK", "a", "WAIT", 50) is None
    os.kill(int(keeps.stdout), signal.SIGKILL)
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)
    c.call("UNLOCK", "a")
    closes = run(standalone, "lock", "a", "--", "bash", "-c",
                 "exec {LOCKBROKER_FD}>&-; sleep 60 >/dev/null 2>&1 & echo $!")
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)
    os.kill(int(closes.stdout), signal.SIGKILL)


def test_ignored_signals_and_dead_children_of_the_caller_do_not_matter(standalone):
    done = subprocess.run([sys.executable, "-c", """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
""", *command(standalone, "lock", "a", "--", "sh", "-c", "exit 5")], timeout=harness.PATIENCE)
    assert done.returncode == 5


def test_closed_standard_descriptors_do_not_matter(standalone):
    line = " ".join(command(standalone, "lock", "a", "--", "sh", "-c", "'exit 6'"))
    assert subprocess.run(["sh", "-c", f"exec {line} <&- >&- 2>&-"], timeout=harness.PATIENCE).returncode == 6


def test_a_lost_broker_ends_the_command(standalone):
    p, _ = started(standalone, "sleep", "60")
    standalone.kill()
    _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == LOST
    told, status = err.splitlines()
    assert told == "lockbroker: The lock a is lost: the connection to lockbrokerd has ended. Ending sh."
    assert status == "lockbroker: sh ended after that with the status 143; ours is 79."


def test_a_command_that_does_not_heed_sigterm_is_killed_after_the_grace(standalone):
    p = start(standalone, "lock", "-k", "0.3", "a", "--", "sh", "-c",
              "trap '' TERM; echo ready; while :; do sleep 0.05; done", says="ready")
    began = time.monotonic()
    standalone.kill()
    p.stdout.close()
    err = p.stderr.read()
    assert p.wait(harness.PATIENCE) == LOST
    assert time.monotonic() - began > 0.2
    assert "did not end within 0.3 s: killing it" in err and "the status 137" in err


def sleepers(p, count):
    """The process ids that a script told, one in a line."""
    return [int(p.stdout.readline()) for _ in range(count)]


def unreaped(pid):
    """The children of a process with one thread, also those that have ended."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def script(daemon, text, *options):
    """A shell under the lock; what it starts does not keep our pipes open."""
    quiet = "exec 3>&1 >/dev/null 2>&1 </dev/null\n"
    return start(daemon, "lock", *options, "a", "--", "sh", "-c", quiet + text)


@pytest.fixture
def leftovers():
    """Process ids that do not outlive the test."""
    pids = []
    yield pids
    for pid in filter(harness.runs, pids):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("text", [
    "sleep 60 & echo $! >&3; wait",
    "sh -c 'echo $$ >&3; sleep 60; :'",
    "sh -c 'sh -c \"sleep 60 & echo \\$! >&3; wait\"; :'; :",
    "setsid sh -c 'echo $$ >&3; sleep 60; :' & wait",
    "(setsid sh -c 'echo $$ >&3; exec sleep 60' &); sleep 60",
    "sleep 60 & kill -STOP $!; echo $! >&3; wait",
], ids=["child", "script", "grandchild", "session", "orphan", "stopped"])
def test_a_loss_ends_the_commands_descendants_too(standalone, leftovers, text):
    """Pitfall 9."""
    p = script(standalone, text, "-k", "60")
    leftovers += sleepers(p, 1)
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    assert not harness.runs(leftovers[0])
    assert "killing" not in p.stderr.read()


def test_what_is_forked_at_the_moment_of_the_loss_ends_too(standalone):
    p = script(standalone, "i=0; while [ $i -lt 3000 ]; do sleep 60 & i=$((i + 1)); [ $i = 300 ] && echo 0 >&3;"
               " done; wait", "-k", "60")
    sleepers(p, 1)
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    assert "killing" not in p.stderr.read()


def test_descendants_that_do_not_heed_sigterm_are_killed_after_the_grace(standalone, leftovers):
    """Also when the command itself has ended before."""
    stubborn = "(trap '' TERM; sleep 60 & echo $! >&3; sleep 60 & echo $! >&3; wait) & wait"
    p = script(standalone, stubborn, "-k", "0.5")
    leftovers += sleepers(p, 2)
    began = time.monotonic()
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    assert time.monotonic() - began > 0.4
    assert not any(map(harness.runs, leftovers))
    assert "did not end within 0.5 s: killing it" in p.stderr.read()


def test_after_a_loss_the_end_of_the_last_descendant_is_waited_for_but_no_longer(standalone):
    p = script(standalone, "(trap 'sleep 0.3; echo cleaned >&3; exit' TERM; echo 0 >&3; while :; do sleep 0.05; done) &"
               " wait", "-k", "60")
    sleepers(p, 1)
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    assert p.stdout.read() == "cleaned\n"


def test_many_descendants_end(standalone, leftovers):
    p = script(standalone, "for i in $(seq 300); do setsid sleep 60 & done; echo 0 >&3; wait", "-k", "60")
    sleepers(p, 1)
    (shell,) = unreaped(p.pid)
    leftovers += unreaped(shell)
    assert len(leftovers) == 300
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    assert not any(map(harness.runs, leftovers))


def test_who_was_there_before_the_command_is_left_alone_by_a_loss(standalone, leftovers):
    line = " ".join(command(standalone, "lock", "a", "--", "sh", "-c", "'echo 0; exec sleep 60'"))
    p = harness.spawn(["bash", "-c", f"sleep 60 >/dev/null 2>&1 & echo $!; exec {line}"], stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, text=True)
    leftovers += sleepers(p, 1)
    sleepers(p, 1)  # the command has been started
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    assert harness.runs(leftovers[0])


def test_orphans_are_reaped_and_their_status_is_not_the_commands(standalone, tmp_path):
    seen = tmp_path / "seen"
    orphans = f"(sh -c 'exit 3' &); (sh -c 'kill -9 $$' &); (sh -c 'until [ -e {seen} ]; do sleep 0.05; done' &)"
    p, child = started(standalone, "sh", "-c", f"{orphans}; exec sleep 60")
    harness.wait_until(lambda: len(unreaped(p.pid)) > 1, "the orphan to be adopted")
    seen.touch()
    harness.wait_until(lambda: unreaped(p.pid) == [child], "the orphan to be reaped")
    os.kill(child, signal.SIGUSR1)
    assert p.wait(harness.PATIENCE) == 128 + signal.SIGUSR1


def test_without_a_loss_what_the_command_leaves_goes_on(standalone, leftovers):
    p = script(standalone, "sleep 1000 & echo $! >&3; setsid sleep 1000 & echo $! >&3; exit 4")
    leftovers += sleepers(p, 2)
    assert p.wait(harness.PATIENCE) == 4
    assert all(map(harness.runs, leftovers))


@pytest.mark.parametrize("status", [0, 3, 75])
def test_after_a_loss_it_is_79_whatever_the_command_ended_with(standalone, status):
    """That is said."""
    p = start(standalone, "lock", "-k", "60", "a", "sh", "-c",
              f"trap 'exit {status}' TERM; echo ready; while :; do sleep 0.05; done", says="ready")
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    err = p.stderr.read()
    assert " is lost: " in err and f"sh ended after that with the status {status}; ours is 79." in err


def at_a_terminal(argv, mark, keys, first=lambda pid: None, again=b"", then=lambda pid: None, **size_and_environment):
    """Runs argv at a terminal, presses the keys once it has written the mark, returns all it wrote and its status. With its
    process `first` is called before the keys, and `then` once it has written the mark `again`."""
    pid, fd = terminal(argv, **size_and_environment)
    text = read_until(fd, mark)
    first(pid)
    os.write(fd, keys)
    text = read_until(fd, again, text)
    then(pid)
    return read_to_the_end(pid, fd, text)


def test_the_terminals_interrupt_reaches_a_command_in_another_session(standalone):
    argv = command(standalone, "lock", "a", "--", "setsid", "sh", "-c", "echo ready; exec sleep 1000")
    _, status = at_a_terminal(["env", "--default-signal", *argv], b"ready", b"\x03")
    assert status == 128 + signal.SIGINT


def test_the_terminals_interrupt_reaches_a_command_in_our_group_once(standalone):
    """The command has no children: bash swallows an interrupt while it waits for one that ends by itself just then."""
    code = textwrap.dedent("""
        import signal, sys
        signals = [signal.SIGINT, signal.SIGUSR1]
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        print("ready", flush=True)
        got = [signal.sigwait(signals)]
        print("interrupted", flush=True)
        while got[-1] == signal.SIGINT:
            got.append(signal.sigwait(signals))
        print("got", got.count(signal.SIGINT), flush=True)
        sys.exit(5)
        """)

    def stop(pid):
        os.kill(pid, signal.SIGSTOP)
        harness.wait_until(lambda: set(harness.thread_states(pid)) == {"T"}, "it to stand still")

    def go_on(pid):
        """What comes of the interrupt, it has done before it passes on the other signal."""
        os.kill(pid, signal.SIGUSR1)
        os.kill(pid, signal.SIGCONT)

    argv = command(standalone, "lock", "a", "--", "/usr/bin/python3", "-c", code)
    shown, status = at_a_terminal(argv, b"ready", b"\x03", stop, b"interrupted", go_on)
    assert b"got 1" in shown
    assert status == 5


def test_the_end_of_the_terminal_reaches_a_command_in_our_group(standalone):
    """We lead the session, as under `ssh -t`: the kernel sends the hang-up to us alone."""
    argv = ["env", "--default-signal", *command(standalone, "lock", "a", "sh", "-c", "echo ready; exec sleep 1000")]
    pid, fd = terminal(argv)
    ours = harness.Orphan(pid)
    read_until(fd, b"ready")
    os.close(fd)
    try:
        assert ours.wait() == 128 + signal.SIGHUP
    finally:
        ours.kill()


def test_a_lost_session_ends_the_command(own_zk, daemons):
    """Pitfall 8."""
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    d = daemons(zk, **harness.FAST)
    p, _ = started(d, "sleep", "60")
    with stopped(zk):
        _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == LOST
    # Which one is first: the broker's event, or the end of the proof that we see ourselves.
    assert re.search("The lock a is lost: (the host's session has run out: ZooKeeper was unreachable for too long|"
                     "there is no longer proof that it is held)[.] Ending sh[.]\n", err)


def test_a_deleted_znode_is_the_reason_of_a_loss(daemons, zk, root, kazoo_client):
    p, _ = started(daemons(zk, root), "sleep", "60")
    k = kazoo_client(zk)
    for child in k.get_children(f"{root}/a"):
        k.delete(f"{root}/a/{child}")
    _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == LOST and "The lock a is lost: somebody deleted its znode. Ending sh.\n" in err


def test_a_hung_daemon_ends_the_command_when_the_proof_has_run_out(own_zk, daemons):
    """Pitfall 8."""
    d = daemons(own_zk(tick_ms=1000), zookeeper__session_timeout_ms=6000, locks__grant_min_ms=300)
    p, _ = started(d, "sleep", "60")
    with stopped(d):
        began = time.monotonic()
        _, err = p.communicate(timeout=harness.PATIENCE)
        took = time.monotonic() - began
    assert p.returncode == LOST and "no longer proof" in err
    assert took < 6 + 0.5, "no later than the session could expire"


def test_commands_under_one_lock_lose_no_increments(two_hosts, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0\n")
    step = f"read n < {counter}; echo $((n + 1)) > {counter}"
    many = [start(two_hosts[i % 2], "lock", "a", "--", "sh", "-c", step) for i in range(40)]
    for p in many:
        assert p.communicate(timeout=harness.PATIENCE) == ("", "")
        assert p.returncode == 0
    assert counter.read_text() == "40\n"


# ---- looking ----


def test_ls(broker, clients):
    assert run(broker, "ls").stdout == ""
    c = clients(broker)
    c.call("LOCK", "orders/42")
    c.call("LOCK", "other")
    lines = run(broker, "ls").stdout.splitlines()
    assert "NAME" in lines[0].split()
    assert {w for line in lines[1:] for w in line.split() if w in ("orders/42", "other")} == {"orders/42", "other"}
    assert "other" not in run(broker, "ls", "orders/*").stdout


def test_who(broker, clients):
    a, b = clients(broker), clients(broker)
    token = a.call("LOCK", "a")
    b.send("LOCK", "a")
    harness.wait_until(lambda: len(a.call("QUEUE", "a")) == 1, "the request to be queued")
    text = run(broker, "who", "a").stdout
    holders, waiting = text.split("waiting:")
    assert str(token) in holders and str(os.getpid()) in holders
    assert str(os.getpid()) in waiting
    head, row = (line.split("  ") for line in holders.splitlines()[1:3])
    assert "HELD_MS" not in head and re.search(r" \d+m?s ", " ".join(row))
    text = run(broker, "who", "nobody").stdout
    assert "holders: none" in text and "waiting: none" in text


def test_why(broker, clients):
    a = clients(broker)
    assert run(broker, "why", "a").stdout == "nobody holds it and nobody on this host waits for it\n"
    a.call("LOCK", "a")
    assert re.fullmatch(rf"held on this host, pid {os.getpid()} \(.*\), for \d+ ms\n", run(broker, "why", "a").stdout)
    a.call("CLIENT", "SETNAME", "rebuild.sh")
    assert "(rebuild.sh)" in run(broker, "why", "a").stdout, "it is called as it calls itself, as in the table"


def test_hosts(two_hosts):
    lines = run(two_hosts[0], "hosts").stdout.splitlines()
    assert lines[0].split() == ["HOST", "PID", "VERSION", "STARTED", "SELF"]
    assert [line.split()[0] for line in lines[1:]] == ["alpha", "beta"]
    started = [datetime.datetime.fromisoformat(" ".join(line.split()[3:5])) for line in lines[1:]]
    assert all(abs(datetime.datetime.now() - at) < datetime.timedelta(hours=1) for at in started)
    assert [line.split()[-1] for line in lines[1:]] == ["yes", "no"]
    assert lines[2].split()[1] == str(two_hosts[1].pid)


# Controls, breaks of a line, and the class Default_Ignorable_Code_Point, by the first and last of each run.
HARMFUL = ("\u0085\u009b\u2028\u2029\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180f\u200b\u200d\u200f\u202a\u202e\u2060\u2066"
           "\u206f\u3164\ufe00\ufe0f\ufeff\uffa0\ufff0\ufff8\U0001bca0\U0001bca3\U0001d173\U0001d17a\U000e0000\U000e0041\U000e0fff")


def test_tables_show_what_would_steer_the_terminal_or_is_not_seen_escaped(standalone, clients):
    """Whatever of it a name may contain, to the eye it is another one."""
    c, harmful = clients(standalone), []
    for character in HARMFUL:
        if isinstance(c.call("LOCK", f"x{character}y"), int):
            harmful.append(character)
    c.call("LOCK", "gr\u00fc\u00dfe/\u65e5\U0001f512")
    text = run(standalone, "ls").stdout
    assert len(harmful) == len(HARMFUL) - 2  # the controls are in no name
    for character in harmful:
        shown = f"\\u{ord(character):04x}" if character < "\U00010000" else f"\\U{ord(character):08x}"
        assert character not in text and f"x{shown}y" in text
    for character in "\u202e\u200b\U000e0041":
        who = run(standalone, "who", f"x{character}y").stdout
        assert character not in who and str(os.getpid()) in who
    c.call("LOCK", "a\u200bb")
    said = run(standalone, "lock", "-n", "--verbose", "a\u200bb", "true").stderr
    assert "a\\u200bb" in said and "\u200b" not in said
    assert "gr\u00fc\u00dfe/\u65e5\U0001f512 " in text


def test_columns_are_as_wide_as_what_is_shown(standalone, clients):
    c = clients(standalone)
    for name in ("a", "\u00e4\u00f6\u00fc", "x\u202ey", "long/er"):
        c.call("LOCK", name)
    lines = run(standalone, "ls").stdout.splitlines()
    assert len(lines) == 5
    ends = {re.match(r"\S+ +", line).end() for line in lines}
    assert len(ends) == 1


def test_who_sees_the_command(broker):
    p, _ = started(broker, "sleep", "60")
    assert re.search(rf" {p.pid} +sh +exclusive ", run(broker, "who", "a").stdout)
    assert re.search(rf" {p.pid} +sh .* lockbroker ", run(broker, "who", "--wide", "a").stdout)
    harness.end(p)


def test_who_tells_what_the_holder_wants_to_be_known(broker):
    done = run(broker, "lock", "-d", "10.0.0.1:80", "a", "--", *command(broker, "who", "a"))
    assert "10.0.0.1:80" in done.stdout and done.returncode == 0
    assert run(broker, "lock", "-d", "", "a", "--", "true").returncode == 64


def test_ping_info_version_help(broker):
    assert run(broker, "ping").stdout.startswith("PONG")
    text = run(broker, "info").stdout
    assert "redis_version:" in text and "\r" not in text
    assert run(None, "--version").stdout.startswith("lockbroker ")
    text = run(None, "--help")
    assert text.returncode == 0
    asked = run(None, "help")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, text.stdout, "")
    assert run(None, "help", "who").stdout == run(None, "who", "--help").stdout


def test_config_shows_the_keys_as_the_file_has_them(standalone):
    done = run(standalone, "config")
    written = harness.run([harness.program("lockbrokerd"), "--print-config"], check=True)
    empty = [line for line in written.stdout.splitlines() if line == "by_unit = " or line == "by_unit ="]
    assert empty and done.returncode == 0 and "limits.by_unit = \n" in done.stdout
    assert not re.search("= -$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("options, out", [((), ""), (("--json",), "{}\n")], ids=str)
def test_a_key_that_is_not_there_is_said(standalone, options, out):
    done = run(standalone, "config", *options, "nosuchkey")
    assert (done.returncode, done.stdout) == (1, out)
    assert done.stderr == 'lockbroker: No key of the configuration is called "nosuchkey": `lockbroker config` shows all.\n'


def test_a_unit_may_be_named_as_a_rule_names_it(daemons):
    d = daemons(argv=["-o", "access.rule=deny unit:report.service a *"])
    as_rule, plain = (run(d, "access", "4000", "a", unit) for unit in ("unit:report.service", "report.service"))
    assert as_rule.returncode == 0 and "deny unit:report.service" in as_rule.stdout and as_rule.stdout == plain.stdout
    assert "deny unit" in run(d, "access", "4000", "a", "unknown").stdout


def test_that_nobody_leads_is_said(broker):
    done = run(broker, "leader", "e")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "lockbroker: Nobody leads the election e: `lockbroker observe e` shows who does next.\n")


def test_a_call_has_as_many_words_as_a_request_may(standalone):
    most = run(standalone, "call", "HOLDERS", *["x"] * 1023)
    assert most.returncode == 1 and most.stdout.startswith("(error) ERR wrong number of arguments"), most
    assert run(standalone, "call", "HOLDERS", *["x"] * 1024).returncode == 64


def test_help_is_an_option_of_ours_only(standalone):
    assert run(standalone, "lock", "-n", "--help").returncode == 0
    assert run(standalone, "lock", "a", "--", "sh", "-c", "echo $1", "sh", "--help").stdout == "--help\n"
    assert run(standalone, "call", "ECHO", "--help").stdout == '"--help"\n'
    assert run(None, "nonsense", "--help").returncode == 64


@pytest.mark.parametrize("line, sentence", [
    ("lock a", "CMD is missing"), ("lock -- a", "`lockbroker hold NAME` holds a lock"),
    ("lock a --", "CMD is missing"), ("lock -n", "NAME is missing"), ("campaign e -- true", "DATA is missing"),
    ("who a b", 'who does not take the argument "b"'), ("hosts x", 'hosts does not take the argument "x"'),
    ("--nonsense", "There is no option --nonsense"), ("-z", "There is no option -z"), ("-S", "-S needs a path"),
    ("lock --nonsense a -- true", "lock has no option --nonsense"), ("lock --owner", "--owner needs a text"),
    ("lock --connect x a -- true", '--connect needs a number of seconds, not "x"'),
    ("campaign --owner=x e d -- true", "no option --owner"),
], ids=lambda line: line[:20])
def test_wrong_usage_is_named(line, sentence):
    done = run(None, *line.split())
    assert done.returncode == 64 and sentence in done.stderr and "--help" in done.stderr


def test_the_socket_comes_from_the_environment_too(standalone):
    done = harness.run([harness.program("lockbroker"), "ping"], env=os.environ | {"LOCKBROKER_SOCKET": standalone.socket})
    assert done.stdout.startswith("PONG")


def test_output_that_cannot_be_written_is_an_error(standalone):
    with open("/dev/full", "w") as full:
        for words in (["info"], ["ping"], ["--version"], ["--help"]):
            done = subprocess.run(command(standalone, *words), stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 71 and done.stderr
