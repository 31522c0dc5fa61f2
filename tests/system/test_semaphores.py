# SPDX-License-Identifier: Apache-2.0
"""Counting semaphores: among the clients of a host, among hosts, and with Curator's InterProcessSemaphoreV2."""

import concurrent.futures
import os
import signal
import time

import pytest

import harness
import test_cli
from harness import FAST, FAST_TICK_MS
from mishaps import stopped
from peers import HOLD_S, CuratorSemaphore, Inside, Race, curator_peer  # noqa: F401 (a fixture)

OPERATORS = True  # see clients of conftest.py

SOON = 20000  # milliseconds: a wait that is expected to end well before


@pytest.fixture
def look(zk, kazoo_client):
    return kazoo_client(zk)


def leases(look, root):
    return look.get_children(f"{root}/s/leases") if look.exists(f"{root}/s/leases") else []


# ---- on one host, with and without ZooKeeper ----


def test_the_end_of_a_client_gives_its_permits_back(broker, clients):
    a, b = clients(broker), clients(broker)
    assert a.call("ACQUIRE", "s", "LIMIT", 3, "COUNT", 3) == 3
    b.send("ACQUIRE", "s", "LIMIT", 3, "COUNT", 2)
    assert b.quiet()
    a.close()
    assert b.reply() == 2


