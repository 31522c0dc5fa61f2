# SPDX-License-Identifier: Apache-2.0
"""Workers killed by SIGKILL, one after the other, under the load of Redis clients of every kind on two hosts. Whoever has
nothing under way goes on; whoever had loses its connection, and nobody gets what it holds before it knows. With the keeper
of the service, and with one of the test's own, which counts no crashes and so needs no pause between them.

LOCKBROKER_CRASHES and LOCKBROKER_CLIENTS say how many of each; by default as many as a test has time for. With the service's
own keeper four crashes take a minute.
"""

import collections
import contextlib
import itertools
import os
import random
import select
import signal
import threading
import time

import pytest

import fakekeeper
import harness
import test_handover_load as load
from harness import PATIENCE, Closed
from saved import Left, Saved

CRASHES = int(os.environ.get("LOCKBROKER_CRASHES", "0"))
CLIENTS = int(os.environ.get("LOCKBROKER_CLIENTS", "60"))


class Truth(load.Truth):
    """... and what becomes of a client that has lost its connection."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Condition()
        self.asking, self.killing = 0, 0
        self.spared, self.closed = set(), set()  # connections: the latest crash must not close them; closed since before it

    def forget(self, who):
        with self.lock:
            for others in self.holders.values():
                others.difference_update({(who, True), (who, False)})

    def crash(self):
        with self.lock:
            self.spared, self.closed = set(), set()

    def spare(self, connections):
        with self.lock:
            self.spared = connections
            assert not self.spared & self.closed, "closed though nothing was under way"

    def is_closed(self, connection):
        with self.lock:
            self.closed.add(connection)
            assert connection not in self.spared, "closed though nothing was under way"

    def ask(self):
        with self.gate:
            self.gate.wait_for(lambda: not self.killing)
            self.asking += 1

    def asked(self):
        with self.gate:
            self.asking -= 1
            self.gate.notify_all()

    def nobody_asks(self):
        """Those who must see nothing have nothing under way."""
        with self.gate:
            self.killing += 1
            self.gate.wait_for(lambda: not self.asking)

    def they_may(self):
        with self.gate:
            self.killing -= 1
            self.gate.notify_all()


class Survivor:
    """Begins again when its connection is closed. What it held is lost, and it knows that now."""

    closed = 0
    waits = False  # for what nobody has asked about yet, and no other process knows that
    pushed = False  # something at any time, with version 3: the file's mark comes after the ledger's note of a push

    def begin(self):
        """Holds something of its own all the time, so that its connection is kept."""
        self.call("LOCK", f"{self.me} {self.closed}")
        super().begin()

    def run(self):
        try:
            self.until_done(self.begin)
            while not self.truth.ending:
                if self.tries(self.turn):
                    self.count += 1
                self.pause(0.02)
            self.until_done(self.over)
            assert not self.client.pushes and self.client.quiet(0), f"more to read: {self.client.pushes}"
        except (AssertionError, Closed, OSError, TypeError) as e:
            self.wrong = f"{self.me}: {type(e).__name__} {e}"

    def tries(self, step):
        try:
            step()
        except (Closed, ConnectionError):
            self.again()
            return False
        return True

    def until_done(self, step):
        while not self.tries(step):
            pass

    def again(self):
        self.closed += 1
        self.truth.forget(self.me)
        while True:
            self.is_closed()
            try:
                self.client = self.broker.client(self.version)
                self.begin()
                return
            except (Closed, ConnectionError):
                pass


    def is_closed(self):
        if self.client.fileno() >= 0 and not self.waits and not (self.pushed and self.version == 3):
            self.truth.is_closed(inode(self.client))
        self.client.close()


class Locker(Survivor, load.Locker):
    pass


class Reader(Survivor, load.Reader):
    pass


class Pair(Survivor, load.Pair):
    pass


class Pipeliner(Survivor, load.Pipeliner):
    pass


class Waiter(Survivor, load.Waiter):
    pass


class Queued(Survivor, load.Queued):
    waits = True


class Leased(Survivor, load.Leased):
    """After a crash a loss that was told may be told again."""

    pushed = True

    def __init__(self, *args):
        super().__init__(*args)
        self.known = set()  # losses, by their tokens

    def told(self):
        event = super().told()
        while event and event[2] in self.known:
            event = super().told()
        if event:
            self.known.add(event[2])
        return event

    def over(self):
        super().over()
        while self.client.pushes or not self.client.quiet(0):
            assert self.client.push()[2] in self.known


class Permitted(Survivor, load.Permitted):
    held = 0

    def turn(self):
        count = self.rng.randrange(1, 3)
        assert self.call("ACQUIRE", "semaphore", "LIMIT", load.LIMIT, "COUNT", count) == count
        self.truth.take("semaphore", count)
        self.held = count
        while self.held:
            self.truth.give("semaphore", 1)
            self.held -= 1
            assert self.call("RELEASE", "semaphore") == self.held

    def again(self):
        self.truth.give("semaphore", self.held)
        self.held = 0
        super().again()


class Candidate(Survivor, load.Candidate):
    pass


class Observer(Survivor, load.Observer):
    pushed = True

    def again(self):
        latest = getattr(self, "latest", 0)
        super().again()
        self.latest = max(self.latest, latest - 1)  # the present leader is told anew


class Asker(Survivor, load.Asker):
    pass


class Guest(Survivor, load.Guest):
    pass


class Keeper(load.Load):
    """Holds from the beginning to the end, asks nothing while a worker is killed, and sees none of it."""

    def begin(self):
        self.token = self.call("LOCK", self.me, "DATA", self.me)
        self.lease = self.call("LOCK", f"{self.me} lease", "LEASE", load.LONG_MS)
        assert self.call("ACQUIRE", f"{self.me} permits", "LIMIT", 3, "COUNT", 2) == 2

    def turn(self):
        self.truth.ask()
        try:
            assert self.call("VALID", self.me, "TOKEN", self.token) > 0
            assert self.call("VALID", f"{self.me} lease", "TOKEN", self.lease) > 0
            if self.rng.random() < 0.2:
                assert self.call("LOCK", self.me, "REENTER") == self.token
                assert self.call("UNLOCK", self.me) == 1
        finally:
            self.truth.asked()
        self.pause(0.1)

    def over(self):
        assert self.call("UNLOCK", self.me, "TOKEN", self.token) == 0
        assert self.call("UNLOCK", f"{self.me} lease", "TOKEN", self.lease) == 0
        assert self.call("RELEASE", f"{self.me} permits", "COUNT", 2) == 0


KINDS = [Keeper, Locker, Reader, Pair, Pipeliner, Waiter, Queued, Leased, Permitted, Candidate, Observer, Keeper, Asker, Guest]


class WithTheTests(fakekeeper.Kept):
    """A daemon whose keeper is the test's."""

    crashes = CRASHES or 8

    def rest(self):
        """Until it may crash again and what is kept is not dropped."""

    def kill_worker(self):
        self.kill()

    def follow_worker(self):
        self.spawn(crashes=1)  # by this thread: what one starts ends with it


