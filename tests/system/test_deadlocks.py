# SPDX-License-Identifier: Apache-2.0
"""Clients of one host that would wait for each other in a circle: the LOCK that closes it is refused, and says how."""

import harness

SOON = 20000  # milliseconds: a wait that is expected to end well before


def test_the_lock_that_closes_a_circle_is_refused(broker, clients):
    a, b = clients(broker), clients(broker)
    a.call("CLIENT", "SETNAME", "one")
    a.call("LOCK", "a")
    b.call("LOCK", "b")
    a.send("LOCK", "b")
    harness.wait_queued(broker, "b", 1)
    error = b.call("LOCK", "a", "WAIT", SOON)
    assert error.code == "DEADLOCK"
    assert 'waits for "a" held by one (pid ' in str(error) and 'which waits for "b" held by this client' in str(error)
    assert broker.info("stats")["deadlocks_total"] == "1"
    assert b.call("QUEUE", "a") == []
    assert b.call("UNLOCK", "b") == 0
    assert isinstance(a.reply(), int)


def test_three_in_a_circle_and_readers(broker, clients):
    a, b, c = (clients(broker) for _ in range(3))
    a.call("LOCK", "a", "SHARED")
    b.call("LOCK", "b")
    c.call("LOCK", "c")
    a.send("LOCK", "b")
    harness.wait_queued(broker, "b", 1)
    b.send("LOCK", "c")
    harness.wait_queued(broker, "c", 1)
    assert isinstance(c.call("LOCK", "a", "SHARED"), int)
    assert c.call("UNLOCK", "a") == 0
    assert c.call("LOCK", "a").code == "DEADLOCK"
    assert c.call("LOCK", "a", "WAIT", 0) is None
    c.close()
    assert isinstance(b.reply(), int)


def test_clients_of_one_owner(broker, clients):
    outer, inner, other = (clients(broker) for _ in range(3))
    for c in (outer, inner):
        assert c.call("CLIENT", "SETINFO", "OWNER", "job-1") == "OK"
    outer.call("LOCK", "a")
    assert inner.call("LOCK", "a", "WAIT", SOON).code == "DEADLOCK"
    assert outer.call("CLIENT", "SETINFO", "OWNER", "job-2").code == "ERR"
    other.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    assert other.quiet()
    assert "owner=job-1" in outer.call("CLIENT", "LIST")
    assert inner.call("RESET") == "RESET"
    assert outer.call("UNLOCK", "a") == 0
    assert isinstance(other.reply(), int)


def test_it_can_be_turned_off(daemons, clients):
    daemon = daemons(locks__deadlock_detection=0)
    a, b = clients(daemon), clients(daemon)
    a.call("LOCK", "a")
    b.call("LOCK", "b")
    a.send("LOCK", "b")
    harness.wait_queued(daemon, "b", 1)
    assert b.call("LOCK", "a", "WAIT", 100) is None
