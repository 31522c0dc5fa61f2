# SPDX-License-Identifier: Apache-2.0
"""What a daemon leaves to its successor, and processes that hold locks while it is killed: for tests that end daemons."""

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
    """<rundir>/saved, as daemon/io/files/saved.c writes it."""

    COUNT, PRESENT, BOOT_ID, HOST, SESSIONS, LEFTOVERS, HOLDERS = 64, 68, 72, 136, 392, 472, 632
    HOLDER = "=IIQQ"  # holds, pid, start, its end of the connection

    def __init__(self, daemon):
        self.path = os.path.join(daemon.dir, "saved")

    def read(self):
        with open(self.path, "rb") as f:
            return f.read()

    def write(self, at, data):
        with open(self.path, "r+b") as f:
            f.seek(at)
            f.write(data)

    def session(self):
        data = self.read()
        (present,) = struct.unpack_from("=I", data, self.PRESENT)
        return struct.unpack_from("=q", data, self.SESSIONS + 40 * present)[0]

    def leftovers(self):
        data = self.read()
        found = [struct.unpack_from("=q", data, self.LEFTOVERS + 32 * i)[0] for i in range(5)]
        return [session for session in found if session]

    def slots(self):
        data = self.read()
        (count,) = struct.unpack_from("=I", data, self.COUNT)
        assert len(data) == self.HOLDERS + struct.calcsize(self.HOLDER) * count
        return [slot for slot in struct.iter_unpack(self.HOLDER, data[self.HOLDERS:]) if slot[0]]

    def holders(self):
        """The processes that hold something."""
        return [(pid, start) for _, pid, start, _ in self.slots()]

    def known(self):
        """It would be seen if nobody had the connections of the holders open."""
        return all(end for *_, end in self.slots())


def wait_known(daemon):
    harness.wait_until(lambda: Saved(daemon).slots() and Saved(daemon).known(), "the connections to be known")


@pytest.fixture
def processes():
    """Starts a process of Python that says when it is ready, and lives until it is killed."""
    made = []

    def start(program, *argv):
        made.append(harness.spawn([sys.executable, "-c", program, harness.HERE, *map(str, argv)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        assert made[-1].stdout.readline()
        return made[-1]

    yield start
    for p in made:
        kill(p)
        p.stdin.close()
        p.stdout.close()


def kill(process):
    process.kill()
    process.wait()


def session_id(daemon):
    """As the server writes it."""
    return hex(int(daemon.info("session")["session_id"], 16))


def wait_announced(daemon):
    harness.wait_until(lambda: daemon.info()["announced"] == "1", "the name to be the daemon's")
