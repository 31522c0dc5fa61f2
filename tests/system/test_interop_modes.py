# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of other people's programs with ours: Curator's InterProcessReadWriteLock, kazoo's ReadLock and
WriteLock. And what becomes of a lock when one of either side dies, or the hosts do not agree on what its name is for."""

import subprocess
import sys

import kazoo.version
import pytest

import harness
from peers import (CuratorLock, CuratorPeer, CuratorSemaphore, KazooLock, OurLock, Race, Tokens,  # noqa: F401 (fixtures)
                   curator_peer, place)

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning:kazoo"),
              pytest.mark.plain_only("it is about what Curator and kazoo see of us")]

SOON = 20000  # milliseconds: a wait that is expected to end well before
ROUNDS = 500  # of each side

STOCK = [pytest.param("rw", "curator-read", "curator-write", id="curator"),
         pytest.param("kazoo", "kazoo-read", "kazoo-write", id="kazoo")]

both = pytest.mark.parametrize("flavour, read, write", STOCK)


def strict(place, flavour):
    """Nothing is handed on inside the host while somebody waits elsewhere: the order is that of the znodes."""
    return place.daemon(flavour, locks__handoff_max=0, locks__linger_ms=0)


def is_kept_out(reader):
    if not reader.try_for(0):
        return True
    reader.release()
    return False


# ---- who may be in together ----


@both
@pytest.mark.parametrize("we_begin", [True, False], ids=["ours-first", "theirs-first"])
def test_readers_of_both_sides_hold_it_together_and_a_writer_of_neither_gets_in(place, flavour, read, write, we_begin):
    daemon = place.daemon(flavour)
    local, other = (place.ours(daemon, shared=True) for _ in range(2))
    theirs, writer = place.theirs(read), place.theirs(write)
    readers = [local, other, theirs] if we_begin else [theirs, local, other]
    for reader in readers:
        assert reader.try_for(SOON)
    assert len(place.children()) == 2, "readers of a host share one claim"
    assert local.token == other.token
    assert not place.ours(daemon).try_for(300)
    place.queue(writer.ask)
    for reader in readers:
        assert writer.waits(0.1)
        reader.release()
    assert writer.served()


@both
def test_our_readers_wait_for_their_writer_and_come_in_together(place, flavour, read, write):
    alpha, beta = (place.daemon(flavour) for _ in range(2))
    writer, theirs = place.theirs(write), place.theirs(read)
    ours = [place.ours(daemon, shared=True) for daemon in (alpha, alpha, beta)]
    assert writer.try_for(SOON)
    assert not ours[0].try_for(300)
    for reader in (*ours, theirs):
        reader.ask()
    assert all(reader.waits(0.1) for reader in (*ours, theirs))
    writer.release()
    assert all(reader.served() for reader in (*ours, theirs))


def test_a_reader_of_kazoo_with_patterns_shares_with_those_of_ours_before_it(place):
    """On flavour rw its znode is none of a known kind: who comes after it waits for it, readers too."""
    daemon = place.daemon("rw")
    before, after = place.ours(daemon, shared=True), place.ours(place.daemon("rw"), shared=True)
    theirs, writer = place.theirs("kazoo-read+writ"), place.theirs("kazoo-write+writ+read")
    assert before.try_for(SOON)
    assert theirs.try_for(SOON)
    place.queue(after.ask)
    place.queue(writer.ask)
    before.release()
    assert after.waits() and writer.waits(0)
    theirs.release()
    assert after.served()
    assert writer.waits()
    after.release()
    assert writer.served()


# ---- who waits behind whom ----


@both
def test_their_reader_does_not_pass_our_waiting_writer(place, flavour, read, write):
    alpha, beta = (strict(place, flavour) for _ in range(2))
    first, second = (place.theirs(read) for _ in range(2))
    writer, local, other = place.ours(alpha), place.ours(alpha, shared=True), place.ours(beta, shared=True)
    assert first.try_for(SOON)
    place.queue(writer.ask)
    place.queue(second.ask)
    place.queue(other.ask)
    local.ask()
    readers = (second, other, local)
    assert all(waiter.waits(0.1) for waiter in (writer, *readers))
    first.release()
    assert writer.served()
    assert all(reader.waits(0.1) for reader in readers)
    writer.release()
    assert all(reader.served() for reader in readers)
    assert min(other.token, local.token) > writer.token


@both
def test_our_reader_does_not_pass_their_waiting_writer(place, flavour, read, write):
    alpha, beta = (place.daemon(flavour) for _ in range(2))
    first, second = place.ours(alpha, shared=True), place.ours(beta, shared=True)
    writer = place.theirs(write)
    assert first.try_for(SOON)
    place.queue(writer.ask)
    place.queue(second.ask)
    assert writer.waits() and second.waits(0)
    first.release()
    assert writer.served()
    assert second.waits()
    writer.release()
    assert second.served()
    assert second.token > first.token


@both
def test_a_stream_of_our_readers_lets_their_writer_in(place, flavour, read, write):
    """Once it waits none joins those of its host who were before it, however often a lock may be handed on there."""
    daemon = place.daemon(flavour, locks__handoff_max=1000000, locks__handoff_ms=60000)
    first, second, late, *others = [place.ours(daemon, shared=True) for _ in range(8)]
    writer = place.theirs(write)
    assert first.try_for(SOON) and second.try_for(SOON)
    place.queue(writer.ask)
    harness.wait_until(lambda: is_kept_out(late), "the writer to be known")
    assert not [reader for reader in others if reader.try_for(100)]
    place.queue(late.ask)
    for reader in (first, second):
        assert writer.waits(0)
        reader.release()
    assert writer.served()
    assert late.waits()
    writer.release()
    assert late.served()


@both
def test_readers_and_writers_of_both_sides_are_served_in_the_order_of_asking(place, flavour, read, write):
    """No reader of kazoo waits with a writer behind it: see below."""
    alpha, beta = (strict(place, flavour) for _ in range(2))
    groups = [[place.theirs(read), place.ours(alpha, shared=True)], [place.theirs(write)],
              [place.ours(beta, shared=True)], [place.ours(alpha)], [place.theirs(write)], [place.theirs(read)]]
    if flavour == "rw":
        groups[2].append(place.theirs(read))
    crowd = [contender for group in groups for contender in group]
    for contender in crowd:
        place.queue(contender.ask)
    for i, group in enumerate(groups):
        assert all(contender.served() for contender in group)
        assert all(later.waits(0.03) for others in groups[i + 1:] for later in others)
        for contender in group:
            contender.release()
    tokens = [contender.token for contender in crowd if isinstance(contender, OurLock)]
    assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("writer", ["ours", "kazoo-write"])
def test_a_waiting_reader_of_kazoo_2_8_0_and_the_writer_behind_it_wait_for_each_other(place, writer):
    """Pitfall 18. Its ReadLock waits for every writer it sees, those with a larger number too (kazoo's issue 649), and
    the writer waits for it: whoever it is, here and in kazoo's own. Nobody else can mend this; the manual warns of it.
    The reader's time limit ends it. In kazoo 2.9.0 they are served in the order of asking."""
    daemon = place.daemon("kazoo")
    first, reader = place.ours(daemon), place.theirs("kazoo-read")
    second = place.ours(place.daemon("kazoo")) if writer == "ours" else place.theirs(writer)
    assert first.try_for(SOON)
    place.queue(lambda: reader.ask_for(2000))
    place.queue(second.ask)
    first.release()
    if kazoo.version.__version__ != "2.8.0":
        assert reader.served() and second.waits()
        reader.release()
    else:
        assert second.waits()
        assert not reader.served(), "a kazoo without this fault: the manual may say so"
    assert second.served()


@both
def test_a_reader_who_gives_up_in_the_middle_lets_nobody_pass_the_writer_before_it(place, flavour, read, write):
    alpha, beta = (strict(place, flavour) for _ in range(2))
    writer, impatient = place.theirs(write), place.theirs(read)
    ours, last = place.ours(alpha, shared=True), place.ours(beta)
    assert writer.try_for(SOON)
    place.queue(lambda: impatient.ask_for(1000))
    place.queue(ours.ask)
    place.queue(last.ask)
    assert not impatient.served()
    place.wait_children(3)
    assert ours.waits() and last.waits(0)
    writer.release()
    assert ours.served()
    assert last.waits()
    ours.release()
    assert last.served()


@both
def test_a_downgrade_of_ours_lets_nobody_of_theirs_in(place, flavour, read, write):
    """Readers of the host join until others wait; the place among the hosts stays a writer's until all have let go."""
    daemon = place.daemon(flavour)
    ours, local, late = place.ours(daemon), place.ours(daemon, shared=True), place.ours(daemon, shared=True)
    reader, writer = place.theirs(read), place.theirs(write)
    assert ours.try_for(SOON)
    ours.downgrade()
    assert local.try_for(SOON)
    assert local.token > ours.token
    place.queue(reader.ask)
    harness.wait_until(lambda: is_kept_out(late), "the reader to be known")
    assert not late.try_for(100)
    assert not writer.try_for(300)
    ours.release()
    assert reader.waits()
    assert not writer.try_for(300)
    local.release()
    assert reader.served()


# ---- flavour mutex: their lock knows no readers ----


def test_on_flavour_mutex_readers_share_it_inside_their_host_only(place):
    alpha, beta = (strict(place, "mutex") for _ in range(2))
    first, second, other = (place.ours(daemon, shared=True) for daemon in (alpha, alpha, beta))
    theirs = place.theirs("curator-mutex")
    assert first.try_for(SOON) and second.try_for(SOON)
    assert len(place.children()) == 1
    place.queue(theirs.ask)
    place.queue(other.ask)
    for reader in (first, second):
        assert theirs.waits() and other.waits(0)
        reader.release()
    assert theirs.served()
    assert other.waits()
    for reader in (first, second):
        reader.ask()
    theirs.release()
    assert other.served()
    assert first.waits() and second.waits(0)
    other.release()
    assert first.served() and second.served()


# ---- all at once ----


@pytest.mark.release_only("chance would show it: each order of events has its test")
@pytest.mark.parametrize("flavour, kinds, hosts", [
    pytest.param("rw", ["curator-read", "curator-write", "curator-read"], 2, id="curator"),
    pytest.param("kazoo", ["kazoo-read", "kazoo-write"], 2, id="kazoo"),
    pytest.param("mutex", ["curator-mutex", "curator-mutex"], 1, id="mutex"),
])
def test_in_a_race_of_readers_and_writers_nobody_is_in_beside_a_writer(place, tmp_path, flavour, kinds, hosts):
    """On flavour mutex our readers meet one another, and only on one host. Readers of kazoo have to give up now and
    then, see above: whether one of them is ever in together with one of ours is chance."""
    daemons = [place.daemon(flavour, locks__handoff_max=2, locks__linger_ms=0) for _ in range(hosts)]
    tokens = Tokens()
    readers = [place.ours(daemons[i % hosts], shared=True, tokens=tokens) for i in range(2)]
    writers = [place.ours(daemon, tokens=tokens, downgrades=True) for daemon in daemons]
    theirs = [place.theirs(kind) for kind in kinds]
    for contender in theirs:
        contender.patience_ms = 15 if contender.kind == "kazoo-read" else contender.patience_ms
    Race(tmp_path / "witness", ROUNDS).run(ours=readers + writers, theirs=theirs)
    met = any(ours.met for ours in readers + writers)
    assert flavour == "kazoo" or met == (flavour == "rw")
    place.wait_children(0)


# ---- when one dies ----

KAZOO_PROCESS = """
import signal, sys, kazoo.client, kazoo.recipe.lock
zk = kazoo.client.KazooClient(hosts=sys.argv[1], timeout=2)
zk.start()
for kind, path in (("ReadLock", sys.argv[2]), ("WriteLock", sys.argv[3])):
    assert getattr(kazoo.recipe.lock, kind)(zk, path).acquire()
print("held", flush=True)
signal.pause()
"""


def test_what_a_killed_program_had_is_ours(own_zk, daemons, clients):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    daemon = daemons(zk, **{"prefix:k/.flavour": "kazoo"})
    jvm = CuratorPeer()
    python = harness.spawn([sys.executable, "-c", KAZOO_PROCESS, zk.address, "/t/k%2Fr", "/t/k%2Fw"],
                           stdout=subprocess.PIPE, text=True)
    try:
        for theirs in (CuratorLock(jvm, zk, "/t/r", "read", session_ms=2000),
                       CuratorLock(jvm, zk, "/t/w", "write", session_ms=2000),
                       CuratorSemaphore(jvm, zk, "/t/s", 2, session_ms=2000)):
            assert theirs.try_for(SOON)
        assert python.stdout.readline() == "held\n"
        ours = [clients(daemon) for _ in range(5)]
        for client, words in zip(ours, (["LOCK", "r"], ["LOCK", "w", "SHARED"], ["ACQUIRE", "s", "LIMIT", 2, "COUNT", 2],
                                        ["LOCK", "k/r"], ["LOCK", "k/w", "SHARED"])):
            client.send(*words)
        assert all(client.quiet(0.1) for client in ours)
        jvm.process.kill()
        python.kill()
        assert all(isinstance(client.reply(), int) for client in ours)
    finally:
        jvm.end()
        python.kill()
        python.communicate()


def test_what_a_killed_host_of_ours_had_is_theirs(own_zk, daemons, clients, curator_peer):  # noqa: F811
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    daemon = daemons(zk, **harness.FAST, **{"prefix:k/.flavour": "kazoo"})
    ours = clients(daemon)
    for words in (["LOCK", "r", "SHARED"], ["LOCK", "w"], ["ACQUIRE", "s", "LIMIT", 2], ["LOCK", "k/r", "SHARED"],
                  ["LOCK", "k/w"]):
        assert isinstance(ours.call(*words), int)
    theirs = [CuratorLock(curator_peer, zk, "/t/r", "write"), CuratorLock(curator_peer, zk, "/t/w", "read"),
              KazooLock(zk, "/t/k%2Fr", "kazoo-write"),
              KazooLock(zk, "/t/k%2Fw", "kazoo-read")]
    permits = CuratorSemaphore(curator_peer, zk, "/t/s", 2)
    for contender in theirs:
        contender.ask()
    permits.ask(2)
    assert all(contender.waits(0.1) for contender in (*theirs, permits))
    daemon.kill()  # with its keeper: a next process would go on with the connection, if that has held for 1.25 s by now
    assert all(contender.served() for contender in (*theirs, permits))
    for contender in (*theirs, permits):
        contender.close()


# ---- one name, two kinds, in a directory that others made ----

CURATORS_WRITER = "_c_00000000-0000-4000-8000-000000000000-__WRIT__"


@pytest.mark.parametrize("first, second", [("LOCK", "CAMPAIGN"), ("CAMPAIGN", "LOCK")])
def test_in_a_directory_of_theirs_a_lock_and_an_election_hear_of_each_other(place, clients, first, second):
    words = {"LOCK": ["LOCK", "app/orders"], "CAMPAIGN": ["CAMPAIGN", "app/orders", "DATA", "x"]}
    alpha, beta = (place.daemon("rw", locks__linger_ms=0) for _ in range(2))
    theirs = place.theirs("curator-write")
    assert theirs.try_for(SOON)
    theirs.release()
    holder, other = clients(alpha), clients(beta)
    assert isinstance(holder.call(*words[first]), int)
    assert other.call(*words[second], "WAIT", SOON).code == "MISMATCH"
    place.wait_children(1)
    between = place.k.create(f"{place.path}/{CURATORS_WRITER}", ephemeral=True, sequence=True)
    other.send(*words[second])
    place.wait_children(3)
    assert other.quiet(), "who stands before it says nothing of kinds"
    place.k.delete(between)
    assert other.reply().code == "MISMATCH", "now ours does"
    holder.close()
    place.wait_children(0)  # what it had is gone when its daemon has deleted that
    assert isinstance(other.call(*words[second], "WAIT", SOON), int), "one name is of one kind at a time"
