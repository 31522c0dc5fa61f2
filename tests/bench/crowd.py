# SPDX-License-Identifier: Apache-2.0
"""The bytes that a host sends and receives in its turn for a lock, with a thousand others before it and behind it."""

import contextlib
import os
import sys
import threading

import measure
import services
from services import harness

sys.path.append(os.path.join(services.HERE, "..", "torture"))

import network  # noqa: E402
import queues  # noqa: E402

LOCK = "/q/x0"
WAITING, QUICK = 1000, 100


class Ours:
    """A host with a client that wants the lock."""

    label = "lockbroker"

    def __init__(self, far):
        self.daemon = services.Lockbroker(far, root="/q")
        self.client = self.daemon.client()

    def join(self):
        self.client.send("LOCK", "x0")

    def granted(self):
        assert isinstance(self.client.reply(), int)

    def release(self):
        assert self.client.call("UNLOCK", "x0") == 0

    def is_settled(self):
        return self.daemon.info("zookeeper")["operations"] == "0"

    def end(self):
        self.client.close()
        return self.daemon.end()


class Recipe:
    """A session that follows the recipe of ZooKeeper's documentation."""

    label = "ZooKeeper's recipe, by kazoo"

    def __init__(self, far):
        self.session = queues.connect(far)
        self.lock = self.session.Lock(LOCK, extra_lock_patterns=["__WRIT__"])
        self.thread = threading.Thread(target=self.lock.acquire, daemon=True)

    def join(self):
        self.thread.start()

    def granted(self):
        self.thread.join(harness.PATIENCE)
        assert self.lock.is_acquired

    def release(self):
        self.lock.release()

    def is_settled(self):
        return True

    def end(self):
        self.session.stop()
        self.session.close()


def crowd(bench):
    net, waiting = network.Network(), QUICK if bench.quick else WAITING
    for make in (Ours, Recipe):
        figures = measure.attempt(bench, f"{waiting} wait, {make.label}", lambda: turn(bench, net, make, waiting))
        measure.add(bench, "crowd", f"{waiting} before it, {waiting} behind", make.label, figures)


class Counted:
    """The bytes of each step, until the state at its end."""

    def __init__(self, link):
        self.link, self.seen, self.figures = link, sum(link.passed), {}

    def step(self, name):
        now = sum(self.link.passed)
        self.figures[name], self.seen = now - self.seen, now


def watched(server):
    return {line.strip() for line in server.ask("wchc").splitlines() if line.startswith(f"\t{LOCK}/")}


def turn(bench, net, make, waiting):
    """The host joins behind the waiting ones; all but its predecessor go; its predecessor goes; it releases the lock."""
    with queues.crowded(1, waiting) as (server, k), contextlib.ExitStack() as stack:
        before = sorted((f"{LOCK}/{name}" for name in k.get_children(LOCK)), key=lambda path: path[-10:])
        far = queues.Far(net, server)
        host = make(far)
        stack.callback(lambda: bench.complain(host.end()))
        counted = Counted(far.link)

        def settle(name, path=None):
            harness.wait_until(lambda: host.is_settled() and (not path or path in watched(server)), name)
            counted.step(name)

        host.join()
        settle("join", before[-1])
        fill_behind(k, waiting)
        lists = listed(host)
        delete(k, before[:-1])
        if lists is not None:
            harness.wait_until(lambda: listed(host) > lists, "it to list")
        settle("next")
        delete(k, before[-1:])
        host.granted()
        settle("hand_off")
        host.release()
        settle("release")
        return {f"{name}_bytes": count for name, count in counted.figures.items()}


def listed(host):
    """The number of reads that a daemon has sent; None: the host is not a daemon."""
    return int(host.daemon.info("stats")["zk_reads_total"]) if isinstance(host, Ours) else None


def fill_behind(k, count):
    t = k.transaction()
    for n in range(count):
        t.create(f"{LOCK}/{queues.CONTENDER % n}", sequence=True)
    assert not any(isinstance(made, Exception) for made in t.commit())


def delete(k, paths):
    t = k.transaction()
    for path in paths:
        t.delete(path)
    assert all(done is True for done in t.commit())
