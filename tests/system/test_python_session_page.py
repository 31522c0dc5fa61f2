# SPDX-License-Identifier: Apache-2.0
"""The session page as the Python library reads it: what a broker that hangs, crashed or is another one has written."""

import os
import secrets
import socket
import struct
import threading

import pytest

import harness
from python_library import lockbroker
from lockbroker import _page

pytestmark = pytest.mark.plain_only("its daemon is one of its own")

NONE, SAFE, JEOPARDY, LOST, MOVED = range(5)
SECOND = 10**9


class PageFile:
    def __init__(self, path):
        self.path, self.id, self.sequence = str(path), secrets.token_bytes(16), 0
        self.write(0, SAFE, 3600)

    def write(self, epoch, state, seconds, odd=False, magic=0x4C425350, version=1):
        self.sequence = (self.sequence | 1) + (0 if odd else 1)
        safe_until = seconds if seconds in (0, _page.FOREVER) else _page.clock() + int(seconds * SECOND)
        data = struct.pack("=IIQQQq16sQ", magic, version, self.sequence, epoch, state, safe_until, self.id, 0)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(fd, data, 0)
        os.close(fd)


class Broker:
    """Grants whatever is asked for, and tells of the page that it is told to tell of."""

    def __init__(self, folder):
        self.path = str(folder / "socket")
        self.page = None
        self.valid_ms = 5000
        self.valid_of = {}  # by name, if it is another
        self.asked = []
        self.silent = False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(peer,), daemon=True).start()

    def talk(self, peer):
        with peer, peer.makefile("rb") as lines:
            while True:
                head = lines.readline()
                if not head:
                    return
                words = []
                for _ in range(int(head[1:])):
                    words.append(lines.read(int(lines.readline()[1:]) + 2)[:-2].decode())
                self.asked.append(words[0])
                if not self.silent:
                    peer.sendall(self.answer(*words))

    def answer(self, command, name="", *_):
        if command == "HELLO":
            words = ["session_page", self.page.path, "session_page_id", self.page.id.hex()]
            return b"%2\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)
        return {"LOCK": b":7\r\n", "VALID": b":%d\r\n" % self.valid_of.get(name, self.valid_ms), "UNLOCK": b":0\r\n",
                "CLIENT": b"+OK\r\n", "RENEW": b":1\r\n", "MLOCK": b"*2\r\n:7\r\n:8\r\n"}[command]


@pytest.fixture
def broker(tmp_path):
    made = Broker(tmp_path)
    made.page = PageFile(tmp_path / "page")
    yield made
    made.listener.close()


def lock(broker):
    return lockbroker.lock("a", socket=broker.path, patience=1).acquire()


def test_the_page_says_for_how_long(broker):
    held = lock(broker)
    assert 3590 < held.valid() <= 3600
    broker.page.write(0, JEOPARDY, 100)
    assert 90 < held.valid() <= 100
    broker.page.write(0, SAFE, _page.FOREVER)
    assert held.valid() == float("inf")
    assert broker.asked == ["HELLO", "CLIENT", "LOCK"], "nobody was asked"
    held.release()


def test_what_is_proven_for_less_than_a_millisecond_is_valid(broker, monkeypatch):
    held = lock(broker)
    now = _page.clock()
    monkeypatch.setattr(_page, "clock", lambda: now)
    broker.page.write(0, SAFE, 1e-6)
    assert 0 < held.valid() <= 1e-6
    held.check()
    broker.page.write(0, SAFE, 0)
    assert held.valid() == 0.0
    with pytest.raises(lockbroker.Lost):
        held.check()


@pytest.mark.parametrize("epoch, state, seconds", [(1, SAFE, 3600), (0, LOST, 3600), (0, NONE, 0), (0, SAFE, 0), (1, MOVED, 3600)])
def test_what_voids_a_grant_does_so_for_good(broker, epoch, state, seconds):
    held = lock(broker)
    lost = held.lost
    assert held.valid() > 0
    broker.page.write(epoch, state, seconds)
    assert held.valid() == 0.0 and held.lost_reason == "session"
    assert lost.wait(harness.PATIENCE)
    broker.page.write(0, SAFE, 3600)
    assert held.valid() == 0.0
    with pytest.raises(lockbroker.Lost):
        held.release()


