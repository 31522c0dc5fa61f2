#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""keeper.py [CONNECTIONS [NEW [SECONDS]]]

What the keeper costs (10000, 500, 20): its share of a core while it holds CONNECTIONS, and each second NEW ones are given to
it and as many dropped. This program is the worker. As lockbrokerd does it, it gives what has held something for longer than a
second in one look a second, and drops what has gone in the turn in which it goes. The time of the processor is what the
kernel counts.
"""

import array
import os
import resource
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "system")]

import harness  # noqa: E402

# io/base/keeper_message.h
HERE_, KEEP, DROP, KEPT, REFUSED = 1, 2, 3, 8, 9
BATCH = 64
# A group without processes: what the keeper would end with this worker.
NOBODY = 1 << 30


class Keeper:
    """As it goes on from another one: with this process as its worker."""

    def __init__(self):
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        theirs.setblocking(False)
        state = os.memfd_create("state")
        fields = {"channel": theirs.fileno(), "group": NOBODY, "worker": os.getpid()}
        os.write(state, ("keeper " + "".join(f"{k} {len(str(v))}:{v}," for k, v in fields.items()) + "\n").encode())
        self.process = harness.spawn([harness.program("lockbrokerd"), "--standalone"], stdin=subprocess.DEVNULL,
                                     pass_fds=[state, theirs.fileno()],
                                     env=os.environ | {"LOCKBROKERD_KEEPING": str(state)})
        theirs.close()
        os.close(state)

    def send(self, kind, ids=(), fds=()):
        message = struct.pack(f"II{len(ids)}Q", kind, len(ids), *ids)
        self.channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])

    def keep(self, first, count, fd):
        """One look at so many connections; each is answered."""
        for at in range(first, first + count, BATCH):
            ids = range(at, min(at + BATCH, first + count))
            self.send(KEEP, ids, [fd] * len(ids))
            kind, answered = struct.unpack_from("II", self.channel.recv(8 + 8 * BATCH))
            assert (kind, answered) == (KEPT, len(ids)), "the keeper has no room: raise ulimit -n"

    def drop(self, first, count, within_s):
        """Their clients go, each by itself."""
        for at in range(first, first + count):
            self.send(DROP, [at])
            time.sleep(within_s / count)

    def used_s(self):
        with open(f"/proc/{self.process.pid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9


def measure(connections, new, seconds):
    keeper, fd = Keeper(), os.memfd_create("connection")
    try:
        keeper.send(HERE_)
        keeper.keep(0, connections, fd)
        oldest, youngest = 0, connections
        begun, used = time.monotonic(), keeper.used_s()
        while time.monotonic() - begun < seconds:
            due = time.monotonic() + 1
            keeper.keep(youngest, new, fd)
            keeper.drop(oldest, new, 0.8)
            oldest, youngest = oldest + new, youngest + new
            time.sleep(max(0, due - time.monotonic()))
        return (keeper.used_s() - used) / (time.monotonic() - begun)
    finally:
        keeper.process.kill()
        keeper.process.wait()


def main():
    connections, new, seconds = [int(word) for word in sys.argv[1:]] + [10000, 500, 20][len(sys.argv) - 1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    share = measure(connections, new, seconds)
    print(f"{connections} connections held, {new} new ones a second: the keeper uses {100 * share:.2f} % of a core")


if __name__ == "__main__":
    main()
