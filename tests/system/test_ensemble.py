# SPDX-License-Identifier: Apache-2.0
"""Three servers, two hosts, and what happens to servers and to the network: what costs no lock, what costs one, and
that who loses one hears of it once, before anybody else has it. Each fault alone and at a known moment; all of them in
any order are tests/torture's."""

import contextlib
import functools
import signal
import time

import pytest

import ensemble
import faults
import harness
import network
from witness import Crowd, Page, Witness, now

pytestmark = [pytest.mark.plain_only("with sanitizers tests/torture has an ensemble under the same faults"),
              pytest.mark.release_only("tests/torture/test_torture.py has the same faults, and checks what they may cost")]

TICK_MS = 1000
# Where nothing may be lost: as long as these servers allow. An outage may last 9 s, which on a busy machine is not much.
LONG_S = 20
# Where something is: the shortest that leaves a second between the loss and the next grant on a busy machine. Who gets it then is to
# keep it, and has a long one.
SHORT_S = 6


@pytest.fixture(scope="module")
def net():
    return network.Network()


@pytest.fixture(scope="module")
def trio(net):
    made = ensemble.Ensemble(net, TICK_MS)
    yield made
    made.end()


class Site:
    """Hosts on the ensemble, what their clients and session pages say, and how to hurt and to heal all that."""

    def __init__(self, net, servers, root):
        self.net, self.servers, self.root = net, servers, root
        self.hosts = []
        self.witness = Witness()
        self.pages = []
        self.crowd = None
        self.held = {}

    def host(self, name, timeout_s, server=None, only=False, among=None):
        """With `server`: connected to that one; `only`: and cannot reach another. `among`: servers other than those that vote."""
        h = faults.Host(name, self.net, among or self.servers.servers, timeout_s * 1000, self.servers.tick_ms)
        h.daemon.options["zookeeper.root"] = self.root
        self.hosts.append(h)
        others = [link for s, link in h.links.items() if s is not server] if server else []
        for link in others:
            link.refuse()
        h.daemon.start()
        if not only:
            for link in others:
                link.release()
        return h

    def page(self, host):
        self.pages.append(Page(host.daemon))
        return self.pages[-1]

    def hold(self, host, who, name, version=3):
        self.witness.add(host.daemon, who, version)
        token = self.witness.ask(who, "LOCK", name)
        assert isinstance(token, int), token
        self.held[who] = name, token
        return token

    def ask_for(self, host, who, name, *more):
        """Returns when it is queued."""
        def queued():
            with host.daemon.client() as c:
                return len(c.call("QUEUE", name))

        count = queued()
        self.witness.add(host.daemon, who)
        self.witness.send(who, "LOCK", name, *more)
        harness.wait_until(lambda: queued() > count, f"{who} to be queued")

    def wait_behind(self, host, name):
        """Until that host has a znode behind somebody else's."""
        def state():
            with host.daemon.client() as c:
                return [lock["state"] for lock in c.call("LOCKS", name)]

        harness.wait_until(lambda: state() == ["waiting"], f"{host.name} to wait for {name}")

    def load(self):
        self.crowd = Crowd([h.daemon for h in self.hosts], 12, 6)
        self.crowd.wait_busy()

    def nothing_lost(self):
        """Every holder still holds by the token it was given, and the crowd noticed nothing."""
        if self.crowd:
            self.crowd.wait_busy()
            assert self.crowd.losses == 0
        for who, (name, token) in self.held.items():
            assert not self.witness.pushes(who, "lost"), self.witness.seen[who]
            assert self.witness.ask(who, "VALID", name, "TOKEN", token) > 0
            assert self.witness.ask(who, "LOCK", name, "REENTER") == token
        for h in self.hosts:
            stats = h.daemon.info("stats")
            assert (stats["losses_total"], stats["sessions_total"]) == ("0", "1"), h.daemon.log()

    def heal(self):
        for s in self.servers.servers:
            if s.process.poll() is not None:
                s.start()
            s.signal(signal.SIGCONT)
        for link in self.servers.links.values():
            link.release()
        for h in self.hosts:
            h.all_links("release")
            h.daemon.signal(signal.SIGCONT)

    def end(self):
        if self.crowd:
            self.crowd.end()
        self.witness.end()
        for page in self.pages:
            page.end()
        self.heal()
        complaints = [c for c in (h.daemon.end() for h in self.hosts) if c]
        self.servers.wait_whole()
        wrong = self.crowd.wrong if self.crowd else []
        assert not complaints and not wrong, "\n\n".join(complaints + wrong)


    def begin_again(self):
        """With nobody, in a directory of their own; what was, has to end well."""
        self.end()
        self.__init__(self.net, self.servers, self.root + "a")


