# SPDX-License-Identifier: Apache-2.0
"""Other people's programs as contenders for locks: Curator and kazoo, as Debian has them, and lockbrokerd's clients in the
same shape. And what tests of them share: a place both know, and a race that anybody who overlaps loses."""

import concurrent.futures
import os
import queue
import subprocess
import threading
import time

import kazoo.client
import kazoo.exceptions
import kazoo.recipe.lock
import pytest

import harness

PEER = os.path.join(harness.SOURCE, "tests/interop/CuratorPeer.java")
PEER_JARS = "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar"
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-XX:-UsePerfData"]

SESSION_MS = 15000
BATCH = 10
HOLD_S = 0.0002
# For that long, so many times at most, a reader is in who has not met another yet: on a busy machine one comes late.
MEETING_S, MEETINGS = 0.05, 20

# ---- contenders: all of one shape ----
#
# try_for(ms) -> held or not. ask(), ask_for(ms): waits in the background; waits() shows that there is no answer yet,
# served() waits for it -> held or not.
# rounds(count, witness) -> overlaps: acquire, make a file in that directory, hold, remove it, release. Somebody else's file
# that must not be there then is an overlap.


class Inside:
    """One who is inside a lock (or, with a limit, has a permit), by its file in a directory. Of two who are inside at once
    the one who comes later sees the other."""

    def __init__(self, witness, sort, name, limit=None):
        self.witness, self.sort, self.limit = witness, sort, limit
        self.own = f"{sort}.{name}"
        self.others = []

    def __enter__(self):
        os.close(os.open(os.path.join(self.witness, self.own), os.O_CREAT | os.O_EXCL))
        self.others = [other for other in os.listdir(self.witness) if other != self.own]
        return self

    def __exit__(self, *_):
        os.unlink(os.path.join(self.witness, self.own))

    def stay(self, seconds):
        time.sleep(seconds)  # so that others could come while it is inside

    def overlaps(self):
        if self.limit:
            return len(self.others) >= self.limit
        return any("w" in (self.sort, other[0]) for other in self.others)


def compile_peer(folder):
    subprocess.run(["javac", *(f"-J{option}" for option in JVM), "-cp", PEER_JARS, "-d", folder, PEER], check=True)


