# SPDX-License-Identifier: Apache-2.0
"""What ZooKeeper sees: the tree as others may read it, and what happens when it goes away."""

import os
import re
import socket
import struct
import time

import pytest

import fakezk
import harness
from harness import FAST, FAST_TICK_MS, ROOMY
from mishaps import kill_and_start, stopped


def use_once(client, k, root):
    """Makes the directory of the lock a, and leaves it empty."""
    client.call("LOCK", "a")
    client.call("UNLOCK", "a")
    harness.wait_until(lambda: k.get_children(f"{root}/a") == [], "the znode to go")


# ---- the tree ----


def test_the_tree_is_curators(daemons, zk, root, clients, kazoo_client):
    d = daemons(zk, root, host="alpha")
    c = clients(d)
    token = c.call("LOCK", "orders/42")
    k = kazoo_client(zk)
    assert sorted(k.get_children(root)) == sorted(set(k.get_children(root)) | {".hosts", "orders%2F42"})
    (child,) = k.get_children(f"{root}/orders%2F42")
    assert re.fullmatch(r"_c_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}-__WRIT__\d{10}", child)
    _, mine = k.get(f"{root}/orders%2F42/{child}")
    _, host = k.get(f"{root}/.hosts/alpha")
    assert mine.ephemeralOwner == host.ephemeralOwner != 0
    assert token >> 10 == mine.czxid
    data, _ = k.get(f"{root}/orders%2F42")
    assert b"rw" in data


@pytest.mark.parametrize("name, znode", [
    ("plain", "plain"), ("a b", "a%20b"), (".dot", "%2Edot"), ("..x", "%2E.x"), ("100%", "100%25"), ("é", "%C3%A9"),
    ("A-z_0.9", "A-z_0.9"), ("a/b/c", "a%2Fb%2Fc"),
])
def test_names_are_percent_encoded(daemons, zk, root, clients, kazoo_client, name, znode):
    c = clients(daemons(zk, root))
    c.call("LOCK", name)
    assert znode in kazoo_client(zk).get_children(root)


def test_an_unlocked_lock_leaves_no_contender(daemons, zk, root, clients, kazoo_client):
    """Pitfall 12."""
    c = clients(daemons(zk, root, locks__linger_ms=0))
    k = kazoo_client(zk)
    for _ in range(3):
        use_once(c, k, root)


def test_a_wait_that_is_cancelled_on_its_way_leaves_nothing(daemons, zk, root, clients, kazoo_client):
    """ENQUEUE and CANCEL in one packet: the create was sent, and is taken back."""
    d = daemons(zk, root, locks__linger_ms=0)
    c = clients(d)
    too_late = 0
    for i in range(50):
        c.send_raw(harness.encode("ENQUEUE", f"n{i}") + harness.encode("CANCEL", f"n{i}"))
        assert c.reply() == "QUEUED"
        if c.reply() == 0:  # on a busy machine it may have been granted by then
            assert c.call("UNLOCK", f"n{i}") == 0
            too_late += 1
    assert too_late < 25
    harness.wait_until(lambda: d.info("locks")["claims"] == "0", "the claims to go")
    assert c.quiet()
    k = kazoo_client(zk)
    names = [n for n in k.get_children(root) if n.startswith("n")]
    assert [k.get_children(f"{root}/{n}") for n in names] == [[]] * len(names)


def test_directories_that_nobody_uses_go_and_come_again(own_zk, daemons, clients, kazoo_client):
    """Pitfall 23. They are containers: the server deletes them once they are empty, here at once instead of every minute."""
    zk = own_zk(jvm=["-Dznode.container.checkIntervalMs=100"])
    c = clients(daemons(zk, locks__linger_ms=0))
    k = kazoo_client(zk)
    last = 0
    for _ in range(5):
        token = c.call("LOCK", "a")
        assert token > last
        last = token
        assert k.exists("/t/a")
        c.call("UNLOCK", "a")
        harness.wait_until(lambda: not k.exists("/t/a"), "the directory to be deleted")
    assert k.exists("/t/.hosts")


