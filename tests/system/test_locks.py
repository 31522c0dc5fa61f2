# SPDX-License-Identifier: Apache-2.0
"""What a lock does: inside one host, in both modes of the daemon, and between two hosts."""

import select
import socket
import subprocess
import sys
import time

import pytest

import harness
from mishaps import stopped

HOLDER = """
import sys; sys.path.insert(0, sys.argv[1])
import harness
c = harness.Client(sys.argv[2])
print(c.call("LOCK", sys.argv[3]), flush=True)
sys.stdin.read()
"""


def holder_process(daemon, name):
    """A process that holds the lock until it is killed or its input ends; returns it and the token."""
    p = harness.spawn([sys.executable, "-c", HOLDER, harness.HERE, daemon.socket, name],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return p, int(p.stdout.readline())


def waits(daemon, client, name):
    """Sends LOCK and returns once the broker has it queued."""
    with daemon.client() as c:
        before = len(c.call("QUEUE", name))
        client.send("LOCK", name)
        harness.wait_until(lambda: len(c.call("QUEUE", name)) == before + 1, "the request to be queued")


def test_tokens_grow(broker, clients):
    a, b = clients(broker), clients(broker)
    tokens = []
    for _ in range(20):
        for c in (a, b):
            tokens.append(c.call("LOCK", "a"))
            assert c.call("UNLOCK", "a") == 0
    assert tokens == sorted(set(tokens))


def test_requests_are_served_in_the_order_of_asking(broker, clients):
    holder = clients(broker)
    holder.call("LOCK", "a")
    waiters = [clients(broker) for _ in range(8)]
    for w in waiters:
        waits(broker, w, "a")
    last = 0
    for w in [holder] + waiters[:-1]:
        following = waiters[0] if w is holder else waiters[waiters.index(w) + 1]
        assert all(x.quiet(0) for x in waiters[waiters.index(following):])
        w.call("UNLOCK", "a")
        token = following.reply()
        assert token > last
        last = token


def test_reentry_keeps_the_token_and_counts_levels(broker, clients):
    a, b = clients(broker), clients(broker)
    token = a.call("LOCK", "a")
    assert a.call("LOCK", "a", "REENTER") == token
    assert a.call("LOCK", "a", "WAIT", 0, "REENTER") == token
    assert a.call("UNLOCK", "a") == 2
    assert a.call("UNLOCK", "a") == 1
    assert b.call("LOCK", "a", "WAIT", 0) is None
    assert a.call("UNLOCK", "a") == 0
    assert isinstance(b.call("LOCK", "a"), int)


def test_valid_is_positive_for_the_holder_only(broker, clients):
    a, b = clients(broker), clients(broker)
    assert a.call("VALID", "a") == 0
    a.call("LOCK", "a")
    assert a.call("VALID", "a") > 0
    assert b.call("VALID", "a") == 0
    if not broker.standalone:
        assert a.call("VALID", "a") <= 10000


def test_try_does_not_wait(broker, clients):
    a, b = clients(broker), clients(broker)
    assert isinstance(a.call("LOCK", "a", "WAIT", 0), int)
    assert b.call("LOCK", "a", "WAIT", 0) is None
    a.call("UNLOCK", "a")
    assert isinstance(b.call("LOCK", "a", "WAIT", 0), int)


def test_a_wait_runs_out_with_nil_and_leaves_nothing(broker, clients):
    a, b, c = clients(broker), clients(broker), clients(broker)
    a.call("LOCK", "a")
    began = time.monotonic()
    assert b.call("LOCK", "a", "WAIT", 300) is None
    assert time.monotonic() - began >= 0.29
    assert c.call("QUEUE", "a") == []
    waits(broker, c, "a")
    a.call("UNLOCK", "a")
    assert isinstance(c.reply(), int)
    assert b.quiet()


def test_a_closed_connection_releases_everything_it_held(broker, clients):
    """Pitfall 20."""
    a, b = clients(broker), clients(broker)
    for name in ("a", "b", "b"):
        a.call("LOCK", name)
    a.close()
    assert isinstance(b.call("LOCK", "a"), int)
    assert isinstance(b.call("LOCK", "b"), int)


def test_a_killed_holder_wakes_the_next(broker, clients):
    p, first = holder_process(broker, "a")
    b = clients(broker)
    waits(broker, b, "a")
    p.kill()
    assert b.reply() > first
    p.wait()


def test_a_waiter_that_hangs_up_is_passed_over(broker, clients):
    """Pitfall 19."""
    a, b, c = clients(broker), clients(broker), clients(broker)
    a.call("LOCK", "a")
    waits(broker, b, "a")
    waits(broker, c, "a")
    b.close()
    a.call("UNLOCK", "a")
    assert isinstance(c.reply(), int)


def test_a_hang_up_counts_whatever_was_not_read(broker, clients):
    a, b = clients(broker), clients(broker)
    a.call("LOCK", "a")
    waits(broker, b, "a")
    b.send_raw(harness.encode("PING") * 1000)
    b.close()
    with broker.client() as c:
        harness.wait_until(lambda: c.call("QUEUE", "a") == [], "the request to go")
    a.call("UNLOCK", "a")
    assert isinstance(clients(broker).call("LOCK", "a", "WAIT", 20000), int)


def test_a_lazy_unlock_is_done_at_once_and_answered_with_what_comes_next(broker, clients):
    a, b = clients(broker), clients(broker)
    a.call("LOCK", "a")
    waits(broker, b, "a")
    a.send("UNLOCK", "a", "LAZY")
    assert isinstance(b.reply(), int)
    b.call("PING")  # whatever the turn of the UNLOCK wrote is written
    assert not select.select([a.socket], [], [], 0)[0]
    a.send("PING")
    assert a.reply() == 0
    assert a.reply() == "PONG"


def test_lazy_answers_do_not_pile_up_nor_get_lost(broker, clients):
    a, b = clients(broker), clients(broker)
    for _ in range(20):  # errors, of some fifty bytes each
        a.send("UNLOCK", "a", "LAZY")
    for _ in range(5):
        assert isinstance(a.reply(), harness.Error)
    b.call("LOCK", "b")
    b.send("UNLOCK", "b", "LAZY")
    b.socket.shutdown(socket.SHUT_WR)
    assert b.reply() == 0
    assert b.ended()


def test_half_closed_connections_get_their_answers_and_end(broker, clients):
    a, b = clients(broker), clients(broker, 2)
    a.call("LOCK", "a")
    b.send_raw(b"PING one\r\nLOCK b\r\nLOCK a\r\n")
    b.socket.shutdown(1)
    assert b.reply() == "one"
    assert isinstance(b.reply(), int)
    assert b.reply() is None
    assert b.ended()
    assert a.call("QUEUE", "a") == []
    assert isinstance(a.call("LOCK", "b", "WAIT", 20000), int)


def test_hello_releases_nothing(broker, clients):
    a, b = clients(broker), clients(broker)
    a.call("LOCK", "a")
    a.call("HELLO", 2)
    assert b.call("LOCK", "a", "WAIT", 0) is None
    assert a.call("UNLOCK", "a") == 0


@pytest.mark.parametrize("name", ["a", "x" * 512, "orders/42", "a b\"c", "ümläut/日本", ".hidden", "..x", "-",
                                  "%41"])
def test_names(broker, clients, name):
    a, b = clients(broker), clients(broker)
    assert isinstance(a.call("LOCK", name), int)
    assert b.call("LOCK", name, "WAIT", 0) is None
    assert [row["name"] for row in b.call("LOCKS")] == [name]
    assert a.call("UNLOCK", name) == 0


# ---- between hosts ----


def test_two_hosts_exclude_each_other(two_hosts, clients):
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    first = a.call("LOCK", "a")
    assert b.call("LOCK", "a", "WAIT", 0) is None
    assert b.call("LOCK", "a", "WAIT", 200) is None
    b.send("LOCK", "a")
    assert b.quiet()
    a.call("UNLOCK", "a")
    assert b.reply() > first


def test_hosts_take_turns_and_tokens_grow(two_hosts, clients):
    pair = [clients(host) for host in two_hosts]
    tokens = []
    for _ in range(10):
        for c in pair:
            tokens.append(c.call("LOCK", "a"))
            c.call("UNLOCK", "a")
    assert tokens == sorted(set(tokens))


def test_a_killed_holder_wakes_the_next_on_the_other_host(two_hosts, clients):
    p, first = holder_process(two_hosts[0], "a")
    b = clients(two_hosts[1])
    waits(two_hosts[1], b, "a")
    p.kill()
    assert b.reply() > first
    p.wait()


def test_a_waiter_of_another_host_is_not_starved_by_local_ones(daemons, zk, root, clients, kazoo_client):
    """Two local clients that ask again at once must let the other host in within the hand-off bounds."""
    alpha = daemons(zk, root, locks__handoff_max=4, locks__handoff_ms=60000)
    beta = daemons(zk, root)
    pair = [clients(alpha), clients(alpha)]
    other = clients(beta)
    pair[0].call("LOCK", "a")
    waits(beta, other, "a")
    k = kazoo_client(zk)
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 2, "both to stand in line")

    def unchanged():
        before, after, _ = harness.over(1.5, lambda: alpha.info("stats")["zk_reads_total"])
        return before == after

    # The bounds hold from when this host knows of the other one: it looks who is behind a grant that is older than a second.
    harness.wait_until(unchanged, "the look at a grant older than a second")
    rounds = 0
    while other.quiet(0):
        pair[1].send("LOCK", "a")
        pair[0].call("UNLOCK", "a")
        pair.reverse()
        if not harness.select.select([pair[0], other], [], [], harness.PATIENCE)[0]:
            raise AssertionError("nobody is served")
        rounds += 1
        assert rounds < 20, "the other host is starved"
        if not other.quiet(0):
            break
        pair[0].reply()
    assert isinstance(other.reply(), int)


