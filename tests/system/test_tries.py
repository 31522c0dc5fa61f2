# SPDX-License-Identifier: Apache-2.0
"""A try, WAIT 0 or `lockbroker lock -n`, when another host has the lock, or had it a moment ago."""

import os
import time

import pytest

import harness
from mishaps import stopped
from peers import curator_peer, place  # noqa: F401 (fixtures)
from test_cli import run

LINGERS = {"locks__linger_ms": 60000}
# On a busy machine an idle host may take longer than the usual 100 ms to notice that it is asked for its claim.
PATIENT = LINGERS | {"locks__try_ms": 1000}
JOBS = 30

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:kazoo")


def hosts(daemons, zk, root, **conf):
    return daemons(zk, root, host="alpha", **conf), daemons(zk, root, host="beta", **conf)


def test_a_job_that_ended_on_another_host_is_not_in_the_way(daemons, zk, root):
    alpha, beta = hosts(daemons, zk, root, **PATIENT)
    for _ in range(JOBS):
        assert run(alpha, "lock", "a", "--", "true").returncode == 0
        assert run(beta, "lock", "-n", "a", "--", "true").returncode == 0


def test_readers_do_not_refuse_a_try_to_read(daemons, zk, root, clients):
    alpha, beta = hosts(daemons, zk, root, **PATIENT)
    assert clients(alpha).call("LOCK", "a", "SHARED") > 0
    assert clients(beta).call("LOCK", "a", "SHARED", "WAIT", 0) > 0


@pytest.mark.parametrize("try_ms", [0, 200])
def test_an_idle_host_that_does_not_answer_is_waited_for_so_long(daemons, zk, root, clients, try_ms):
    alpha, beta = hosts(daemons, zk, root, **LINGERS | {"locks__try_ms": try_ms})
    a, b = clients(alpha), clients(beta)
    a.call("LOCK", "a")
    a.call("UNLOCK", "a")
    with stopped(alpha):
        began = time.monotonic()
        assert b.call("LOCK", "a", "WAIT", 0) is None
        assert time.monotonic() - began >= try_ms / 1000


def test_who_is_refused_is_told_by_whom_it_is_held_and_nobody_is_asked(daemons, zk, root, clients):
    alpha, beta = hosts(daemons, zk, root)
    a, b = clients(alpha), clients(beta)
    assert b.call("HOLDERS", "a", "KNOWN") == []
    a.call("LOCK", "a", "DATA", "nightly")
    words = f"The lock a is held on host alpha by pid {os.getpid()} ("
    assert words in run(alpha, "lock", "-n", "--verbose", "a", "true").stderr

    def told():
        done = run(beta, "lock", "-n", "--verbose", "a", "true")
        assert done.returncode == 75 and "The lock a is held" in done.stderr
        return words in done.stderr

    harness.wait_until(told, "the holder to say who it is")
    assert words in run(beta, "lock", "-w", "0.2", "--verbose", "a", "true").stderr
    (holder,) = b.call("HOLDERS", "a", "KNOWN")
    assert (holder["host"], holder["data"]) == ("alpha", "nightly")
    assert b.call("HOLDERS", "a", "WHAT").code == "ERR"
    before = operations(beta)[1]
    for _ in range(100):
        b.call("HOLDERS", "a", "KNOWN")
    assert operations(beta)[1] - before < 50


def operations(daemon):
    stats = daemon.info("stats")
    return int(stats["zk_writes_total"]), int(stats["zk_reads_total"])


def test_many_tries_of_a_held_lock_ask_zookeeper_once(daemons, zk, root, clients):
    """The first one joins, reads and leaves; the others are answered from what it saw, for a second. Of the holder they
    cost one write. Whatever else goes through ZooKeeper meanwhile, heartbeats above all, is bounded by the time it takes."""
    alpha, beta = hosts(daemons, zk, root)
    a, b = clients(alpha), clients(beta)
    a.call("LOCK", "a")
    harness.wait_until(lambda: b.call("LOCK", "a", "WAIT", 0) is None and seen(b), "the holder to say that it holds it")
    before, began = [operations(d) for d in (alpha, beta)], time.monotonic()
    tries = 500
    for _ in range(tries):
        assert b.call("LOCK", "a", "WAIT", 0) is None
    seconds = 1 + int(time.monotonic() - began)
    (a_writes, a_reads), (b_writes, b_reads) = [
        [now - then for now, then in zip(operations(d), was)] for d, was in zip((alpha, beta), before)]
    # In each second: the join and the leave, the list and the read; of the holder a list. And a heartbeat each.
    assert a_writes <= 1 + seconds and a_reads <= 1 + seconds
    assert b_writes <= 3 * seconds and b_reads <= 4 * seconds
    assert b_writes + b_reads < tries


def seen(client):
    """What was read of the holder is that it holds the lock: a further try costs nothing, and no time."""
    began = time.monotonic()
    for _ in range(20):
        assert client.call("LOCK", "a", "WAIT", 0) is None
    return time.monotonic() - began < 20 * 0.1


@pytest.mark.parametrize("flavour, kind", [("mutex", "curator-mutex"), ("rw", "curator-write"), ("kazoo", "kazoo-lock")])
def test_other_software_is_not_waited_for(place, flavour, kind):
    """A second each would be lost, also on a machine that is not busy."""
    theirs, ours = place.theirs(kind), place.ours(place.daemon(flavour, **PATIENT))
    assert theirs.try_for(20000)

    def nothing_lost():
        began = time.monotonic()
        assert not any(ours.try_for(0) for _ in range(5))
        return time.monotonic() - began < 5

    harness.wait_until(nothing_lost, "five tries that take less than five seconds")
    theirs.release()
    harness.wait_until(lambda: ours.try_for(0), "its znode to be gone")


@pytest.mark.parametrize("flavour, kind", [("mutex", "curator-mutex"), ("rw", "curator-write"), ("kazoo", "kazoo-lock")])
def test_other_software_waits_for_what_a_try_was_granted(place, flavour, kind):
    """The name of a try's znode is one like any other."""
    theirs, ours = place.theirs(kind), place.ours(place.daemon(flavour, **PATIENT))
    assert ours.try_for(0)
    place.queue(theirs.ask)
    assert theirs.waits()
    ours.release()
    assert theirs.served()
