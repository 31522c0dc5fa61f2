# SPDX-License-Identifier: Apache-2.0
"""Hand-overs, one after the other, under the load of Redis clients of every kind on two hosts: none of them sees one.

LOCKBROKER_HANDOVERS and LOCKBROKER_CLIENTS say how many of each; by default as many as a test has time for.
"""

import collections
import concurrent.futures
import itertools
import os
import random
import signal
import threading
import time

import pytest

import harness
from harness import PATIENCE, Closed

HANDOVERS = int(os.environ.get("LOCKBROKER_HANDOVERS", "40"))
CLIENTS = int(os.environ.get("LOCKBROKER_CLIENTS", "60"))
LIMIT = 3  # permits of a semaphore
LONG_MS = 12 * 3600 * 1000  # a lease that never ends here


class Truth:
    """What all clients of the test know together; two hosts' clients are threads of this process."""

    def __init__(self):
        self.lock = threading.Lock()
        self.holders = collections.defaultdict(set)  # name -> who is inside, as (client, shared)
        self.permits = collections.Counter()
        self.tokens = collections.defaultdict(set)
        self.alone = collections.defaultdict(set)  # those of them that were not shared
        self.ending = False

    def enter(self, name, who, token, shared=False):
        """Right after the grant was read."""
        with self.lock:
            others = self.holders[name]
            assert not others or (shared and all(s for _, s in others)), f"{who} got {name}, which {others} hold"
            # Who shares has a token with the others of its host; it is above all that went before in the other mode.
            before = self.tokens[name] if not shared else self.alone[name]
            assert token > max(before, default=0), f"{name}: {token} after {max(before)}"
            self.tokens[name].add(token)
            if not shared:
                self.alone[name].add(token)
            others.add((who, shared))

    def leave(self, name, who, shared=False):
        """Right before it is given back."""
        with self.lock:
            self.holders[name].remove((who, shared))

    def once(self, name, token):
        """For grants that end without their holder's doing: others may read theirs first."""
        with self.lock:
            assert token not in self.tokens[name], f"{name}: {token} was granted twice"
            self.tokens[name].add(token)

    def take(self, name, count):
        with self.lock:
            self.permits[name] += count
            assert self.permits[name] <= LIMIT, f"{self.permits[name]} of {LIMIT} permits"

    def give(self, name, count):
        with self.lock:
            self.permits[name] -= count


class Load(threading.Thread):
    """One client. Whatever is not as it should be is kept, and ends it."""

    def __init__(self, daemon, truth, number):
        super().__init__(daemon=True)
        self.version = 2 + number % 2
        self.me, self.truth = f"{type(self).__name__.lower()}{number} on {daemon.host}", truth
        self.client = daemon.client(self.version)
        self.broker, self.host, self.rng = daemon, daemon.host, random.Random(number)
        self.count, self.wrong = 0, None

    def run(self):
        try:
            self.until_done(self.begin)
            while not self.truth.ending:
                self.count += self.tries(self.turn)
                self.pause(0.02)
            self.until_done(self.over)
            assert not self.client.pushes and self.client.quiet(0), f"more to read: {self.client.pushes}"
        except (AssertionError, Closed, OSError, TypeError) as e:
            self.wrong = f"{self.me}: {type(e).__name__} {e}"

    def tries(self, step):
        """Whether it was done."""
        step()
        return True

    def until_done(self, step):
        while not self.tries(step):
            pass

    def pause(self, longest):
        """Its pace, or no wait at all: it goes on at any moment."""
        time.sleep(self.rng.uniform(0, longest))  # nothing is waited for

    def begin(self):
        pass

    def over(self):
        pass

    def call(self, *words):
        value = self.client.call(*words)
        assert not isinstance(value, harness.Error), f"{words}: {value}"
        return value

    def told(self):
        """The next event, however the protocol's version has it."""
        return self.client.push() if self.version == 3 else self.call("EVENTS", "WAIT", 1000 * (PATIENCE - 10))

    def hold(self, name, token, unlock=("UNLOCK",), shared=False):
        self.truth.enter(name, self.me, token, shared)
        if self.rng.random() < 0.3:
            assert self.call("VALID", name, "TOKEN", token) > 0
        self.truth.leave(name, self.me, shared)
        assert self.call(*unlock, name) == (1 if unlock[0] == "RESIGN" else 0)


class Locker(Load):
    def turn(self):
        name = f"hot{self.rng.randrange(3)}"
        self.hold(name, self.call("LOCK", name, "DATA", self.me))


class Reader(Load):
    def turn(self):
        shared = self.rng.random() < 0.8
        self.hold("shared", self.call("LOCK", "shared", *(["SHARED"] if shared else [])), shared=shared)


