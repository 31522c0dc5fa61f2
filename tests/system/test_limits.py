# SPDX-License-Identifier: Apache-2.0
"""Limits where they meet a real server: as much as one session may have, and its end; numbers that run out; directories
and whole trees that vanish; servers that answer but cannot decide."""

import glob
import os
import shutil
import struct
import zlib

import kazoo.exceptions
import pytest

import ensemble
import harness
import network
from harness import FAST, FAST_TICK_MS, ROOMY
from mishaps import kill_and_start

WRAP_NEAR = (1 << 31) - 1 - (1 << 20)  # the first number at which a directory counts as worn
CONTAINER = -(1 << 63)                 # what the server writes as the owner of a container


@pytest.fixture
def own_trio(monkeypatch, ending):
    """Makes an ensemble of three."""
    def make(jvm=()):
        class Server(ensemble.Server):
            def __init__(self, *args):
                super().__init__(*args)
                self.jvm = [*self.jvm, *jvm]

        monkeypatch.setattr(ensemble, "Server", Server)
        return ending(ensemble.Ensemble(network.Network(), FAST_TICK_MS))

    return make


# ---- as many znodes as a session may have ----


def ends_of(client, count):
    """How so many queued waits ended."""
    ends = []
    while len(ends) < count:
        push = client.push()
        if push[0] in ("granted", "failed"):
            ends.append(push)
    return ends


def fill(daemon, clients, width):
    """Takes locks with names of that many bytes until there is no room; returns {client: names}."""
    held, number, answer = {}, 0, None
    while "znode paths" not in str(answer):
        c = clients(daemon)
        held[c] = []
        answer = None
        while answer is None:
            names = [f"{number + i:0{width}}" for i in range(500)]
            for name in names:
                c.send("ENQUEUE", name)
            answers = [c.reply() for _ in names]
            ends = ends_of(c, sum(a == "QUEUED" for a in answers))
            held[c] += [end[1] for end in ends if end[0] == "granted"]
            number += len(names)
            refused = [a for a in answers if a != "QUEUED"]
            refused += [harness.Error(f"{end[2]} {end[3]}") for end in ends if end[0] == "failed"]
            assert all(a.code == "LIMIT" for a in refused), refused[0]
            answer = refused[0] if refused else None
    return {c: names for c, names in held.items() if names}


def assert_all_held(daemon, held):
    for c, names in held.items():
        for name in names:
            c.send("VALID", name)
        assert all(c.reply() > 0 for _ in names)
        assert not [p for p in c.pushes if p[0] == "lost"]
    assert daemon.info("stats")["losses_total"] == "0"


def session_of(daemon):
    return int(daemon.info("session")["session_id"], 16)


def wait_recovered(daemon):
    """Until it is connected and has no question left to ask."""
    def done():
        info = daemon.info("session", "zookeeper")
        return info["connected"] == "1" and info["session_state"] == "safe" and info["operations"] == "0"

    harness.wait_until(done, "the session to be well", 120)


@pytest.mark.release_only("a session of twelve thousand znodes is slow, and full ones of packets and of limits are shorter")
@pytest.mark.plain_only("it is about what a server does")
def test_a_full_session_survives_a_restart_and_its_end_is_survived_by_the_server(own_zk, daemons, clients):
    """Pitfalls 21, 23: all that limits.session_path_bytes allows, with short names (the most znodes and watches), on a
    server as it comes. Its end is one transaction of the size of the limit, which the server must read again."""
    zk = own_zk()
    d = daemons(zk, zookeeper__session_timeout_ms=40000)
    held = fill(d, clients, 5)
    count = sum(map(len, held.values()))
    assert count > 11500
    full = d.info("zookeeper")["session_path_bytes"]
    c = next(iter(held))
    more = clients(d)
    assert more.call("LOCK", "other").code == "LIMIT"
    assert d.info("zookeeper")["session_path_bytes"] == full
    (paths,) = zk.sessions().values()
    assert len(paths) == count + 1 and sum(4 + len(p) for p in paths) < int(full)
    kill_and_start(zk)
    wait_recovered(d)
    assert_all_held(d, held)
    c.call("UNLOCK", held[c].pop())
    harness.wait_until(lambda: isinstance(more.call("LOCK", "other"), int), "room for one more")
    session = session_of(d)
    d.kill()
    ensemble.end_session(zk.port, session)
    harness.wait_until(lambda: zk.sessions() == {}, "the session to end")
    kill_and_start(zk)
    d.start()
    assert isinstance(clients(d).call("LOCK", held[c][0], "WAIT", 20000), int)


