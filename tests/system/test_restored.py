# SPDX-License-Identifier: Apache-2.0
"""An ensemble that was restored from a backup: its transactions begin again behind what this host has seen."""

import re
import shutil

import pytest

import ensemble
import harness
import network
from mishaps import stopped

# More than a daemon needs for a few locks.
TRANSACTIONS = 300


def go_on(zk, kazoo_client, transactions):
    k = kazoo_client(zk)
    k.ensure_path("/elsewhere")
    for i in range(transactions):
        k.set("/elsewhere", str(i).encode())
    return k


def restore(zk):
    """The oldest state there can be."""
    zk.kill()
    shutil.rmtree(f"{zk.dir}/data")
    zk.start()


NOTHING = pytest.param("nothing", marks=pytest.mark.release_only("test_core_past.c shows it"))


@pytest.mark.parametrize("between", [NOTHING, "a hand-over", "a kill"])
def test_no_token_is_given_twice_when_the_ensemble_is_restored(own_zk, daemons, clients, kazoo_client, between):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS, fresh=True)
    d = daemons(zk, **harness.FAST)
    k = go_on(zk, kazoo_client, TRANSACTIONS)
    c = clients(d)
    token = c.call("LOCK", "a")
    assert c.call("UNLOCK", "a") == 0
    k.stop()
    if between == "a hand-over":
        d.hand_over()
    elif between == "a kill":
        old = d.pid
        d.signal(harness.signal.SIGKILL)
        d.await_another(old)
    restore(zk)
    c = clients(d)
    harness.wait_until(lambda: "ZooKeeper has gone back to transaction 0x" in d.log() or
                       getattr(c.call("LOCK", "a", "WAIT", 500), "code", "") == "UNAVAILABLE", "the session")
    refused = harness.wait_until(lambda: answer if "tokens would repeat" in (answer := str(c.call("LOCK", "a", "WAIT", 3000)))
                                 else None, "the refusal")
    assert refused.startswith("UNAVAILABLE tokens would repeat, because an older state of ZooKeeper was restored")
    assert "ZooKeeper has gone back to transaction 0x" in d.log()
    # Above all that this host has seen, and not above what another one may have been given.
    go_on(zk, kazoo_client, TRANSACTIONS + 100)
    assert str(c.call("LOCK", "a", "WAIT", 3000)).startswith("UNAVAILABLE tokens would repeat")


@pytest.fixture
def trio(ending):
    return ending(ensemble.Ensemble(network.Network(), harness.FAST_TICK_MS))


def restore_all(trio, change):
    """All servers are stopped, and started again from what `change` makes of their data."""
    for s in trio.servers:
        s.stop()
    for s in trio.servers:
        change(s)
    for s in trio.servers:
        s.start()
    trio.wait_whole()


def from_backup(server):
    shutil.rmtree(f"{server.dir}/data")
    shutil.copytree(f"{server.dir}/backup", f"{server.dir}/data")


def back_up(server):
    shutil.copytree(f"{server.dir}/data", f"{server.dir}/backup")


def pair(client, name):
    """Under a session that may have to be made anew; the token."""
    token = harness.wait_until(lambda: t if isinstance(t := client.call("LOCK", name, "WAIT", 1000), int) else None,
                               f"{name} to be granted")
    assert client.call("UNLOCK", name) == 0
    return token


@pytest.mark.release_only("three servers; one is restored in the test above, and three in the torture")
@pytest.mark.plain_only("three servers that are stopped and started again and again")
def test_after_a_restore_a_host_that_saw_less_grants_only_what_is_above_what_another_one_gave(trio, daemons, clients, root):
    away, stays = (daemons(trio, root=root, **harness.FAST) for _ in range(2))
    a, b = clients(away), clients(stays)
    pair(b, "a")
    restore_all(trio, back_up)
    pair(a, "a")
    # One of three: its state is that of the others before it serves.
    follower = next(s for s in trio.servers if s is not trio.leader())
    follower.stop()
    from_backup(follower)
    follower.start()
    trio.wait_whole()
    for i in range(100):
        pair(b, f"b{i}")
    assert "gone back" not in away.log() + stays.log()
    last = [pair(a, "a") for _ in range(20)][-1]
    with stopped(away):
        restore_all(trio, from_backup)
        refused = harness.wait_until(lambda: t if "tokens would repeat" in (t := str(b.call("LOCK", "a", "WAIT", 1000))) else None,
                                     "the refusal")
        assert refused.startswith("UNAVAILABLE")
        epoch = re.search(r"acceptedEpoch and currentEpoch of its servers to (\d+) or more", stays.log())[1]
        restore_all(trio, lambda _: trio.raise_epochs(epoch))
        assert pair(b, "a") > last
    assert pair(a, "a") > last
