# SPDX-License-Identifier: Apache-2.0
"""How large a packet the servers take (jute.maxbuffer): found out without harm, believed only when it is certain, and
obeyed, for a session that is larger takes the ensemble down for good (ZOOKEEPER-4306)."""

import glob

import pytest

import fakezk
import harness
from mishaps import kill_and_start
from test_handover import restart

LOOKS_FOR_S = 20  # it begins within 3 s of a connection, and asks a dozen questions
NETTY = ["-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"]


def wait_packet(d, what, patience=harness.PATIENCE):
    return harness.wait_until(lambda: what(int(d.info("zookeeper")["packet_bytes"])) and d.info(), "the limit", patience)


def start_again(d):
    assert d.terminate() == 0
    d.start()


def wait_limit(d, most):
    """Until it has found the limit of a server that takes so much. One that is slow, as on a busy machine, counts as one that takes
    everything, and is not asked again by that process."""
    def found():
        try:
            return wait_packet(d, lambda n: 0 < n <= most, LOOKS_FOR_S)
        except AssertionError:
            start_again(d)
            return None

    return harness.wait_until(found, "the limit", 3 * harness.PATIENCE)


@pytest.fixture
def proxied(own_zk, ending):
    """Makes what stands before a server, and does that with questions that are too large."""

    def make(odd=lambda connection: connection.recv(1)):
        zk = own_zk()
        proxy = ending(fakezk.Proxy(zk.port, odd))
        proxy.tick_ms = zk.tick_ms
        return proxy

    return make


def asked(d, proxy):
    """The lengths that it was asked for. When the connection of the latest question is over the daemon knows the answer, and
    has asked on, if it does that, before it answers."""
    harness.wait_until(lambda: proxy.lengths and proxy.over == len(proxy.lengths), "the question")
    d.info()
    with fakezk.socket.create_connection(("127.0.0.1", proxy.port_of)) as later:
        later.sendall(bytes([0, 0, 0, 7]))
        harness.wait_until(lambda: 7 in proxy.lengths, "another question")
    harness.wait_until(lambda: proxy.over == len(proxy.lengths), "the questions to be over")
    proxy.lengths.remove(7)
    proxy.over -= 1
    return proxy.lengths


@pytest.mark.parametrize("kind", ["nio", "netty"])
def test_a_server_that_takes_less_lowers_the_limit(own_zk, daemons, monkeypatch, kind):
    monkeypatch.setattr(harness, "JARS", ":".join([harness.JARS, *glob.glob("/usr/share/java/netty-*.jar")]))
    zk = own_zk(jvm=["-Djute.maxbuffer=50000", *(NETTY if kind == "netty" else [])])
    d = daemons(zk)
    info = wait_limit(d, 50000)
    found = int(info["packet_bytes"])
    assert found >= 48000
    assert int(info["limit_session_path_bytes"]) == found // 10 * 9
    assert info["configured_session_path_bytes"] == "900000"
    assert d.log().count(f"takes packets of no more than {found} bytes") == 1
    assert "jute.maxbuffer" in d.log()
    for what in ("suspensions_total", "jeopardies_total", "stalls_total"):
        assert info[what] == "0"


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_server_that_takes_enough_is_asked_once_and_nothing_is_said(proxied, daemons, clients):
    proxy = proxied()
    d = daemons(proxy)
    assert asked(d, proxy) == [990000]
    info = d.info()
    assert info["packet_bytes"] == "0" and info["limit_session_path_bytes"] == "900000"
    assert "packets" not in d.log()
    assert isinstance(clients(d).call("LOCK", "a"), int)


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_server_that_was_asked_is_not_asked_again_by_the_next_process(proxied, daemons):
    harness.inherit_orphans()
    proxy = proxied()
    d = daemons(proxy)
    assert asked(d, proxy) == [990000]
    for _ in range(2):
        restart(d)
        harness.wait_until(lambda: d.info("zookeeper")["zookeeper_state"] == "connected", "the next connection")
    _, lengths, _ = harness.over(4, lambda: proxy.lengths)  # within 3 s of a connection it would be asked
    assert lengths == [990000]


def slowly(connection):
    fakezk.select.select([connection], [], [], 4)  # unless the other side gives up before
    connection.close()


def chatty(connection):
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.close()