@pytest.fixture
def site(net, trio, root):
    made = Site(net, trio, root)
    yield made
    made.end()


class Leaderless(Exception):
    """For longer than an outage may last that costs no lock."""


def wait_led(servers, without):
    """Until the others have a leader, which they must find."""
    took = servers.wait_led(without=without)
    if took > LONG_S / 2 - 1:
        raise Leaderless(f"the ensemble itself had no leader for {took:.1f} s")


def if_led(test):
    """Seldom, on a busy machine, the servers find no leader for long: the one LOOKING, the other LEADING without a
    quorum until it gives up. That is an outage which may cost locks, and shows nothing; so the test begins again."""
    @functools.wraps(test)
    def until_led(site, **fixtures):
        for _ in range(3):
            try:
                return test(site=site, **fixtures)
            except Leaderless:
                site.begin_again()
        return test(site=site, **fixtures)

    return until_led


def goes_on_until(end):
    time.sleep(max(0.0, end - now()))  # for so long the outage lasts


def follower_of(servers):
    leader = servers.leader()
    return next(s for s in servers.servers if s is not leader)


def pair_under_load(site, server=None):
    """Two hosts, of which the first is connected to that server, two holders on each, and a crowd."""
    pair = [site.host("alpha", LONG_S, server), site.host("beta", LONG_S)]
    for h in pair:
        for name in ("one", "two"):
            site.hold(h, f"{h.name} {name}", f"{h.name}/{name}")
    site.load()
    return pair


# ---- what costs nothing ----


def test_a_host_at_an_observer_hands_locks_on_and_keeps_them_over_an_election(net, root):
    """Its reads are the observer's; its writes, of which each proof is one, are the leader's."""
    servers = ensemble.Ensemble(net, 2000, observed=True)  # of a tick with which an outage may last for 12 s
    site = Site(net, servers, root)
    try:
        harness.wait_until(lambda: servers.observer.mode() == "observer", "the observer to serve")
        far, near = site.host("far", 30, among=[servers.observer]), site.host("near", 30)
        first = site.hold(far, "a", "handed on")
        site.ask_for(near, "b", "handed on")
        site.held.clear()
        site.witness.send("a", "UNLOCK", "handed on")
        assert site.witness.reply("b") > first
        site.hold(far, "holder", "kept")
        site.load()
        leader = servers.leader()
        leader.stop()
        servers.wait_led(without=leader)
        leader.start()
        servers.wait_whole()
        harness.wait_until(lambda: servers.observer.mode() == "observer", "the observer to serve again")
        site.nothing_lost()
    finally:
        site.end()
        servers.end()


@if_led
def test_a_rolling_restart_costs_no_lock(site, trio):
    """Pitfall 25: a session survives the change of its server, and an election."""
    pair = pair_under_load(site)
    leader = trio.leader()
    for server in sorted(trio.servers, key=lambda s: s is leader):
        server.stop()
        wait_led(trio, server)
        server.start()
        trio.wait_whole()
    for h in pair:
        h.wait_safe()
    site.nothing_lost()


def moves_on(host, server):
    harness.wait_until(lambda: host.server() not in (None, server), f"{host.name} to take another server")


@pytest.mark.parametrize("role", ["leader", "follower"])
@if_led
def test_a_server_that_stands_still_costs_no_lock(site, trio, role):
    """Pitfalls 11, 25: SIGSTOP leaves its connections open and its port reachable; only silence tells."""
    server = trio.leader() if role == "leader" else follower_of(trio)
    alpha, _ = pair_under_load(site, server)
    assert alpha.server() is server
    server.signal(signal.SIGSTOP)
    wait_led(trio, server)
    moves_on(alpha, server)
    alpha.wait_safe()
    site.nothing_lost()


