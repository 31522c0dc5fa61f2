"""Locks shared with other people's programs: Curator and kazoo, as Debian has them, on one path with lockbrokerd. Each
flavour keeps out, and is kept out by, those it is named after; what does not fit together is shown as well."""

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

ROUNDS = 1000  # of each side
BATCH = 10
HOLD_S = 0.0002


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:kazoo")

# ---- contenders: all of one shape ----
#
# try_for(ms) -> held or not. ask(), ask_for(ms): waits in the background; waits() shows that there is no answer yet,
# served() waits for it -> held or not.
# rounds(count, witness) -> overlaps: acquire, make the file, hold, remove it, release; a file that is there already is
# an overlap.


class CuratorPeer:
    """One JVM for the tests of a worker. Its clients have a session each."""

    def __init__(self):
        self.answers = {}
        self.process = harness.spawn(["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
                                      "-XX:-UsePerfData", "-cp", PEER_JARS, PEER],
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

    def __init__(self, peer, zk, path, kind, client=None):
        self.peer, self.path, self.kind = peer, path, kind
        if client:
            self.name = client.name
            return
        CuratorLock.count += 1
        self.name = f"client{CuratorLock.count}"
        self.call("open", zk.address)

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
        time.sleep(seconds)
        return self.peer.answers[self.name].empty()

    def served(self):
        return self.peer.answer(self.name) == "held"

    def release(self):
        assert self.call("release", self.kind, self.path) == "released"

    def rounds(self, count, witness):
        answer = self.call("rounds", self.kind, self.path, count, harness.PATIENCE * 1000, int(HOLD_S * 1e6), witness,
                           patience=2 * harness.PATIENCE)
        done, overlaps, timeouts = answer.split()
        assert (done, timeouts) == ("done", "0"), answer
        return int(overlaps)

    def close(self):
        self.peer.send(self.name, "close")


def witnessed(acquire, release, count, witness):
    overlaps = 0
    for _ in range(count):
        acquire()
        try:
            os.close(os.open(witness, os.O_CREAT | os.O_EXCL))
            time.sleep(HOLD_S)
            os.unlink(witness)
        except FileExistsError:
            overlaps += 1
        release()
    return overlaps


class KazooLock:
    def __init__(self, zk, path, kind):
        self.client = kazoo.client.KazooClient(hosts=zk.address)
        self.client.start(timeout=harness.PATIENCE)
        self.lock = kind(self.client, path)
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
        time.sleep(seconds)
        return not self.asked.done()

    def served(self):
        return self.asked.result(harness.PATIENCE)

    def release(self):
        assert self.lock.release()

    def _acquire(self):
        assert self.try_for(harness.PATIENCE * 1000)

    def rounds(self, count, witness):
        return witnessed(self._acquire, self.release, count, witness)

    def close(self):
        self.client.stop()  # first: it ends an acquire that waits
        self.client.close()
        self.thread.shutdown()


class OurLock:
    def __init__(self, daemon, name):
        self.client, self.name = daemon.client(), name

    def try_for(self, ms):
        return isinstance(self._answer(self.client.call("LOCK", self.name, "WAIT", ms)), int)

    def ask_for(self, ms):
        self.client.send("LOCK", self.name, "WAIT", ms)

    def ask(self):
        self.client.send("LOCK", self.name)

    def waits(self, seconds=0.15):
        return self.client.quiet(seconds)

    def served(self):
        return isinstance(self._answer(self.client.reply()), int)

    def _answer(self, token):
        assert not isinstance(token, harness.Error), token
        return token

    def release(self):
        assert self.client.call("UNLOCK", self.name) == 0

    def _acquire(self):
        assert self.try_for(harness.PATIENCE * 1000)

    def rounds(self, count, witness):
        return witnessed(self._acquire, self.release, count, witness)

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
WRITERS = [
    ("mutex", "curator-mutex"), ("mutex", "kazoo-lock+lock-"), ("mutex", "kazoo-in-curators-names"),
    ("rw", "curator-write"), ("rw", "kazoo-write+writ+read"),
    ("kazoo", "kazoo-lock"), ("kazoo", "kazoo-write"),
]
STOCK_WRITERS = [("mutex", "curator-mutex"), ("rw", "curator-write"), ("kazoo", "kazoo-lock")]
READERS = [("rw", "curator-read"), ("rw", "kazoo-read+writ"), ("kazoo", "kazoo-read")]


def ids(pairs):
    return [f"{flavour}~{kind}" for flavour, kind in pairs]


@pytest.fixture(scope="module")
def curator_peer():
    peer = CuratorPeer()
    yield peer
    peer.end()


@pytest.fixture
def kazoo_client(zk):
    """For looking at znodes."""
    k = kazoo.client.KazooClient(hosts=zk.address)
    k.start(timeout=harness.PATIENCE)
    yield k
    k.stop()
    k.close()


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

    def ours(self, daemon):
        return self._add(OurLock(daemon, "app/orders"))

    def theirs(self, kind, client=None):
        if kind in CURATOR:
            return self._add(CuratorLock(self.peer(), self.zk, self.path, CURATOR[kind], client))
        return self._add(KazooLock(self.zk, self.path, KAZOO[kind]))

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
    p = Place(zk, root, daemons, lambda: request.getfixturevalue("curator_peer"), kazoo_client)
    yield p
    for lock in p.made:
        lock.close()


# ---- mutual exclusion, in both directions ----


@pytest.mark.parametrize("flavour, kind", WRITERS + READERS, ids=ids(WRITERS + READERS))
def test_what_they_hold_is_not_granted_until_they_release_it(place, flavour, kind):
    theirs, ours = place.theirs(kind), place.ours(place.daemon(flavour))
    assert theirs.try_for(20000)
    assert not ours.try_for(300)
    ours.ask()
    assert ours.waits()
    theirs.release()
    assert ours.served()


@pytest.mark.parametrize("flavour, kind", WRITERS + READERS, ids=ids(WRITERS + READERS))
def test_what_we_hold_they_do_not_get_until_we_unlock_it(place, flavour, kind):
    theirs, ours = place.theirs(kind), place.ours(place.daemon(flavour))
    assert ours.try_for(20000)
    assert not theirs.try_for(300)
    place.queue(theirs.ask)
    assert theirs.waits()
    ours.release()
    assert theirs.served()


@pytest.mark.parametrize("flavour, kind", WRITERS, ids=ids(WRITERS))
def test_what_lingers_with_us_is_theirs_as_soon_as_they_ask(place, flavour, kind):
    theirs, ours = place.theirs(kind), place.ours(place.daemon(flavour, locks__linger_ms=60000))
    assert ours.try_for(20000)
    ours.release()
    assert len(place.children()) == 1
    assert theirs.try_for(20000)


@pytest.mark.parametrize("flavour, kind", WRITERS, ids=ids(WRITERS))
def test_the_queue_is_served_in_the_order_of_asking(place, flavour, kind):
    alpha, beta = (place.daemon(flavour, locks__linger_ms=0) for _ in range(2))
    crowd = [place.theirs(kind), place.ours(alpha), place.theirs(kind), place.ours(beta), place.theirs(kind)]
    for contender in crowd:
        place.queue(contender.ask)
    for i, contender in enumerate(crowd):
        assert contender.served()
        assert all(later.waits(0.05) for later in crowd[i + 1:])
        contender.release()


@pytest.mark.parametrize("flavour, kind", STOCK_WRITERS, ids=ids(STOCK_WRITERS))
def test_one_who_gives_up_in_the_middle_lets_nobody_pass_the_holder(place, flavour, kind):
    """Everybody waits for the one before: that it is gone does not mean that the lock is free."""
    alpha, beta = (place.daemon(flavour, locks__linger_ms=0) for _ in range(2))
    holder, impatient, patient = (place.theirs(kind) for _ in range(3))
    ours, last = place.ours(alpha), place.ours(beta)
    assert holder.try_for(20000)
    place.queue(lambda: impatient.ask_for(1500))
    place.queue(ours.ask)
    place.queue(patient.ask)
    place.queue(last.ask)
    assert not impatient.served()
    assert ours.waits()
    ours.close()
    place.wait_children(3)
    assert patient.waits() and last.waits(0)
    holder.release()
    assert patient.served()
    assert last.waits()
    patient.release()
    assert last.served()


@pytest.mark.parametrize("flavour, kind", READERS, ids=ids(READERS))
def test_their_readers_hold_together_and_keep_us_out_to_the_last(place, flavour, kind):
    """Pitfall 18."""
    first, second, third = (place.theirs(kind) for _ in range(3))
    ours = place.ours(place.daemon(flavour))
    assert first.try_for(20000) and second.try_for(20000)
    place.queue(ours.ask)
    place.queue(third.ask)
    first.release()
    assert ours.waits() and third.waits()
    second.release()
    assert ours.served()
    assert third.waits()
    ours.release()
    assert third.served()


class Race:
    """All contenders at once, and all of them until both sides have done their rounds: no side is left to itself."""

    SECONDS_MAX = 60

    def __init__(self, witness):
        self.witness = witness
        self.mutex = threading.Lock()
        self.rounds = {"ours": 0, "theirs": 0}
        self.overlaps = 0

    def _goes_on(self):
        return min(self.rounds.values()) < ROUNDS and time.monotonic() < self.end

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


@pytest.mark.parametrize("flavour, kinds", [
    ("mutex", ["curator-mutex", "curator-mutex"]),
    ("rw", ["curator-write", "curator-write"]),
    ("kazoo", ["kazoo-lock", "kazoo-write"]),
    ("mutex", ["curator-mutex", "kazoo-in-curators-names"]),
], ids=["curator-mutex", "curator-write", "kazoo", "curator-and-kazoo"])
def test_a_thousand_rounds_each_and_never_two_at_once(place, tmp_path, flavour, kinds):
    theirs = [place.theirs(kind) for kind in kinds]
    assert theirs[0].try_for(20000)  # the directory is made by them
    theirs[0].release()
    pair = [place.daemon(flavour, locks__handoff_max=1, locks__linger_ms=0) for _ in range(2)]
    ours = [place.ours(d) for d in pair for _ in range(2)]
    race = Race(tmp_path / "witness")
    race.run(ours=ours, theirs=theirs)
    assert race.overlaps == 0
    assert race.rounds["ours"] >= ROUNDS and race.rounds["theirs"] >= ROUNDS, race.rounds
    place.wait_children(0)


# ---- what does not go together ----


@pytest.mark.parametrize("flavour, kind", [("rw", "kazoo-lock"), ("mutex", "kazoo-lock"), ("rw", "curator-mutex")])
def test_other_names_than_the_flavours_are_waited_for_but_do_not_wait(place, tmp_path, flavour, kind):
    """Why the flavour of a path must be the right one. And a round that overlaps is counted as such."""
    theirs, ours = place.theirs(kind), place.ours(place.daemon(flavour))
    assert theirs.try_for(20000)
    assert not ours.try_for(300), "our side never lets two in"
    theirs.release()
    assert ours.try_for(20000)
    (tmp_path / "witness").touch()
    assert theirs.rounds(1, tmp_path / "witness") == 1, "their side does"


@pytest.mark.parametrize("writer", ["ours", "curator-write"])
def test_the_downgrade_of_curator_5_4_0_lets_a_queued_writer_in_beside_its_own_reader(place, writer):
    """Pitfall 18. Curator's documentation offers it: acquire the write lock, then the read lock, release the write lock. The read
    znode is numbered after a writer that queued meanwhile, and so nothing keeps that writer back: whoever it is, here
    and in Curator's own. Nobody else can mend this; the manual warns of it, and the rounds above leave it out."""
    write = place.theirs("curator-write")
    read = place.theirs("curator-read", client=write)
    other = place.ours(place.daemon("rw")) if writer == "ours" else place.theirs(writer)
    assert write.try_for(20000)
    place.queue(other.ask)
    assert read.try_for(20000)
    assert other.waits()
    write.release()
    assert other.served(), "a Curator without this fault: the manual may say so"
    assert any("__READ__" in child for child in place.children()), "the reader has not released"
    read.release()


def test_two_of_ours_with_different_flavours_keep_each_other_out(place):
    """A directory that we made tells its flavour. One that others made does not: there each waits for what it does not
    know."""
    mutex, rw = (place.ours(place.daemon(flavour, locks__linger_ms=0)) for flavour in ("mutex", "rw"))
    theirs = place.theirs("curator-mutex")
    assert theirs.try_for(20000)
    theirs.release()
    for first, second in ((mutex, rw), (rw, mutex)):
        assert first.try_for(20000)
        assert not second.try_for(300)
        first.release()
        assert second.try_for(20000)
        second.release()
    assert mutex.client.call("LOCK", "app/ours", "WAIT", 20000) > 0
    assert rw.client.call("LOCK", "app/ours", "WAIT", 300).code == "MISMATCH"


def reports(daemon):
    return daemon.log().count("a child of no known kind")


@pytest.mark.parametrize("flavour, stranger", [
    ("rw", "x-123-"), ("mutex", "x-123-"), ("kazoo", "x-123-"),
    ("rw", "00000000000040008000000000000000__lock__"), ("mutex", "00000000000040008000000000000000__lock__"),
    ("rw", "_c_00000000-0000-4000-8000-000000000000-lock-"),
    ("mutex", "_c_00000000-0000-4000-8000-000000000000-__WRIT__"),
    ("mutex", "_c_00000000-0000-4000-8000-000000000000-__READ__"),
    ("kazoo", "_c_00000000-0000-4000-8000-000000000000-lock-"),
])
def test_a_child_of_no_known_kind_is_waited_for_and_reported_once(place, flavour, stranger):
    d = place.daemon(flavour)
    ours, again = place.ours(d), place.ours(d)
    place.k.ensure_path(place.path)
    path = place.k.create(f"{place.path}/{stranger}", ephemeral=True, sequence=True)
    assert not ours.try_for(300)
    assert not again.try_for(300)
    ours.ask()
    assert ours.waits()
    place.k.delete(path)
    assert ours.served()
    assert reports(d) == 1
    assert path.rsplit("/", 1)[1] in d.log()


@pytest.mark.parametrize("flavour", ["rw", "mutex", "kazoo"])
def test_a_child_without_a_number_is_reported_and_in_nobodys_way(place, flavour):
    d = place.daemon(flavour)
    ours = place.ours(d)
    place.k.ensure_path(f"{place.path}/note")
    assert ours.try_for(20000)
    harness.wait_until(lambda: reports(d) == 1, "the report")


def test_a_directory_of_flavour_kazoo_stays_because_kazoo_looks_for_it_only_once(own_zk, daemons):
    """The next one is deleted as soon as it is empty, as ZooKeeper does after a minute: that one was."""
    zk = own_zk(jvm=["-Dznode.container.checkIntervalMs=100"])
    k = kazoo.client.KazooClient(hosts=zk.address)
    k.start(timeout=harness.PATIENCE)
    p = Place(zk, "/t", daemons, None, k)
    daemon = p.daemon("kazoo", locks__linger_ms=0)
    ours, theirs = p.ours(daemon), p.theirs("kazoo-lock")
    for contender in (ours, theirs):
        assert contender.try_for(harness.PATIENCE * 1000)
        contender.release()
    with daemon.client() as other:
        other.call("LOCK", "rw")
        other.call("UNLOCK", "rw")
    harness.wait_until(lambda: not k.exists("/t/ours/rw"), "a container to be deleted")
    assert theirs.try_for(harness.PATIENCE * 1000)
    theirs.release()
    for contender in (ours, theirs):
        contender.close()
    k.stop()
    k.close()
