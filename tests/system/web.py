# SPDX-License-Identifier: Apache-2.0
"""`lockbroker http`, as browsers and collectors ask it."""

import contextlib
import socket
import subprocess

import harness


def rest(s):
    """All that comes until the connection ends."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while more := s.recv(65536):
            found += more
    return found


def request(path, host="localhost", method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


class Web:
    """A process that serves on that port, once it has said so in so many lines."""

    def __init__(self, daemon, port, *words, under=(), lines=1):
        self.port = port
        self.process = harness.spawn([*under, harness.program("lockbroker"), "-S", daemon.socket, "http", *words],
                                     stdout=subprocess.PIPE, text=True)
        self.said = [self.process.stdout.readline() for _ in range(lines)]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=harness.PATIENCE)

    def raw(self, data):
        with self.connect() as s:
            s.sendall(data)
            return rest(s)

    def end(self):
        self.process.kill()
        self.process.wait()