@pytest.mark.release_only("it is about what servers do among themselves")
@pytest.mark.plain_only("it is about what a server does")
def test_the_end_of_a_full_session_is_replicated(own_trio, daemons, clients):
    """On three servers every transaction is a packet between them as well. Long names, for speed: bytes are what
    counts."""
    trio = own_trio()
    d = daemons(trio, zookeeper__session_timeout_ms=10000)
    held = fill(d, clients, 450)
    assert sum(map(len, held.values())) > 1500
    leader = trio.leader()
    leader.stop()
    trio.wait_led(without=leader)
    leader.start()
    trio.wait_whole()
    wait_recovered(d)
    assert_all_held(d, held)
    session = session_of(d)
    d.kill()
    ensemble.end_session(trio.leader().port, session)
    for server in trio.servers:
        harness.wait_until(lambda s=server: s.sessions() == {}, "the znodes to go everywhere")
    for server in trio.servers:
        server.kill()
    for server in trio.servers:
        server.start()
    trio.wait_whole()
    d.start()
    assert isinstance(clients(d).call("LOCK", "again", "WAIT", 20000), int)


def test_a_smaller_packet_limit_of_the_servers_wants_a_smaller_limit_of_ours(own_zk, daemons, clients):
    """The default fits the default of ZooKeeper, jute.maxbuffer = 1 MB. With nine tenths of a smaller one nothing ever
    gets too large either."""
    zk = own_zk(jvm=["-Djute.maxbuffer=20000"])
    d = daemons(zk, limits={"session_path_bytes": 18000}, zookeeper__session_timeout_ms=40000)
    held = fill(d, clients, 5)
    kill_and_start(zk)
    wait_recovered(d)
    assert_all_held(d, held)
    session = session_of(d)
    d.kill()
    ensemble.end_session(zk.port, session)
    kill_and_start(zk)
    assert zk.sessions() == {}
    d.start()


def test_waiters_behind_another_host_at_the_limit_and_one_past(daemons, zk, root, clients):
    alpha, beta = daemons(zk, root), daemons(zk, root, limits={"requests_per_lock": 20})
    holder = clients(alpha)
    holder.call("LOCK", "a")
    waiters = [clients(beta) for _ in range(20)]
    for i, c in enumerate(waiters):
        c.send("LOCK", "a")
        harness.wait_queued(beta, "a", i + 1)
    one_more = clients(beta)
    assert one_more.call("LOCK", "a").code == "LIMIT"
    holder.call("UNLOCK", "a")
    for c in waiters:
        assert isinstance(c.reply(), int)
        assert all(other.quiet(0) for other in waiters[waiters.index(c) + 1:])
        c.call("UNLOCK", "a")
    assert isinstance(one_more.call("LOCK", "a", "WAIT", 20000), int)


# ---- numbers that run out ----


def set_counter(zk, path, value):
    """How many children were ever made in a directory, written into the only snapshot of a server that is down."""
    data = os.path.join(zk.dir, "data", "version-2")
    snapshot = max(glob.glob(f"{data}/snapshot.*"), key=lambda p: int(p.rpartition(".")[2], 16))
    for other in glob.glob(f"{data}/*"):
        if other != snapshot:
            os.unlink(other)
    with open(snapshot, "rb") as f:
        content = bytearray(f.read()[:-13])  # behind it the checksum and the path that ends it: "/"
    key = struct.pack(">i", len(path)) + path.encode()
    assert content.count(key) == 1
    at = content.index(key) + len(key)
    at += 4 + max(0, struct.unpack_from(">i", content, at)[0]) + 8  # data, ACL
    *_, counter, _, owner, _ = struct.unpack_from(">qqqqiiiqq", content, at)
    assert owner == CONTAINER and counter >= 1
    struct.pack_into(">i", content, at + 36, value)
    with open(snapshot, "wb") as f:
        f.write(content + struct.pack(">qi", zlib.adler32(content), 1) + b"/")


