# SPDX-License-Identifier: Apache-2.0
"""Directories in which many wait already, and a link to their server that can be made slow."""

import contextlib

import kazoo.client

import harness

CONTENDER = "_c_00000000-0000-4000-a000-%012d-__WRIT__"
NAME_BYTES = len(CONTENDER % 0) + 10 + 4  # of a list's answer: with its number and its length
ASKED_MAX = 50


def connect(server):
    k = kazoo.client.KazooClient(hosts=server.address)
    k.start(timeout=harness.PATIENCE)
    return k


def fill(k, root, names, contenders):
    """x0, x1, ... below the root, with as many znodes in each, made as Curator makes them."""
    k.ensure_path(root)
    for first in range(0, names, ASKED_MAX):
        asked = []
        for i in range(first, min(first + ASKED_MAX, names)):
            t = k.transaction()
            t.create(f"{root}/x{i}")
            for n in range(contenders):
                t.create(f"{root}/x{i}/{CONTENDER % n}", sequence=True)
            asked.append(t.commit_async())
        for a in asked:
            assert not any(isinstance(made, Exception) for made in a.get(timeout=harness.PATIENCE))


@contextlib.contextmanager
def crowded(names, contenders):
    """A server with that below /q, and a connection to it."""
    server = harness.Zookeeper(jvm=("-Xmx512m",))
    with contextlib.ExitStack() as stack:
        stack.callback(server.end)
        k = connect(server)
        stack.callback(k.close)
        stack.callback(k.stop)
        fill(k, "/q", names, contenders)
        yield server, k


def free(k, path):
    """All who were there first let go of it."""
    t = k.transaction()
    for child in k.get_children(path):
        if child.startswith(CONTENDER[:20]):
            t.delete(f"{path}/{child}")
    assert all(done is True for done in t.commit())


class Far:
    """The server at the end of a link, as a daemon sees it."""

    def __init__(self, net, server):
        self.link = net.link(server.port)
        self.address = f"127.0.0.1:{self.link.port}"
        self.tick_ms = server.tick_ms


class Waiting:
    """A daemon one of whose clients waits for all of them, while another holds one more: all queued within a moment, and
    from then on with so slow a link."""

    def __init__(self, daemon, holder, waiter, far, names, bytes_s):
        self.daemon, self.holder, self.waiter, self.names = daemon, holder, waiter, names
        assert isinstance(self.holder.call("LOCK", "held"), int)
        for i in range(names):
            self.waiter.send("ENQUEUE", f"x{i}")
        for i in range(names):
            assert self.waiter.reply() == "QUEUED"
        harness.wait_until(self.settled, "all to be queued among the others")
        far.link.throttle(bytes_s)
        self.before = self.stats()

    def settled(self):
        """What is asked of ZooKeeper is answered, and no claim is of unknown fate."""
        info = self.daemon.info("zookeeper", "locks", "audit")
        return (info["operations"], info["audit_remembered"]) == ("0", "0") and int(info["claims"]) >= self.names

    def stats(self):
        return {k: int(v) for k, v in self.daemon.info("stats").items() if k.endswith("_total")}

    def more(self, what):
        """So many more than when all waited."""
        return self.stats()[f"{what}_total"] - self.before[f"{what}_total"]

    def is_proven(self):
        return self.daemon.info("session")["session_state"] == "safe"