class Pair(Load):
    def turn(self):
        names = self.rng.sample(["hot0", "hot1", "hot2"], 2)
        tokens = self.call("MLOCK", 2, *names)
        for name, token in zip(names, tokens):
            self.truth.enter(name, self.me, token)
        for name in names:
            self.truth.leave(name, self.me)
        self.call("MUNLOCK", 2, *names)


class Pipeliner(Load):
    """Requests in one piece, some of them waiting: each is answered once and in order."""

    def turn(self):
        name, marks = f"piped{self.rng.randrange(2)}", [f"{self.count} {i} " + "x" * self.rng.randrange(500) for i in range(5)]
        words = [("ECHO", marks[0]), ("LOCK", name), ("ECHO", marks[1]), ("UNLOCK", name), ("ECHO", marks[2]), ("LOCK", name),
                 ("VALID", name), ("UNLOCK", name), ("ECHO", marks[3]), ("ECHO", marks[4])]
        data = b"".join(harness.encode(*w) for w in words)
        cut = self.rng.randrange(len(data))
        self.client.send_raw(data[:cut])
        self.pause(0.01)
        self.client.send_raw(data[cut:])
        replies = [self.client.reply() for _ in words]
        first, second = replies[1], replies[5]
        self.truth.once(name, first)
        self.truth.once(name, second)
        valid = replies[6]
        assert second > first and valid > 0, replies
        assert replies == [marks[0], first, marks[1], 0, marks[2], second, valid, 0, marks[3], marks[4]]


class Waiter(Load):
    """For a lock that is never given back: none ends early."""

    def turn(self):
        ms, began = self.rng.randrange(20, 400), time.monotonic()
        assert self.call("LOCK", f"kept on {self.host}", "WAIT", ms) is None
        assert time.monotonic() - began >= ms / 1000


class Queued(Load):
    def turn(self):
        name = f"queued{self.rng.randrange(2)}"
        assert self.call("ENQUEUE", name) == "QUEUED"
        event = self.told()
        assert event, f"{name}: {self.call('WHY', name)}, {self.call('QUEUE', name)}"
        assert event[:2] == ["granted", name], event
        token = event[2]
        self.hold(name, token)


class Leased(Load):
    lost = 0

    def turn(self):
        name = f"leased{self.rng.randrange(2)}"
        token = self.call("LOCK", name, "LEASE", self.rng.randrange(20, 200))
        self.truth.once(name, token)
        told = False
        if self.rng.random() < 0.3:
            renewed = self.client.call("RENEW", name, LONG_MS)
            if not isinstance(renewed, harness.Error):
                assert self.call("UNLOCK", name, "TOKEN", token) == 0
                return
            assert renewed.code == "LOST", renewed
            told = self.version == 2  # by that answer: the lease was over before the daemon read the request
        self.lost += 1
        assert told or self.told() == ["lost", name, token, "lease"]
        if self.version == 3:  # a push is no answer: the next request that names the lock is told as well
            assert self.client.call("UNLOCK", name).code in ("LOST", "NOTHELD")


class Permitted(Load):
    held = 0

    def turn(self):
        count = self.rng.randrange(1, 3)
        assert self.call("ACQUIRE", "semaphore", "LIMIT", LIMIT, "COUNT", count) == count
        self.truth.take("semaphore", count)
        self.held = count
        while self.held:
            self.truth.give("semaphore", 1)
            self.held -= 1
            assert self.call("RELEASE", "semaphore") == self.held


class Candidate(Load):
    def turn(self):
        self.hold("election", self.call("CAMPAIGN", "election", "DATA", self.me), unlock=("RESIGN",))


class Observer(Load):
    """Each leader is told once, though not each is told."""

    def begin(self):
        assert self.call("OBSERVE", "election") == "OK"
        self.latest, self.told_last = 0, None

    def take(self, event):
        what, name, token = event[:3]
        assert (what, name) == ("leader", "election"), event
        assert token != self.told_last, f"{token} was told twice"
        assert token == 0 or token > self.latest, f"{token} after {self.latest}"
        self.told_last, self.latest = token, max(self.latest, token)

    def turn(self):
        if self.version == 2:
            event = self.call("EVENTS", "WAIT", 200)
            if event:
                self.take(event)
        elif self.client.pushes or not self.client.quiet(0.2):
            self.take(self.client.push())

    def over(self):
        assert self.call("UNOBSERVE", "election") == 1
        while self.client.pushes:
            self.take(self.client.pushes.popleft())


class Keeper(Load):
    """Holds from the beginning to the end."""

    def begin(self):
        self.token = self.call("LOCK", self.me, "DATA", self.me)
        self.lease = self.call("LOCK", f"{self.me} lease", "LEASE", LONG_MS)

    def turn(self):
        assert self.call("VALID", self.me, "TOKEN", self.token) > 0
        assert self.call("VALID", f"{self.me} lease", "TOKEN", self.lease) > 0
        self.pause(0.2)

    def over(self):
        assert self.call("UNLOCK", self.me, "TOKEN", self.token) == 0
        assert self.call("UNLOCK", f"{self.me} lease", "TOKEN", self.lease) == 0


