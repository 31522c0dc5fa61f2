#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""keeper.py [--alone] [CONNECTIONS [NEW [SECONDS]]]

What the keeper costs (10000, 500, 20): its share of a core while it holds CONNECTIONS, and each second NEW ones are given to
it and as many dropped. The time of the processor is what the kernel counts.

The clients are of this program, the daemon is a whole one: each second NEW clients connect and lock a name of their own, and
as many of those that are there longest go. With --alone there is the keeper only, and this program is its worker. As
lockbrokerd does it, it gives what has held something for longer than a second in one look a second, and drops what has gone
in the turn in which it goes.
"""

import array
import collections
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
            time.sleep(within_s / count)  # their pace

def used_s(process):
    with open(f"/proc/{process.pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def alone(connections, new, seconds):
    keeper, fd = Keeper(), os.memfd_create("connection")
    try:
        keeper.send(HERE_)
        keeper.keep(0, connections, fd)
        oldest, youngest = 0, connections
        begun, used = time.monotonic(), used_s(keeper.process)
        while time.monotonic() - begun < seconds:
            due = time.monotonic() + 1
            keeper.keep(youngest, new, fd)
            keeper.drop(oldest, new, 0.8)
            oldest, youngest = oldest + new, youngest + new
            time.sleep(max(0, due - time.monotonic()))  # a pace: so many in a second
        return (used_s(keeper.process) - used) / (time.monotonic() - begun), new
    finally:
        keeper.process.kill()
        keeper.process.wait()


class Clients:
    """Of a daemon: each holds a lock of its own."""

    def __init__(self, daemon):
        self.daemon, self.there, self.count = daemon, collections.deque(), 0

    def come(self):
        try:
            client = self.daemon.client(2)
        except BlockingIOError:  # the listener's queue is full
            return
        assert isinstance(client.call("LOCK", self.count), int)
        self.there.append(client)
        self.count += 1

    def go(self):
        self.there.popleft().close()


def kept(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def whole(connections, new, seconds):
    """The share, and how many new ones a second there really were."""
    room = connections + 3 * new
    daemon = harness.Daemon(limits={"clients": 2 * room, "user_share": 100})
    try:
        clients = Clients(daemon)
        while len(clients.there) < connections:
            clients.come()
        harness.wait_until(lambda: kept(daemon) >= connections, "the keeper to have them")
        begun, used, before = time.monotonic(), used_s(daemon.process), clients.count
        while time.monotonic() - begun < seconds:
            if clients.count - before < (time.monotonic() - begun) * new:
                clients.come()
                if len(clients.there) > connections + 2 * new:
                    clients.go()
            else:
                time.sleep(1 / new)  # a pace: so many in a second
        took = time.monotonic() - begun
        share, rate = (used_s(daemon.process) - used) / took, (clients.count - before) / took
        while clients.there:
            clients.go()
        return share, rate
    finally:
        complaint = daemon.end()
        assert not complaint, complaint


def main():
    words = [word for word in sys.argv[1:] if word != "--alone"]
    connections, new, seconds = [int(word) for word in words] + [10000, 500, 20][len(words):]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    share, rate = (alone if "--alone" in sys.argv else whole)(connections, new, seconds)
    print(f"{connections} connections held, {rate:.0f} new ones a second: the keeper uses {100 * share:.2f} % of a core")


if __name__ == "__main__":
    main()
