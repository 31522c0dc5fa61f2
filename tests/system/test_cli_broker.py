# SPDX-License-Identifier: Apache-2.0
"""`lockbroker lock` and a broker that goes away, is not there yet, or may not be used; what its command inherits."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import harness
from mishaps import stopped
from test_cli import command, run, start, started


def queued(daemon, *argv):
    p = start(daemon, *argv)
    harness.wait_queued(daemon, argv[-3], 1)
    return p


def goes_and_comes(daemon, how, p):
    """Ends it as is said, and starts it again once that process has said something, which is returned."""
    if how == "killed":
        daemon.kill()
    else:
        daemon.terminate()
    said = p.stderr.readline()
    daemon.start()
    return said


# ---- a broker that hangs ----


@pytest.mark.parametrize("options", [("-n",), ("-w", "0.5")], ids=str)
def test_a_broker_that_hangs_costs_a_try_little(standalone, options):
    def costs_little():
        """Which a busy machine may spoil."""
        began = time.monotonic()
        p = run(standalone, "lock", *options, "a", "--", "echo", "run")
        took = time.monotonic() - began
        assert (p.returncode, p.stdout) == (69, "") and "did not answer in time" in p.stderr
        assert took >= 2
        return took < 6

    with stopped(standalone):
        harness.wait_until(costs_little, "a try that takes less than six seconds")


# ---- a broker that goes away ----


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize("words", [("lock", "a"), ("sem", "-l", "1", "a"), ("lock", "-w", "60", "-a", "b", "a")], ids=" ".join)
def test_waiting_survives_a_restart(standalone, how, words):
    with standalone.client() as c:
        c.call(*(("ACQUIRE", "a", "LIMIT", 1) if words[0] == "sem" else ("LOCK", "a")))
        p = queued(standalone, *words, "echo", "run")
        time.sleep(0.2)  # the command takes a broker that stops within a moment for one that was stopping before
        err = goes_and_comes(standalone, how, p)
        assert p.wait(harness.PATIENCE) == 0
    assert (p.stdout.read(), p.stderr.read()) == ("run\n", "")
    assert err.endswith(". Waiting for the broker to come back.\n" if how == "killed" else
                        ": the daemon is stopping. Waiting until it grants again.\n")


def test_waiting_for_a_broker_ends_with_the_time_that_was_given(standalone):
    with standalone.client() as c:
        c.call("LOCK", "a")
        began = time.monotonic()
        p = queued(standalone, "lock", "-w", "2", "a", "echo", "run")
        standalone.kill()
        out, err = p.communicate(timeout=harness.PATIENCE)
    assert (p.returncode, out) == (69, "") and time.monotonic() - began >= 2
    assert err.splitlines()[0].endswith("back.") and standalone.socket in err.splitlines()[1]


# ---- a broker that is not there at first ----


@pytest.mark.parametrize("options", [(), ("--connect", "60"), ("-n", "--connect=60"), ("-w", "60")], ids=" ".join)
def test_a_broker_that_is_being_started_is_waited_for(standalone, options):
    standalone.kill()
    p = start(standalone, "lock", *options, "a", "--", "echo", "run")
    time.sleep(0.3)  # it waits for the broker without a word, and so that there are some attempts
    assert p.poll() is None
    standalone.start()
    assert p.communicate(timeout=harness.PATIENCE) == ("run\n", "") and p.returncode == 0


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
@pytest.mark.parametrize("options, least, most", [((), 5, 30), (("--connect", "0.5"), 0.5, 4), (("-n",), 0, 4),
                                                  (("-w", "0.5"), 0.5, 4), (("--connect=0",), 0, 4)], ids=str)
def test_a_broker_that_does_not_come_is_not_waited_for_longer(options, least, most):
    def ends_in_time():
        """Which a busy machine may spoil."""
        began = time.monotonic()
        done = run(None, "lock", *options, "a", "--", "echo", "run")
        took = time.monotonic() - began
        assert (done.returncode, done.stdout) == (69, "") and "/nonexistent/socket" in done.stderr
        assert took >= least and len(done.stderr.splitlines()) == 1
        return took < most

    harness.wait_until(ends_in_time, f"an end within {most} s")


def as_nobody(daemon, tmp_path, mode, directory_mode=0o755):
    """What a user gets who is neither root nor in the group; the program and the way to the socket are open."""
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.getuid() and str(path) not in ("/", "/tmp"):
            path.chmod(path.stat().st_mode | 0o055)
    place = tmp_path / "open"
    place.mkdir()
    shutil.copy(harness.program("lockbroker"), place / "lockbroker")
    d = daemon(daemon__socket=str(place / "socket"), daemon__socket_mode=mode)
    place.chmod(directory_mode)
    try:
        return harness.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", place / "lockbroker", "-S",
                            d.options["daemon.socket"], "lock", "a", "--", "true"])
    finally:
        place.chmod(0o755)


@pytest.mark.skipif(os.getuid() != 0, reason="takes another user")
def test_a_permission_problem_is_77_and_names_the_remedy(daemons, tmp_path):
    done = as_nobody(daemons, tmp_path, "0660")
    assert done.returncode == 77
    assert "the socket belongs to the group root; a member of it may. Set " in done.stderr and "daemon.socket_group" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="takes another user")
def test_who_is_not_in_the_sockets_group_is_told_how_to_become_a_member(daemons, tmp_path):
    done = as_nobody(lambda **conf: daemons(daemon__socket_group="daemon", **conf), tmp_path, "0660")
    assert done.returncode == 77
    assert "only the group daemon may" in done.stderr and "usermod -aG daemon USER" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="takes another user")
def test_a_socket_for_its_owner_only_names_the_key(daemons, tmp_path):
    done = as_nobody(daemons, tmp_path, "0600")
    assert done.returncode == 77 and "daemon.socket_mode" in done.stderr and "0600" in done.stderr


# ---- what the command inherits ----


@pytest.mark.parametrize("option", ["-o", "--close"])
def test_a_command_that_does_not_inherit_the_connection_does_not_keep_the_lock(broker, clients, option):
    c = clients(broker)
    done = run(broker, "lock", option, "a", "--", "sh", "-c",
               "echo \"fd ${LOCKBROKER_FD-none}\"; ls -l /proc/self/fd | grep -c socket; sleep 60 >/dev/null 2>&1 & echo $!",
               env=os.environ | {"LOCKBROKER_FD": "7"})
    said = done.stdout.splitlines()
    assert done.returncode == 0 and said[:2] == ["fd none", "0"]
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int), "what is left in the background does not hold it"
    os.kill(int(said[2]), signal.SIGKILL)


def test_a_command_that_does_not_inherit_is_ended_when_its_lockbroker_is_killed(broker, clients):
    p, child = started(broker, "sleep", "60", options=("-o",))
    harness.end(p, signal.SIGKILL)
    harness.wait_until(lambda: not harness.runs(child), "the command to end")
    assert isinstance(clients(broker).call("LOCK", "a", "WAIT", 20000), int)


def test_a_command_is_not_started_when_its_lockbroker_is_killed_before_it_could_be_told_of_that(standalone, tmp_path):
    trace = tmp_path / "trace"
    ran = tmp_path / "ran"
    p = harness.spawn(["strace", "-f", "-o", trace, "-e", "trace=prctl", "-e", "inject=prctl:delay_enter=3000000:when=1",
                       *command(standalone, "lock", "-o", "a", "--", "touch", str(ran))],
                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    harness.wait_until(lambda: p.poll() is not None or "PDEATHSIG" in (trace.read_text() if trace.exists() else ""),
                       "the command to be about to ask for a signal")
    if p.poll() == 1 and "ptrace" in p.stderr.read():
        pytest.skip("this host does not let us trace")
    os.kill(int(re.search(r"^(\d+) .*SUBREAPER", trace.read_text(), re.M)[1]), signal.SIGKILL)
    assert "is not started" in p.communicate(timeout=harness.PATIENCE)[1]
    assert not ran.exists()


def test_the_owner_has_its_long_option_only(broker):
    done = run(broker, "lock", "--owner", "me", "a", "--", "sh", "-c", "echo $LOCKBROKER_OWNER")
    assert done.stdout == "me\n"


# ---- nested ----


def nested(broker, outer, *inner):
    return run(broker, "lock", *outer, "--", *command(broker, "lock", *inner, "--", "echo", "run"))


@pytest.mark.parametrize("outer, inner", [
    (["a"], ["a"]), (["a"], ["-s", "a"]), (["-s", "a"], ["a"]), (["-a", "b", "two words"], ["-w", "60", "two words"]),
    (["a"], ["-a", "c", "a"]),
], ids=str)
def test_a_lock_that_a_command_around_holds_is_not_waited_for(broker, outer, inner):
    done = nested(broker, outer, *inner)
    assert (done.returncode, done.stdout) == (70, "")
    assert f"already runs under the lock {inner[-1]}" in done.stderr


def test_a_lock_that_a_command_further_out_holds_is_not_waited_for(broker):
    done = run(broker, "lock", "a", "--", *command(broker, "lock", "b", "--", *command(broker, "lock", "a", "--", "true")))
    assert done.returncode == 70


@pytest.mark.parametrize("outer, inner, status", [
    (["-s", "a"], ["-s", "a"], 0), (["a"], ["b"], 0), (["a"], ["-n", "a"], 75), (["ab"], ["b"], 0), (["a"], ["ab"], 0),
], ids=str)
def test_what_does_not_wait_for_itself_is_run(broker, outer, inner, status):
    assert nested(broker, outer, *inner).returncode == status


def test_an_environment_that_outlived_its_lock_means_nothing(broker):
    told = run(broker, "lock", "a", "--", "sh", "-c", 'echo "$LOCKBROKER_HELD"').stdout.strip()
    assert re.fullmatch(r"\d+ a", told)
    done = run(broker, "lock", "a", "--", "echo", "run", env=os.environ | {"LOCKBROKER_HELD": told})
    assert (done.returncode, done.stdout) == (0, "run\n")


# ---- who is shown ----


def holder(daemon, name="a"):
    with daemon.client() as c:
        return next(((h["pid"], h["command"]) for h in c.call("HOLDERS", name)), None)


def test_the_command_is_shown_when_its_lockbroker_has_ended_and_inheritors_as_such(broker, clients):
    p, child = started(broker, "sh", "-c", "sleep 60 & echo $!; exec sleep 60")
    left = int(p.stdout.readline())
    assert holder(broker) == (p.pid, "lockbroker")
    harness.end(p, signal.SIGKILL)
    harness.wait_until(lambda: holder(broker) == (child, "sleep"), "the command to be shown")
    assert re.match(rf"held on this host, pid {child} \(sh\), for ", run(broker, "why", "a").stdout)
    os.kill(child, signal.SIGKILL)
    harness.wait_until(lambda: holder(broker) == (0, "inherited"), "that nobody who is known is there any longer")
    assert re.match(r"held on this host, inherited, for ", run(broker, "why", "a").stdout)
    os.kill(left, signal.SIGKILL)
    assert isinstance(clients(broker).call("LOCK", "a", "WAIT", 20000), int)


# Says that this process is its child, and leaves the connection to one that nobody was told of.
TELL_AND_LEAVE = """
import socket, subprocess, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"LOCK %s\\r\\nCLIENT SETINFO CHILD %s\\r\\n" % (sys.argv[3].encode(), sys.argv[2].encode()))
said = b""
while said.count(b"\\n") < 2:
    said += s.recv(100)
