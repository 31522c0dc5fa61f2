# SPDX-License-Identifier: Apache-2.0
"""`lockbroker lock` has the habits of flock(1), and `lockbroker hold` is for what `flock 9` does in a script."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

import harness
import pages
from mishaps import stopped
from test_cli import LOST, at_a_terminal, command, run, start, unreaped

OPERATORS = True  # see clients of conftest.py


def line(daemon, text):
    """What bash does with it."""
    return harness.run(["bash", "-c", text], env=harness.environment(daemon.socket))


# ---- beside the real one ----

# Options, and what stands behind the lock.
SAME = [
    ([], ["true"]), ([], ["false"]), ([], ["sh", "-c", "exit 7"]), ([], ["sh", "-c", "kill -9 $$"]),
    ([], ["-c", "echo a; exit 5"]), ([], ["--command", "echo $0 $1"]), ([], ["-c"]), ([], ["-c", "a", "b"]), ([], []),
    (["-n"], ["echo", "-n", "--", "x", "-w"]), (["-x", "-s", "-e"], ["echo", "run"]), (["--nb"], ["echo", "run"]),
    (["--nonblock", "--exclusive"], ["echo", "run"]), (["-sn"], ["echo", "run"]), (["-w", "1.5"], ["echo", "run"]),
    (["--timeout=1"], ["echo", "run"]), (["--wait", "1"], ["echo", "run"]), (["-w", "0"], ["echo", "run"]),
    (["-o"], ["echo", "run"]), (["--close"], ["echo", "run"]), (["-F"], ["echo", "run"]), (["--no-fork"], ["sh", "-c", "exit 3"]),
    (["-F", "-o"], ["true"]), (["-E", "256"], ["true"]), (["-E", "x"], ["true"]), (["-w", "soon"], ["true"]),
    (["-w"], []), (["--nonsense"], ["true"]), (["-E", "7"], ["sh", "-c", "exit 2"]), (["--"], ["echo", "run"]),
]


def both(daemon, tmp_path, options, words):
    """How each ends, and what it prints."""
    there = harness.run(["flock", *options, tmp_path / "lock", *words])
    here = run(daemon, "lock", *options, "lock", *words)
    return (here.returncode, here.stdout, bool(here.stderr)), (there.returncode, there.stdout, bool(there.stderr))


@pytest.mark.parametrize("options, words", SAME, ids=str)
def test_it_does_what_flock_does(standalone, tmp_path, options, words):
    here, there = both(standalone, tmp_path, options, words)
    assert here == there


@pytest.mark.parametrize("options", [["-n", "-E", "0"], ["-w", "0.1", "-E", "5"], ["-w", "0", "--conflict-exit-code", "255"],
                                     ["--nb", "-s", "-E1"]], ids=str)
def test_a_lock_that_is_taken_is_no_error_and_nothing_is_said(standalone, clients, tmp_path, options):
    clients(standalone).call("LOCK", "lock")
    with subprocess.Popen(["flock", tmp_path / "lock", "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        here, there = both(standalone, tmp_path, options, ["echo", "run"])
        p.kill()
    assert here == there and here[1:] == ("", False)


def test_verbose_says_what_it_does(standalone, clients):
    done = run(standalone, "lock", "--verbose", "a", "echo", "run")
    assert done.stdout == "run\n"
    assert re.fullmatch(r"lockbroker: Getting it took \d+\.\d{3} s\.\nlockbroker: Running echo\.\n", done.stderr)
    clients(standalone).call("LOCK", "a")
    done = run(standalone, "lock", "--verbose", "-n", "a", "true")
    assert f"The lock a is held on host {standalone.host} by pid {os.getpid()} (" in done.stderr
    p = start(standalone, "lock", "b", "sh", "-c", "echo $$; exec sleep 60")
    pid = int(p.stdout.readline())
    # Until the child is known, it is held by its lockbroker; the program is what `who` calls it in both cases.
    harness.wait_until(lambda: f"by pid {pid} (sh)." in run(standalone, "lock", "--verbose", "-n", "b", "true").stderr or
                       f"by pid {p.pid} (sh)." in run(standalone, "lock", "--verbose", "-n", "b", "true").stderr, "the holder")
    p.terminate()
    p.communicate(timeout=harness.PATIENCE)


@pytest.mark.plain_only("what looks for leaks cannot be traced")
def test_a_call_costs_two_round_trips(standalone, tmp_path):
    """Its name and its owner come with the greeting, and nothing that is sent later is waited for."""
    trace = tmp_path / "trace"
    done = harness.run(["strace", "-o", trace, "-e", "trace=sendto,recvfrom,clone,clone3,vfork",
                        *command(standalone, "lock", "--owner", "job", "a", "true")])
    if done.returncode == 1 and "ptrace" in done.stderr:
        pytest.skip("this host does not let us trace")
    assert done.returncode == 0
    calls = re.findall(r"^(\w+)\(", trace.read_text(), re.M)
    before = calls[:next(i for i, call in enumerate(calls) if call.startswith(("clone", "vfork")))]
    assert before == ["sendto", "recvfrom"] * 2


# ---- -F ----


def test_the_command_takes_our_place(broker, clients):
    c = clients(broker)
    p = start(broker, "lock", "-F", "a", "sh", "-c", "echo $$ $LOCKBROKER_TOKEN; exec sleep 60")
    pid, token = map(int, p.stdout.readline().split())
    (holder,) = c.call("HOLDERS", "a")
    assert pid == p.pid == holder["pid"] and token == holder["token"]
    assert harness.end(p) == -signal.SIGTERM
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)


def test_who_takes_our_place_is_not_ended_by_a_loss(standalone, clients):
    p = harness.spawn(command(standalone, "lock", "-F", "a", "sh", "-c", "echo ready; read go; echo done"),
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    assert clients(standalone).call("FORCEUNLOCK", "a") == 1
    assert p.communicate("go\n", timeout=harness.PATIENCE)[0] == "done\n" and p.returncode == 0


# Reads the answer to what was said last before it came, and then what events are kept.
READ_EVENTS = """
import os, socket, sys
print("ready", flush=True)
sys.stdin.readline()
s = socket.socket(fileno=int(os.environ["LOCKBROKER_FD"]))
s.sendall(b"EVENTS WAIT 0\\r\\nEVENTS WAIT 0\\r\\nECHO last\\r\\n")
said = b""
while not said.endswith(b"last\\r\\n"):
    said += s.recv(65536)