@pytest.fixture
def worn(own_zk, daemons, clients, kazoo_client):
    """A daemon, a client of it and a kazoo client, on a server whose lock `a` has had so many contenders."""
    def make(counter):
        zk = own_zk(jvm=["-Dzookeeper.digest.enabled=false",  # it would notice what set_counter() does
                           "-Dzookeeper.serializeLastProcessedZxid.enabled=false"])  # since 3.9 behind the checksum
        d = daemons(zk, locks__linger_ms=0)
        with d.client() as c:
            first = c.call("LOCK", "a")
            c.call("UNLOCK", "a")
        d.terminate()
        kill_and_start(zk)  # which writes a snapshot
        zk.kill()
        set_counter(zk, "/t/a", counter)
        zk.start()
        d.start()
        return clients(d), kazoo_client(zk), first

    return make


def number_of(child):
    return int(child.rpartition("__WRIT__")[2])


def test_a_directory_whose_numbers_run_out_is_made_anew(worn):
    """Pitfall 7. Tokens go on growing: they are no sequence numbers."""
    c, k, last = worn(WRAP_NEAR - 3)
    numbers = []
    refusals = 0
    while len(numbers) < 6:
        token = c.call("LOCK", "a", "WAIT", 20000)
        if isinstance(token, harness.Error):
            assert token.code == "LIMIT" and "sequence numbers" in token
            refusals += 1
            continue
        assert token > last
        last = token
        (child,) = k.get_children("/t/a")
        numbers.append(number_of(child))
        c.call("UNLOCK", "a")
        harness.wait_until(lambda: not k.exists("/t/a") or not k.get_children("/t/a"), "the znode to go")
    assert numbers == [WRAP_NEAR - 3, WRAP_NEAR - 2, WRAP_NEAR - 1, 0, 1, 2]
    assert refusals == 0, "no other host is in it"


def test_beyond_the_wrap_nobody_is_let_in_beside_others(worn):
    """Pitfall 7: -2147483648 sorts before all numbers, but whoever has it came last."""
    c, k, last = worn((1 << 31) - 2)
    name = "/t/a/_c_00000000-0000-4000-8000-00000000000{}-__WRIT__"
    children = [k.create(name.format(i), ephemeral=True, sequence=True) for i in range(2)]
    # The server's counter stays there, or goes on below zero if it is asked for more in one go.
    children.append(k.create(name.format(2) + "-2147483648", ephemeral=True))
    for child in sorted(children, key=number_of):
        assert c.call("LOCK", "a", "WAIT", 200).code == "LIMIT"
        k.delete(child)
    token = harness.wait_until(lambda: isinstance(t := c.call("LOCK", "a", "WAIT", 20000), int) and t, "a new directory")
    assert token > last


# ---- what vanishes ----


def test_a_directory_deleted_under_its_holder_and_its_waiters(daemons, zk, root, clients, kazoo_client):
    """The holder hears of it, and all who wait, here and there, are served by and by."""
    alpha, beta = daemons(zk, root), daemons(zk, root)
    holder, here, there = clients(alpha), clients(alpha), [clients(beta), clients(beta)]
    last = holder.call("LOCK", "a")
    here.send("LOCK", "a")
    for c in there:
        c.send("LOCK", "a")
    harness.wait_queued(alpha, "a", 1)
    harness.wait_queued(beta, "a", 2)
    k = kazoo_client(zk)
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 2, "both hosts' znodes")
    # The last first: who is let in by the end of the one before could not be told in time that its own has gone, too.
    for child in sorted(k.get_children(f"{root}/a"), key=lambda name: name[-10:], reverse=True):
        k.delete(f"{root}/a/{child}")
    try:
        k.delete(f"{root}/a")
    except kazoo.exceptions.NotEmptyError:
        pass  # somebody was quicker
    assert holder.push()[:3] == ["lost", "a", last]
    left = [here, *there]
    while left:
        ready, _, _ = harness.select.select(left, [], [], harness.PATIENCE)
        assert len(ready) == 1, "one at a time, and each in the end"
        token = ready[0].reply()
        assert token > last
        last = token
        ready[0].call("UNLOCK", "a")
        left.remove(ready[0])
    assert holder.call("UNLOCK", "a").code == "LOST"


