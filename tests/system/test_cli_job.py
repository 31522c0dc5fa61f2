# SPDX-License-Identifier: Apache-2.0
"""What `lockbroker lock` owes its command when nobody reads its messages, when the broker hangs, and when it was itself
stopped: signals first."""

import ctypes
import fcntl
import os
import signal
import struct
import subprocess
import termios
import time

import pytest

import harness
from mishaps import stopped
from test_cli import LOST, terminal, command, read_until, run, start, started
from test_library import Impostor

OPERATORS = True  # see clients of conftest.py


def full_pipe():
    """(read end, write end): not a byte more goes in."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x")
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def all_of(reader, end):
    """What comes from there, up to that mark."""
    return read_until(reader, end).lstrip(b"x").decode()


# None is lost between two looks, as may be with handlers.
HEEDING = """
import os, signal, sys
os.close(2)
signals = {signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print(os.getpid(), flush=True)
while True:
    number = signal.sigwait(signals)
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM and sys.argv[1] == "ends":
        sys.exit(7)
"""


def start_deaf(daemon, stderr, *options, names=("a",), on_term="ends"):
    """A command that tells of SIGTERM, SIGUSR1 and SIGPIPE, and says nothing on its standard error output."""
    p = harness.spawn(command(daemon, "lock", *options, *(f"-a{name}" for name in names[1:]), names[0], "/usr/bin/python3", "-c", HEEDING, on_term),
                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True)
    return p, int(p.stdout.readline())


# ---- messages ----


def test_a_loss_ends_the_command_though_nobody_reads_our_messages(standalone):
    """Pitfall 8."""
    reader, writer = full_pipe()
    p, child = start_deaf(standalone, writer, "-k", "0.3", on_term="goes on")
    standalone.kill()
    assert p.wait(harness.PATIENCE) == LOST
    assert not harness.runs(child)
    os.close(reader)
    os.close(writer)


def test_what_could_not_be_said_is_said_when_it_can_be_and_the_rest_counted(standalone, clients):
    c = clients(standalone)
    reader, writer = full_pipe()
    p, _ = start_deaf(standalone, writer, "-r", "USR1", names="abcd")
    os.close(writer)
    for name in "abc":
        assert c.call("REVOKE", name, "please") == 1
        assert p.stdout.readline() == "SIGUSR1\n", "the signal does not wait for the message"
    assert all_of(reader, rb"written\.\n").splitlines() == [
        "lockbroker: Somebody asks for the lock a: please.", "lockbroker: 2 messages could not be written."]
    assert c.call("REVOKE", "d", "please") == 1
    assert all_of(reader, rb"\.\n") == "lockbroker: Somebody asks for the lock d: please.\n"
    p.terminate()
    p.wait(harness.PATIENCE)
    os.close(reader)


def test_a_terminal_that_is_stopped_stops_nothing_else(standalone):
    argv = command(standalone, "lock", "-k", "0.3", "a", "--", "sh", "-c",
                   "echo ready; exec >/dev/null 2>&1; trap '' TERM; while :; do sleep 0.05; done")
    pid, fd = terminal(argv)
    read_until(fd, b"ready")
    fcntl.ioctl(fd, termios.TIOCPKT, struct.pack("i", 1))  # from now on the first byte says what has happened to the terminal
    os.write(fd, b"\x13")
    while not os.read(fd, 4096)[0] & termios.TIOCPKT_STOP:
        pass
    standalone.kill()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == LOST
    os.close(fd)


def test_messages_of_many_are_whole_lines(standalone, clients):
    c = clients(standalone)
    c.call("LOCK", "a")
    reader, writer = os.pipe()
    many = [harness.spawn(command(standalone, "lock", "-n", "--verbose", "a", "true"), stdin=subprocess.DEVNULL, stderr=writer)
            for _ in range(100)]
    os.close(writer)
    with os.fdopen(reader) as f:
        lines = f.read().splitlines()
    assert [p.wait(harness.PATIENCE) for p in many] == [75] * 100
    assert len(lines) == 100 and len(set(lines)) == 1 and lines[0].startswith("lockbroker: The lock a is held")


@pytest.mark.plain_only("what looks for leaks cannot be traced")
def test_a_message_is_one_write(standalone, tmp_path):
    trace = tmp_path / "trace"
    for words in (["lock", "a"], ["who"], ["lock", "..", "--", "true"]):
        done = harness.run(["strace", "-f", "-e", "trace=write", "-o", trace, *command(standalone, *words)])
        if done.returncode == 1 and "ptrace" in done.stderr:
            pytest.skip("this host does not let us trace")
        assert done.returncode == 64
        assert trace.read_text().count("write(2, ") == 1


def test_who_can_have_no_timer_is_told_all_the_same(standalone):
    """A message that might wait is written under a timer, of which a user may have used up all."""
    done = subprocess.run(["prlimit", "--sigpending=0", *command(standalone, "lock", "..", "true")], capture_output=True, text=True)
    assert done.returncode == 64 and "a lock name is" in done.stderr


def test_a_closed_pipe_does_not_end_the_command(standalone, clients):
    c = clients(standalone)
    reader, writer = os.pipe()
    p, _ = start_deaf(standalone, writer, "-r", "USR1")
    os.close(reader)
    os.close(writer)
    assert c.call("REVOKE", "a", "please") == 1
    assert p.stdout.readline() == "SIGUSR1\n", "after the message could not be written"
    p.send_signal(signal.SIGPIPE)  # not to be passed on either
    p.terminate()
    assert p.communicate(timeout=harness.PATIENCE)[0] == "SIGTERM\n"
    assert p.returncode == 7


@pytest.mark.parametrize("ignored", [False, True])
def test_the_command_gets_sigpipe_as_it_would_without_us(standalone, ignored):
    line = " ".join(command(standalone, "lock", "a", "--", "grep", "SigIgn", "/proc/self/status"))
    done = harness.spawn(["sh", "-c", ("trap '' PIPE; " if ignored else "") + f"exec {line}"], stdout=subprocess.PIPE,
                         text=True)
    mask = int(done.communicate(timeout=harness.PATIENCE)[0].split()[1], 16)
    assert bool(mask & 1 << signal.SIGPIPE - 1) == ignored


HARM = "\u202e\x1b[2J"


@pytest.mark.parametrize("words, answer", [
    (["info"], "$\r\nx:HARM\r\ny"), (["audit"], "%1\r\n+HARM\r\n:1\r\n"), (["why", "a"], "-ERR HARM\r\n"),
    (["hosts"], "*1\r\n%1\r\n+host\r\n+HARM\r\n"), (["call", "PING"], ",HARM\r\n"), (["call", "PING"], "-ERR HARM\r\n"),
    (["lock", "a", "--", "true"], "-ERR HARM\r\n"), (["leader", "a"], "-ERR HARM\r\n"),
], ids=lambda x: x[0] if isinstance(x, list) else x[0])
def test_nothing_of_a_broker_steers_the_terminal(tmp_path, words, answer):
    body = answer.replace("HARM", HARM)
    if body[0] == "$":
        text = body[3:]
        body = f"${len(text.encode())}\r\n{text}\r\n"
    path = str(tmp_path / "s")
    hello = "%1\r\n+server\r\n+lockbroker\r\n"
    hello += "+OK\r\n" if words[0] == "lock" else ""  # the name comes with the greeting
    impostor = Impostor(path, [text.encode() for text in (hello, body)])
    done = harness.run([harness.program("lockbroker"), "-S", path, *words])
    impostor.end()
    said = done.stdout + done.stderr
    assert "[2J" in said and not any(c in said for c in "\u202e\x1b")


def test_a_name_does_not_steer_the_terminal(standalone, clients):
    c = clients(standalone)
    name = "x\u202ey"
    c.call("LOCK", name)
    for words in (["lock", "-n", "--verbose", name, "true"], ["revoke", "none", "a\u202eb\x1b[2J"], ["call", "PING", "\x1b[2J"]):
        done = run(standalone, *words)
        assert "\u202e" not in done.stderr + done.stdout and "\x1b" not in done.stderr + done.stdout
    assert "x\\u202ey" in run(standalone, "lock", "-n", "--verbose", name, "true").stderr


# ---- signals ----


def test_who_asks_once_is_told_once(standalone, clients):
    """A revoke is one signal, whatever else happens after it."""
    c = clients(standalone)
    p, _ = start_deaf(standalone, subprocess.DEVNULL, "-r", "USR1")
    assert c.call("REVOKE", "a") == 1
    assert p.stdout.readline() == "SIGUSR1\n"
    assert c.call("LOCK", "a", "WAIT", 1200) is None  # for longer than it is between two looks at the proof
    assert c.call("FORCEUNLOCK", "a") == 1
    assert p.communicate(timeout=harness.PATIENCE)[0] == "SIGTERM\n"
    assert p.returncode == LOST


def test_a_loss_before_the_end_is_one_though_it_is_seen_after_it(standalone, clients):
    """The lockbroker process stood still while the lock was lost and the command ended."""
    p, child = started(standalone, "sleep", "60")
    p.send_signal(signal.SIGSTOP)
    assert clients(standalone).call("FORCEUNLOCK", "a") == 1
    os.kill(child, signal.SIGKILL)
    harness.wait_until(lambda: not harness.runs(child), "the command to end")
    p.send_signal(signal.SIGCONT)
    assert p.wait(harness.PATIENCE) == LOST


# Python's own sigwaitinfo() does not tell the value.
REALTIME = """
import ctypes, signal
libc, chosen, info = ctypes.CDLL(None), ctypes.create_string_buffer(128), (ctypes.c_int * 32)()
libc.sigemptyset(chosen)
for number in (signal.SIGRTMIN, signal.SIGRTMAX):
    libc.sigaddset(chosen, number)
libc.sigprocmask(signal.SIG_BLOCK, chosen, None)
print("ready", flush=True)
for _ in range(3):
    print(libc.sigwaitinfo(chosen, info), info[6] if info[2] == -1 else None, flush=True)
"""


def test_real_time_signals_are_forwarded_with_their_values(standalone):
    p = start(standalone, "lock", "a", "--", "/usr/bin/python3", "-c", REALTIME, says="ready")
    first, last = signal.SIGRTMIN, signal.SIGRTMAX
    for number, value in ((first, None), (first, 17), (last, 18)):
        if value is None:
            p.send_signal(number)
        else:
            ctypes.CDLL(None).sigqueue(p.pid, number, ctypes.c_void_p(value))
        assert p.stdout.readline() == f"{int(number)} {value}\n"
    assert p.wait(harness.PATIENCE) == 0


# The command leaves a process behind, which forks some time after the command has ended.
LATE_FORK = """
import os, signal, time
reader, writer = os.pipe()
if os.fork() > 0:
    signal.pause()
os.close(writer)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
os.read(reader, 1)
time.sleep(0.5)  # nobody is told when the last look is over
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
if os.fork() == 0:
    print("forked", flush=True)
    print(signal.Signals(signal.sigwait([signal.SIGUSR1])).name, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_signal_reaches_what_was_forked_since_the_last_look(standalone, clients):
    """After a loss, while what the command left has its grace."""
    p = start(standalone, "lock", "-k", "50", "a", "--", "/usr/bin/python3", "-c", LATE_FORK, says="ready")
    assert clients(standalone).call("FORCEUNLOCK", "a") == 1
    assert p.stdout.readline() == "forked\n"
    p.send_signal(signal.SIGUSR1)
    assert p.stdout.readline() == "SIGUSR1\n"
    assert p.wait(harness.PATIENCE) == LOST


# ---- the proof ----


def without_page(daemon):
    """As for a client in a container that sees only the socket."""
    os.unlink(f"{daemon.dir}/session")


def test_without_the_page_the_proof_is_what_the_broker_answered_last(own_zk, daemons):
    """Pitfall 8. A hung daemon is not waited for longer than it has proven, and signals go on."""
    d = daemons(own_zk(tick_ms=1000), zookeeper__session_timeout_ms=6000, locks__grant_min_ms=300)
    without_page(d)
    p, _ = started(d, "sh", "-c", "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done")
    assert p.stdout.readline() == "ready\n"
    with d.client() as c:
        harness.wait_until(lambda: f"pid={p.pid} uid={os.getuid()} cmd=valid " in c.call("CLIENT", "LIST"), "it to be asked")
    with stopped(d):
        began = time.monotonic()
        time.sleep(1)  # so that it asks, of which a broker that is stopped says nothing
        p.send_signal(signal.SIGUSR1)
        assert p.stdout.readline() == "usr1\n"
        assert time.monotonic() - began < 4, "while the question stands"
        _, err = p.communicate(timeout=harness.PATIENCE)
        took = time.monotonic() - began
    assert p.returncode == LOST and "no longer proof" in err
    assert took < 6 + 0.5, "no later than the session could expire"


def test_without_the_page_the_command_goes_on_while_the_broker_answers(daemons, zk, root):
    d = daemons(zk, root)
    without_page(d)
    p, _ = started(d, "sleep", "1.5")
    assert p.wait(harness.PATIENCE) == 0 and p.stderr.read() == ""


@pytest.mark.parametrize("page", [True, False])
def test_what_was_lost_before_its_command_was_started_is_not_started(standalone, clients, page):
    """It was stopped when it got the lock, as by a laptop that sleeps."""
    c = clients(standalone)
    if not page:
        without_page(standalone)
    c.call("LOCK", "a")
    p = start(standalone, "lock", "a", "--", "echo", "run")
    harness.wait_queued(standalone, "a", 1)
    p.send_signal(signal.SIGSTOP)
    c.call("UNLOCK", "a")
    harness.wait_until(lambda: c.call("HOLDERS", "a"), "the grant")
    assert c.call("FORCEUNLOCK", "a") == 1
    p.send_signal(signal.SIGCONT)
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert (p.returncode, out) == (LOST, "")
    assert err == "lockbroker: The lock a is lost: an operator took it by force. echo is not started.\n"


def test_what_was_proven_too_long_ago_is_not_started(own_zk, daemons):
    d = daemons(own_zk(tick_ms=harness.FAST_TICK_MS), **harness.FAST)
    with d.client() as c:
        c.call("LOCK", "a")
        p = start(d, "lock", "a", "--", "echo", "run")
        harness.wait_queued(d, "a", 1)
        p.send_signal(signal.SIGSTOP)
        c.call("UNLOCK", "a")
        harness.wait_until(lambda: c.call("HOLDERS", "a"), "the grant")
        with stopped(d):
            time.sleep(3.5)  # only time is too long: both are stopped
            p.send_signal(signal.SIGCONT)
            out, err = p.communicate(timeout=harness.PATIENCE)
    assert (p.returncode, out) == (LOST, "") and "echo is not started" in err
