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
import signal
import threading
import time

import pytest

import fakekeeper
import harness
import test_handover_load as load
from harness import PATIENCE, Closed
from saved import Left, Saved, inode

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

    def tries(self, step):
        try:
            return super().tries(step)
        except (Closed, ConnectionError):
            self.again()
            return False

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


def surviving(kind):
    """One that does nothing else after a loss than what each does."""
    return type(kind.__name__, (Survivor, kind), {})


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
    def again(self):
        self.truth.give("semaphore", self.held)
        self.held = 0
        super().again()


class Observer(Survivor, load.Observer):
    pushed = True

    def again(self):
        latest = getattr(self, "latest", 0)
        super().again()
        self.latest = max(self.latest, latest - 1)  # the present leader is told anew


class Keeper(load.Keeper):
    """Holds from the beginning to the end, asks nothing while a worker is killed, and sees none of it."""

    def begin(self):
        super().begin()
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
        super().over()
        assert self.call("RELEASE", f"{self.me} permits", "COUNT", 2) == 0


KINDS = [Keeper, *map(surviving, (load.Locker, load.Reader, load.Pair, load.Pipeliner, load.Waiter)), Queued, Leased,
         Permitted, surviving(load.Candidate), Observer, Keeper, *map(surviving, (load.Asker, load.Guest))]


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
        assert harness.has_ended(end, PATIENCE), "a process that was killed goes on"
        self.crashed_at.append(time.monotonic())

    def follow_worker(self):
        self.await_another(self.old)

    def wait_ready(self):
        if not self.told:
            super().wait_ready()
        harness.wait_until(lambda: self.info("session")["session_state"] == "safe", "the session")


@pytest.fixture(params=[WithTheTests, WithItsOwn], ids=["fake", "real"])
def two_kept(request, launch, zk, root):
    """With proof enough for a machine that is busy."""
    return [launch(request.param(zk, root, host=host, wait=False, zookeeper__session_timeout_ms=30000))
            for host in ("alpha", "beta")]


def crash(daemons, truth, still):
    """All of them at once. Those that hold for long ask nothing meanwhile."""
    for d in daemons:
        d.rest()
    truth.nobody_asks()
    for d in daemons:
        harness.wait_until(lambda: Saved(d).kept().issuperset(map(inode, still[d.host])),
                           f"those that hold on {d.host} to be kept")
    truth.crash()
    with contextlib.ExitStack() as stack:
        left = [stack.enter_context(Left(d)) for d in daemons]
        for d in daemons:
            d.kill_worker()
        truth.spare(set().union(*(saved.kept() for saved in left)))
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
    clients = load.begun(KINDS, two_kept, truth, CLIENTS)
    for client in clients:
        if isinstance(client, Keeper):
            still[client.host].append(client.client)
    plan = itertools.cycle([two_kept[:1], two_kept[1:], two_kept])
    for at in itertools.islice(plan, crashes):
        before = load.turns(clients)
        crash(at, truth, still)
        if not load.goes_on(clients, before + CLIENTS):
            break
        time.sleep(rng.uniform(0, 1.5))  # no wait: at any moment of the load
    load.end(clients, two_kept, truth)
    for d in two_kept:
        c = still[d.host][0]
        assert c.call("UNLOCK", f"kept on {d.host}") == 0 and c.quiet(0) and not c.pushes
        c.close()
    counts, closed = load.closed(clients, "count", "closed")
    print(f"{crashes} crashes, {CLIENTS} clients, {time.monotonic() - began:.1f} s, turns: {counts}, "
          f"connections closed: {closed}")