print(said.decode().split("session_page_id")[-1].replace("\\r\\n", " "))
"""


def test_what_it_does_not_read_coalesces(standalone, clients):
    """A program that knows nothing of events holds its lock for months, however often others ask for it."""
    c = clients(standalone)
    p = harness.spawn(command(standalone, "lock", "-F", "a", "/usr/bin/python3", "-c", READ_EVENTS),
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    for reason in ("first", "second", "third"):
        assert c.call("REVOKE", "a", reason) == 1
        assert c.call("LOCK", "a", "WAIT", 1100) is None  # it is told at most once a second
    out, _ = p.communicate("go\n", timeout=harness.PATIENCE)
    assert out.count("revoke") == 1 and "third" in out and "first" not in out


def test_a_command_that_cannot_take_our_place(standalone, tmp_path):
    done = run(standalone, "lock", "-F", "a", "no-such-command", env=os.environ | {"PATH": str(tmp_path)})
    assert done.returncode == 127 and "no-such-command" in done.stderr
    assert run(standalone, "lock", "-n", "a", "true").returncode == 0


# ---- --min-hold ----


@pytest.mark.plain_only("it is about time")
def test_a_lock_is_held_for_a_time_though_its_command_has_ended(broker, clients):
    c = clients(broker)
    began = time.monotonic()
    p = start(broker, "lock", "--min-hold", "1.5", "a", "sh", "-c", "echo ended; exit 5", says="ended")
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)
    assert time.monotonic() - began >= 1.4
    assert p.wait(harness.PATIENCE) == 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=str)
def test_a_signal_ends_that_and_the_status_is_the_commands(standalone, clients, number):
    c = clients(standalone)
    p = start(standalone, "lock", "--min-hold", "1000", "a", "sh", "-c", "echo ended; exit 5", says="ended")
    harness.wait_until(lambda: not unreaped(p.pid), "the command to be reaped")
    assert harness.end(p, number) == 5
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT], ids=str)
def test_a_signal_that_ends_the_command_ends_that_too(standalone, clients, number):
    p = start(standalone, "lock", "--min-hold", "1000", "a", "env", "--default-signal", "sh", "-c",
              "echo ready; exec sleep 1000", says="ready")
    assert harness.end(p, number) == 128 + number
    assert isinstance(clients(standalone).call("LOCK", "a", "WAIT", 20000), int)


def test_the_terminals_interrupt_ends_that_too(standalone):
    argv = command(standalone, "lock", "--min-hold", "1000", "a", "sh", "-c", "echo ready; exec sleep 1000")
    _, status = at_a_terminal(["env", "--default-signal", *argv], b"ready", b"\x03")
    assert status == 128 + signal.SIGINT


def test_a_command_that_a_signal_asked_to_end_may_have_done_its_work(standalone, clients):
    """So it says by its status 0."""
    p = start(standalone, "lock", "--min-hold", "1000", "a", "sh", "-c",
              "trap exit TERM; echo ready; while :; do sleep 0.05; done", says="ready")
    p.terminate()
    harness.wait_until(lambda: not unreaped(p.pid), "the command to be reaped")
    assert clients(standalone).call("LOCK", "a", "WAIT", 50) is None
    assert harness.end(p) == 0


def test_a_loss_after_the_command_has_ended_is_no_failure_of_it(standalone, clients):
    p = start(standalone, "lock", "--min-hold", "1000", "a", "sh", "-c", "echo ended; exit 5", says="ended")
    # After that it looks whether anything was lost by then, and sleeps.
    harness.wait_until(lambda: not unreaped(p.pid) and set(harness.thread_states(p.pid)) == {"S"},
                       "the command to be reaped")
    assert clients(standalone).call("FORCEUNLOCK", "a") == 1
    assert p.wait(harness.PATIENCE) == 5
    assert "sh had ended before." in p.stderr.read()


def test_a_lease_that_runs_out_after_the_command_has_ended_is_told_once(standalone):
    done = run(standalone, "lock", "-L", "0.7", "--min-hold", "1000", "a", "true")
    assert done.returncode == 0
    assert re.fullmatch("lockbroker: The lock a is lost: .* true had ended before.\n", done.stderr)


# ---- hold ----


def test_hold_prints_the_token_and_holds_while_somebody_can_read(broker, clients):
    c = clients(broker)
    p = start(broker, "hold", "a")
    token = int(p.stdout.readline())
    (holder,) = c.call("HOLDERS", "a")
    assert (holder["token"], holder["pid"], holder["name"]) == (token, p.pid, "hold")
    assert c.call("LOCK", "a", "WAIT", 0) is None
    p.stdout.close()
    assert p.wait(harness.PATIENCE) == 0 and p.stderr.read() == ""
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)


def test_hold_waits_no_longer_than_somebody_can_read(broker, clients):
    """A script that was killed, or has given up, leaves nobody in the queue."""
    c = clients(broker)
    c.call("LOCK", "a")
    p = start(broker, "hold", "a")
    harness.wait_queued(broker, "a", 1)
    p.stdout.close()
    assert p.wait(harness.PATIENCE) == 0 and p.stderr.read() == ""
    harness.wait_queued(broker, "a", 0)


def test_hold_whose_broker_is_away_waits_no_longer_than_somebody_can_read(standalone, clients):
    clients(standalone).call("LOCK", "a")
    p = start(standalone, "hold", "a")
    harness.wait_queued(standalone, "a", 1)
    standalone.kill()
    assert "Waiting for the broker to come back" in p.stderr.readline()
    p.stdout.close()
    assert p.wait(harness.PATIENCE) == 0


def test_hold_ends_with_a_signal(standalone, clients):
    p = start(standalone, "hold", "-s", "-a", "b", "a")
    assert re.fullmatch(r"\d+ \d+\n", p.stdout.readline())
    assert harness.end(p) == -signal.SIGTERM
    assert clients(standalone).call("MLOCK", 2, "a", "b", "WAIT", 20000)


def test_hold_that_cannot_have_it(standalone, clients):
    clients(standalone).call("LOCK", "a")
    for options, status in ((["-n"], 75), (["-w", "0.1", "-E", "3"], 3)):
        done = run(standalone, "hold", *options, "a")
        assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


@pytest.mark.parametrize("how", ["forced", "lease", "broker", "session"])
def test_hold_tells_of_a_loss(request, how):
    if how == "session":
        zk = request.getfixturevalue("own_zk")(tick_ms=harness.FAST_TICK_MS)
        d = request.getfixturevalue("daemons")(zk, **harness.FAST)
    else:
        zk, d = None, request.getfixturevalue("standalone")
    p = start(d, "hold", *(["-L", "0.5"] if how == "lease" else []), "a")
    assert p.stdout.readline().strip().isdigit()
    if how == "forced":
        assert request.getfixturevalue("clients")(d).call("FORCEUNLOCK", "a") == 1
    elif how == "broker":
        d.kill()
    elif zk:
        zk.signal(signal.SIGSTOP)
    out, err = p.communicate(timeout=harness.PATIENCE)
    if zk:
        zk.signal(signal.SIGCONT)
    why = {"forced": "an operator took it by force.",
           "lease": "(its lease has run out|the lease has run out, or there is no longer proof that it is held).",
           "broker": "the connection to lockbrokerd has ended.",
           "session": "(the host's session has run out: ZooKeeper was unreachable for too long|there is no longer proof that "
                      "it is held)."}
    assert (p.returncode, out) == (LOST, "lost\n") and re.search(f"The lock a is lost: {why[how]}\n", err)


@pytest.mark.parametrize("words", [("hold", "--json"), ("--json", "hold")], ids=" ".join)
def test_hold_speaks_json(standalone, clients, words):
    c = clients(standalone)
    p = start(standalone, *words, "-a", 'b"', "a")
    held = json.loads(p.stdout.readline())["held"]
    assert [h["name"] for h in held] == ["a", 'b"'] and held[0]["token"] == c.call("HOLDERS", "a")[0]["token"]
    assert c.call("FORCEUNLOCK", 'b"') == 1
    assert json.loads(p.communicate(timeout=harness.PATIENCE)[0]) == {"lost": 'b"'}


def test_a_script_holds_a_lock_by_a_descriptor(broker, clients):
    """The example of the manual."""
    done = line(broker, example("hold deploy") + """
        echo "$token"; lockbroker who deploy; exec 9<&-
        lockbroker lock -w 20 deploy echo free""")
    token, *rest = done.stdout.splitlines()
    assert done.returncode == 0 and token.isdigit() and rest[-1] == "free"
    assert any(token in row and " hold " in row for row in rest)
    clients(broker).call("LOCK", "deploy")
    done = line(broker, example("hold deploy").replace("hold", "hold -n", 1) + "echo run")
    assert done.returncode == 75 and "run" not in done.stdout


# ---- the manual's scripts ----


def example(mark):
    """The example in the manual that has that text, as a shell gets it."""
    (found,) = [text for text in pages.claimed("client-lib/man/lockbroker.1", __file__) if mark in text]
    return found


def test_a_script_locks_itself(broker, clients, tmp_path):
    script = tmp_path / "job"
    script.write_text("#!/bin/sh\n" + example("exec env") + 'echo "run $1 under $LOCKBROKER_NAME"; lockbroker who nightly\n')
    script.chmod(0o755)
    done = harness.run([script, "one"], env=harness.environment(broker.socket))
    assert done.returncode == 0 and done.stdout.startswith("run one under nightly\nholders:\n")
    clients(broker).call("LOCK", "nightly")
    done = harness.run([script], env=harness.environment(broker.socket))
    assert (done.returncode, done.stdout, done.stderr) == (75, "", "")


def test_the_line_of_a_crontab_says_nothing_where_another_host_runs(two_hosts, tmp_path):
    """cron sends a mail for each line that is printed, and some report each status that is not 0."""
    (job,) = [entry.split(None, 5)[5] for entry in example("* * *").splitlines() if "-n -E 0" in entry]
    (tmp_path / "backup").write_text("#!/bin/sh\necho run\n")
    (tmp_path / "backup").chmod(0o755)
    job = re.sub(r"/\S*/backup", str(tmp_path / "backup"), job)
    job = re.sub(r"--splay \S+", "--splay 0.1", job)
    name = re.search(r"(\S+) \S*/backup", job)[1]
    assert line(two_hosts[0], re.sub(r"--min-hold \S+", "", job)).stdout == "run\n"
    with two_hosts[1].client() as c:
        harness.wait_until(lambda: isinstance(c.call("LOCK", name, "WAIT", 20000), int), "the lock")
        done = line(two_hosts[0], job)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_other_line_of_the_crontab_runs_on_each_host_one_after_the_other(two_hosts, tmp_path):
    (job,) = [entry.split(None, 5)[5] for entry in example("* * *").splitlines() if "--splay" in entry]
    (tmp_path / "sync").write_text("#!/bin/sh\nmkdir only && echo run >>runs && rmdir only\n")
    (tmp_path / "sync").chmod(0o755)
    job = job.replace("/opt/sync", "./sync").replace("--splay 30", "--splay 0.1")
    jobs = [harness.spawn(["sh", "-c", job], env=harness.environment(host.socket), cwd=tmp_path) for host in two_hosts]
    assert [p.wait(harness.PATIENCE * 4) for p in jobs] == [0, 0]
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


# ---- at a terminal ----


def test_at_a_terminal_a_wait_is_shown(standalone, clients):
    c = clients(standalone)
    c.call("LOCK", "a")
    before = clients(standalone)
    before.send("LOCK", "a")
    harness.wait_queued(standalone, "a", 1)
    argv = command(standalone, "lock", "a", "true")
    shown, status = at_a_terminal(argv, b"in line", b"\x03", lines=0, columns=0)  # of a size that is not known
    assert status == -signal.SIGINT
    text = re.search(rb"\r(waiting [^\r\x1b]*)\x1b\[K", shown)[1].decode()
    assert re.fullmatch(rf"waiting \d s for a, held by {standalone.host} pid {os.getpid()} \S+, 2nd in line", text)


def test_at_a_terminal_the_line_goes_when_the_command_runs(standalone):
    argv = command(standalone, "lock", "-n", "a", *command(standalone, "lock", "-w", "4", "-E", "4", "--owner", "x", "b",
                                                           "true"))
    with standalone.client() as c:
        c.call("LOCK", "b")
        shown, status = at_a_terminal(argv, b"waiting", b"")
    assert status == 4
    assert re.search(rb"waiting \d s for b, held by [^\r]*\x1b\[K\r\x1b\[Klockbroker: The lock b is held on", shown)


def test_without_zookeeper_a_wait_says_so(daemons, root):
    d = daemons(harness.NoZookeeper, root)
    shown, status = at_a_terminal(command(d, "lock", "a", "true"), b"never connected", b"\x03")
    assert status == -signal.SIGINT and b"in line" not in shown
    assert re.search(rb"\rwaiting \d+ s for a, there is no connection to ZooKeeper [(]never connected", shown)


def waited(line, rest):
    """After how many seconds it says that, of the name and why."""
    match = re.match(r"lockbroker: Waiting (\d+) s for ", line)
    assert match and line[match.end():].startswith(rest), line
    return int(match[1])


@pytest.mark.parametrize("words, name", [(("lock", "a", "true"), "a"), (("hold", "--verbose", "a"), "a"), (("sem", "-l", "1", "s", "true"), "s"),
                                         (("campaign", "e", "me", "true"), "e")], ids=str)
def test_without_a_terminal_a_wait_without_zookeeper_says_so_now_and_then(daemons, root, words, name):
    """cron, Ansible and the journal show what is said there, and nothing else."""
    p = start(daemons(harness.NoZookeeper, root), *words)
    first, second = [waited(p.stderr.readline(), f"{name}: there is no connection to ZooKeeper (never connected") for _ in range(2)]
    assert first >= 5 and second >= 2 * first - 1
    p.terminate()
    assert p.communicate(timeout=harness.PATIENCE) == ("", "")


def test_without_a_terminal_a_wait_for_a_broker_says_so(standalone, daemons):
    """One that was never there, and one that hangs under a wait."""
    absent = start(None, "lock", "--connect", "1000", "a", "true")
    with standalone.client() as c:
        c.call("LOCK", "a")
        p = start(standalone, "lock", "a", "true")
        harness.wait_queued(standalone, "a", 1)
        with stopped(standalone):
            assert waited(p.stderr.readline(), "a: the broker does not answer.\n") >= 5
    assert p.wait(harness.PATIENCE) == 0
    assert waited(absent.stderr.readline(), "a: No lockbrokerd is serving /nonexistent/socket") >= 5
    absent.terminate()
    assert absent.communicate(timeout=harness.PATIENCE) == ("", "")


def test_without_a_terminal_verbose_says_who_holds_it(broker, clients):
    """And nothing is said without it: that somebody has it is what one waits for."""
    clients(broker).call("LOCK", "a")
    loud, mute = start(broker, "lock", "--verbose", "a", "true"), start(broker, "lock", "-w", "7", "a", "true")
    assert re.fullmatch(rf"lockbroker: Waiting \d+ s for a, held by {broker.host} pid {os.getpid()} \S+, \d\S\S in line\.\n",
                        loud.stderr.readline())
    loud.terminate()
    assert loud.communicate(timeout=harness.PATIENCE) == ("", "")
    assert mute.communicate(timeout=harness.PATIENCE) == ("", "") and mute.returncode == 75


def test_no_progress_where_it_is_no_terminal(standalone, clients):
    clients(standalone).call("LOCK", "a")
    done = run(standalone, "lock", "-w", "1.5", "a", "true")
    assert (done.returncode, done.stderr) == (75, "")
