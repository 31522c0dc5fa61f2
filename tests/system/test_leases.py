# SPDX-License-Identifier: Apache-2.0
"""Grants that end by themselves: LEASE and RENEW, as pushes, as events, and between hosts."""

import signal
import time

import redis

import pytest

import harness


def test_a_lease_ends_and_the_next_is_granted(broker, clients):
    a, b = clients(broker), clients(broker)
    first = a.call("LOCK", "a", "LEASE", 60000, "DATA", "me")
    (holder,) = b.call("HOLDERS", "a")
    assert 0 < holder["lease_ms"] <= 60000 and holder["data"] == "me"
    began = time.monotonic()
    assert a.call("RENEW", "a", 300) == 1
    second = b.call("LOCK", "a", "WAIT", 20000)
    assert second > first and time.monotonic() - began > 0.29
    assert a.push() == ["lost", "a", first, "lease"]
    assert a.call("VALID", "a") == 0
    assert a.call("UNLOCK", "a").code == "LOST"
    assert a.call("UNLOCK", "a").code == "NOTHELD"
    assert b.call("HOLDERS", "a")[0]["lease_ms"] is None
    assert b.call("UNLOCK", "a") == 0


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_lease_is_renewed_for_as_long_as_its_holder_wants(broker, clients):
    """A lease of the same length that begins later, and is not renewed, shows when it would have ended."""
    a, b = clients(broker), clients(broker)
    other = a.call("LOCK", "b")
    a.send_raw(harness.encode("LOCK", "a", "LEASE", 500) + harness.encode("RENEW", "b", 500) + harness.encode("RENEW", "a", 60000))
    token = a.reply()
    assert (a.reply(), a.reply()) == (1, 1)
    assert a.push() == ["lost", "b", other, "lease"]
    for lease_ms in (60000, 30000, 3000):
        assert a.call("RENEW", "a", lease_ms, "TOKEN", token) == 1
        assert 0 < a.call("VALID", "a") <= lease_ms
    assert a.call("RENEW", "a", 1, "TOKEN", token) == 1
    assert b.call("LOCK", "a", "WAIT", 20000) > token
    assert a.call("RENEW", "a", 1000).code == "LOST"
    assert a.call("RENEW", "a", 1000).code == "NOTHELD"


def test_the_end_of_a_lease_is_an_event_under_resp2(broker, clients):
    c = clients(broker, version=2)
    token = c.call("LOCK", "a", "LEASE", 50)
    assert c.call("EVENTS", "WAIT", 20000) == ["lost", "a", token, "lease"]
    assert c.call("LOCK", "a", "WAIT", 20000) > token


def test_a_re_entry_never_shortens_it(broker, clients):
    c = clients(broker)
    c.send_raw(b"".join(harness.encode("LOCK", "a", "LEASE", ms, "REENTER") for ms in (500, 100000, 500)) +
               harness.encode("LOCK", "b", "LEASE", 500) + harness.encode("LOCK", "b", "REENTER") +
               harness.encode("LOCK", "later", "LEASE", 500))
    assert len({c.reply() for _ in "123"}) == len({c.reply() for _ in "12"}) == 1
    assert c.reply() > 0 and c.push()[:2] == ["lost", "later"]
    assert c.call("VALID", "a") > 0 and c.call("VALID", "b") > 0 and not c.pushes


def test_a_lease_ends_for_another_host(two_hosts, clients):
    a, b = (clients(d) for d in two_hosts)
    first = a.call("LOCK", "a", "LEASE", 300)
    assert b.call("LOCK", "a", "WAIT", 20000) > first
    assert a.push() == ["lost", "a", first, "lease"]


def test_a_daemon_that_was_stopped_beyond_a_lease_takes_it_back_first(standalone, clients):
    a, b = clients(standalone), clients(standalone)
    token = a.call("LOCK", "a", "LEASE", 300)
    standalone.signal(signal.SIGSTOP)
    a.send("VALID", "a")
    b.send("LOCK", "a", "WAIT", 0)
    time.sleep(0.5)  # only time is beyond it: nothing happens in a daemon that is stopped
    standalone.signal(signal.SIGCONT)
    assert b.reply() > token
    assert a.push() == ["lost", "a", token, "lease"]
    assert a.reply() == 0


def test_redis_py(broker):
    r = redis.Redis(unix_socket_path=broker.socket, decode_responses=True, single_connection_client=True)
    token = r.execute_command("LOCK", "a", "LEASE", 60000, "WAIT", 20000)
    assert r.execute_command("RENEW", "a", 100) == 1
    assert r.execute_command("EVENTS") == ["lost", "a", token, "lease"]
    r.close()


def test_leases_are_counted(standalone, clients):
    c = clients(standalone)
    for i in range(20):
        c.call("LOCK", f"n{i}", "LEASE", 20)
    harness.wait_until(lambda: standalone.info("stats")["leases_ended_total"] == "20", "the leases to end")
    assert len([c.push() for _ in range(20)]) == 20
    assert standalone.info("locks")["grants"] == "20"  # lost, and kept until that is told
    c.call("RESET")
    assert standalone.info("locks") == {"locks": "0", "grants": "0", "delegations": "0", "requests": "0", "claims": "0",
                                        "longest_wait_ms": "0"}
