# SPDX-License-Identifier: Apache-2.0
"""Waits that do not block: ENQUEUE and CANCEL, hundreds of them on one connection."""

import pytest
import redis

import harness


def test_redis_py_waits_for_several_at_once(broker, clients):
    a = clients(broker)
    r = redis.Redis(unix_socket_path=broker.socket, decode_responses=True, single_connection_client=True)
    for name in "abc":
        a.call("LOCK", name)
        assert r.execute_command("ENQUEUE", name) == "QUEUED"
    assert r.execute_command("CANCEL", "b") == 1
    for name in "cba":
        a.call("UNLOCK", name)
    assert [r.execute_command("EVENTS")[:2] for _ in range(2)] == [["granted", "c"], ["granted", "a"]]
    r.close()


@pytest.mark.parametrize("names", ["n{}", "a name of some length " * 20 + "{}"])
def test_a_thousand_waits_on_one_connection(standalone, clients, names):
    """All that one connection may wait for is granted in one turn, and fits into what is kept for it to read."""
    a, b = clients(standalone), clients(standalone)
    for i in range(1000):
        a.call("LOCK", names.format(i))
        assert b.call("ENQUEUE", names.format(i)) == "QUEUED"
    assert b.call("ENQUEUE", "one more").code == "LIMIT"
    assert b.call("LOCK", "one more").code == "LIMIT"
    line = next(x for x in a.call("CLIENT", "LIST").splitlines() if x.startswith(f"id={b.call('CLIENT', 'ID')} "))
    assert " queued=1000 " in line
    a.call("RESET")
    granted = [b.push() for _ in range(1000)]
    assert {g[0] for g in granted} == {"granted"} and {g[1] for g in granted} == {names.format(i) for i in range(1000)}
    assert b.call("PING") == "PONG"
    assert standalone.info("locks")["grants"] == "1000"


def test_hundreds_of_waits_between_hosts(two_hosts, clients):
    a, b = (clients(d) for d in two_hosts)
    for i in range(300):
        assert isinstance(a.call("LOCK", f"n{i}", "WAIT", 20000), int)
        assert b.call("ENQUEUE", f"n{i}") == "QUEUED"
    harness.wait_until(lambda: all(x["state"] == "waiting" for x in b.call("LOCKS")), "the claims to wait")
    for i in range(0, 300, 3):
        assert b.call("CANCEL", f"n{i}") == 1
    a.call("RESET")
    granted = {b.push()[1] for _ in range(200)}
    assert granted == {f"n{i}" for i in range(300) if i % 3}
    b.call("RESET")
    for d in two_hosts:
        harness.wait_until(lambda d=d: d.info("locks")["claims"] == "0", "the claims to go")


def test_only_what_is_unread_counts_against_a_client(standalone, clients):
    """Two bursts, together more than limits.output_bytes: the second comes while some of the first is still unread."""
    first, second, c = (clients(standalone) for _ in range(3))
    names = [f"{i:04}" + "x" * 500 for i in range(2000)]
    for holder, some in ((first, names[:1000]), (second, names[1000:])):
        for name in some:
            holder.call("LOCK", name)
    for name in names[:1000]:
        assert c.call("ENQUEUE", name) == "QUEUED"
    first.call("RESET")
    while len(c.buffer) < 150000:
        c._fill()
    for name in names[1000:]:
        c.send("ENQUEUE", name)
    harness.wait_until(lambda: standalone.info("locks")["requests"] == "1000", "the second thousand to be queued")
    second.call("RESET")
    for _ in range(1000):
        assert c.reply() == "QUEUED"
    while len(c.pushes) < 2000:
        c.pushes.append(c._value()[1])
    assert [push[:2] for push in c.pushes] == [["granted", name] for name in names]