def test_increments_under_one_lock_lose_nothing(two_hosts, tmp_path):
    """Pitfall 6. The promise itself: many processes of two hosts, read, modify, write."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    worker = """
import sys; sys.path.insert(0, sys.argv[1])
import harness
c = harness.Client(sys.argv[2])
for _ in range(25):
    c.call("LOCK", "counter")
    n = int(open(sys.argv[3]).read())
    with open(sys.argv[3], "w") as f:
        f.write(str(n + 1))
    c.call("UNLOCK", "counter")
"""
    workers = [harness.spawn([sys.executable, "-c", worker, harness.HERE, two_hosts[i % 2].socket, str(counter)])
               for i in range(8)]
    assert [w.wait(harness.PATIENCE) for w in workers] == [0] * 8
    assert counter.read_text() == "200"


def test_a_daemon_that_dies_frees_its_locks_after_the_session(daemons, own_zk, clients):
    """Pitfall 20."""
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    alpha, beta = daemons(zk, **harness.FAST), daemons(zk, **harness.FAST)
    a, b = clients(alpha), clients(beta)
    first = a.call("LOCK", "a")
    waits(beta, b, "a")
    asked = time.monotonic()
    safe_ms = int(alpha.info()["safe_for_ms"])
    alpha.kill()
    with pytest.raises(harness.Closed):
        a.push()
    assert b.reply() > first and time.monotonic() - asked >= safe_ms / 1000


def test_stopping_and_going_on_changes_nothing_for_waiters(two_hosts, clients):
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    a.call("LOCK", "a")
    waits(two_hosts[1], b, "a")
    with stopped(two_hosts[1]):
        a.call("UNLOCK", "a")
        assert b.quiet()
    assert isinstance(b.reply(), int)
