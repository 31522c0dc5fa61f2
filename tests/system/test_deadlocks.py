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