def test_what_is_of_hosts_stays_when_it_is_empty(own_zk, daemons, clients, kazoo_client):
    """No container: another daemon may be about to announce itself."""
    zk = own_zk(jvm=["-Dznode.container.checkIntervalMs=100"])
    d = daemons(zk, "/t/deep", locks__linger_ms=0, host="alpha")
    with d.client() as c:
        c.call("LOCK", "a")
    assert d.terminate() == 0
    k = kazoo_client(zk)
    harness.wait_until(lambda: not k.exists("/t/deep/a"), "the directory of the lock to be deleted")
    assert k.get_children("/t/deep/.hosts") == []
    paths = "/t", "/t/deep", "/t/deep/.hosts", "/t/deep/.mail"
    made = [k.exists(path).czxid for path in paths]
    for name in "bc":  # the server looks for empty containers twice more
        other = daemons(zk, "/t/deep", locks__linger_ms=0)
        with other.client() as c:
            c.call("LOCK", name)
        assert other.terminate() == 0
        harness.wait_until(lambda name=name: not k.exists(f"/t/deep/{name}"), "the directory of the lock to be deleted")
    assert [k.exists(path).czxid for path in paths] == made


def test_linger_keeps_the_claim_until_somebody_wants_it(daemons, zk, root, clients, kazoo_client):
    alpha, beta = daemons(zk, root, locks__linger_ms=60000), daemons(zk, root)
    a, b = clients(alpha), clients(beta)
    first = a.call("LOCK", "a")
    a.call("UNLOCK", "a")
    k = kazoo_client(zk)
    assert len(k.get_children(f"{root}/a")) == 1
    second = a.call("LOCK", "a")
    assert second >> 10 == first >> 10 and second > first
    a.call("UNLOCK", "a")
    assert b.call("LOCK", "a", "WAIT", 20000) > second


def test_curators_contender_of_another_language_is_waited_for(daemons, zk, root, clients, kazoo_client):
    """Pitfall 18."""
    c = clients(daemons(zk, root, locks__linger_ms=0))
    k = kazoo_client(zk)
    use_once(c, k, root)
    path = k.create(f"{root}/a/_c_00000000-0000-4000-8000-000000000000-__WRIT__", ephemeral=True, sequence=True)
    assert c.call("LOCK", "a", "WAIT", 300) is None
    c.send("LOCK", "a")
    assert c.quiet()
    k.delete(path)
    assert isinstance(c.reply(), int)


def test_an_operator_who_deletes_the_znode_takes_the_lock_away(daemons, own_zk, root, clients, kazoo_client):
    zk = own_zk()
    d = daemons(zk, root)
    a, b = clients(d), clients(d)
    a.call("LOCK", "a")
    k = kazoo_client(zk)
    (child,) = k.get_children(f"{root}/a")
    harness.wait_until(lambda: int(re.search(r"zk_watch_count\t(\d+)", zk.ask("mntr"))[1]) > 1,
                       "the grant to be watched, at the age of a second, as the mail is from the beginning")
    k.delete(f"{root}/a/{child}")
    assert a.push()[:2] == ["lost", "a"]
    assert a.call("VALID", "a") == 0
    assert isinstance(b.call("LOCK", "a", "WAIT", 20000), int)


def test_a_root_of_several_levels_is_made(daemons, zk, root, clients, kazoo_client):
    c = clients(daemons(zk, f"{root}/deeper/still"))
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)
    assert "a" in kazoo_client(zk).get_children(f"{root}/deeper/still")


def test_a_plain_kazoo_znode_of_unknown_kind_is_not_skipped_in_silence(daemons, zk, root, clients, kazoo_client):
    c = clients(daemons(zk, root, locks__linger_ms=0))
    k = kazoo_client(zk)
    use_once(c, k, root)
    path = k.create(f"{root}/a/somebody-", ephemeral=True, sequence=True)
    assert c.call("LOCK", "a", "WAIT", 300) is None
    k.delete(path)
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)


# ---- when it goes away ----