def test_a_server_behind_a_black_hole_costs_no_lock(site, trio):
    """Pitfall 25. The server is well, and others reach it."""
    server = follower_of(trio)
    alpha, _ = pair_under_load(site, server)
    alpha.links[server].hold()
    moves_on(alpha, server)
    alpha.wait_safe()
    site.nothing_lost()
    assert int(alpha.daemon.info("stats")["drops_total"]) >= 1


@pytest.mark.parametrize("role", ["leader", "follower"])
@if_led
def test_a_killed_server_costs_no_lock(site, trio, role):
    """Pitfall 25."""
    server = trio.leader() if role == "leader" else follower_of(trio)
    pair = pair_under_load(site, server)
    server.kill()
    wait_led(trio, server)
    moves_on(pair[0], server)
    for h in pair:
        h.wait_safe()
    site.nothing_lost()


def test_an_outage_of_0_4_of_the_timeout_costs_no_lock(site, trio):
    """Pitfall 25. From all servers; the one host's connections hang, the other's are refused."""
    alpha, beta = pair_under_load(site)
    cut = now()
    alpha.all_links("hold")
    beta.all_links("refuse")
    for h in (alpha, beta):
        site.witness.push(f"{h.name} one", "jeopardy")
    goes_on_until(cut + 0.4 * LONG_S)
    for h in (alpha, beta):
        h.all_links("release")
    for h in (alpha, beta):
        site.witness.push(f"{h.name} one", "safe")
    site.nothing_lost()


# ---- what costs locks, once and in time ----


def read_until(client, done):
    """Over and over, as long as its server answers. Returns when that was last."""
    answered_at = 0
    while not done():
        asked = client.get_async("/")
        with contextlib.suppress(Exception):  # it does not answer any more: that is for the test to judge
            asked.get(timeout=1)
            answered_at = now()
        time.sleep(0.02)  # a pace
    return answered_at


@pytest.fixture
def patient_site(net, root, monkeypatch):
    """On servers of which a follower serves for 10 s without its leader."""
    monkeypatch.setattr(ensemble, "SYNC_LIMIT", 10)
    servers = ensemble.Ensemble(net, TICK_MS)
    made = Site(net, servers, root)
    yield made
    try:
        made.end()
    finally:
        servers.end()


def assert_never_moved(page, since, until):
    """From a moment after which nothing was proven any more; a write may have been answered at that very moment."""
    told = page.since(since)
    assert max(safe_until for _, _, safe_until in told) <= since + 2 / 3 * SHORT_S
    settled = [s for s in told if since + 0.3 < s[0] < until]
    assert all(b[2] <= a[2] for a, b in zip(settled, settled[1:])), settled


def test_a_follower_cut_off_from_its_leader_proves_nothing(patient_site, kazoo_client):
    """Pitfalls 1, 4: it answers pings and reads long after the leader has given the session's locks to others."""
    site, servers = patient_site, patient_site.servers
    leader, follower = servers.leader(), follower_of(servers)
    alpha = site.host("alpha", SHORT_S, follower, only=True)
    beta = site.host("beta", LONG_S, leader)
    page = site.page(alpha)
    first = site.hold(alpha, "holder", "a")
    site.ask_for(beta, "waiter", "a")
    site.wait_behind(beta, "a")
    site.witness.add(alpha.daemon, "asker")
    reader = kazoo_client(follower, timeout=10)

    def served_elsewhere():
        site.witness.send("asker", "HOLDERS", "b")  # so that the daemon too reads what the follower knows
        return site.witness.replies("waiter")

    cut = now()
    servers.links[follower, leader].hold()
    answered_at = read_until(reader, served_elsewhere)
    servers.links[follower, leader].release()
    lost = site.witness.push("holder", "lost")
    (granted,) = site.witness.replies("waiter")
    assert granted.what > first
    assert lost.at < granted.at
    assert answered_at > lost.at, "the follower did not answer for long enough to mislead anybody"
    assert_never_moved(page, cut, granted.at)
    assert site.witness.ask("holder", "VALID", "a") == 0
    assert len(site.witness.pushes("holder", "lost")) == 1


def known(client, words):
    """The reply to a request that was sent. The request is repeated as long as the reply is UNAVAILABLE."""
    while True:
        reply = client.reply()
        if not isinstance(reply, harness.Error) or reply.code != "UNAVAILABLE":
            return reply
        client.send(*words)


