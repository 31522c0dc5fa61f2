# SPDX-License-Identifier: Apache-2.0
"""Several locks at once: MLOCK and MUNLOCK."""

import harness
from parallel import all_at_once

SOON = 20000  # milliseconds: a wait that is expected to end well before


def test_all_are_taken_and_let_go_together(broker, clients):
    a, b = clients(broker), clients(broker)
    tokens = a.call("MLOCK", 3, "c", "a", "b")
    assert len(tokens) == 3 and all(isinstance(t, int) for t in tokens)
    assert [h["token"] for name in "cab" for h in b.call("HOLDERS", name)] == tokens
    assert b.call("MLOCK", 2, "b", "d", "WAIT", 0) is None
    assert b.call("HOLDERS", "d") == []
    assert a.call("MUNLOCK", 2, "a", "x").code == "NOTHELD"
    assert a.call("MUNLOCK", 3, "a", "b", "c") == [0, 0, 0]
    assert all(isinstance(t, int) for t in b.call("MLOCK", 2, "b", "c", "WAIT", SOON))


def test_it_waits_holding_those_before(broker, clients):
    a, b, c = (clients(broker) for _ in range(3))
    first = a.call("LOCK", "b")
    b.send("MLOCK", 3, "c", "b", "a", "WAIT", SOON)
    harness.wait_queued(broker, "b", 1)
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert c.call("HOLDERS", "c") == []
    assert "cmd=mlock" in c.call("CLIENT", "LIST") and "waiting=b" in c.call("CLIENT", "LIST")
    assert a.call("UNLOCK", "b") == 0
    assert b.reply()[1] > first
    b.close()
    assert all(isinstance(t, int) for t in c.call("MLOCK", 3, "a", "b", "c", "WAIT", SOON))


def test_what_does_not_end_well_leaves_nothing(broker, clients):
    a, b, c = (clients(broker) for _ in range(3))
    a.call("LOCK", "c")
    assert b.call("MLOCK", 2, "a", "c", "WAIT", 100) is None
    b.send("MLOCK", 2, "a", "c")
    harness.wait_queued(broker, "c", 1)
    assert c.call("CLIENT", "UNBLOCK", next(line.split()[0][3:] for line in c.call("CLIENT", "LIST").splitlines()
                                            if "cmd=mlock" in line)) == 1
    assert b.reply() is None
    b.send("MLOCK", 2, "a", "c")
    harness.wait_queued(broker, "c", 1)
    b.close()
    assert isinstance(c.call("LOCK", "a", "WAIT", SOON), int)
    assert c.call("QUEUE", "c") == []


def test_opposite_orders_between_two_hosts(two_hosts, clients):
    """Four clients on two hosts take the same locks in opposite orders, again and again."""
    def take(client, names):
        for _ in range(25):
            assert isinstance(client.call("MLOCK", len(names), *names, "WAIT", SOON), list)
            assert client.call("MUNLOCK", len(names), *names) == [0] * len(names)

    orders = [("a", "b", "c"), ("c", "b", "a")] * 2
    all_at_once(take, zip([clients(two_hosts[i // 2]) for i in range(4)], orders))