def test_a_directory_deleted_while_it_lingers(daemons, zk, root, clients, kazoo_client):
    d = daemons(zk, root, locks__linger_ms=60000)
    c = clients(d)
    first = c.call("LOCK", "a")
    c.call("UNLOCK", "a")
    k = kazoo_client(zk)
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 1, "the znode")
    k.delete(f"{root}/a", recursive=True)
    harness.wait_until(lambda: d.info("locks")["claims"] == "0", "the daemon to notice")
    assert c.call("LOCK", "a", "WAIT", 20000) > first
    assert len(k.get_children(f"{root}/a")) == 1
    assert c.quiet() and c.call("VALID", "a") > 0


def test_the_whole_tree_deleted(own_zk, daemons, clients, kazoo_client):
    """Its root and the hosts' directory too: all of it is made again."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **ROOMY, locks__linger_ms=0)
    c = clients(d)
    c.call("LOCK", "a")
    k = kazoo_client(zk)

    def deleted():
        try:
            k.delete("/t", recursive=True)
        except kazoo.exceptions.NotEmptyError:  # the daemon is at work meanwhile
            return False
        return True

    harness.wait_until(deleted, "the tree to be gone at once")
    assert c.news()[:2] == ["lost", "a"]
    assert c.call("LOCK", "b", "WAIT", 20000) > 0
    harness.wait_until(lambda: kazoo_client(zk).exists(f"/t/.hosts/{d.host}"), "the host to be announced again")


def test_a_wiped_server_is_lived_through(own_zk, daemons, clients):
    """
    It refuses a client that has seen more than it has, for ever: the daemon gives its session up by itself. Nobody gets a
    lock with a token that was given before, until operators say that nobody compares tokens: they start the daemon again.
    """
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **FAST)
    holder, first, second = (clients(d) for _ in range(3))
    holder.call("LOCK", "a")
    for i, c in enumerate((first, second)):
        c.send("LOCK", "a")
        harness.wait_queued(d, "a", i + 1)
    session = session_of(d)
    zk.kill()
    shutil.rmtree(os.path.join(zk.dir, "data"))
    zk.start()
    holder.loss()
    for c in (first, second):
        assert "tokens would repeat" in str(c.reply())
    assert session_of(d) != session
    assert "tokens would repeat" in str(first.call("LOCK", "a"))
    log = d.log()
    assert "session lost" in log and log.count("connected to ZooKeeper: new session") == 2
    assert len(log.splitlines()) < 60, "every attempt is not a line"
    d.terminate()
    d.start()
    assert isinstance(clients(d).call("LOCK", "a"), int)


# ---- servers that cannot decide ----


@pytest.mark.release_only("three servers; test_liars.py has one that answers and is not to be believed")
@pytest.mark.plain_only("it is about what a server does")
def test_without_a_quorum_nothing_is_believed(own_trio, daemons, clients):
    """A server that is left alone and answers reads (read-only mode) is not connected to."""
    trio = own_trio(jvm=["-Dreadonlymode.enabled=true"])
    d = daemons(trio, zookeeper__session_timeout_ms=4000, locks__grant_min_ms=300)
    c = clients(d)
    token = c.call("LOCK", "a")
    alone, *others = trio.servers
    for server in others:
        server.kill()
    while c.push()[0] != "lost":
        pass
    harness.wait_until(lambda: alone.ask("isro", 1) == "ro", "the read-only mode")
    refused = f"{alone.dir}/log"
    harness.wait_until(lambda: harness.read_source(refused).count("Refusing session request for not-read-only client") > 2,
                       "some attempts to connect")
    info = d.info("session", "zookeeper")
    assert (info["session_state"], info["connected"]) == ("lost", "0")
    assert c.call("VALID", "a") == 0
    assert clients(d).call("LOCK", "b", "WAIT", 300).code == "UNAVAILABLE"
    for server in others:
        server.start()
    trio.wait_whole()
    assert c.call("LOCK", "a", "WAIT", 20000).code == "LOST"
    assert c.call("LOCK", "a", "WAIT", 20000) > token
