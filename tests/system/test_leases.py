# SPDX-License-Identifier: Apache-2.0
"""Grants that end by themselves: LEASE and RENEW, as pushes, as events, and between hosts."""

import time

import redis

from mishaps import stopped


def test_a_lease_ends_for_another_host(two_hosts, clients):
    a, b = (clients(d) for d in two_hosts)
    first = a.call("LOCK", "a", "LEASE", 300)
    assert b.call("LOCK", "a", "WAIT", 20000) > first
    assert a.push() == ["lost", "a", first, "lease"]


def test_a_daemon_that_was_stopped_beyond_a_lease_takes_it_back_first(standalone, clients):
    a, b = clients(standalone), clients(standalone)
    token = a.call("LOCK", "a", "LEASE", 300)
    with stopped(standalone):
        a.send("VALID", "a")
        b.send("LOCK", "a", "WAIT", 0)
        time.sleep(0.5)  # only time is beyond it: nothing happens in a daemon that is stopped
    assert b.reply() > token
    assert a.push() == ["lost", "a", token, "lease"]
    assert a.reply() == 0


def test_redis_py(broker):
    r = redis.Redis(unix_socket_path=broker.socket, decode_responses=True, single_connection_client=True)
    token = r.execute_command("LOCK", "a", "LEASE", 60000, "WAIT", 20000)
    assert r.execute_command("RENEW", "a", 100) == 1
    assert r.execute_command("EVENTS") == ["lost", "a", token, "lease"]
    r.close()