class WithItsOwn(harness.Daemon):
    """A daemon with the keeper that it has everywhere, with which the third crash within a minute drops what is kept."""

    crashes = CRASHES or 3
    MINUTE_S = 61

    def __init__(self, *args, **kwargs):
        self.crashed_at = collections.deque([-self.MINUTE_S] * 2, maxlen=2)  # time.monotonic() of the last two
        super().__init__(*args, **kwargs)

    def rest(self):
        # A keeper that counts the crashes of a minute tells nobody when it is over.
        time.sleep(max(0, self.crashed_at[0] + self.MINUTE_S - time.monotonic()))  # only time ends it

    def kill_worker(self):
        self.old = self.pid
        end = os.pidfd_open(self.old)
        self.signal(signal.SIGKILL)
        ended = select.poll()
        ended.register(end, select.POLLIN)
        assert ended.poll(PATIENCE * 1000), "a process that was killed goes on"
        os.close(end)
        self.crashed_at.append(time.monotonic())

    def follow_worker(self):
        self.await_another(self.old)

    def wait_ready(self):
        if not self.told:
            super().wait_ready()
        harness.wait_until(lambda: self.info("session")["session_state"] == "safe", "the session")


@pytest.fixture(params=[WithTheTests, WithItsOwn], ids=["fake", "real"])
def two_kept(request, daemons, zk, root):
    """With proof enough for a machine that is busy."""
    for host in "alpha", "beta":
        daemons.list.append(request.param(zk, root, host=host, wait=False, zookeeper__session_timeout_ms=30000))
        daemons.list[-1].start()
    return daemons.list[-2:]


