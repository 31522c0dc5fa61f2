# SPDX-License-Identifier: Apache-2.0
"""Several processes to which one lock is delegated for reading, and a writer on another host. The session is lost, the daemon
is killed or paused, or readers are killed or paused."""

import signal

import pytest

import fakezk
import harness
from delegation import CONF
from library import token_of
from saved import wait_process_kept

OPERATORS = True  # see clients of conftest.py

FAST = harness.FAST | CONF
READERS = 4


class Readers:
    """Programs to which the lock `a` is delegated, and which hold it."""

    def __init__(self, daemon, programs):
        self.daemon = daemon
        self.all = [programs(daemon.socket) for _ in range(READERS)]
        for p in self.all:
            assert p.do("open") == "OK 0"
        harness.wait_until(self.keep_it, "the lock to be delegated to all")
        for p in self.all:
            self.token = token_of(p.do("shared 0 a -1"))

    def keep_it(self):
        for p in self.all:
            token_of(p.do("shared 0 a -1"))
            assert p.do("unlock 0 a") == "OK 0"
        return self.daemon.info()["delegations"] == str(READERS)


def result(answer):
    return answer.split()[0]


@pytest.fixture
def gate(own_zk):
    """A ZooKeeper server, and the gate through which alpha reaches it."""
    server = own_zk(tick_ms=harness.FAST_TICK_MS)
    way = fakezk.Gate(server.port)
    yield server, way
    way.end()


@pytest.fixture
def hosts(gate, root, daemons):
    server, way = gate
    return daemons(way, root, host="alpha", **FAST), daemons(server, root, host="beta", **FAST)


@pytest.mark.parametrize("how", ["cut", "stopped"])
def test_a_lost_session_takes_the_lock_from_all_readers(hosts, gate, clients, programs, how):
    """No reader holds the lock any longer when the writer of another host gets it. Each reader learns of the loss from its
    next call, whatever call that is. A paused daemon can tell nobody: the readers see the loss in the session page."""
    (alpha, beta), way = hosts, gate[1]
    readers = Readers(alpha, programs)
    leaves, looks, enters, free = readers.all
    assert free.do("unlock 0 a") == "OK 0"
    writer = clients(beta)
    if how == "cut":
        way.shut()
    else:
        alpha.signal(signal.SIGSTOP)
    writer.send("LOCK", "a")
    while how == "cut" and writer.quiet(0.01):
        if result(free.do("shared 0 a 0")) == "OK":
            free.do("unlock 0 a")
    assert writer.reply() > readers.token
    assert looks.do("valid 0 a") == "OK 0"
    calls = {leaves: "unlock 0 a", looks: "unlock 0 a", enters: "shared 0 a 0", free: "shared 0 a 0"}
    for p, call in calls.items():
        p.tell(call)
    if how == "stopped":
        alpha.signal(signal.SIGCONT)
    answers = [result(p.hear()) for p in calls]
    assert answers[:3] == ["LOST"] * 3 and answers[3] in ("TAKEN", "UNAVAILABLE")
    assert writer.call("UNLOCK", "a") == 0


def test_a_kill_leaves_readers_the_lock_they_hold(zk, root, daemons, clients, programs):
    """Two readers hold the lock and two do not. One of each is paused before the kill."""
    alpha, beta = (daemons(zk, root, host=host, **CONF) for host in ("alpha", "beta"))
    readers = Readers(alpha, programs)
    inside, inside_still, outside, outside_still = readers.all
    for p in outside, outside_still:
        assert p.do("unlock 0 a") == "OK 0"
    wait_process_kept(alpha, *(p.process.pid for p in readers.all))
    for p in inside_still, outside_still:
        p.process.send_signal(signal.SIGSTOP)
    alpha.crash()
    looks, writer = clients(alpha), clients(beta)
    harness.wait_until(lambda: len(looks.call("HOLDERS", "a")) == 2, "the next process to take back what is free")
    writer.send("LOCK", "a")
    harness.wait_queued(beta, "a", 1)
    assert inside.do("unlock 0 a") == "OK 0"
    assert writer.quiet()
    inside_still.process.kill()
    assert writer.reply() > readers.token
    outside_still.tell("shared 0 a 0")
    outside_still.process.send_signal(signal.SIGCONT)
    assert [result(answer) for answer in (outside.do("shared 0 a 0"), outside_still.hear())] == ["TAKEN"] * 2
    assert writer.call("UNLOCK", "a") == 0
    assert token_of(outside.do("shared 0 a -1")) > readers.token
    inside_still.process.wait()