def test_a_server_that_lags_behind_does_not_say_that_a_lock_is_gone(patient_site):
    """The server answers reads, but shows the state before the lock was taken."""
    site, servers = patient_site, patient_site.servers
    link = servers.links[follower_of(servers), servers.leader()]
    alpha = site.host("alpha", LONG_S, servers.leader())
    beta = site.host("beta", LONG_S, follower_of(servers), only=True)
    questions = [("EXISTS", "job"), ("SET", "job", "v", "XX", "PX", 700000)]
    with alpha.daemon.client() as taker, beta.daemon.client() as one, beta.daemon.client() as two:
        # A read after a write would wait for it: no write may be under way.
        harness.wait_until(lambda: beta.daemon.info()["operations"] == "0", "nothing to be under way")
        before = int(beta.daemon.info()["zk_reads_total"])
        link.hold()
        assert taker.call("SET", "job", "v", "NX", "PX", 600000) == "OK"
        for client, words in zip((one, two), questions):
            client.send(*words)
        # Each question reads twice, the second time after its write. The held link keeps that write from being answered.
        harness.wait_until(lambda: not one.quiet(0) or not two.quiet(0) or
                           int(beta.daemon.info()["zk_reads_total"]) >= before + 4, "both to read twice, or a reply")
        link.release()
        assert [known(client, words) for client, words in zip((one, two), questions)] == [1, "OK"]


def test_an_outage_of_1_2_of_the_timeout_costs_each_lock_once(site):
    """Pitfalls 3, 4, 8: every holder is told once, before any other host is granted; and asked for again, the lock is
    said to be lost once and then taken like any other."""
    alpha, beta = site.host("alpha", SHORT_S), site.host("beta", LONG_S)
    page = site.page(alpha)
    witness, names = site.witness, ["a", "b", "c"]
    first = {name: site.hold(alpha, f"holder {name}", name, 2 if name == "c" else 3) for name in names}
    witness.add(alpha.daemon, "another of a")
    for name in names:
        site.ask_for(beta, f"waiter {name}", name)
        site.wait_behind(beta, name)
    witness.send("holder c", "EVENTS")
    cut = now()
    alpha.all_links("hold")
    tokens = {name: witness.reply(f"waiter {name}") for name in names}
    goes_on_until(cut + 1.2 * SHORT_S)
    alpha.all_links("release")
    first_grant = min(witness.replies(f"waiter {name}")[0].at for name in names)
    for name in names:
        assert tokens[name] > first[name]
    for name in ("a", "b"):
        assert witness.push(f"holder {name}", "lost").at < first_grant
        assert witness.push(f"holder {name}", "jeopardy").at < first_grant
    assert_never_moved(page, cut, first_grant)
    assert max(until for _, _, until in page.since(cut) if _ < first_grant) < first_grant
    # RESP2 has no pushes: the events, one by one.
    assert witness.reply("holder c", 1)[0] == "jeopardy"
    assert witness.ask("holder c", "EVENTS")[:3] == ["lost", "c", first["c"]]
    alpha.wait_safe()
    for name in names:
        assert witness.ask(f"holder {name}", "VALID", name) == 0
        assert witness.ask(f"waiter {name}", "UNLOCK", name) == 0
    # A push may not have been read, so a reply says it once more: here UNLOCK, there LOCK. EVENTS was read.
    assert witness.ask("holder a", "UNLOCK", "a").code == "LOST"
    assert witness.ask("holder a", "UNLOCK", "a").code == "NOTHELD"
    assert witness.ask("holder b", "LOCK", "b").code == "LOST"
    for name in names:
        assert witness.ask(f"holder {name}", "LOCK", name) > tokens[name]
    assert witness.ask("another of a", "UNLOCK", "a").code == "NOTHELD"
    for name in ("a", "b"):
        assert len(witness.pushes(f"holder {name}", "lost")) == 1
    assert alpha.daemon.info("stats")["losses_total"] == "3"