class CuratorPeer:
    """One JVM for the tests of a worker. Its clients have a session each."""

    def __init__(self):
        self.answers = {}
        classes = harness.once("peer", compile_peer)
        self.process = harness.spawn(["java", *JVM, "-cp", f"{PEER_JARS}:{classes}", "CuratorPeer"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            name, answer = line.rstrip("\n").split(" ", 1)
            self.answers[name].put(answer)
        for answers in list(self.answers.values()):
            answers.put("error: the peer ended")

    def send(self, name, *words):
        self.answers.setdefault(name, queue.Queue())
        self.process.stdin.write(" ".join(map(str, (name, *words))) + "\n")

    def answer(self, name, patience=harness.PATIENCE):
        answer = self.answers[name].get(timeout=patience)
        assert not answer.startswith("error"), answer
        return answer

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


class CuratorLock:
    """Two of one client are one thread's, which may hold both: as for a downgrade."""

    count = 0
    patience_ms = harness.PATIENCE * 1000  # of a round

    def __init__(self, peer, zk, path, kind, client=None, session_ms=SESSION_MS):
        self.peer, self.path, self.kind = peer, path, kind
        if client:
            self.name = client.name
            return
        CuratorLock.count += 1
        self.name = f"client{CuratorLock.count}"
        self.call("open", zk.address, session_ms)

    def call(self, *words, patience=harness.PATIENCE):
        self.peer.send(self.name, *words)
        return self.peer.answer(self.name, patience)

    def try_for(self, ms):
        return self.call("acquire", self.kind, self.path, ms) == "held"

    def ask_for(self, ms):
        self.peer.send(self.name, "acquire", self.kind, self.path, ms)

    def ask(self):
        self.ask_for(harness.PATIENCE * 1000)

    def waits(self, seconds=0.15):
        answers = self.peer.answers[self.name]
        with answers.not_empty:
            return not answers.not_empty.wait_for(lambda: answers.queue, seconds)

    def served(self):
        return self.peer.answer(self.name) == "held"

    def release(self):
        assert self.call("release", self.kind, self.path) == "released"

    def rounds(self, count, witness):
        return self._rounds("rounds", self.kind, self.path, count, witness)

    def _rounds(self, word, first, second, count, witness):
        answer = self.call(word, first, second, count, self.patience_ms, int(HOLD_S * 1e6), witness,
                           patience=2 * harness.PATIENCE)
        done, overlaps, timeouts = answer.split()
        assert (done, timeouts) == ("done", "0"), answer
        return int(overlaps)

    def close(self):
        self.peer.send(self.name, "close")


class CuratorSemaphore(CuratorLock):
    """A client of Curator with permits of one semaphore."""

    def __init__(self, peer, zk, path, limit, session_ms=SESSION_MS):
        super().__init__(peer, zk, path, "semaphore", session_ms=session_ms)
        self.limit = limit

    def try_for(self, ms, count=1):
        return self.call("permit", self.path, self.limit, count, ms) == "held"

    def ask(self, count=1):
        self.peer.send(self.name, "permit", self.path, self.limit, count, harness.PATIENCE * 1000)

    def release(self):
        assert self.call("return", self.path) == "returned"

    def rounds(self, count, witness):
        return self._rounds("permits", self.path, self.limit, count, witness)


class KazooLock:
    """In a round it asks again when it had to give up after patience_ms."""

    count = 0
    patience_ms = harness.PATIENCE * 1000

    def __init__(self, zk, path, kind):
        KazooLock.count += 1
        self.name, self.kind, self.shared = f"kazoo{KazooLock.count}", kind, kind.startswith("kazoo-read")
        self.client = kazoo.client.KazooClient(hosts=zk.address)
        self.client.start(timeout=harness.PATIENCE)
        self.lock = KAZOO[kind](self.client, path)
        self.thread = concurrent.futures.ThreadPoolExecutor(1)
        self.asked = None

    def try_for(self, ms):
        try:
            return self.lock.acquire(timeout=ms / 1000)
        except kazoo.exceptions.LockTimeout:
            return False

    def ask_for(self, ms):
        self.asked = self.thread.submit(self.try_for, ms)

    def ask(self):
        self.ask_for(harness.PATIENCE * 1000)

    def waits(self, seconds=0.15):
        return not concurrent.futures.wait([self.asked], seconds).done

    def served(self):
        return self.asked.result(harness.PATIENCE)

    def release(self):
        assert self.lock.release()

    def rounds(self, count, witness):
        overlaps = 0
        for _ in range(count):
            while not self.try_for(self.patience_ms):
                pass
            with Inside(witness, "r" if self.shared else "w", self.name) as inside:
                overlaps += inside.overlaps()
                inside.stay(HOLD_S)
            self.release()
        return overlaps

    def close(self):
        self.client.stop()  # first: it ends an acquire that waits
        self.client.close()
        self.thread.shutdown()


class Tokens:
    """Of the grants of one lock, told of while they last: each is larger than that of every earlier one which excludes it."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.exclusive = self.shared = 0

    def add(self, token, shared):
        with self.mutex:
            assert token > self.exclusive and (shared or token > self.shared)
            if shared:
                self.shared = max(self.shared, token)
            else:
                self.exclusive = token


class OurLock:
    """`met`: the rounds in which a reader saw one of somebody else's. Every second of those that write with `downgrades`
    reads on."""

    count = 0

    def __init__(self, daemon, name, shared=False, tokens=None, downgrades=False):
        OurLock.count += 1
        self.own = f"ours{OurLock.count}"
        self.client, self.name = daemon.client(), name
        self.shared, self.downgrades = shared, downgrades
        self.tokens = tokens or Tokens()
        self.token = None
        self.met = self.alone = 0

    def _words(self, *more):
        return ("LOCK", self.name, *(["SHARED"] if self.shared else []), *more)

    def try_for(self, ms):
        return isinstance(self._answer(self.client.call(*self._words("WAIT", ms))), int)

    def ask_for(self, ms):
        self.client.send(*self._words("WAIT", ms))

    def ask(self):
        self.client.send(*self._words())

    def waits(self, seconds=0.15):
        return self.client.quiet(seconds)

    def served(self):
        return isinstance(self._answer(self.client.reply()), int)

    def _answer(self, token):
        assert not isinstance(token, harness.Error), token
        self.token = token
        return token

    def release(self):
        assert self.client.call("UNLOCK", self.name) == 0

    def downgrade(self):
        assert self.client.call("DOWNGRADE", self.name) == self.token

    def _inside(self, witness, shared):
        with Inside(witness, "r" if shared else "w", self.own) as inside:
            longer = shared and not self.met and self.alone < MEETINGS
            inside.stay(MEETING_S if longer else HOLD_S)
            self.alone += longer
            self.met += shared and any(not other.startswith("r.ours") for other in inside.others)
            return inside.overlaps()

    def rounds(self, count, witness):
        overlaps = 0
        for i in range(count):
            assert self.try_for(harness.PATIENCE * 1000)
            self.tokens.add(self.token, self.shared)
            overlaps += self._inside(witness, self.shared)
            if self.downgrades and i % 2:
                self.downgrade()
                overlaps += self._inside(witness, True)
            self.release()
        return overlaps

    def close(self):
        self.client.close()


# ---- who shares with whom ----


def patterned(kind, *patterns):
    return lambda client, path: kind(client, path, extra_lock_patterns=patterns)


class KazooInCuratorsNames(kazoo.recipe.lock.Lock):
    """What the manual tells those who need kazoo and Curator, and not only lockbrokerd, to see each other."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["lock-"]


CURATOR = {"curator-mutex": "mutex", "curator-write": "write", "curator-read": "read"}
KAZOO = {
    "kazoo-lock": kazoo.recipe.lock.Lock,
    "kazoo-write": kazoo.recipe.lock.WriteLock,
    "kazoo-read": kazoo.recipe.lock.ReadLock,
    "kazoo-lock+lock-": patterned(kazoo.recipe.lock.Lock, "lock-"),
    "kazoo-write+writ+read": patterned(kazoo.recipe.lock.WriteLock, "__WRIT__", "__READ__"),
    "kazoo-read+writ": patterned(kazoo.recipe.lock.ReadLock, "__WRIT__"),
    "kazoo-in-curators-names": KazooInCuratorsNames,
}
class Race:
    """All contenders at once, and all of them until both sides have done their rounds: no side is left to itself."""

    SECONDS_MAX = 200

    def __init__(self, witness, rounds):
        witness.mkdir()
        self.witness, self.rounds_min = witness, rounds
        self.mutex = threading.Lock()
        self.rounds = {"ours": 0, "theirs": 0}
        self.overlaps = 0

    def _goes_on(self):
        return min(self.rounds.values()) < self.rounds_min and time.monotonic() < self.end

    def _run_one(self, side, contender):
        while self._goes_on():
            overlaps = contender.rounds(BATCH, self.witness)
            with self.mutex:
                self.overlaps += overlaps
                self.rounds[side] += BATCH

    def run(self, **sides):
        self.end = time.monotonic() + self.SECONDS_MAX
        with concurrent.futures.ThreadPoolExecutor(sum(map(len, sides.values()))) as pool:
            runs = [pool.submit(self._run_one, side, c) for side, contenders in sides.items() for c in contenders]
        for run in runs:
            run.result()
        assert self.overlaps == 0
        assert min(self.rounds.values()) >= self.rounds_min, self.rounds
        assert not list(self.witness.iterdir())


@pytest.fixture(scope="module")
def curator_peer():
    peer = CuratorPeer()
    yield peer
    peer.end()


class Place:
    """One lock, app/orders to us and <root>/locks/orders to them, and its contenders."""

    def __init__(self, zk, root, daemons, peer, k):
        self.zk, self.root, self.daemons, self.peer, self.k = zk, root, daemons, peer, k
        self.path = f"{root}/locks/orders"
        self.made = []

    def daemon(self, flavour, **conf):
        """rw is the default, and is left to be."""
        named = {} if flavour == "rw" else {"prefix:app/.flavour": flavour}
        return self.daemons(self.zk, f"{self.root}/ours", **{"prefix:app/.path": f"{self.root}/locks", **named, **conf})

    def _add(self, lock):
        self.made.append(lock)
        return lock

    def ours(self, daemon, **how):
        return self._add(OurLock(daemon, "app/orders", **how))

    def theirs(self, kind, client=None):
        if kind in CURATOR:
            return self._add(CuratorLock(self.peer(), self.zk, self.path, CURATOR[kind], client))
        return self._add(KazooLock(self.zk, self.path, kind))

    def children(self):
        return self.k.get_children(self.path) if self.k.exists(self.path) else []

    def wait_children(self, count):
        harness.wait_until(lambda: len(self.children()) == count, f"{count} znodes in {self.path}")

    def queue(self, ask):
        """Asks, and sees the znode that comes of it."""
        before = set(self.children())
        ask()
        harness.wait_until(lambda: set(self.children()) - before, f"one more znode in {self.path}")


@pytest.fixture
def place(zk, root, daemons, kazoo_client, request):
    p = Place(zk, root, daemons, lambda: request.getfixturevalue("curator_peer"), kazoo_client(zk))
    yield p
    for lock in p.made:
        lock.close()