def inode(client):
    return os.fstat(client.fileno()).st_ino


def kept(saved):
    """The connections of which that file says that they are kept, and that nothing is under way."""
    return {conn[8] for conn in saved.conns().values() if conn[1] and not conn[0]}


def crash(daemons, truth, still):
    """All of them at once. Those that hold for long ask nothing meanwhile."""
    for d in daemons:
        d.rest()
    truth.nobody_asks()
    for d in daemons:
        harness.wait_until(lambda: kept(Saved(d)).issuperset(map(inode, still[d.host])),
                           f"those that hold on {d.host} to be kept")
    truth.crash()
    with contextlib.ExitStack() as stack:
        left = [stack.enter_context(Left(d)) for d in daemons]
        for d in daemons:
            d.kill_worker()
        truth.spare(set().union(*map(kept, left)))
    for d in daemons:
        d.follow_worker()
    truth.they_may()
    for d in daemons:
        d.wait_ready()


def test_whoever_has_nothing_under_way_sees_no_crash_and_nobody_gets_what_is_held(two_kept):
    crashes = two_kept[0].crashes
    signal.alarm(180 + 60 * crashes)
    truth, began, rng = Truth(), time.monotonic(), random.Random(crashes)
    still = {d.host: [d.client()] for d in two_kept}
    for d in two_kept:
        assert isinstance(still[d.host][0].call("LOCK", f"kept on {d.host}"), int)
    clients = [kind(two_kept[n % 2], truth, n // 2) for n, kind in
               enumerate(itertools.islice(itertools.cycle(k for k in KINDS for _ in "12"), CLIENTS))]
    for client in clients:
        client.start()
        if isinstance(client, Keeper):
            still[client.host].append(client.client)
    plan = itertools.cycle([two_kept[:1], two_kept[1:], two_kept])
    for at in itertools.islice(plan, crashes):
        before = sum(client.count for client in clients)
        crash(at, truth, still)
        harness.wait_until(lambda: any(client.wrong for client in clients) or
                           sum(client.count for client in clients) > before + CLIENTS, "the load to go on")
        if any(client.wrong for client in clients):
            break
        time.sleep(rng.uniform(0, 1.5))  # no wait: at any moment of the load
    truth.ending = True
    for client in clients:
        client.join(PATIENCE)
    wrong = [client.wrong for client in clients if client.wrong]
    logs = "\n".join(d.log()[-4000:] for d in two_kept)
    assert not wrong, "\n".join(w.splitlines()[0] for w in wrong) + f"\n{logs}"
    assert [client.me for client in clients if client.is_alive()] == []
    for d in two_kept:
        c = still[d.host][0]
        assert c.call("UNLOCK", f"kept on {d.host}") == 0 and c.quiet(0) and not c.pushes
        c.close()
    counts, closed = collections.Counter(), collections.Counter()
    for client in clients:
        counts[type(client).__name__] += client.count
        closed[type(client).__name__] += getattr(client, "closed", 0)
        client.client.close()
    print(f"{crashes} crashes, {CLIENTS} clients, {time.monotonic() - began:.1f} s, turns: {dict(counts)}, "
          f"connections closed: {dict(closed)}")