def test_a_writer_that_was_killed_while_it_wrote(broker):
    """What was read before counts, for as long as that said."""
    held = lock(broker)
    broker.page.write(0, SAFE, 100)
    assert 90 < held.valid() <= 100
    broker.page.write(5, LOST, 0, odd=True)
    assert 90 < held.valid() <= 100
    broker.page.write(0, SAFE, 50)
    assert 40 < held.valid() <= 50
    held.release()


@pytest.mark.parametrize("spoil", ["id", "size", "magic", "version", "odd", "missing"])
def test_what_is_not_the_page_is_not_believed(broker, spoil, tmp_path):
    page = broker.page
    if spoil == "id":
        other = PageFile(tmp_path / "other")
        page.path = other.path
    elif spoil == "size":
        with open(page.path, "ab") as f:
            f.write(b"x")
    elif spoil == "missing":
        os.unlink(page.path)
    else:
        page.write(0, SAFE, 3600, **{"magic": {"magic": 1}, "version": {"version": 2}, "odd": {"odd": True}}[spoil])
    held = lock(broker)
    assert 0 < held.valid() <= 5 and "VALID" in broker.asked
    broker.valid_ms = 0
    assert held.valid() == 0.0 and held.lost_reason == "session"
    held.close()


def test_of_several_locks_the_shortest_proof_counts(broker):
    os.unlink(broker.page.path)
    broker.valid_of = {"a": 9000, "b": 3000}
    held = lockbroker.lock_all("a", "b", socket=broker.path).acquire()
    assert 0 < held.valid() <= 3 and held.tokens == {"a": 7, "b": 8}
    broker.valid_of = {"a": 9000, "b": 0}
    assert held.valid() == 0.0 and held.lost_reason == "session"
    held.close()


def test_a_page_that_has_moved_counts_until_its_end_and_the_broker_is_asked_for_the_next(broker, tmp_path):
    held = lock(broker)
    old, broker.page = broker.page, PageFile(tmp_path / "next")
    broker.page.write(0, SAFE, 1000)
    broker.silent = True
    old.write(0, MOVED, 100)
    assert 90 < held.valid() <= 100
    harness.wait_until(lambda: broker.asked.count("HELLO") == 2, "the question")
    assert 90 < held.valid() <= 100 and broker.asked.count("HELLO") == 2, "it is asked once at a time"
    held.close()


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked"])
def test_who_finds_that_the_page_has_moved_long_ago_asks_for_the_next_one(broker, tmp_path, watched, epoch):
    """And compares the epoch of the grant with that."""
    held = lock(broker)
    lost = held.lost if watched else None
    old, broker.page = broker.page, PageFile(tmp_path / "next")
    broker.page.write(epoch, SAFE, 1000)
    old.write(0, MOVED, -5)
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
    broker.silent = True
    broker.page.write(0, MOVED, -5)
    assert held.valid() == 0.0
    assert lost.wait(harness.PATIENCE)
    assert held.lost_reason == "unanswered"


def test_a_grant_that_is_made_while_the_page_has_moved(broker, tmp_path):
    old, broker.page = broker.page, PageFile(tmp_path / "next")
    broker.page.write(3, SAFE, 1000)
    hello = [old, broker.page]

    def answer(command, *words):
        if command == "HELLO":
            broker.page = hello.pop(0)
        return Broker.answer(broker, command, *words)

    old.write(3, MOVED, 100)
    broker.answer = answer
    held = lock(broker)
    assert 990 < held.valid() <= 1000
    broker.page.write(4, SAFE, 1000)
    assert held.valid() == 0.0
    held.close()


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked"])
def test_a_lease_ends_by_the_clock_of_the_holder(broker, watched):
    """This broker hangs, as it were: it takes nothing back."""
    held = lockbroker.lock("a", socket=broker.path, lease=0.5).acquire()
    if watched:
        assert held.lost.wait(harness.PATIENCE)
    harness.wait_until(lambda: held.valid() == 0.0, "the end of the lease")
    assert held.lost_reason == "lease"
    with pytest.raises(lockbroker.Lost, match="lease"):
        held.release()