def test_a_stopped_daemon_learns_of_its_loss_before_anything_else(site):
    """Pitfalls 8, 11: stopped for longer than its session lives. The page had told the truth all the time."""
    alpha, beta = site.host("alpha", SHORT_S), site.host("beta", LONG_S)
    page, witness = site.page(alpha), site.witness
    first = site.hold(alpha, "holder", "a")
    site.ask_for(alpha, "waiter", "a")
    site.ask_for(beta, "waiter elsewhere", "a")
    site.wait_behind(beta, "a")
    alpha.daemon.signal(signal.SIGSTOP)
    second = witness.reply("waiter elsewhere")
    assert second > first
    _, _, safe_until = page.read()
    assert safe_until < witness.replies("waiter elsewhere")[0].at
    witness.send("holder", "VALID", "a")
    assert not witness.pushes("holder", "lost")
    alpha.daemon.signal(signal.SIGCONT)
    assert witness.reply("holder", 1) == 0
    lost = witness.push("holder", "lost")
    assert lost.what[:3] == ["lost", "a", first]
    alpha.wait_safe()
    assert not witness.replies("waiter"), "it is held elsewhere"
    witness.ask("waiter elsewhere", "UNLOCK", "a")
    assert witness.reply("waiter") > second
    assert witness.replies("waiter")[0].at > lost.at
    assert int(alpha.daemon.info("stats")["stalls_total"]) >= 1


# ---- waiters ----


def test_a_session_that_a_third_party_ended_keeps_the_places_of_waiters(site, trio):
    """Pitfalls 1, 3, 17: holders are told, who waits goes on waiting in the same order, under the new session."""
    alpha, beta = site.host("alpha", LONG_S), site.host("beta", LONG_S)
    witness = site.witness
    site.hold(alpha, "holder", "a")
    last = site.hold(beta, "elsewhere", "b")
    order = ["first", "second", "third", "fourth"]
    site.ask_for(alpha, "waiter of a", "a")
    asked = {}
    for who in order:
        asked[who] = now()
        site.ask_for(alpha, who, "b", *(["WAIT", 3000] if who == "second" else []))
    site.wait_behind(alpha, "b")
    session = alpha.session()
    ensemble.end_session(trio.leader().port, session)
    lost = witness.push("holder", "lost")
    granted = witness.reply("waiter of a")
    assert granted > lost.what[2]
    assert lost.at <= witness.replies("waiter of a")[0].at
    assert alpha.session() not in (0, session)
    assert witness.ask("holder", "VALID", "a") == 0
    # Its time went on counting: from when it asked, not from the new session.
    assert witness.reply("second") is None
    assert 2.9 <= witness.replies("second")[0].at - asked["second"]
    site.wait_behind(alpha, "b")
    assert not any(witness.replies(who) for who in order if who != "second")
    witness.ask("elsewhere", "UNLOCK", "b")
    for who in ("first", "third", "fourth"):
        token = witness.reply(who)
        assert token > last
        assert not any(witness.replies(w) for w in order[order.index(who) + 1:] if w != "second")
        last = token
        witness.ask(who, "UNLOCK", "b")
    assert alpha.daemon.info("stats")["sessions_total"] == "2"


def test_waiters_keep_their_order_and_their_deadlines_through_a_reconnection(site):
    """Pitfalls 17, 19."""
    alpha, beta = site.host("alpha", LONG_S), site.host("beta", LONG_S)
    witness = site.witness
    last = site.hold(alpha, "holder", "a")
    order = ["first", "timed", "third", "fourth"]
    asked = now()
    for who in order:
        site.ask_for(beta, who, "a", *(["WAIT", 2500] if who == "timed" else []))
    site.wait_behind(beta, "a")
    znodes = beta.daemon.info()["claims"]
    beta.all_links("refuse")
    harness.wait_until(lambda: beta.daemon.info()["connected"] == "0", "the connection to end")
    harness.wait_until(lambda: sum(link.refused for link in beta.links.values()) >= 3, "some attempts")
    beta.all_links("release")
    beta.wait_safe()
    assert witness.reply("timed") is None
    assert 2.4 <= witness.replies("timed")[0].at - asked < LONG_S / 2
    assert beta.daemon.info()["claims"] == znodes == "1"
    witness.ask("holder", "UNLOCK", "a")
    for who in ("first", "third", "fourth"):
        token = witness.reply(who)
        assert token > last
        last = token
        assert not any(witness.replies(w) for w in order[order.index(who) + 1:] if w != "timed")
        witness.ask(who, "UNLOCK", "a")
    assert beta.daemon.info("stats")["sessions_total"] == "1"
