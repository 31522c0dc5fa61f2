# SPDX-License-Identifier: Apache-2.0
"""New names over a real ZooKeeper: how fast a host makes directories, and what that costs names that exist."""

import time

import kazoo.exceptions
import pytest

import harness

BURST, RATE, NAMES = 20, 40, 100


def directories(k, root):
    return [name for name in k.get_children(root) if not name.startswith(".")] if k.exists(root) else []


def test_directories_are_made_no_faster_than_the_limit_has_it(daemons, zk, root, clients, kazoo_client):
    k = kazoo_client(zk)
    d = daemons(zk, root, limits={"new_names": BURST, "new_names_per_s": RATE})
    c, other = clients(d, 3), clients(d)
    assert isinstance(other.call("LOCK", "there"), int) and other.call("UNLOCK", "there") == 0
    before, began = len(directories(k, root)), time.monotonic()
    # All in one piece: what is asked for slowly, as on a busy machine, is not delayed.
    c.send_raw(b"".join(harness.encode("ENQUEUE", f"n{i}") for i in range(NAMES)))
    assert [c.reply() for _ in range(NAMES)] == ["QUEUED"] * NAMES
    refused = other.call("LOCK", "one more", "WAIT", 0)
    assert refused.code == "LIMIT" and "names that are new to ZooKeeper" in refused, refused
    # What exists is served meanwhile.
    assert isinstance(other.call("LOCK", "there", "WAIT", 0), int)
    while (made := len(directories(k, root)) - before) < NAMES:
        assert made <= BURST + RATE * (time.monotonic() - began) + 1, made
    order = [push[1] for push in (c.push() for _ in range(NAMES)) if push[0] == "granted"]
    assert len(order) == NAMES and int(d.info("stats")["names_delayed_total"]) >= NAMES - 2 * BURST
    assert d.info("zookeeper")["new_names_waiting"] == "0"
    assert f'lockbroker_pool_limit{{pool="new_names"}} {BURST}' in other.call("METRICS")


def test_names_that_exist_are_not_counted(daemons, zk, root, clients):
    """Those of flavour kazoo: the server removes an empty container, which on a busy machine may come before the next round."""
    d = daemons(zk, root, argv=["-o", "prefix:n/.flavour=kazoo"], limits={"new_names": NAMES, "new_names_per_s": 1})
    c = clients(d)
    for _ in range(3):
        for i in range(NAMES // 2):
            assert isinstance(c.call("LOCK", f"n/{i}", "WAIT", 0), int) and c.call("UNLOCK", f"n/{i}") == 0
    assert d.info("stats")["names_total"] == str(NAMES // 2)


def test_a_living_lock_of_kazoo_goes_on_with_the_defaults(daemons, zk, root, clients, kazoo_client):
    """It makes its directory once and fails without it: nobody removes one of flavour kazoo."""
    d = daemons(zk, root, argv=["-o", "prefix:k/.flavour=kazoo"], limits={"new_names_per_s": 50})
    lock, c = kazoo_client(zk).Lock(f"{root}/k%2Fa"), clients(d)
    for _ in range(3):
        assert lock.acquire(timeout=harness.PATIENCE)
        assert c.call("LOCK", "k/a", "WAIT", 0) is None
        lock.release()
        assert isinstance(c.call("LOCK", "k/a", "WAIT", 5000), int) and c.call("UNLOCK", "k/a") == 0


def test_the_directories_of_flavour_kazoo_that_stay_are_counted(daemons, zk, root, clients, kazoo_client):
    d = daemons(zk, root, argv=["-o", "prefix:k/.flavour=kazoo"])
    c = clients(d)
    for i in range(NAMES):
        assert isinstance(c.call("LOCK", f"k/{i}"), int) and c.call("UNLOCK", f"k/{i}") == 0
    assert isinstance(c.call("LOCK", "other"), int) and c.call("UNLOCK", "other") == 0
    harness.wait_until(lambda: d.info("zookeeper")["directories_idle"] == str(NAMES), "all of them to be idle")
    assert f"\nlockbroker_directories_idle {NAMES}\n" in c.call("METRICS")
    assert len([name for name in directories(kazoo_client(zk), root) if name.startswith("k%2F")]) == NAMES


def test_a_user_with_too_many_lasting_directories_is_refused(daemons, zk, root, clients, kazoo_client):
    d = daemons(zk, root, argv=["-o", "prefix:k/.flavour=kazoo"], limits={"lasting_directories": BURST})
    c = clients(d)
    for i in range(BURST):
        assert isinstance(c.call("LOCK", f"k/{i}"), int) and c.call("UNLOCK", f"k/{i}") == 0
    refused = c.call("LOCK", "k/more", "WAIT", 60000)
    assert refused.code == "LIMIT" and "directories that stay in ZooKeeper for good" in refused, refused
    assert d.info("zookeeper")["lasting_directories"] == str(BURST)
    assert f'\nlockbroker_pool_used{{pool="lasting_directories"}} {BURST}\n' in c.call("METRICS")
    # A hand-over keeps the count.
    d.hand_over()
    assert d.info("zookeeper")["lasting_directories"] == str(BURST)
    assert c.call("LOCK", "k/more").code == "LIMIT"
    assert isinstance(c.call("LOCK", "k/0"), int) and isinstance(c.call("LOCK", "other"), int)
    assert len([name for name in directories(kazoo_client(zk), root) if name.startswith("k%2F")]) == BURST


def test_idle_directories_of_flavour_kazoo_are_removed(daemons, zk, root, clients, kazoo_client):
    k = kazoo_client(zk)
    d = daemons(zk, root, argv=["-o", "prefix:k/.flavour=kazoo", "-o", "prefix:k/.remove_idle_s=1"])
    c = clients(d)
    for i in range(NAMES):
        assert isinstance(c.call("LOCK", f"k/{i}"), int) and c.call("UNLOCK", f"k/{i}") == 0
    assert isinstance(c.call("LOCK", "k/held"), int)
    harness.wait_until(lambda: directories(k, root) == ["k%2Fheld"], "the idle ones to go")
    stats = d.info("stats")
    assert (stats["directories_removed_total"], stats["directories_left_total"]) == (str(NAMES), "0")
    assert d.info("zookeeper")["directories_idle"] == "0"
    assert "lockbroker_directories_removed_total " in c.call("METRICS")
    # A new object of kazoo makes what is gone, and so does the daemon.
    lock = k.Lock(f"{root}/k%2F0")
    assert lock.acquire(timeout=harness.PATIENCE) and c.call("LOCK", "k/0", "WAIT", 0) is None
    lock.release()
    assert isinstance(c.call("LOCK", "k/0", "WAIT", 5000), int)


def test_a_living_lock_of_kazoo_fails_without_its_directory(daemons, zk, root, clients, kazoo_client):
    """That is why remove_idle_s is 0 by default."""
    k = kazoo_client(zk)
    d = daemons(zk, root, argv=["-o", "prefix:k/.flavour=kazoo", "-o", "prefix:k/.remove_idle_s=1"])
    c, lock = clients(d), k.Lock(f"{root}/k%2Fa")
    assert lock.acquire(timeout=harness.PATIENCE) and c.call("LOCK", "k/a", "WAIT", 0) is None
    lock.release()
    assert isinstance(c.call("LOCK", "k/a", "WAIT", 5000), int) and c.call("UNLOCK", "k/a") == 0
    harness.wait_until(lambda: not directories(k, root), "the directory to go")
    with pytest.raises(kazoo.exceptions.NoNodeError):
        lock.acquire(timeout=harness.PATIENCE)
