# SPDX-License-Identifier: Apache-2.0
"""A file system of daemon.rundir without room: the file `saved`, from which the next process goes on, cannot grow or be made
anew. Locks go on, each case is said, and when there is room again all is as before."""

import glob
import os
import signal
import time

import pytest

import harness
from saved import Saved, wait_kept
from test_directories import full

OPERATORS = True  # see clients of conftest.py

INODES = 40
MIB = 16
SIZE = f"{MIB}m,nr_inodes={INODES}"
MANY = 2500  # locks that the ledger's first memory has no room for
DATA = "x" * 500


class Small(harness.Daemon):
    """Its rundir is a small file system that it alone sees."""

    def __init__(self, tmp_path, *args, filled=0, size=SIZE):
        path = tmp_path / "run"
        path.mkdir(mode=0o755)
        # With proof enough for a crash on a machine that is busy.
        super().__init__(*args, wait=False, daemon__rundir=path, limits={"clients": 1000},
                         zookeeper__session_timeout_ms=30000, under=full(path, size, filled))
        self.options["daemon.operator_socket"] = os.path.join(self.dir, "operator.sock")
        self.path = path

    def place(self, name):
        return f"/proc/{self.process.pid}/root{self.path}/{name}"

    def fill(self, lack="blocks"):
        """Nothing fits in any longer; or nothing gets a name any longer."""
        try:
            with open(self.place("filler"), "ab", buffering=0) as f:
                while lack == "blocks":
                    f.write(bytes(4096))
            for n in range(INODES):
                os.close(os.open(self.place(f"filler{n}"), os.O_CREAT))
        except OSError:
            pass

    def make_room(self):
        for name in glob.glob(self.place("filler*")):
            os.unlink(name)

    def saved(self):
        saved = Saved(self)
        saved.path = self.place("saved")
        return saved

    def wait_kept(self, client):
        wait_kept(self.saved(), client)


@pytest.fixture(params=["standalone", "zookeeper"])
def small(request, launch, root, tmp_path):
    zk = () if request.param == "standalone" else (request.getfixturevalue("zk"), root)
    return launch(Small(tmp_path, *zk))


def lock_many(c, prefix=""):
    """Their tokens."""
    for n in range(MANY):
        c.send("LOCK", f"{prefix}{n}", "DATA", DATA)
    return [c.reply() for _ in range(MANY)]


FULL = "the file saved cannot become larger: No space left on device; if the daemon is killed now, all locks are lost"


