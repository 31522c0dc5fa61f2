# SPDX-License-Identifier: Apache-2.0
"""The daemon goes and comes back: what it leaves to its successor, and what that one does with it."""

import os
import signal
import socket
import struct
import subprocess
import time

import pytest

import ensemble
import fakezk
import harness
import stat
from harness import FAST_TICK_MS, ROOMY
from mishaps import kill_and_start, standing_still
from saved import HOLD, LOAD, Saved, kill, processes, session_id, wait_announced, wait_known  # noqa: F401 (processes is a fixture)

# T = 8 s: safe for 5.3 s after the last proof, expired by the server not before 8.
SLOW = {"zookeeper__session_timeout_ms": 12000, "locks__grant_min_ms": 300}
SLOW_TICK_MS = 1000
LONG = {"zookeeper__session_timeout_ms": 40000}  # nobody waits for its end
AT_ONCE = 25  # seconds, on a busy machine; the sessions that are waited for in such a test are LONG


def others_wait(beta, clients, *names):
    made = []
    for name in names:
        made.append(clients(beta))
        made[-1].send("LOCK", name)
        harness.wait_queued(beta, name, 1)
    return made


# ---- what was left is ended ----


def test_killed_while_nothing_is_held_costs_nobody_a_moment(daemons, zk, root, clients):
    alpha, beta = daemons(zk, root, host="alpha", **LONG, locks__linger_ms=60000), daemons(zk, root, host="beta")
    c = clients(alpha)
    c.call("LOCK", "a")
    c.call("UNLOCK", "a")
    left = session_id(alpha)
    assert left in zk.sessions()
    began = time.monotonic()
    kill_and_start(alpha)
    token = clients(beta).call("LOCK", "a")
    assert isinstance(token, int) and time.monotonic() - began < AT_ONCE
    wait_announced(alpha)
    assert left not in zk.sessions()
    harness.wait_until(lambda: alpha.info()["leftover_sessions"] == "0", "its end to be known")
    assert "is over" in alpha.log()


def test_killed_with_its_holders_costs_nobody_a_moment(daemons, zk, root, clients, processes):
    alpha, beta = daemons(zk, root, host="alpha", **LONG), daemons(zk, root, host="beta")
    holder = processes(HOLD, alpha.socket, "a", "b")
    (b,) = others_wait(beta, clients, "a")
    wait_known(alpha)
    began = time.monotonic()
    alpha.kill()
    kill(holder)
    alpha.start()
    assert isinstance(b.reply(), int)
    assert isinstance(clients(alpha).call("LOCK", "b"), int)
    assert time.monotonic() - began < AT_ONCE


@pytest.mark.release_only("it lasts as long as a session")
@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_while_a_holder_lives_its_grant_is_respected(own_zk, daemons, clients, processes):
    zk = own_zk(tick_ms=SLOW_TICK_MS)
    alpha, beta = daemons(zk, **SLOW, host="alpha"), daemons(zk, **SLOW, host="beta")
    processes(HOLD, alpha.socket, "a")
    (b,) = others_wait(beta, clients, "a")
    asked = time.monotonic()
    safe_ms, killed = int(alpha.info()["safe_for_ms"]), time.monotonic()
    kill_and_start(alpha)
    info = alpha.info()
    assert info["leftover_sessions"] == "1" and 0 < int(info["leftover_wait_ms"]) <= 8100
    assert isinstance(clients(alpha).call("LOCK", "other"), int), "it serves meanwhile"
    assert isinstance(b.reply(), int) and time.monotonic() - asked >= safe_ms / 1000
    assert time.monotonic() - killed < 11.5, "the server alone would have taken longer"
    harness.wait_until(lambda: alpha.info()["leftover_sessions"] == "0", "its end to be known")
    assert alpha.info()["leftover_wait_ms"] == "0"


def test_when_the_last_holder_dies_the_wait_ends(daemons, zk, root, clients, processes):
    alpha, beta = (daemons(zk, root, host=host, **LONG) for host in ("alpha", "beta"))
    holders = [processes(HOLD, alpha.socket, name) for name in ("a", "b")]
    (b,) = others_wait(beta, clients, "a")
    wait_known(alpha)
    kill_and_start(alpha)
    assert int(alpha.info()["leftover_wait_ms"]) > 5000
    kill(holders[0])
    assert b.quiet(0.6), "one of them lives"
    assert alpha.info()["leftover_sessions"] == "1"
    began = time.monotonic()
    kill(holders[1])
    assert isinstance(b.reply(), int)
    assert time.monotonic() - began < AT_ONCE


