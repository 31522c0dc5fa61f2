# SPDX-License-Identifier: Apache-2.0
"""The locks of all hosts: LOCKS ... ALL and `lockbroker ls --all`, over a real ZooKeeper."""

import json
import os

import kazoo.recipe.lock
import pytest

import harness
from harness import FAST, FAST_TICK_MS
from mishaps import stopped
from test_cli import run

OPERATORS = True  # see clients of conftest.py

MANY, EACH = 3000, 500


def all_of(client, pattern="*", count=100):
    """Every page: its locks in their order, and how many pages there were."""
    locks, pages, after = [], 0, None
    while pages == 0 or after:
        page = client.call("LOCKS", pattern, "ALL", "COUNT", count, *(["AFTER", after] if after else []))
        assert not isinstance(page, harness.Error), page
        locks += page["locks"]
        pages, after = pages + 1, page["next"]
    return locks, pages


def test_each_host_shows_who_holds_and_who_waits_on_all(two_hosts, clients):
    a, b, waiter = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    a.call("LOCK", "orders")
    a.call("CAMPAIGN", "chief", "DATA", "10.0.0.1")
    b.call("ACQUIRE", "gate", "LIMIT", 5, "COUNT", 2)
    b.call("LOCK", "beta's")
    waiter.send("LOCK", "orders")
    harness.wait_until(lambda: a.call("QUEUE", "orders"), "beta to wait")

    def rows(client):
        return {lock["name"]: (lock["kind"], [h["host"] for h in lock["holders"]], lock["waiters"], lock["hosts_waiting"])
                for lock in all_of(client)[0]}

    shown = {"beta's": ("lock", ["beta"], 0, 0), "chief": ("election", ["alpha"], 0, 0), "gate": ("semaphore", ["beta"], 0, 0)}
    assert rows(a) == {**shown, "orders": ("lock", ["alpha"], 0, 1)}
    assert rows(b) == {**shown, "orders": ("lock", ["alpha"], 1, 0)}
    assert list(rows(a)) == sorted(rows(a)), "in the order of their names"
    (gate,) = all_of(a, "g*")[0]
    assert gate["limit"] == 5 and [h["depth"] for h in gate["holders"]] == [2]
    (orders,) = harness.wait_until(lambda: [x for x in all_of(b, "orders")[0] if x["holders"][0]["pid"]], "alpha to write")
    assert (orders["holders"][0]["pid"], orders["more"], orders["known"]) == (os.getpid(), 0, 1)


def test_a_contender_of_kazoo_is_shown(daemons, zk, root, clients, kazoo_client):
    d = daemons(zk, f"{root}/ours", **{"prefix:k/.flavour": "kazoo", "prefix:k/.path": f"{root}/kazoo"})
    lock = kazoo.recipe.lock.Lock(kazoo_client(zk), f"{root}/kazoo/job%201")
    c = clients(d)
    assert lock.acquire() and isinstance(c.call("LOCK", "own"), int)
    (theirs, own), pages = all_of(c)
    assert (theirs["name"], [h["host"] for h in theirs["holders"]], own["name"], pages) == ("k/job 1", [""], "own", 1)
    assert "k/job 1" in run(d, "ls", "-a", "k/*").stdout and "own" not in run(d, "ls", "-a", "k/*").stdout
    lock.release()
    harness.wait_until(lambda: len(all_of(c)[0]) == 1, "it to be free")


@pytest.mark.plain_only("it is about many locks")
def test_three_thousand_locks_are_paged(two_hosts, clients):
    names = [f"n{i:04}" for i in range(MANY)]
    for begin in range(0, MANY, EACH):
        c = clients(two_hosts[begin // EACH % 2])
        for name in names[begin:begin + EACH]:
            c.send("LOCK", name)
        assert all(isinstance(c.reply(), int) for _ in range(EACH))
    asker = clients(two_hosts[1])
    locks, pages = all_of(asker, count=700)
    assert [lock["name"] for lock in locks] == names and pages == 5
    assert all([h["host"] for h in lock["holders"]] == [("alpha", "beta")[i // EACH % 2]] for i, lock in enumerate(locks))
    assert [lock["name"] for lock in json.loads(run(two_hosts[0], "ls", "--all", "--json").stdout)] == names
    assert len(run(two_hosts[0], "ls", "--all", "n1???").stdout.splitlines()) == 1001


def test_a_connection_that_is_lost_meanwhile_is_one_error(daemons, own_zk, root, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, root, **FAST)
    c, other = clients(d), clients(d)
    c.call("LOCK", "a")
    assert len(all_of(c)[0]) == 1
    with stopped(zk):
        c.send("LOCKS", "*", "ALL")
        refused = c.reply()
        assert refused.code == "UNAVAILABLE" and "no connection to ZooKeeper" in refused
        assert other.call("PING") == "PONG"
        done = run(d, "ls", "--all")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (69, "", 1), done
    harness.wait_until(lambda: not isinstance(c.call("LOCKS", "*", "ALL"), harness.Error), "the connection")


def test_standalone_it_is_the_hosts_own(standalone, clients):
    c = clients(standalone)
    for name in "a", "b", "c":
        c.call("LOCK", name)
    assert ([lock["name"] for lock in all_of(c, count=2)[0]], all_of(c, count=2)[1]) == (["a", "b", "c"], 2)
    assert [h["pid"] for h in all_of(c, "b")[0][0]["holders"]] == [os.getpid()]


def test_it_begins_anew_after_a_hand_over(two_hosts, clients):
    c = clients(two_hosts[0])
    c.call("LOCK", "a")
    asker = clients(two_hosts[0])
    for _ in range(3):
        asker.send("LOCKS", "*", "ALL")
        two_hosts[0].hand_over_by_command()
        assert [lock["name"] for lock in asker.reply()["locks"]] == ["a"]