def test_locks_go_on_while_the_ledger_cannot_grow_and_are_in_it_when_it_can(small, clients):
    c = clients(small)
    small.fill()
    tokens = lock_many(c)
    assert all(isinstance(token, int) for token in tokens), [t for t in tokens if not isinstance(t, int)][0]
    harness.wait_until(lambda: FULL in small.log(), "the log")
    small.wait_kept(c)
    # Only time shows that nothing else wakes a standalone daemon any longer.
    _, before, _ = harness.over(3, lambda: os.stat(small.place("saved")).st_size)
    small.make_room()
    harness.wait_until(lambda: os.stat(small.place("saved")).st_size > before, "the file to grow")
    assert c.call("PING") == "PONG"  # in a later turn than that, in which all was written
    small.wait_kept(c)
    small.crash()
    for n in (0, MANY // 2, MANY - 1):
        assert c.call("VALID", n, "TOKEN", tokens[n]) > 0
    assert c.call("UNLOCK", 0, "TOKEN", tokens[0]) == 0


def test_a_kill_while_it_cannot_grow_is_said_to_have_lost_all(small, clients):
    c = clients(small)
    small.fill()
    lock_many(c)
    harness.wait_until(lambda: FULL in small.log(), "the log")
    small.signal(signal.SIGSTOP)  # it does not learn that there is room
    small.make_room()
    small.crash()
    assert c.ended()
    assert "the state of the process that crashed cannot be used: " in small.log()
    assert isinstance(clients(small).call("LOCK", "b", "WAIT", 20000), int)


def test_a_hand_over_without_room_is_refused_and_the_old_process_goes_on(small, clients, locked):
    c, token = locked(small)
    small.fill()
    old = small.pid
    reply = clients(small).call("RESTART")
    assert isinstance(reply, harness.Error) and "the file saved: daemon.rundir has no room for a new one" in reply
    assert small.pid == old and c.call("VALID", "a", "TOKEN", token) > 0
    small.make_room()
    small.hand_over(clients(small))
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a") == 0


def taken(daemon):
    """What the file and its spare take of the file system."""
    return sum(os.stat(daemon.place(name)).st_blocks * 512 for name in ("saved", "saved.spare"))


def test_what_many_locks_took_is_given_back_and_a_full_file_system_is_an_error_then(launch, clients, locked, tmp_path):
    """More is used than there ever was when others have taken it: that is said, and is no signal."""
    daemon = launch(Small(tmp_path, size=f"80m,nr_inodes={INODES}"))
    c, token = locked(daemon)
    harness.wait_until(lambda: has_spares(daemon), "the spares")
    before = taken(daemon)
    greedy = [clients(daemon) for _ in range(4)]
    for n, one in enumerate(greedy):
        assert all(isinstance(t, int) for t in lock_many(one, f"{n} "))
    harness.wait_until(lambda: has_spares(daemon), "the spares")
    assert taken(daemon) > before + 16 * 2**20
    for one in greedy:
        one.close()
    harness.wait_until(lambda: taken(daemon) < before + 2 * 2**20, "the file to be as small as before")
    pid = daemon.pid
    daemon.fill()
    again = clients(daemon)
    for n in range(2):
        assert all(isinstance(t, int) for t in lock_many(again, f"{n} "))
    harness.wait_until(lambda: FULL in daemon.log(), "the log")
    assert daemon.pid == pid
    least = taken(daemon)
    daemon.make_room()
    harness.wait_until(lambda: taken(daemon) > least and has_spares(daemon), "the file to grow")
    assert c.call("PING") == "PONG"
    daemon.wait_kept(c)
    daemon.crash()
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a", "TOKEN", token) == 0


def spares(daemon):
    """Their sizes. None: one is missing."""
    try:
        return {name: os.stat(daemon.place(f"{name}.spare")).st_size for name in ("session", "session.spare", "saved")}
    except FileNotFoundError:
        return None


def has_spares(daemon):
    """As much as the next process needs: it makes places for twice as many connections as the first one."""
    found = spares(daemon)
    return found and found["saved"] >= os.stat(daemon.place("saved")).st_blocks * 512


@pytest.mark.parametrize("lack", ["blocks", "inodes"])
@pytest.mark.parametrize("many", [False, True], ids=["little", "much"])
def test_a_crash_without_room_costs_nothing(small, clients, lack, many):
    """Each process leaves spares of the files that the next one makes. What was `saved` is the spare of the next; a page that
    others map is not, and keeps its room."""
    c = clients(small)
    tokens = lock_many(c) if many else [c.call("LOCK", 0)]
    harness.wait_until(lambda: has_spares(small), "the spares")
    pages = []
    for _ in range(2):  # a third one within a minute starts anew
        small.wait_kept(c)
        pages.append(open(small.place("session"), "rb"))
        small.fill(lack)
        small.crash()
        assert c.call("VALID", 0, "TOKEN", tokens[0]) > 0 and c.call("VALID", len(tokens) - 1, "TOKEN", tokens[-1]) > 0
        assert clients(small).call("LOCK", 0, "WAIT", 200) is None
    assert c.call("UNLOCK", 0, "TOKEN", tokens[0]) == 0
    assert clients(small).call("LOCK", 0) > tokens[0]
    for page in pages:
        page.close()
    small.make_room()
    harness.wait_until(lambda: has_spares(small), "the spares")


def test_one_that_is_killed_while_it_takes_a_spare_leaves_it_to_the_next(small, locked):
    """What it had begun is in the way of nothing: it is the spare again."""
    c, token = locked(small)
    small.wait_kept(c)
    harness.wait_until(lambda: has_spares(small), "the spares")
    for name in "session", "saved":
        os.rename(small.place(f"{name}.spare"), small.place(f"{name}.new"))
        with open(small.place(f"{name}.new"), "r+b") as f:
            f.write(b"x" * 4096)
    small.fill()
    small.crash()
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a", "TOKEN", token) == 0


def test_without_a_spare_a_crash_without_room_ends_the_service_with_a_sentence(small, clients):
    """That there is none is said before. Another start, when there is room, serves."""
    clients(small).call("LOCK", "a")
    small.fill()
    for name in "session.spare", "session.spare.spare":
        os.unlink(small.place(name))
    small.fill()
    small.signal(signal.SIGKILL)
    assert small.process.wait(harness.PATIENCE) == 1
    small.expected_exit = 1
    assert f"error: {small.path}/session: No space left on device" in small.log()
    small.under = ()
    small.start()
    small.expected_exit = 0
    assert isinstance(clients(small).call("LOCK", "b"), int)


def test_that_there_is_no_room_for_a_spare_is_said_and_it_is_made_when_there_is(launch, tmp_path):
    small = launch(Small(tmp_path, filled=(MIB - 2) << 20))
    said = "warning: daemon.rundir has no room for a spare of the file saved: No space left on device; if the daemon is killed"
    harness.wait_until(lambda: said in small.log(), "the log")
    small.make_room()
    harness.wait_until(lambda: has_spares(small), "the spares")