def test_zookeeper_restarted_under_waiting_clients(own_zk, daemons, clients):
    """Pitfall 17."""
    zk = own_zk()
    pair = [daemons(zk, zookeeper__session_timeout_ms=40000) for _ in range(2)]
    holder = clients(pair[0])
    first = holder.call("LOCK", "a")
    waiters = [clients(d) for d in pair for _ in range(3)]
    for c in waiters:
        c.send("LOCK", "a")
    harness.wait_queued(pair[0], "a", 3)
    harness.wait_queued(pair[1], "a", 3)
    kill_and_start(zk)
    assert holder.call("UNLOCK", "a") == 0, "a restart shorter than the session loses nothing"
    last = first
    for _ in range(len(waiters)):
        ready, _, _ = harness.select.select(waiters, [], [], harness.PATIENCE)
        assert len(ready) == 1, "exactly one is served"
        (c,) = ready
        token = c.reply()
        assert token > last
        last = token
        c.call("UNLOCK", "a")
        waiters.remove(c)
    assert not waiters


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_silent_server_is_jeopardy_and_then_loss(own_zk, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **ROOMY)
    three, two, unaware = clients(d), clients(d, 2), clients(d)
    three.call("LOCK", "three")
    two.call("LOCK", "two")
    unaware.call("LOCK", "unaware")
    assert 300 < three.call("VALID", "three") <= 6667
    two.send("EVENTS")
    began = time.monotonic()
    with stopped(zk):
        told = three.push()
        assert told[0] == "jeopardy"
        assert two.reply()[0] == "jeopardy"
        assert three.call("VALID", "three") > 0
        two.send("EVENTS")
        told = three.push()
        gone = time.monotonic() - began
        assert told[:2] == ["lost", "three"]
        assert two.reply()[:2] == ["lost", "two"]
        assert 1 <= gone <= 10, gone
        assert three.call("VALID", "three") == 0
    # A push may not have been read: a reply tells it once more. An event that was asked for has been read.
    assert unaware.call("UNLOCK", "unaware").code == "LOST"
    assert unaware.call("UNLOCK", "unaware").code == "NOTHELD"
    assert three.call("LOCK", "three", "WAIT", 20000).code == "LOST"
    assert isinstance(three.call("LOCK", "three", "WAIT", 20000), int)
    assert isinstance(two.call("LOCK", "two", "WAIT", 20000), int)


def test_a_loss_cannot_go_unseen_by_resp2(own_zk, daemons, clients):
    """Pitfall 3."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **FAST)
    c, watcher = clients(d, 2), clients(d)
    c.call("LOCK", "a")
    watcher.call("LOCK", "b")
    with stopped(zk):
        while watcher.push()[0] != "lost":
            pass
    assert c.call("LOCK", "a", "WAIT", 0).code == "LOST"
    assert isinstance(c.call("LOCK", "a", "WAIT", 20000), int)
    assert c.call("UNLOCK", "a") == 0


def test_a_short_silence_is_jeopardy_and_safe_again(own_zk, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **ROOMY)
    c = clients(d)
    token = c.call("LOCK", "a")
    with stopped(zk):
        assert c.push()[0] == "jeopardy"
    assert c.push()[0] == "safe"
    assert c.call("LOCK", "a", "REENTER") == token
    assert c.call("VALID", "a") > 0


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_locks_are_lost_before_another_host_can_have_them(own_zk, daemons, clients):
    """The daemon is stopped for longer than its session: the other host is served, and the first thing the old
    holder hears after waking is that it lost."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    alpha, beta = daemons(zk, **FAST), daemons(zk, **FAST)
    a, b = clients(alpha), clients(beta)
    first = a.call("LOCK", "a")
    b.send("LOCK", "a")
    harness.wait_queued(beta, "a", 1)
    with stopped(alpha):
        assert b.reply() > first
        a.send("VALID", "a")
    assert a.reply() == 0
    assert a.news()[:2] == ["lost", "a"]


def test_the_host_is_announced_with_what_an_operator_wants(daemons, zk, root, kazoo_client):
    d = daemons(zk, root, host="alpha")
    k = kazoo_client(zk)
    harness.wait_until(lambda: k.exists(f"{root}/.hosts/alpha"), "the host to be announced")
    data, _ = k.get(f"{root}/.hosts/alpha")
    assert str(d.pid).encode() in data


