# SPDX-License-Identifier: Apache-2.0
"""A keeper that does what a test wants: it starts the daemon's worker, keeps its descriptors, and gives them to the next."""

import os
import socket
import struct
import threading

import harness
from saved import Saved, wait_kept

HERE, KEEP, DROP, ALIVE, AGAIN, BACK, BEGIN, KEPT, REFUSED, SIGNAL = range(1, 11)
ROLE = 1 << 63
BATCH = 64


def encode(kind, numbers=()):
    return struct.pack(f"=II{len(numbers)}Q", kind, len(numbers), *numbers)


class Kept(harness.Daemon):
    """A daemon's worker, with this keeper. `kept`: id -> descriptor."""

    has_keeper = False  # no process that the harness knows of
    early = ()  # signals that are passed on before the worker serves

    def __init__(self, *args, **kwargs):
        self.kept, self.here = {}, threading.Event()
        self.channel = self.thread = None
        super().__init__(*args, **kwargs)

    def spawn(self, crashes=0, back=None, **options):
        if self.thread:
            self.thread.join()  # what the worker before has said is done
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.hang_up()
        self.here.clear()
        self.channel = ours
        os.set_inheritable(theirs.fileno(), True)
        self.env["LOCKBROKERD_KEEPER"] = str(theirs.fileno())
        theirs.setblocking(False)
        back = list(self.kept.items()) if back is None else back
        self.thread = threading.Thread(target=self.serve, args=(ours, back, crashes), daemon=True)
        self.thread.start()
        super().spawn(pass_fds=[theirs.fileno()], **options)
        theirs.close()

    def serve(self, channel, back, crashes):
        try:
            for at in range(0, len(back), BATCH):
                some = back[at:at + BATCH]
                socket.send_fds(channel, [encode(BACK, [i for i, _ in some])], [fd for _, fd in some])
            channel.send(encode(BEGIN, [crashes]))
            for number in self.early:
                channel.send(encode(SIGNAL, [number, os.getpid()]))
            while self.take(channel, *socket.recv_fds(channel, 8 + 8 * BATCH, BATCH)[:2]):
                pass
        except OSError:
            pass

    def take(self, channel, data, fds):
        if not data:
            return False
        kind, count = struct.unpack_from("=II", data)
        numbers = struct.unpack_from(f"={count}Q", data, 8)
        if kind == HERE:
            self.here.set()
        elif kind == KEEP:
            for number, fd in zip(numbers, fds):
                self.drop(number)
                self.kept[number] = fd
            channel.send(encode(KEPT, numbers))
        elif kind == DROP:
            for number in numbers:
                self.drop(number)
        return True

    def follow(self):
        """It ends as a worker does, by what it says to its keeper."""
        harness.wait_until(lambda: self.process.poll() is not None, "the end of the process that handed over")
        self.adopt()

    def wait_ready(self):
        """It says so to its keeper."""
        harness.wait_until(lambda: self.here.is_set() or self.process.poll() is not None, "the worker to serve")
        assert self.process.poll() is None, f"lockbrokerd did not get ready:\n{self.log()}"
        if self.has_session:
            harness.wait_until(lambda: self.info("session")["session_state"] == "safe", "the session")

    def drop(self, number):
        fd = self.kept.pop(number, None)
        if fd is not None:
            os.close(fd)

    def connections(self):
        return [number for number in self.kept if not number & ROLE]

    def wait_kept(self, client):
        wait_kept(Saved(self), client)

    def marked(self, client):
        """Something is under way, as the file says of its connection."""
        end = os.fstat(client.fileno()).st_ino
        return any(conn[8] == end and conn[0] for conn in Saved(self).conns().values())

    def crash(self, crashes=1, change=None, back=None, wait=True):
        """Kills the worker, lets `change` happen, and starts the next one."""
        self.kill()
        if change:
            change()
        self.spawn(crashes=crashes, back=back)
        if wait:
            self.wait_ready()

    def hang_up(self):
        if self.channel:
            self.channel.close()
        self.channel = None

    def end(self):
        wrong = super().end()
        self.hang_up()
        for number in list(self.kept):
            self.drop(number)
        return wrong


def kept(how, request, daemons, root, **conf):
    """A daemon with this keeper, "standalone" or not."""
    zk = () if how == "standalone" else (request.getfixturevalue("zk"), root)
    return daemons(*zk, kind=Kept, **conf)
