# SPDX-License-Identifier: Apache-2.0
"""A broker that only pretends to be one: what it says and when is for the tests to decide, and so is what its session pages say."""

import contextlib
import mmap
import secrets
import socket
import struct
import threading
import time

import harness

HELLO = b"%1\r\n+server\r\n+lockbroker\r\n"
NONE, SAFE, JEOPARDY, LOST, MOVED = range(5)
FOREVER = 2 ** 63 - 1


def soon(seconds):
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + int(seconds * 1e9)


class Page:
    """A session page, and what its daemon writes into it."""

    def __init__(self, path):
        self.path, self.id = str(path), secrets.token_bytes(16)
        with open(path, "w+b") as f:
            f.write(struct.pack("=IIQQQq16sQ", 0x4C425350, 1, 0, 0, NONE, 0, self.id, 0))
            f.flush()
            self.map = mmap.mmap(f.fileno(), 64)

    def tear(self):
        """Its writer was killed while it wrote."""
        sequence, = struct.unpack_from("=Q", self.map, 8)
        struct.pack_into("=Q", self.map, 8, sequence | 1)
        return sequence | 1

    def write(self, state, safe_until=0, epoch=0, torn=False):
        sequence = self.tear()
        struct.pack_into("=QQq", self.map, 16, epoch, state, safe_until)
        if not torn:
            struct.pack_into("=Q", self.map, 8, sequence + 1)

    def freeze(self):
        """As the process after a killed one does."""
        epoch, _, safe_until = struct.unpack_from("=QQq", self.map, 16)
        self.write(MOVED, safe_until, epoch)


class Broker:
    """Answers each request with what `answers` has for its first two words or its first, and keeps the requests."""

    def __init__(self, path, page):
        self.socket, self.page = str(path), page
        self.answers = {"LOCK": ":7", "UNLOCK": ":0", "VALID": ":5", "PING": "+PONG"}
        self.requests, self.answered = [], []
        self.serves = threading.Event()
        self.serves.set()
        self.listener = socket.create_server(self.socket, family=socket.AF_UNIX)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):  # it has ended
            while True:
                threading.Thread(target=self.serve, args=self.listener.accept()[:1], daemon=True).start()

    def serve(self, peer):
        with peer, peer.makefile("rb") as f, contextlib.suppress(ConnectionError):  # nobody waits for it any longer
            while line := f.readline():
                words = []
                for _ in range(int(line[1:])):
                    length = int(f.readline()[1:])
                    words.append(f.read(length + 2)[:-2].decode())
                self.requests.append(" ".join(words))
                self.serves.wait(harness.PATIENCE)
                peer.sendall(self.answer(words).encode() + b"\r\n")
                self.answered.append(" ".join(words))

    def answer(self, words):
        if words[0] == "HELLO":
            told = ["session_page", self.page.path, "session_page_id", self.page.id.hex()]
            return "%2\r\n" + "\r\n".join(f"${len(w)}\r\n{w}" for w in told)
        return self.answers.get(" ".join(words[:2])) or self.answers.get(words[0], "+OK")

    def asked(self):
        """The first words of the requests."""
        return [request.split()[0] for request in self.requests]

    def seen(self, request):
        harness.wait_until(lambda: request in self.requests, f"{request} among {self.requests}")

    def end(self):
        self.serves.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