@pytest.mark.parametrize("odd, lengths", [
    (lambda c: c.close(), [990000, 64]), (slowly, [990000]), (chatty, [990000]),
], ids=["closes everything", "slow", "says something"])
def test_what_is_not_certain_is_not_believed(proxied, daemons, odd, lengths):
    """A proxy that closes what it does not understand, a server too slow to close in time, one that talks."""
    proxy = proxied(odd)
    d = daemons(proxy)
    harness.wait_until(lambda: len(proxy.lengths) == len(lengths), "the questions")
    assert asked(d, proxy) == lengths
    info = d.info()
    assert info["packet_bytes"] == "0" and info["limit_session_path_bytes"] == "900000"
    assert info["suspensions_total"] == "0" and info["trouble"] == ""


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
@pytest.mark.parametrize("process", ["the same process", "another process"])
def test_a_server_that_was_given_more_gives_the_limit_back(own_zk, daemons, process):
    harness.inherit_orphans()
    zk = own_zk(jvm=["-Djute.maxbuffer=50000"])
    d = daemons(zk)
    wait_limit(d, 50000)
    if process == "another process":
        restart(d)
        assert int(d.info("zookeeper")["packet_bytes"]) > 0
    before, after, _ = harness.over(10, lambda: d.info("zookeeper")["packet_bytes"])  # sooner it is not asked again
    assert before == after
    zk.kill()
    zk.jvm = []
    zk.start()
    info = wait_packet(d, lambda n: n == 0)
    assert info["limit_session_path_bytes"] == "900000"
    assert "large enough for limits.session_path_bytes = 900000" in d.log()


def fill(client, count, name):
    """Locks until the limit; returns how many were taken."""
    for i in range(count):
        answer = client.call("LOCK", name % i, "WAIT", 20000)
        if isinstance(answer, harness.Error):
            assert answer.code == "LIMIT", answer
            return i
    return count


@pytest.mark.release_only("four starts of a server; that the limit is kept is shown without them")
@pytest.mark.plain_only("it is about what a server does")
def test_a_full_session_ends_and_its_server_starts_again(own_zk, daemons, clients, kazoo_client):
    """The same server after a session of 300 znodes of somebody who does not count: it does not come back."""
    zk = own_zk(jvm=["-Djute.maxbuffer=4000"])
    d = daemons(zk, limits={"grants_per_client": 1000}, locks__linger_ms=0, zookeeper__session_timeout_ms=40000)
    wait_limit(d, 4000)
    c = clients(d)
    taken = fill(c, 300, "a-lock-of-some-length-%d")
    assert 10 <= taken <= 60
    info = d.info()
    assert int(info["session_path_bytes"]) <= int(info["limit_session_path_bytes"]) < 3600
    kill_and_start(zk)
    harness.wait_until(lambda: d.info()["session_state"] == "safe" and d.info()["connected"] == "1", "the session again")
    assert c.call("UNLOCK", "a-lock-of-some-length-0") == 0
    assert isinstance(c.call("LOCK", "a-lock-of-some-length-0", "WAIT", 20000), int)
    c.close()
    assert d.terminate() == 0
    harness.wait_until(lambda: zk.sessions() == {}, "the session to end")
    kill_and_start(zk)

    k = kazoo_client(zk)
    for i in range(300):
        k.create(f"/t/a-znode-that-is-as-long-as-those-of-a-lock-are-{i}", ephemeral=True)
    k.stop()
    zk.kill()
    zk.spawn()
    assert zk.process.wait(harness.PATIENCE) == 1
    with open(f"{zk.dir}/log", encoding="utf-8") as f:
        assert "Unreasonable length" in f.read()


def test_one_name_that_is_too_long_does_not_cost_the_host_its_session(own_zk, daemons, clients):
    """Every request that names it is larger than the server takes: it cuts the connection, until that is known."""
    zk = own_zk(jvm=["-Djute.maxbuffer=1000"])
    d = daemons(zk)

    def refused():
        other, c = clients(d), clients(d)
        token = other.call("LOCK", "a")
        if c.call("LOCK", "é" * 256, "WAIT", 25000).code == "LIMIT":
            return other, c, token
        start_again(d)  # see wait_limit()
        return None

    other, c, token = harness.wait_until(refused, "the limit", 3 * harness.PATIENCE)
    info = wait_packet(d, lambda n: n > 0)
    assert info["sessions_lost_total"] == "0" and info["sessions_total"] == "1"
    assert other.call("LOCK", "a", "REENTER") == token
    harness.wait_until(lambda: d.info()["connected"] == "1" and d.info()["operations"] == "0", "what was cut off to be over")
    before = d.info()["suspensions_total"]
    assert c.call("LOCK", "é" * 255, "WAIT", 25000).code == "LIMIT"
    assert isinstance(c.call("LOCK", "b", "WAIT", 20000), int)
    assert d.info()["suspensions_total"] == before
