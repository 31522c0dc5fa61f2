# SPDX-License-Identifier: Apache-2.0
"""What a daemon leaves to its successor, and processes that hold locks while it is killed: for tests that end daemons."""

import mmap
import os
import struct
import subprocess
import sys

import pytest

import harness

HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
import harness
clients = [harness.Client(sys.argv[2]) for _ in sys.argv[3:]]
for client, name in zip(clients, sys.argv[3:]):
    assert isinstance(client.call("LOCK", name), int)
print("held", flush=True)
sys.stdin.read()
"""

LOAD = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import harness
def work(number):
    try:
        with harness.Client(sys.argv[2]) as client:
            while True:
                for name in f"shared{number % 3}", f"own{number}":
                    client.call("LOCK", name)
                    client.call("UNLOCK", name)
    except (OSError, harness.Closed):
        pass
threads = [threading.Thread(target=work, args=(n,)) for n in range(int(sys.argv[3]))]
for t in threads:
    t.start()
print("started", flush=True)
sys.stdin.read()
"""


class Saved:
    """<rundir>/saved, as daemon/io/files/saved_file.h has it."""

    COUNT, PRESENT, IDENTITY, BOOT_ID, HOST, SESSIONS, LEFTOVERS = 64, 68, 72, 88, 152, 408, 488
    CONN = "=6I3Qq"  # busy, kept, holds, pid, uid, gid, start, cookie, its end of the connection, of a ghost: until when
    PAGE = mmap.PAGESIZE

    def __init__(self, daemon):
        self.path = os.path.join(daemon.dir, "saved")

    def read(self):
        with open(self.path, "rb") as f:
            return f.read()

    def write(self, at, data):
        with open(self.path, "r+b") as f:
            f.seek(at)
            f.write(data)

    def present(self):
        """Which of the two sessions."""
        return struct.unpack_from("=I", self.read(), self.PRESENT)[0]

    def session(self):
        return struct.unpack_from("=q", self.read(), self.SESSIONS + 40 * self.present())[0]

    def safe_until(self):
        return struct.unpack_from("=q", self.read(), self.SESSIONS + 40 * self.present() + 24)[0]

    def leftovers(self):
        data = self.read()
        found = [struct.unpack_from("=q", data, self.LEFTOVERS + 32 * i)[0] for i in range(5)]
        return [session for session in found if session]

    def conns_at(self, data):
        (identity,) = struct.unpack_from("=Q", data, self.IDENTITY)
        return self.PAGE + -(-identity // self.PAGE) * self.PAGE

    def entries(self):
        data = self.read()
        (count,) = struct.unpack_from("=I", data, self.COUNT)
        at, size = self.conns_at(data), struct.calcsize(self.CONN)
        return enumerate(struct.iter_unpack(self.CONN, data[at:at + size * count]))

    def conns(self):
        """Number -> busy, kept, holds, pid, uid, gid, start, cookie, its end, of each connection."""
        return {number: conn for number, conn in self.entries() if conn[7]}

    def kept(self, field=8):
        """Of the connections that the keeper has, and on which nothing is under way, that field: their ends."""
        return {conn[field] for conn in self.conns().values() if conn[1] and not conn[0]}

    def ghosts(self):
        """Until when each may believe to hold something."""
        return [conn[9] for _, conn in self.entries() if conn[2] and not conn[7]]

    def change(self, number, at, value):
        """A field of a connection's entry."""
        conn = list(self.conns()[number])
        conn[at] = value
        place = self.conns_at(self.read()) + struct.calcsize(self.CONN) * number
        self.write(place, struct.pack(self.CONN, *conn))

    def has_started(self, pid, start):
        """Writes it for each connection of that process."""
        for number, conn in self.conns().items():
            if conn[3] == pid:
                self.change(number, 6, start)

    def slots(self):
        return [(holds, pid, start, end) for _, _, holds, pid, _, _, start, _, end, _ in self.conns().values() if holds]

    def holders(self):
        """The processes that hold something."""
        return [(pid, start) for _, pid, start, _ in self.slots()]

    def known(self):
        """It would be seen if nobody had the connections of the holders open."""
        return all(end for *_, end in self.slots())


class Left(Saved):
    """The file that the daemon has now, also when another one has its name."""

    def __init__(self, daemon):
        super().__init__(daemon)
        self.file = open(self.path, "rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def read(self):
        self.file.seek(0)
        return self.file.read()


def wait_kept(saved, client):
    """The keeper has its connection, and nothing is under way on it, as the file says: a reply comes before it says so, and
    a kill in between closes the connection."""
    harness.wait_until(lambda: inode(client) in saved.kept(), "the connection to be kept")


def inode(client):
    return os.fstat(client.fileno()).st_ino


def wait_process_kept(daemon, *pids):
    """The same of the connections of other processes, which have one each."""
    harness.wait_until(lambda: Saved(daemon).kept(3).issuperset(pids), "the connection of that process to be kept")


def wait_known(daemon):
    harness.wait_until(lambda: Saved(daemon).slots() and Saved(daemon).known(), "the connections to be known")


@pytest.fixture
def processes():
    """Starts a process of Python that says when it is ready, and lives until it is killed."""
    def start(program, *argv):
        return harness.spawn([sys.executable, "-c", program, harness.HERE, *map(str, argv)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ready(process):
        assert process.stdout.readline()
        return process

    def end(process):
        kill(process)
        process.stdin.close()
        process.stdout.close()

    yield from harness.each_ends(start, end, ready)


def kill(process):
    process.kill()
    process.wait()


def session_id(daemon):
    """As the server writes it."""
    return hex(int(daemon.info("session")["session_id"], 16))


def wait_announced(daemon):
    harness.wait_until(lambda: daemon.info()["announced"] == "1", "the name to be the daemon's")