p = subprocess.Popen(["sleep", "60"], pass_fds=[s.fileno()], stdout=subprocess.DEVNULL)
print(p.pid, flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="takes another user")
def test_a_process_of_another_user_is_not_believed_to_be_ones_own(standalone):
    def told(pid, name):
        p = harness.spawn(["/usr/bin/python3", "-c", TELL_AND_LEAVE, standalone.socket, str(pid), name], stdout=subprocess.PIPE)
        left = int(p.stdout.readline())
        p.wait()
        return p.pid, left

    with subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "60"]) as other, \
            subprocess.Popen(["sleep", "60"]) as own:
        peer, left = told(other.pid, "a")
        _, left_later = told(own.pid, "b")
        harness.wait_until(lambda: holder(standalone, "b") == (own.pid, "sleep"), "its own to be shown")
        assert holder(standalone, "a")[0] == peer, "of what was said earlier"
        for pid in left, left_later:
            os.kill(pid, signal.SIGKILL)
        harness.wait_until(lambda: not holder(standalone, "a") and not holder(standalone, "b"), "the end of the connections")
        other.kill()
        own.kill()


def test_processes_are_not_looked_at_as_often_as_somebody_tells_of_one(standalone, clients):
    def reads():
        with open(f"/proc/{standalone.pid}/io") as f:
            return int(re.search(r"syscr: (\d+)", f.read())[1])

    tellers = [clients(standalone) for _ in range(16)]
    for c in tellers:
        assert c.call("CLIENT", "SETINFO", "CHILD", os.getpid()) == "OK"
    before, began = reads(), time.monotonic()
    for _ in range(1000):
        tellers[0].call("CLIENT", "SETINFO", "CHILD", os.getpid())
    looks = (time.monotonic() - began) / 0.02 + 3
    assert reads() - before <= looks * 16 * 4, "four files of each of 16, fifty times a second"