class Asker(Load):
    """What only ZooKeeper knows is answered, too."""

    def turn(self):
        what = self.rng.choice([("QUEUE", "hot0"), ("HOLDERS", "hot1"), ("LEADER", "election"), ("LIMIT", "semaphore"),
                                ("HOSTS",), ("LOCKS",), ("INFO",)])
        self.call(*what)


class Revoked(Load):
    """Each question is told once."""

    def begin(self):
        self.token, self.other = self.call("LOCK", self.me), Asker(self.broker, self.truth, 1)

    def turn(self):
        assert self.other.call("REVOKE", self.me, self.count) == 1
        event = self.told()
        assert event[:2] + event[3:] == ["revoke", self.me, str(self.count)], event
        time.sleep(1.1)  # within a second it would be told once

    def over(self):
        assert self.call("UNLOCK", self.me, "TOKEN", self.token) == 0
        self.other.client.close()


class Guest(Load):
    """Comes and goes, and leaves behind what its end gives back, or takes back."""

    def turn(self):
        name = f"hot{self.rng.randrange(3)}"
        self.client = self.broker.client(self.version)
        if self.rng.random() < 0.3:
            self.client.send("LOCK", name)
            self.pause(0.01)
        else:
            self.truth.enter(name, self.me, self.call("LOCK", name))
            self.truth.leave(name, self.me)
        self.client.close()

    def over(self):
        self.client = self.broker.client(self.version)


KINDS = [Locker, Reader, Pair, Pipeliner, Waiter, Queued, Leased, Permitted, Candidate, Observer, Keeper, Asker, Revoked,
         Guest]


def begun(kinds, hosts, truth, count):
    """So many clients, in turns on each host."""
    load = [kind(hosts[n % 2], truth, n // 2) for n, kind in
            enumerate(itertools.islice(itertools.cycle(k for k in kinds for _ in "12"), count))]
    for client in load:
        client.start()
    return load


def turns(load):
    return sum(client.count for client in load)


def goes_on(load, beyond):
    """It has had more turns than those. False: something is wrong."""
    harness.wait_until(lambda: any(client.wrong for client in load) or turns(load) > beyond, "the load to go on")
    return not any(client.wrong for client in load)


def end(load, hosts, truth):
    """All of it was right."""
    truth.ending = True
    for client in load:
        client.join(PATIENCE)
    wrong = [client.wrong for client in load if client.wrong]
    logs = "\n".join(d.log()[-4000:] for d in hosts)
    assert not wrong, "\n".join(wrong) + f"\n{logs}"
    assert [client.me for client in load if client.is_alive()] == []


def closed(load, *what):
    """Each of these numbers of each kind of client, of which none goes on any longer."""
    counts = [collections.Counter() for _ in what]
    for client in load:
        for count, name in zip(counts, what):
            count[type(client).__name__] += getattr(client, name, 0)
        client.client.close()
    return map(dict, counts)


def hand_over(daemons, how):
    """On all of them at once."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(how, daemons))


@pytest.fixture
def two_hosts(daemons, zk, root):
    """With proof enough for a machine that is busy."""
    return [daemons(zk, root, host=host, zookeeper__session_timeout_ms=40000) for host in ("alpha", "beta")]


def test_no_client_sees_a_hand_over(two_hosts):
    harness.inherit_orphans()
    signal.alarm(120 + 10 * HANDOVERS)
    truth, began = Truth(), time.monotonic()
    kept = [d.client() for d in two_hosts]
    for d, c in zip(two_hosts, kept):
        assert isinstance(c.call("LOCK", f"kept on {d.host}"), int)
    load = begun(KINDS, two_hosts, truth, CLIENTS)
    plan = itertools.cycle([(two_hosts[:1], harness.Daemon.hand_over), (two_hosts[1:], harness.Daemon.hand_over_by_command),
                            (two_hosts, harness.Daemon.hand_over_by_signal)])
    for at, how in itertools.islice(plan, HANDOVERS):
        before = turns(load)
        hand_over(at, how)
        if not goes_on(load, before + 2 * CLIENTS):
            break
    end(load, two_hosts, truth)
    for d, c in zip(two_hosts, kept):
        assert c.call("UNLOCK", f"kept on {d.host}") == 0 and c.quiet(0) and not c.pushes
        told = sum(client.lost for client in load if isinstance(client, Leased) and client.host == d.host)
        assert int(d.info()["losses_total"]) == told, "leases that ended, and nothing else"
    for c in kept:
        c.close()
    (counts,) = closed(load, "count")
    print(f"{HANDOVERS} hand-overs, {CLIENTS} clients, {time.monotonic() - began:.1f} s, turns: {counts}")