@pytest.mark.parametrize("known", [False, True])
def test_a_child_that_was_left_the_lock_is_a_holder(daemons, zk, root, clients, known):
    """The command has ended; what it started in the background holds the lock on, also when the daemon is killed before
    it has learnt which connection that is. Once it is known, the wait ends with the child."""
    alpha, beta = (daemons(zk, root, host=host, **LONG) for host in ("alpha", "beta"))
    done = subprocess.run([harness.program("lockbroker"), "-S", alpha.socket, "lock", "a", "--", "sh", "-c",
                           "sleep 200 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True)
    child = int(done.stdout)
    try:
        if known:
            wait_known(alpha)
        kill_and_start(alpha)
        assert int(alpha.info()["leftover_wait_ms"]) > 4000
        b = clients(beta)
        b.send("LOCK", "a")
        assert b.quiet(1)
    finally:
        os.kill(child, signal.SIGKILL)
    if known:
        began = time.monotonic()
        assert isinstance(b.reply(), int) and time.monotonic() - began < AT_ONCE


class Cutter(fakezk.Gate):
    """Ends connections that continue that session, as many times, with the answer to the handshake."""

    def __init__(self, port):
        self.session, self.cuts, self.daemon = None, 0, None
        super().__init__(port)

    def _pass_on(self, connection):
        head = connection.recv(28, socket.MSG_PEEK | socket.MSG_WAITALL)
        if len(head) < 28 or not self.cuts or struct.unpack_from(">q", head, 20)[0] != self.session:
            super()._pass_on(connection)
            return
        self.cuts -= 1
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.sendall(connection.recv(1000))
            answer = server.recv(1000)
        # Both are there when it looks.
        with standing_still(self.daemon):
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_session_is_ended_however_often_the_connection_is_cut(ending, daemons, zk, root):
    """A server that has it and goes away is tried again: that is no farewell that was not heard, which is given up
    after ten."""
    cutter = ending(Cutter(zk.port))
    d = daemons(zk, root, host="alpha", **LONG, zookeeper__servers=cutter.address)
    left = Saved(d).session()
    cutter.daemon, cutter.session, cutter.cuts = d, left, 12
    kill_and_start(d)
    harness.wait_until(lambda: d.info()["leftover_sessions"] == "0", "its end to be known")
    assert cutter.cuts == 0 and "is over" in d.log() and "could not be ended" not in d.log()
    assert hex(left) not in zk.sessions()


def test_a_holder_that_nobody_waited_for_is_dead_all_the_same(daemons, zk, root, clients, processes):
    """A zombie holds nothing."""
    alpha, beta = daemons(zk, root, host="alpha", **LONG), daemons(zk, root, host="beta")
    holder = processes(HOLD, alpha.socket, "a")
    (b,) = others_wait(beta, clients, "a")
    wait_known(alpha)
    alpha.kill()
    holder.kill()  # and not waited for
    began = time.monotonic()
    alpha.start()
    assert isinstance(b.reply(), int)
    assert time.monotonic() - began < AT_ONCE


def test_another_process_of_the_same_number_is_no_holder(daemons, zk, root, clients):
    alpha, beta = daemons(zk, root, host="alpha", **LONG), daemons(zk, root, host="beta")
    a = clients(alpha)
    a.call("LOCK", "a")
    (b,) = others_wait(beta, clients, "a")
    wait_known(alpha)
    ((pid, start),) = Saved(alpha).holders()
    assert pid == os.getpid()
    alpha.kill()
    a.close()
    Saved(alpha).has_started(pid, start + 1)
    began = time.monotonic()
    alpha.start()
    assert isinstance(b.reply(), int)
    assert time.monotonic() - began < AT_ONCE


def test_killed_again_and_again_under_load(daemons, zk, root, clients, processes):
    alpha, beta = daemons(zk, root, host="alpha", **LONG, limits={"clients": 60}), daemons(zk, root, host="beta")
    for _ in range(2):
        load = processes(LOAD, alpha.socket, 50)
        held = []
        while not held or not Saved(alpha).known():  # there are moments in which nobody holds any
            alpha.signal(signal.SIGCONT)
            time.sleep(0.7)  # no wait: at any moment of the load
            alpha.signal(signal.SIGSTOP)
            harness.wait_until(lambda: alpha.state() == "T", "the daemon to stand still")
            held = Saved(alpha).holders()
        began = time.monotonic()
        alpha.kill()
        assert {pid for pid, _ in held} == {load.pid}
        kill(load)
        alpha.start()
        with beta.client() as b, alpha.client() as a:
            for name in "shared0", "shared1", "shared2", "own7":
                assert isinstance(b.call("LOCK", name), int)
                assert b.call("UNLOCK", name) == 0
                assert isinstance(a.call("LOCK", name), int)
                assert a.call("UNLOCK", name) == 0
        assert time.monotonic() - began < 2 * AT_ONCE
        harness.wait_until(lambda: Saved(alpha).holders() == [], "the table to be empty")
    assert Saved(alpha).leftovers() == []


# ---- what the daemon itself gives up is ended ----


@pytest.mark.release_only("it lasts as long as a session")
@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_after_a_long_outage_nobody_waits_for_sessions_that_were_given_up(own_zk, daemons, clients):
    """Servers that were restarted count anew, and would keep the znodes of sessions for which nobody speaks any more for
    T = 12 s."""
    zk = own_zk(tick_ms=SLOW_TICK_MS)
    alpha, beta = daemons(zk, **SLOW, host="alpha"), daemons(zk, **SLOW, host="beta")
    a = clients(alpha)
    assert isinstance(a.call("LOCK", "a"), int)
    (b,) = others_wait(beta, clients, "a")
    left = {session_id(d) for d in (alpha, beta)}
    zk.kill()
    harness.wait_until(lambda: all(d.info()["leftover_sessions"] == "1" for d in (alpha, beta)), "it to be given up")
    assert {hex(session) for d in (alpha, beta) for session in Saved(d).leftovers()} == left
    assert a.loss()[:2] == ["lost", "a"]
    for d in (alpha, beta):
        d.signal(signal.SIGSTOP)
    zk.start()
    assert left & set(zk.sessions()), "the servers have kept them"
    began = time.monotonic()
    for d in (alpha, beta):
        d.signal(signal.SIGCONT)
    assert isinstance(b.reply(), int)
    assert time.monotonic() - began < 10, "it was ended by the servers"
    harness.wait_until(lambda: not left & set(zk.sessions()), "both to be ended", 5)
    for d in alpha, beta:
        harness.wait_until(lambda: d.info()["leftover_sessions"] == "0", "its end to be known")
        assert "that this daemon gave up is over" in d.log()
        assert "second daemon" not in d.log()
        assert Saved(d).leftovers() == []
    assert a.call("LOCK", "a", "WAIT", 0).code == "LOST"


# ---- the file ----


def test_the_table_is_of_those_who_hold(daemons, zk, root, clients):
    d = daemons(zk, root)
    a, b = clients(d), clients(d)
    saved = Saved(d)
    assert os.stat(saved.path).st_mode & 0o777 == 0o600
    assert hex(saved.session()) == session_id(d)
    assert saved.holders() == []
    a.call("LOCK", "x")
    b.call("LOCK", "y")
    a.call("LOCK", "z")
    with open("/proc/self/stat") as f:
        start = int(f.read().rsplit(")", 1)[1].split()[19])
    assert saved.holders() == [(os.getpid(), start)] * 2
    a.call("UNLOCK", "x")
    assert len(saved.holders()) == 2
    a.call("UNLOCK", "z")
    assert len(saved.holders()) == 1
    b.close()
    harness.wait_until(lambda: saved.holders() == [], "the table to be empty")


def test_a_clean_stop_leaves_nothing(daemons, zk, root, clients):
    d = daemons(zk, root)
    with d.client() as c:
        c.call("LOCK", "x")
        c.call("UNLOCK", "x")
    assert d.terminate() == 0
    assert Saved(d).session() == 0
    d.start()
    assert d.info()["leftover_sessions"] == "0"
    assert "earlier daemon" not in d.log()


def garble(path):
    with open(path, "r+b") as f:
        f.write(b"\xff" * 600)


def cut(path):
    os.truncate(path, 583)


def other_version(path):
    with open(path, "r+b") as f:
        f.seek(4)
        f.write(struct.pack("=I", 99))


def open_to_others(path):
    os.chmod(path, 0o644)


def empty(path):
    os.truncate(path, 0)


def link(path):
    os.rename(path, path + ".elsewhere")
    os.symlink(path + ".elsewhere", path)


def pipe(path):
    os.unlink(path)
    os.mkfifo(path, 0o600)


def test_what_cannot_be_gone_by_is_told_and_replaced(daemons, zk, root, clients):
    """The session that it spoke of is left to its timeout, which is longer than a start takes, and refuses nobody."""
    for spoil in garble, cut, other_version, open_to_others, empty, link, pipe:
        name = spoil.__name__
        d = daemons(zk, root, **LONG, host=name)
        clients(d).call("LOCK", name)
        left = session_id(d)
        d.kill()
        spoil(Saved(d).path)
        d.start()
        assert "is not used" in d.log(), name
        assert left in zk.sessions(), f"{name}: it was ended"
        mode = os.stat(Saved(d).path, follow_symlinks=False).st_mode
        assert stat.S_ISREG(mode) and mode & 0o777 == 0o600, name
        assert hex(Saved(d).session()) == session_id(d), name
        if spoil is link:
            assert os.path.getsize(Saved(d).path + ".elsewhere") == len(Saved(d).read())
        ensemble.end_session(zk.port, int(left, 16))  # as its timeout does
        assert isinstance(clients(d).call("LOCK", name), int)
    for d in daemons.list:
        wait_announced(d)


@pytest.mark.parametrize("at, other", [("HOST", b"gamma\0"), ("BOOT_ID", b"another\0")])
def test_the_session_of_another_name_or_boot_is_left_alone(own_zk, daemons, clients, at, other):
    """The directory may be a copy, and the original's daemon alive."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **ROOMY, host="alpha")  # its servers keep the session for longer than a start takes
    wait_announced(d)
    left = session_id(d)
    d.kill()
    Saved(d).write(getattr(Saved, at), other)
    d.start()
    assert left in zk.sessions() and Saved(d).leftovers() == []
    assert "is not used: it is from another" in d.log()
