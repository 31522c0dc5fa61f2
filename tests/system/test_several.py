# SPDX-License-Identifier: Apache-2.0
"""Several locks at once: MLOCK and MUNLOCK."""

import signal
import threading

import pytest

import harness
from harness import FAST, FAST_TICK_MS

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
    wrong = []

    def take(client, names):
        for _ in range(25):
            tokens = client.call("MLOCK", len(names), *names, "WAIT", SOON)
            if not isinstance(tokens, list) or client.call("MUNLOCK", len(names), *names) != [0] * len(names):
                wrong.append(tokens)
                return

    orders = [("a", "b", "c"), ("c", "b", "a")] * 2
    connected = [clients(two_hosts[i // 2]) for i in range(4)]
    threads = [threading.Thread(target=take, args=pair) for pair in zip(connected, orders)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_lost_session_on_the_way_begins_again(own_zk, daemons, clients):
    """What it had taken goes to another host meanwhile; it gets it back, under a larger token, and all together."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    alpha, beta = (daemons(zk, **FAST, host=host) for host in ("alpha", "beta"))
    a, b = clients(alpha), clients(beta)
    other = b.call("LOCK", "b")
    a.send("MLOCK", 2, "a", "b", "WAIT", 120000)
    harness.wait_queued(alpha, "b", 1)
    alpha.signal(signal.SIGSTOP)
    stolen = b.call("LOCK", "a", "WAIT", 60000)
    alpha.signal(signal.SIGCONT)
    assert isinstance(stolen, int)
    assert b.call("UNLOCK", "a") == 0
    assert b.call("UNLOCK", "b") == 0
    tokens = a.reply()
    assert tokens[0] > stolen and tokens[1] > other
    assert not [push for push in a.pushes if push[0] == "lost"]
    assert alpha.info("stats")["multi_again_total"] != "0"
