# SPDX-License-Identifier: Apache-2.0
"""The session page as the Python library reads it: what a broker that hangs, crashed or is another one has written."""

import os
import struct

import pytest

import harness
from fakebroker import FOREVER, JEOPARDY, LOST, MOVED, NONE, SAFE, Broker, Page, soon
from python_library import lockbroker
from lockbroker import _page

pytestmark = pytest.mark.plain_only("its daemon is one of its own")

def safe_page(path, epoch=0, seconds=3600):
    page = Page(path)
    page.write(SAFE, soon(seconds), epoch)
    return page


@pytest.fixture
def broker(tmp_path, ending):
    made = ending(Broker(tmp_path / "socket", safe_page(tmp_path / "page")))
    made.answers |= {"VALID": ":5000", "RENEW": ":1", "MLOCK": "*2\r\n:7\r\n:8"}
    yield made
    assert set(made.asked()) <= {"HELLO", "CLIENT", "LOCK", "VALID", "UNLOCK", "RENEW", "MLOCK"}


def lock(broker):
    return lockbroker.lock("a", socket=broker.socket, patience=1).acquire()


def test_the_page_says_for_how_long(broker):
    held = lock(broker)
    assert 3590 < held.valid() <= 3600
    broker.page.write(JEOPARDY, soon(100))
    assert 90 < held.valid() <= 100
    broker.page.write(SAFE, FOREVER)
    assert held.valid() == float("inf")
    assert broker.asked() == ["HELLO", "CLIENT", "LOCK"], "nobody was asked"
    held.release()


def test_what_is_proven_for_less_than_a_millisecond_is_valid(broker, monkeypatch):
    held = lock(broker)
    now = _page.clock()
    monkeypatch.setattr(_page, "clock", lambda: now)
    broker.page.write(SAFE, now + 1000)
    assert 0 < held.valid() <= 1e-6
    held.check()
    broker.page.write(SAFE)
    assert held.valid() == 0.0
    with pytest.raises(lockbroker.Lost):
        held.check()


@pytest.mark.parametrize("epoch, state, seconds", [(1, SAFE, 3600), (0, LOST, 3600), (0, NONE, 0), (0, SAFE, 0), (1, MOVED, 3600)])
def test_what_voids_a_grant_does_so_for_good(broker, epoch, state, seconds):
    held = lock(broker)
    lost = held.lost
    assert held.valid() > 0
    broker.page.write(state, seconds and soon(seconds), epoch)
    assert held.valid() == 0.0 and held.lost_reason == "session"
    assert lost.wait(harness.PATIENCE)
    broker.page.write(SAFE, soon(3600))
    assert held.valid() == 0.0
    with pytest.raises(lockbroker.Lost):
        held.release()


def test_a_writer_that_was_killed_while_it_wrote(broker):
    """What was read before counts, for as long as that said."""
    held = lock(broker)
    broker.page.write(SAFE, soon(100))
    assert 90 < held.valid() <= 100
    broker.page.write(LOST, epoch=5, torn=True)
    assert 90 < held.valid() <= 100
    broker.page.write(SAFE, soon(50))
    assert 40 < held.valid() <= 50
    held.release()


@pytest.mark.parametrize("spoil", ["id", "size", "magic", "version", "odd", "missing"])
def test_what_is_not_the_page_is_not_believed(broker, spoil, tmp_path):
    page = broker.page
    if spoil == "id":
        page.path = safe_page(tmp_path / "other").path
    elif spoil == "size":
        with open(page.path, "ab") as f:
            f.write(b"x")
    elif spoil == "missing":
        os.unlink(page.path)
    elif spoil == "odd":
        page.tear()
    else:
        struct.pack_into("=I", page.map, {"magic": 0, "version": 4}[spoil], 2)
    held = lock(broker)
    assert 0 < held.valid() <= 5 and "VALID" in broker.asked()
    broker.answers["VALID"] = ":0"
    assert held.valid() == 0.0 and held.lost_reason == "session"
    held.close()


def test_of_several_locks_the_shortest_proof_counts(broker):
    os.unlink(broker.page.path)
    broker.answers |= {"VALID a": ":9000", "VALID b": ":3000"}
    held = lockbroker.lock_all("a", "b", socket=broker.socket).acquire()
    assert 0 < held.valid() <= 3 and held.tokens == {"a": 7, "b": 8}
    broker.answers["VALID b"] = ":0"
    assert held.valid() == 0.0 and held.lost_reason == "session"
    held.close()


def test_a_page_that_has_moved_counts_until_its_end_and_the_broker_is_asked_for_the_next(broker, tmp_path):
    held = lock(broker)
    old, broker.page = broker.page, safe_page(tmp_path / "next", seconds=1000)
    broker.serves.clear()
    old.write(MOVED, soon(100))
    assert 90 < held.valid() <= 100
    harness.wait_until(lambda: broker.asked().count("HELLO") == 2, "the question")
    assert 90 < held.valid() <= 100
    broker.serves.set()
    harness.wait_until(lambda: held.valid() > 900, "the next page")
    held.release()  # its answer comes after all others
    assert broker.asked().count("HELLO") == 2, "it is asked once at a time"
    held.close()


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked"])
def test_who_finds_that_the_page_has_moved_long_ago_asks_for_the_next_one(broker, tmp_path, watched, epoch):
    """And compares the epoch of the grant with that."""
    held = lock(broker)
    lost = held.lost if watched else None
    old, broker.page = broker.page, safe_page(tmp_path / "next", epoch, 1000)
    old.write(MOVED, soon(-5))
    if epoch == 0:
        assert 990 < held.valid() <= 1000
        assert not lost or not lost.is_set()
        held.release()
    else:
        assert held.valid() == 0.0
        assert not lost or lost.wait(harness.PATIENCE)
        with pytest.raises(lockbroker.Lost):
            held.release()


def test_a_page_that_has_moved_and_a_broker_that_is_silent(broker):
    held = lock(broker)
    lost = held.lost
    broker.serves.clear()
    broker.page.write(MOVED, soon(-5))
    assert held.valid() == 0.0
    assert lost.wait(harness.PATIENCE)
    assert held.lost_reason == "unanswered"


def test_a_grant_that_is_made_while_the_page_has_moved(broker, tmp_path):
    old, broker.page = broker.page, safe_page(tmp_path / "next", 3, 1000)
    hello = [old, broker.page]

    def answer(words):
        if words[0] == "HELLO":
            broker.page = hello.pop(0)
        return Broker.answer(broker, words)

    old.write(MOVED, soon(100), epoch=3)
    broker.answer = answer
    held = lock(broker)
    assert 990 < held.valid() <= 1000
    broker.page.write(SAFE, soon(1000), epoch=4)
    assert held.valid() == 0.0
    held.close()


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked"])
def test_a_lease_ends_by_the_clock_of_the_holder(broker, watched):
    """This broker hangs, as it were: it takes nothing back."""
    held = lockbroker.lock("a", socket=broker.socket, lease=0.5).acquire()
    if watched:
        assert held.lost.wait(harness.PATIENCE)
    harness.wait_until(lambda: held.valid() == 0.0, "the end of the lease")
    assert held.lost_reason == "lease"
    with pytest.raises(lockbroker.Lost, match="lease"):
        held.release()
