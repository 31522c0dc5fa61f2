# SPDX-License-Identifier: Apache-2.0
"""Locks shared with other people's programs: Curator and kazoo, as Debian has them, on one path with lockbrokerd. Each
flavour keeps out, and is kept out by, those it is named after; what does not fit together is shown as well."""

import concurrent.futures
import glob
import re

import pytest

import harness
from peers import Place, Race, curator_peer, place  # noqa: F401 (fixtures)

ROUNDS = 1000  # of each side
CURATOR_5_4 = bool(glob.glob("/usr/share/java/curator-recipes-5.4.*.jar"))

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning:kazoo"),
              pytest.mark.plain_only("it is about what Curator and kazoo see of us")]

# ---- who shares with whom ----

WRITERS = [
    ("mutex", "curator-mutex"), ("mutex", "kazoo-lock+lock-"), ("mutex", "kazoo-in-curators-names"),
    ("rw", "curator-write"), ("rw", "kazoo-write+writ+read"),
    ("kazoo", "kazoo-lock"), ("kazoo", "kazoo-write"),
]
STOCK_WRITERS = [("mutex", "curator-mutex"), ("rw", "curator-write"), ("kazoo", "kazoo-lock")]
READERS = [("rw", "curator-read"), ("rw", "kazoo-read+writ"), ("kazoo", "kazoo-read")]


def ids(pairs):
    return [f"{flavour}~{kind}" for flavour, kind in pairs]


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


@pytest.mark.release_only("chance would show it: a shorter race is below, and each order of events has its test")
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
    Race(tmp_path / "witness", ROUNDS).run(ours=ours, theirs=theirs)
    place.wait_children(0)


# ---- second in line, among theirs ----


def count(daemon, what):
    return int(daemon.info()[what])


@pytest.mark.parametrize("flavour, kind", STOCK_WRITERS, ids=ids(STOCK_WRITERS))
def test_who_is_second_behind_one_of_theirs_needs_no_list(place, flavour, kind):
    """What they release is ours at once: we know both znodes. And they follow us as ever."""
    daemon = place.daemon(flavour, locks__linger_ms=0)
    theirs, ours = place.theirs(kind), place.ours(daemon)
    assert theirs.try_for(20000)
    for i in range(20):
        before = count(daemon, "zk_reads_total")
        place.queue(ours.ask)
        # The list that comes with the join, our znode, theirs; the first time the directory's data as well.
        harness.wait_until(lambda: count(daemon, "zk_reads_total") >= before + 3 + (i == 0), "it to read both znodes")
        harness.wait_until(lambda: count(daemon, "operations") == 0, "the answers")
        theirs.release()
        assert ours.served()
        assert count(daemon, "successions_total") == i + 1
        place.queue(theirs.ask)
        ours.release()
        assert theirs.served()
    theirs.release()


@pytest.mark.parametrize("flavour, kind", STOCK_WRITERS, ids=ids(STOCK_WRITERS))
def test_no_update_is_lost_among_two_hosts_and_one_of_theirs(place, tmp_path, flavour, kind):
    """Each reads a number from a file and writes one more, under the lock."""
    rounds, number = 150, tmp_path / "number"
    number.write_text("0")
    theirs = place.theirs(kind)
    contenders = [theirs, *(place.ours(place.daemon(flavour, locks__linger_ms=0, locks__handoff_max=0)) for _ in range(2))]

    def run(contender):
        for _ in range(rounds):
            assert contender.try_for(harness.PATIENCE * 1000)
            number.write_text(str(int(number.read_text()) + 1))
            contender.release()

    with concurrent.futures.ThreadPoolExecutor(len(contenders)) as pool:
        for done in [pool.submit(run, c) for c in contenders]:
            done.result()
    assert int(number.read_text()) == rounds * len(contenders)
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
    (tmp_path / "w.ours").touch()
    assert theirs.rounds(1, tmp_path) == 1, "their side does"


@pytest.mark.parametrize("writer", ["ours", "curator-write"])
def test_the_downgrade_of_curator_lets_a_queued_writer_in_beside_its_own_reader(place, writer):
    """Pitfall 18. Curator's documentation offers it: acquire the write lock, then the read lock, release the write lock. In 5.4.0
    the read znode is numbered after a writer that queued meanwhile, and so nothing keeps that writer back, whoever it is. In
    5.7.1 it has the number of the write znode: Curator's own writers see it then, and wait; ours does not read the queue again
    when the writer before it has gone. The manual warns of it, and the rounds above leave it out."""
    write = place.theirs("curator-write")
    read = place.theirs("curator-read", client=write)
    daemon = place.daemon("rw")
    other = place.ours(daemon) if writer == "ours" else place.theirs(writer)
    assert write.try_for(20000)
    place.queue(other.ask)
    if writer == "ours":  # it has read the queue then: with the reader of 5.7.1 in it, it would wait for that reader
        with daemon.client() as c:
            harness.wait_until(lambda: c.call("WHY", "app/orders")["state"] == "waiting", "the host to know its place")
    assert read.try_for(20000)
    assert other.waits()
    write.release()
    if writer != "ours" and not CURATOR_5_4:
        assert other.waits()
        read.release()
        assert other.served()
        return
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
    assert re.sub(r"^[0-9a-f]{32}", "", path.rsplit("/", 1)[1]) in d.log()


@pytest.mark.parametrize("flavour", ["rw", "mutex", "kazoo"])
def test_a_child_without_a_number_is_reported_and_in_nobodys_way(place, flavour):
    d = place.daemon(flavour)
    ours = place.ours(d)
    place.k.ensure_path(f"{place.path}/note")
    assert ours.try_for(20000)
    harness.wait_until(lambda: reports(d) == 1, "the report")


def test_a_directory_of_flavour_kazoo_stays_because_kazoo_looks_for_it_only_once(own_zk, daemons, kazoo_client):
    """The next one is deleted as soon as it is empty, as ZooKeeper does after a minute: that one was."""
    zk = own_zk(jvm=["-Dznode.container.checkIntervalMs=100"])
    k = kazoo_client(zk)
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