def test_holders_and_queue_show_permits(broker, clients):
    a, b = clients(broker), clients(broker)
    a.call("CLIENT", "SETNAME", "keeper")
    assert a.call("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2) == 2
    b.send("ACQUIRE", "s", "LIMIT", 2)
    harness.wait_queued(broker, "s", 1)
    (holder,) = a.call("HOLDERS", "s")
    assert (holder["name"], holder["depth"]) == ("keeper", 2)
    assert len(a.call("QUEUE", "s")) == 1


def test_permits_with_a_lease_come_back(broker, clients):
    a, b = clients(broker), clients(broker)
    assert a.call("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2, "LEASE", 60000) == 2
    assert a.call("RENEW", "s", 300) == 1
    assert 0 < a.call("VALID", "s") <= 300
    assert b.call("ACQUIRE", "s", "LIMIT", 2, "WAIT", SOON) == 1
    assert a.push() == ["lost", "s", 0, "lease"]
    assert a.call("RELEASE", "s").code == "LOST"
    assert a.call("RELEASE", "s").code == "NOTHELD"
    assert a.call("ACQUIRE", "s", "LIMIT", 2) == 1


def test_a_circle_through_permits_is_refused(broker, clients):
    a, b, c = (clients(broker) for _ in range(3))
    a.call("LOCK", "l")
    assert b.call("ACQUIRE", "s", "LIMIT", 2) == 1
    assert c.call("ACQUIRE", "s", "LIMIT", 2) == 1
    b.send("LOCK", "l")
    harness.wait_queued(broker, "l", 1)
    a.send("ACQUIRE", "s", "LIMIT", 2)  # c can give one back
    harness.wait_queued(broker, "s", 1)
    refused = c.call("LOCK", "l")
    assert refused.code == "DEADLOCK" and 'which waits for "s" held by this client' in refused
    assert c.call("RELEASE", "s") == 0
    assert a.reply() == 1
    a.call("UNLOCK", "l")
    assert isinstance(b.reply(), int)


# ---- the command ----


def test_a_command_runs_with_permits(broker):
    first = test_cli.start(broker, "sem", "-l", 2, "s", "--", *test_cli.READY, "sleep", 60)
    harness.wait_until(lambda: first.stdout.readline(), "the command")
    assert test_cli.run(broker, "sem", "-n", "-l", 2, "-K", 2, "s", "--", "true").returncode == 75
    done = test_cli.run(broker, "sem", "-l", 2, "-w", 20, "s", "--", "sh", "-c", "echo $LOCKBROKER_NAME.$LOCKBROKER_TOKEN")
    assert (done.returncode, done.stdout) == (0, "s.\n")
    other = test_cli.run(broker, "sem", "-l", 3, "s", "--", "true")
    assert other.returncode == 64 and "limit" in other.stderr
    first.terminate()
    assert first.wait(harness.PATIENCE) == 128 + signal.SIGTERM


def test_a_lease_ends_the_command(broker, clients):
    done = test_cli.run(broker, "sem", "-l", 1, "-L", "0.4", "s", "--", "sleep", "60")
    assert done.returncode == test_cli.LOST and "lease has run out" in done.stderr
    assert clients(broker).call("ACQUIRE", "s", "LIMIT", 1, "WAIT", SOON) == 1


def test_a_command_that_would_wait_for_its_own_permits(broker):
    inner = test_cli.command(broker, "sem", "-l", 1, "s", "--", "true")
    done = test_cli.run(broker, "lock", "--owner", "job", "a", "--", *test_cli.command(broker, "sem", "-l", 1, "s", "--", *inner))
    assert done.returncode == 70 and "one owner" in done.stderr


@pytest.mark.parametrize("argv", [("s", "--", "true"), ("-l", 0, "s", "--", "true"), ("-l", "x", "s", "--", "true"),
                                  ("-l", 2, "-K", 0, "s", "true"), ("-l", 2, "--count=3", "s", "true"),
                                  ("-c", 1, "-l", 2, "s", "true"), ("-s", "-l", 2, "s", "--", "true"), ("-l", 2)],
                         ids=str)
def test_wrong_options_are_64(standalone, argv):
    assert test_cli.run(standalone, "sem", *argv).returncode == 64


def test_lock_takes_no_limit(standalone):
    assert test_cli.run(standalone, "lock", "-l", 2, "s", "--", "true").returncode == 64


# ---- among hosts ----


def test_hosts_share_one_limit_in_order(two_hosts, clients, look, root):
    one, two = two_hosts
    a, b, c = clients(one), clients(two), clients(one)
    assert a.call("ACQUIRE", "s", "LIMIT", 2) == 1
    assert b.call("ACQUIRE", "s", "LIMIT", 2, "WAIT", SOON) == 1
    assert len(leases(look, root)) == 2
    b.send("ACQUIRE", "s", "LIMIT", 2, "WAIT", 100)
    assert b.reply() is None
    c.send("ACQUIRE", "s", "LIMIT", 2)
    assert c.quiet()
    b.call("RELEASE", "s")
    assert c.reply() == 1
    a.call("RELEASE", "s")
    c.call("RELEASE", "s")
    harness.wait_until(lambda: not leases(look, root), "no lease is left")
    harness.wait_until(lambda: not look.get_children(f"{root}/s/locks"), "nor a turn")


def test_never_more_than_the_limit(two_hosts, clients):
    """Witnesses count for themselves how many of them are inside."""
    inside, most = [], []

    def worker(number):
        client = clients(two_hosts[number % 2])
        for _ in range(25):
            assert client.call("ACQUIRE", "s", "LIMIT", 2, "WAIT", SOON) == 1
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.001)  # so that others could come while it is inside
            inside.remove(number)
            client.call("RELEASE", "s")

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(worker, range(6)))
    assert max(most) <= 2


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_dead_host_gives_its_permits_back(own_zk, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    one, two = (daemons(zk, **FAST, host=host) for host in ("alpha", "beta"))
    a, b = clients(one), clients(two)
    assert a.call("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2) == 2
    b.send("ACQUIRE", "s", "LIMIT", 2, "WAIT", 60000)
    assert b.quiet()
    one.signal(signal.SIGKILL)
    assert b.reply() == 1


def test_hosts_agree_on_the_limit_and_operators_change_it(two_hosts, clients):
    a, b = map(clients, two_hosts)
    assert b.call("LIMIT", "s") is None
    assert a.call("ACQUIRE", "s", "LIMIT", 1) == 1
    assert b.call("LIMIT", "s") == 1
    assert b.call("ACQUIRE", "s", "LIMIT", 2).code == "MISMATCH"
    b.send("ACQUIRE", "s", "LIMIT", 1)
    assert b.quiet()
    assert a.call("LIMIT", "s", 2) == 2
    assert b.reply().code == "MISMATCH"
    assert b.call("ACQUIRE", "s", "LIMIT", 2, "WAIT", SOON) == 1


def test_permits_of_another_host_are_told_of(two_hosts, clients):
    one, two = two_hosts
    a, b, c = clients(one), clients(two), clients(two)
    a.call("CLIENT", "SETNAME", "keeper")
    assert a.call("ACQUIRE", "s", "LIMIT", 3, "COUNT", 2) == 2
    assert [(h["host"], h["depth"]) for h in c.call("HOLDERS", "s")] == [(one.host, 2)]  # not used there so far
    b.send("ACQUIRE", "s", "LIMIT", 3, "COUNT", 3, "WAIT", SOON)
    harness.wait_queued(two, "s", 1)
    harness.wait_until(lambda: c.call("HOLDERS", "s")[0]["pid"], "the holder to be told of")
    (holder,) = c.call("HOLDERS", "s")
    assert (holder["host"], holder["name"], holder["pid"], holder["depth"]) == (one.host, "keeper", os.getpid(), 2)
    assert holder["held_ms"] >= 0
    why = c.call("WHY", "s")
    assert why["why"].startswith(f"of 3 permits 2 held: 2 by host {one.host}, pid {os.getpid()}")
    assert (why["waiters"], why["hosts_before"], why["holders"]) == (1, 0, [holder | {"age_ms": why["holders"][0]["age_ms"]}])
    (waiting,) = a.call("QUEUE", "s")
    assert (waiting["host"], waiting["position"]) == (two.host, 1)
    assert a.call("WHY", "s")["hosts_waiting"] == 1
    a.call("RELEASE", "s", "COUNT", 2)
    assert b.reply() == 3


def test_holders_of_all_hosts_are_asked_and_bereft(two_hosts, clients):
    one, two = two_hosts
    a, b, c = clients(one), clients(one), clients(two)
    assert a.call("ACQUIRE", "s", "LIMIT", 4, "COUNT", 2) == 2
    assert b.call("ACQUIRE", "s", "LIMIT", 4) == 1
    assert c.call("REVOKE", "s", "please") == 1  # one host
    assert a.push() == ["revoke", "s", 0, "please"]
    assert b.push() == ["revoke", "s", 0, "please"]
    assert c.call("ACQUIRE", "s", "LIMIT", 4, "WAIT", SOON) == 1
    assert clients(two).call("FORCEUNLOCK", "s") == 3
    for client in (a, b, c):
        assert client.push() == ["lost", "s", 0, "forced"]
    assert clients(two).call("ACQUIRE", "s", "LIMIT", 4, "COUNT", 4, "WAIT", SOON) == 4


def test_the_permits_of_a_silent_host_are_taken(two_hosts, clients, look, root):
    one, two = two_hosts
    a, b = clients(one), clients(two)
    assert a.call("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2) == 2
    with stopped(one):
        assert b.call("FORCEUNLOCK", "s") == 1
        assert not leases(look, root)
    assert a.push()[:2] == ["lost", "s"]


def test_thousands_of_permits(daemons, zk, root, clients):
    one, two = (daemons(zk, root, limits={"session_path_bytes": 450000}, zookeeper__session_timeout_ms=40000)
                for _ in "12")
    a, b, c = clients(one), clients(two), clients(one)
    assert a.call("ACQUIRE", "s", "LIMIT", 4000, "COUNT", 1200, "WAIT", SOON) == 1200
    assert b.call("ACQUIRE", "s", "LIMIT", 4000, "COUNT", 1500, "WAIT", SOON) == 1500
    # On a slow machine it takes longer to find out: UNAVAILABLE is the answer until then.
    assert None in (c.call("ACQUIRE", "s", "LIMIT", 4000, "COUNT", 2000, "WAIT", ms) for ms in (100, 5000, 20000))
    assert c.call("FORCEUNLOCK", "s") == 2
    assert a.call("RELEASE", "s").code == "LOST"
    assert b.call("RELEASE", "s").code == "LOST"
    assert c.call("ACQUIRE", "s", "LIMIT", 4000, "COUNT", 3000, "WAIT", SOON) == 3000
    assert c.call("ACQUIRE", "t", "LIMIT", 1000000, "COUNT", 1000000, "WAIT", 50000).code == "LIMIT"


def test_a_limit_that_somebody_overwrote_is_said_again(two_hosts, clients, look, root):
    a, b, c = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    assert a.call("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2) == 2
    b.send("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2, "WAIT", SOON)
    harness.wait_queued(two_hosts[1], "s", 1)
    c.send("ACQUIRE", "s", "LIMIT", 2, "WAIT", SOON)
    harness.wait_until(lambda: len(leases(look, root)) == 4, "the next to ask for room")  # b is the next
    for garbage in (b"", b"1\nkind=semaphore\nlimit=-5\n"):
        look.set(f"{root}/s", garbage)
        harness.wait_until(lambda: b"\nlimit=2\n" in look.get(f"{root}/s")[0], "the limit")
    assert a.call("RELEASE", "s", "COUNT", 2) == 0
    assert b.reply() == 2
    assert b.call("RELEASE", "s") == 1
    assert c.reply() == 1


def test_a_lock_of_another_host_is_no_semaphore(two_hosts, clients, look, root):
    a, b = map(clients, two_hosts)
    a.call("LOCK", "s")
    assert b.call("ACQUIRE", "s", "LIMIT", 2).code == "MISMATCH"
    assert len(look.get_children(f"{root}/s")) == 1
    assert a.call("ACQUIRE", "t", "LIMIT", 2) == 1
    assert b.call("LOCK", "t").code == "MISMATCH"


def test_a_deleted_permit_is_lost_and_told(two_hosts, zk, clients, look, root):
    a = clients(two_hosts[0])
    assert a.call("ACQUIRE", "s", "LIMIT", 2) == 1
    (lease,) = leases(look, root)
    path = f"{root}/s/leases/{lease}"
    harness.wait_until(lambda: f"{path}\n" in zk.ask("wchp"), "it to be watched, as from the age of a second on")
    look.delete(path)
    assert a.push()[:2] == ["lost", "s"]


# ---- with Curator ----


def test_curator_and_lockbroker_share_a_semaphore(curator_peer, zk, broker_with_zk, clients, look, root):  # noqa: F811
    a, b = clients(broker_with_zk), clients(broker_with_zk)
    curator = CuratorSemaphore(curator_peer, zk, f"{root}/s", 3)
    assert a.call("ACQUIRE", "s", "LIMIT", 3, "COUNT", 2) == 2
    assert not curator.try_for(300, 2)
    assert curator.try_for(SOON)
    assert b.call("ACQUIRE", "s", "LIMIT", 3, "WAIT", 100) is None
    b.send("ACQUIRE", "s", "LIMIT", 3, "WAIT", SOON)
    assert b.quiet()
    curator.release()
    assert b.reply() == 1
    curator.ask(2)
    assert curator.waits()
    a.call("RELEASE", "s", "COUNT", 2)
    assert curator.served()
    assert len(leases(look, root)) == 3
    curator.release()
    b.call("RELEASE", "s")
    harness.wait_until(lambda: not leases(look, root), "no lease is left")


def test_a_semaphore_that_curator_made_is_told_its_limit(curator_peer, zk, two_hosts, clients, root):  # noqa: F811
    a, b = map(clients, two_hosts)
    curator = CuratorSemaphore(curator_peer, zk, f"{root}/s", 2)
    assert curator.try_for(SOON)
    assert a.call("ACQUIRE", "s", "LIMIT", 2, "WAIT", SOON) == 1
    assert b.call("LIMIT", "s") == 2
    assert b.call("ACQUIRE", "s", "LIMIT", 3).code == "MISMATCH"
    assert b.call("ACQUIRE", "s", "LIMIT", 2, "WAIT", 100) is None
    curator.release()


def test_a_semaphore_that_curator_made_is_no_lock(curator_peer, zk, two_hosts, clients, look, root):  # noqa: F811
    a, b = (clients(host) for host in two_hosts)
    curator = CuratorSemaphore(curator_peer, zk, f"{root}/s", 2)
    assert curator.try_for(SOON)
    curator.release()
    for words in (["LOCK", "s"], ["LOCK", "s", "SHARED"], ["CAMPAIGN", "s", "DATA", "x"]):
        assert a.call(*words).code == "MISMATCH"
    assert b.call("ACQUIRE", "s", "LIMIT", 2, "WAIT", SOON) == 1
    harness.wait_until(lambda: sorted(look.get_children(f"{root}/s")) == ["leases", "locks"], "no contender for a lock")


class OurPermits:
    """One client, one permit. It is held for longer and longer until one of them has met as many as there may be: on a
    busy machine others come late."""

    def __init__(self, client, limit, number, met):
        self.client, self.limit, self.name, self.met = client, limit, f"ours{number}", met
        self.hold_s = HOLD_S

    def rounds(self, count, witness):
        overlaps = 0
        for _ in range(count):
            assert self.client.call("ACQUIRE", "s", "LIMIT", self.limit, "WAIT", SOON) == 1
            with Inside(witness, "p", self.name, self.limit) as inside:
                overlaps += inside.overlaps()
                self.met.add(1 + len(inside.others))
                self.hold_s = HOLD_S if self.limit in self.met else min(2 * self.hold_s, 1)
                inside.stay(self.hold_s)
            assert self.client.call("RELEASE", "s") == 0
        return overlaps


@pytest.mark.release_only("chance would show it: each order of events has its test")
def test_in_a_race_with_curator_there_are_never_more_than_the_limit(curator_peer, zk, two_hosts, clients, look,  # noqa: F811
                                                                    root, tmp_path):
    met = set()
    ours = [OurPermits(clients(two_hosts[i % 2]), 3, i, met) for i in range(4)]
    theirs = [CuratorSemaphore(curator_peer, zk, f"{root}/s", 3) for _ in range(3)]
    Race(tmp_path / "witness", 200).run(ours=ours, theirs=theirs)
    assert max(met) == 3
    harness.wait_until(lambda: not leases(look, root), "no lease is left")


@pytest.fixture
def broker_with_zk(two_hosts):
    return two_hosts[0]