def test_what_is_held_at_the_end_of_a_daemon_is_not_given_away_early(own_zk, daemons, clients):
    """The holder did not let go in time: it may still believe to hold, so the session is left to run out."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    alpha, beta = daemons(zk, **FAST, daemon__stop_timeout_ms=0), daemons(zk, **FAST)
    a, b = clients(alpha), clients(beta)
    first = a.call("LOCK", "a")
    b.send("LOCK", "a")
    harness.wait_queued(beta, "a", 1)
    asked = time.monotonic()
    safe_ms = a.call("VALID", "a")
    assert alpha.terminate() == 0
    assert b.reply() > first and (time.monotonic() - asked) * 1000 > safe_ms


def test_a_daemon_that_was_killed_comes_back(own_zk, daemons, clients):
    """Under the same name: what its predecessor left runs out, waiters of both hosts are served in the end."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    alpha, beta = daemons(zk, **FAST, host="alpha"), daemons(zk, **FAST, host="beta")
    first = clients(alpha).call("LOCK", "a")
    b = clients(beta)
    b.send("LOCK", "a")
    harness.wait_queued(beta, "a", 1)
    kill_and_start(alpha)
    again = clients(alpha)
    again.send("LOCK", "a")
    second = b.reply()
    assert second > first
    b.call("UNLOCK", "a")
    assert again.reply() > second
    harness.wait_until(lambda: alpha.info()["announced"] == "1", "its name to be its own again")


def test_a_daemon_that_ends_takes_its_znodes_along(daemons, zk, root, kazoo_client):
    d = daemons(zk, root, host="alpha")
    k = kazoo_client(zk)
    with d.client() as c:
        c.call("LOCK", "a")
        assert k.get_children(f"{root}/a")
        c.call("UNLOCK", "a")
    assert d.terminate() == 0
    assert k.get_children(f"{root}/a") == []
    assert k.get_children(f"{root}/.hosts") == []


def test_the_server_of_another_user_is_not_needed_for_local_answers(own_zk, daemons, clients):
    """Pitfall 15. A try that can be answered from what the host knows asks nothing of ZooKeeper."""
    zk = own_zk()
    d = daemons(zk)
    a, b = clients(d), clients(d)
    a.call("LOCK", "a")
    with stopped(zk):
        assert b.call("LOCK", "a", "WAIT", 0) is None
        assert b.call("LOCK", "a", "WAIT", 50) is None


class Counting(fakezk.Proxy):
    """Tells how many segments with data have come from the daemon."""

    def __init__(self, zk):
        super().__init__(zk.port, lambda connection: connection.recv(1))
        self.tick_ms = zk.tick_ms

    def segments(self):
        """tcpi_data_segs_in of struct tcp_info"""
        return sum(struct.unpack_from("=I", c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 152)[0]
                   for c in self.open if c.fileno() >= 0)


def test_what_is_asked_at_once_goes_out_at_once(zk, daemons, root, clients, kazoo_client, ending):
    """A create and a list are one segment, each with its length: a server wakes up once."""
    proxy = ending(Counting(zk))
    c, k = clients(daemons(proxy, root, locks__linger_ms=0)), kazoo_client(zk)
    use_once(c, k, root)
    found = []
    for _ in range(5):  # a heartbeat is one more, now and then
        before = proxy.segments()
        assert isinstance(c.call("LOCK", "a"), int)
        locked = proxy.segments()
        c.call("UNLOCK", "a")
        harness.wait_until(lambda: k.get_children(f"{root}/a") == [], "the znode to go")
        found.append((locked - before, proxy.segments() - locked))
    assert (1, 1) in found, found


def test_addresses_may_be_names_and_dead_servers_are_passed_over(daemons, zk, root, clients):
    d = daemons(zk, root, zookeeper__servers=f"127.0.0.1:1,localhost:{zk.port}")
    assert isinstance(clients(d).call("LOCK", "a", "WAIT", 25000), int)
    assert os.path.exists(d.socket)
