# SPDX-License-Identifier: Apache-2.0
"""A file system of daemon.rundir without room: the file `saved`, from which the next process goes on, cannot grow or be made
anew. Locks go on, each case is said, and when there is room again all is as before."""

import os
import signal
import time

import pytest

import harness
from saved import Saved, wait_kept
from test_directories import Within, full

OPERATORS = True  # see clients of conftest.py

SIZE = "8m"
MANY = 2500  # locks that the ledger's first memory has no room for
DATA = "x" * 500


class Small(Within):
    """Its rundir is a small file system that it alone sees."""

    def __init__(self, path, *args, **options):
        super().__init__(*args, **options, wait=False, daemon__rundir=path)
        self.options["daemon.operator_socket"] = os.path.join(self.dir, "operator.sock")
        self.before = full(path, SIZE)
        self.path = path

    def place(self, name):
        return f"/proc/{self.process.pid}/root{self.path}/{name}"

    def fill(self):
        """Nothing fits in any longer."""
        with open(self.place("filler"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass

    def make_room(self):
        os.unlink(self.place("filler"))

    def saved(self):
        saved = Saved(self)
        saved.path = self.place("saved")
        return saved

    def wait_kept(self, client):
        wait_kept(self.saved(), client)

    def crash(self):
        old = self.pid
        self.signal(signal.SIGKILL)
        self.await_another(old)


@pytest.fixture(params=["standalone", "zookeeper"])
def small(request, daemons, root, tmp_path):
    path = tmp_path / "run"
    path.mkdir(mode=0o755)
    zk = () if request.param == "standalone" else (request.getfixturevalue("zk"), root)
    daemons.list.append(Small(str(path), *zk))
    daemons.list[-1].start()
    return daemons.list[-1]


def lock_many(c):
    """Their tokens."""
    for n in range(MANY):
        c.send("LOCK", n, "DATA", DATA)
    return [c.reply() for _ in range(MANY)]


FULL = "the file saved cannot become larger: No space left on device; if the daemon is killed now, all locks are lost"


def test_locks_go_on_while_the_ledger_cannot_grow_and_are_in_it_when_it_can(small, clients):
    c = clients(small)
    small.fill()
    tokens = lock_many(c)
    assert all(isinstance(token, int) for token in tokens), [t for t in tokens if not isinstance(t, int)][0]
    harness.wait_until(lambda: FULL in small.log(), "the log", 15)
    before = os.stat(small.place("saved")).st_size
    small.wait_kept(c)
    time.sleep(3)  # then nothing else wakes a standalone daemon
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
    harness.wait_until(lambda: FULL in small.log(), "the log", 15)
    small.signal(signal.SIGSTOP)  # it does not learn that there is room
    small.make_room()
    small.crash()
    assert c.ended()
    assert "nothing of the process that crashed goes on: " in small.log()
    assert isinstance(clients(small).call("LOCK", "b", "WAIT", 20000), int)


def test_a_hand_over_without_room_is_refused_and_the_old_process_goes_on(small, clients):
    c = clients(small)
    token = c.call("LOCK", "a")
    small.fill()
    old = small.pid
    reply = clients(small).call("RESTART")
    assert isinstance(reply, harness.Error) and "the file saved: daemon.rundir has no room for a new one" in reply
    assert small.pid == old and c.call("VALID", "a", "TOKEN", token) > 0
    small.make_room()
    assert isinstance(clients(small).call("RESTART"), dict)
    small.follow()
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a") == 0


def test_a_crash_without_room_ends_the_service_with_a_sentence(small, clients):
    """Its session page and its file `saved` are new ones. Another start, when there is room, serves."""
    clients(small).call("LOCK", "a")
    small.fill()
    small.signal(signal.SIGKILL)
    assert small.process.wait(harness.PATIENCE) == 1
    small.expected_exit = 1
    assert f"error: {small.path}/" in small.log() and "No space left on device" in small.log()
    small.before = []
    small.start()
    small.expected_exit = 0
    assert isinstance(clients(small).call("LOCK", "b"), int)
