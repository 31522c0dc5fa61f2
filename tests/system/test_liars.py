# SPDX-License-Identifier: Apache-2.0
"""What cannot be used as a ZooKeeper server: each kind has a clear line in the log and in INFO, is tried again less and
less often and never in step, and is forgotten as soon as something better answers."""

import functools
import re
import shutil
import struct
import time

import kazoo.security
import pytest

import fakezk
import harness
from harness import FAST, FAST_TICK_MS, ROOMY
from mishaps import standing_still

LIARS = {
    "http": (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nyou are not speaking HTTP\r\n", "is no ZooKeeper server"),
    "closes": (None, "closed the connection instead of answering the handshake"),
    "read-only": (fakezk.handshake(read_only=True), "is read-only"),
    "absurd timeout": (fakezk.handshake(timeout_ms=540291120), "gave a session timeout of 540291120 ms"),
    "short timeout": (fakezk.handshake(timeout_ms=100), "gave a session timeout of 100 ms"),
    "no session": (fakezk.handshake(session=0), "gave no session"),
    "silent": (b"", "does not answer the handshake"),
    "silent afterwards": (fakezk.handshake(), None),
}


@pytest.fixture
def liars(ending):
    return lambda kind, *args: ending(kind(*args))


@pytest.fixture
def lonely(daemons):
    """A daemon that gets no session."""
    return functools.partial(daemons, has_session=False)


def gaps(liar):
    return [b - a for a, b in zip(liar.times, liar.times[1:])]


def assert_named(kind, liar, d, says, seconds):
    harness.wait_until(lambda: len(liar.times) >= 3, "it to be tried again")
    info = d.info()
    tens = 1 + int(info["uptime_in_seconds"]) // 10  # of seconds: a busy machine comes later to this
    # Delays of 0.1 s that double, each between its half and the whole; nothing faster, no silence either.
    assert len(liar.times) <= 14 * tens, (kind, gaps(liar))
    assert info["session_state"] == "none" and info["zookeeper_state"] in ("refused", "connecting"), kind
    assert info["asked_timeout_ms"] == "3000"
    if says:
        assert info["session_why"].startswith("never connected; trying for "), kind
        assert liar.address in info["trouble"] and says in info["trouble"], kind
        assert "cannot be reached" not in d.log(), kind
        assert 0 <= int(info["trouble_age_ms"]) < 8500 * tens and int(info["disconnected_ms"]) > 1000 * (seconds - 1), kind
        # Five lines in ten seconds, and in the complaints.
        assert 1 <= sum(says in line for line in d.log().splitlines()) <= 7 * tens, (kind, d.log())


# ---- servers that are none ----


def test_a_liar_is_named_and_left_alone_more_and_more(liars, lonely):
    """Of each kind two, at the same time, each with a daemon of its own."""
    pairs = {}
    for kind, (answer, _) in LIARS.items():
        both = [liars(fakezk.Liar, answer) for _ in range(2)]
        pairs[kind] = [(liar, lonely(liar, **FAST)) for liar in both]
    time.sleep(8)  # it is about how much is tried in a time
    for kind, pair in pairs.items():
        for liar, d in pair:
            assert_named(kind, liar, d, LIARS[kind][1], 8)
        # Two daemons against liars of one kind drift apart.
        assert any(abs(a - b) > 0.005 for a, b in zip(*(gaps(liar) for liar, _ in pair))), kind


def test_nobody_listens(lonely):
    d = lonely(harness.NoZookeeper)
    harness.wait_until(lambda: "cannot be reached" in d.info()["trouble"], "the trouble")
    assert d.info()["zookeeper_state"] == "connecting"
    assert d.info()["session_why"].startswith("never connected")
    harness.wait_until(lambda: "still trying; 127.0.0.1:1 cannot be reached" in d.log(), "the complaint")
    assert "STATUS=127.0.0.1:1 cannot be reached" in d.notified(1)
    says = [line.split(" ", 2)[2] for line in d.log().splitlines() if not re.search("event=(serves|descriptors)", line)]
    assert says[0] == "warning: ZooKeeper: 127.0.0.1:1 cannot be reached  event=zookeeper_away"
    assert not any("ZooKeeper client" in line for line in says)


def test_names_that_nobody_knows(lonely):
    d = lonely(harness.NoZookeeper, zookeeper__servers="no-such-host.invalid:2181")
    harness.wait_until(lambda: "no-such-host.invalid" in d.info()["trouble"], "the trouble")
    assert "cannot look up servers" in d.info()["trouble"] and "no-such-host.invalid" in d.log()


def test_a_liar_beside_a_server_costs_nothing(liars, daemons, zk, root, clients):
    liar = liars(fakezk.Liar, LIARS["http"][0])
    d = daemons(zk, root, zookeeper__servers=f"{liar.address},{zk.address}")
    assert isinstance(clients(d).call("LOCK", "a", "WAIT", 20000), int)
    info = d.info()
    assert info["trouble"] == "" and info["trouble_age_ms"] == "0" and info["zookeeper_state"] == "connected"
    assert info["session_why"].startswith("last proof ") and info["disconnected_ms"] == "0"


def test_a_wiped_ensemble_ends_the_session_and_a_new_one_begins(own_zk, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **FAST)
    c = clients(d)
    c.call("LOCK", "a")
    zk.kill()
    shutil.rmtree(f"{zk.dir}/data")
    zk.start()
    harness.wait_until(lambda: "data are older than this session" in d.info()["trouble"], "the trouble")
    harness.wait_until(lambda: d.info()["session_state"] == "safe", "a new session")
    assert d.info()["trouble"] == "" and "data are older" in d.log()
    assert c.call("LOCK", "a", "WAIT", 20000).code == "LOST"


@pytest.mark.parametrize("asked", ["before", "after"])
def test_a_server_that_is_behind_cannot_end_a_session(own_zk, liars, daemons, clients, asked):
    """It has not heard of the session, and says "expired" to whoever has not seen more than itself: the daemon always
    says what it has seen, whether or not somebody asks for something in the turn that ends the connection."""
    front, back = (liars(fakezk.Gate, own_zk().port, is_open) for is_open in (True, False))
    d = daemons(front, zookeeper__servers=f"{front.address},{back.address}", zookeeper__tick_ms=2000, daemon__log_level="debug",
                zookeeper__session_timeout_ms=40000, host="alpha")
    c, other = clients(d), clients(d)
    token, session = c.call("LOCK", "a"), d.info()["session_id"]
    with standing_still(d):
        if asked == "before":
            other.send("LOCK", "b")
        front.shut()
        back.is_open = True
    harness.wait_until(lambda: len(back.seen) >= 2, "it to be tried")
    assert all(zxid > 0 for zxid, _ in back.seen)
    front.is_open = True
    harness.wait_until(lambda: d.info()["zookeeper_state"] == "connected", "the connection")
    assert d.info()["session_id"] == session
    if asked == "after":
        other.send("LOCK", "b")
    assert isinstance(other.reply(), int)
    assert c.call("VALID", "a", "TOKEN", token) > 0 and not any(p[0] == "lost" for p in c.pushes)


# ---- servers that spoil their answers ----


def frame(body):
    return struct.pack(">i", len(body)) + body


def another_znode(answer, number):
    """The znode of a claim gets a name that is too short for one."""
    if b"-__WRIT__" not in answer or answer[24:25] != b"/":
        return answer
    (length,) = struct.unpack_from(">i", answer, 20)
    return frame(answer[4:20] + struct.pack(">i", 2) + b"/x" + answer[24 + length:])


def cut(answer, number):
    return frame(answer[4:4 + (number * 7 % (len(answer) - 4))]) if number % 5 == 0 else answer


def all_ones(answer, number):
    return answer[:20] + b"\xff" * (len(answer) - 20) if number % 5 == 0 and len(answer) > 24 else answer


def unasked(answer, number):
    return answer + frame(struct.pack(">iqi", 77, 1, 0)) if number % 5 == 0 else answer


def endless(answer, number):
    return struct.pack(">i", 0x7fffffff) + answer[4:] if number % 5 == 0 else answer


def stray_bytes(answer, number):
    return answer + b"\x00" * (number % 4) if number % 5 == 0 else answer


@pytest.mark.parametrize("spoil", [another_znode, cut, all_ones, unasked, endless, stray_bytes], ids=lambda f: f.__name__)
def test_a_server_that_spoils_its_answers_costs_connections_and_no_process(own_zk, liars, daemons, clients, spoil):
    server = liars(fakezk.Spoiler, own_zk(tick_ms=FAST_TICK_MS), spoil)
    d = daemons(server, **FAST)
    c, worker = clients(d, 2), d.pid
    server.lies = True
    number = 0
    while server.spoiled < 4:
        number += 1
        c.call("LOCK", f"a{number % 20}", "WAIT", 200)
        c.call("HOLDERS", "a1")
        c.call("LOCKS", "*", "ALL")
    server.lies = False
    harness.wait_until(lambda: "spoils its answers: " in d.log(), "the sentence")
    harness.wait_until(lambda: isinstance(c.call("LOCK", "b", "WAIT", 1000), int), "a lock from an honest server")
    assert harness.runs(worker) and "the worker" not in d.log()


# ---- the life of a session, in words ----


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_info_tells_the_life_of_a_session(own_zk, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **ROOMY)
    c = clients(d)
    c.call("LOCK", "a")
    assert d.info()["session_why"].startswith("last proof ")

    def whys(state, word):
        info = d.info()
        return info["session_state"] == state and word in info["session_why"]

    zk.kill()
    harness.wait_until(lambda: whys("jeopardy", "not connected; lost in "), "jeopardy")
    harness.wait_until(lambda: whys("lost", "every grant made before is void; "), "the loss")
    assert int(d.info()["disconnected_ms"]) > 1000
    zk.start()
    harness.wait_until(lambda: d.info()["session_state"] == "safe", "a session again")
    assert d.info()["disconnected_ms"] == "0" and d.info()["trouble"] == ""


def test_another_timeout_than_asked_for_is_told_once(daemons, zk, root):
    d = daemons(zk, root, zookeeper__session_timeout_ms=60000)
    info = d.info()
    assert (info["asked_timeout_ms"], info["session_timeout_ms"]) == ("60000", "40000")
    assert d.log().count("grant a session timeout of 40000 ms, not 60000 ms as configured") == 1


# ---- authentication ----


def test_an_acl_that_refuses_is_a_trouble_until_it_is_changed(own_zk, lonely, secret, kazoo_client):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    k = kazoo_client(zk, auth_data=[("digest", "other:one")])
    k.create("/t", acl=[kazoo.security.make_digest_acl("other", "one", all=True)])
    k.create("/t/.hosts", acl=[kazoo.security.make_digest_acl("other", "one", all=True)])
    d = lonely(zk, zookeeper__auth_file=secret, **FAST)
    harness.wait_until(lambda: "refuses to announce this host: not authenticated" in d.info()["trouble"], "the trouble")
    harness.wait_until(lambda: int(d.info()["refused_acl_total"]) >= 3, "further attempts")
    assert d.log().count("refuses to announce this host") == 1
    for path in ("/t/.hosts", "/t"):
        k.set_acls(path, kazoo.security.OPEN_ACL_UNSAFE)
    harness.wait_until(lambda: d.info()["session_state"] == "safe", "the session")
    harness.wait_until(lambda: d.info()["trouble"] == "", "the trouble to be over")


def assert_slow(d, says, errors):
    """Refused, said in a few lines, and not tried again at once for ever."""
    began = time.monotonic()
    harness.wait_until(lambda: says in d.info()["trouble"], "the trouble")
    _, info, _ = harness.over(4, d.info)
    assert says in info["trouble"] and info["zookeeper_state"] == "refused"
    assert int(info["suspensions_total"]) <= 12 * max(1, (time.monotonic() - began) / 4)
    harness.wait_until(lambda: int(d.info()["suspensions_total"]) >= 2, "it to be tried again")
    assert 1 <= sum(says in line for line in d.log().splitlines()) <= errors, d.log()
    assert len(d.log().splitlines()) < 25, d.log()


ENFORCED = ["-Dzookeeper.enforce.auth.enabled=true", "-Dzookeeper.enforce.auth.schemes=digest"]


def test_a_server_that_demands_authentication(own_zk, lonely, daemons, clients, secret):
    zk = own_zk(jvm=ENFORCED)
    assert_slow(lonely(zk), "serves only clients that authenticate: set zookeeper.auth_file", 3)
    assert isinstance(clients(daemons(zk, zookeeper__auth_file=secret)).call("LOCK", "a"), int)


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_server_that_knows_no_digest(own_zk, lonely, secret):
    zk = own_zk(jvm=["-Dzookeeper.DigestAuthenticationProvider.enabled=false"])
    assert_slow(lonely(zk, zookeeper__auth_file=secret), "refuses the authentication", 5)
