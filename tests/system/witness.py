# SPDX-License-Identifier: Apache-2.0
"""What clients and the session page say while something happens to the ensemble: all of it, in the order in which it
came, with the time. And a crowd that locks and unlocks meanwhile."""

import mmap
import os
import random
import select
import struct
import threading
import time

import harness


def now():
    """Seconds of the clock that safe_until is told in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Seen:
    """One thing that a client was told."""

    def __init__(self, at, is_push, what):
        self.at, self.is_push, self.what = at, is_push, what

    def __repr__(self):
        return f"{self.at:.3f} {'push' if self.is_push else 'reply'} {self.what!r}"


class Witness:
    """Reads for many clients at once. Of what came at the same time that of the clients added first is seen first."""

    def __init__(self):
        self.clients = {}
        self.seen = {}
        self.ending = False
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def add(self, daemon, who, version=3):
        client = daemon.client(version)
        with self.lock:
            self.seen[who] = []
            self.clients[who] = client

    def send(self, who, *words):
        self.clients[who].send(*words)

    def ask(self, who, *words):
        """The reply to a request of a client that has no other under way."""
        count = len(self.replies(who))
        self.send(who, *words)
        return self.reply(who, count)

    def replies(self, who):
        return [s for s in self.seen[who] if not s.is_push]

    def pushes(self, who, kind):
        return [s for s in self.seen[who] if s.is_push and s.what[0] == kind]

    def reply(self, who, number=0, patience=harness.PATIENCE):
        """The client's reply of that number, as soon as there is one."""
        return self._wait(who, lambda: self.replies(who), number, f"a reply to {who}", patience).what

    def push(self, who, kind, patience=harness.PATIENCE):
        """The client's first push of that kind: when it came, and what."""
        return self._wait(who, lambda: self.pushes(who, kind), 0, f"{kind} for {who}", patience)

    def _wait(self, who, found, number, what, patience):
        try:
            harness.wait_until(lambda: len(found()) > number, what, patience)
        except AssertionError as e:
            raise AssertionError(f"{e}; it was told: {self.seen[who]}") from None
        return found()[number]

    def close(self, who):
        with self.lock:
            self.clients.pop(who).close()

    def end(self):
        self.ending = True
        self.thread.join()
        for client in self.clients.values():
            client.close()

    def _run(self):
        while not self.ending:
            with self.lock:
                clients = dict(self.clients)
            try:
                ready, _, _ = select.select(clients.values(), [], [], 0.02)
            except (OSError, ValueError):
                continue  # one was closed meanwhile
            at = now()
            for who, client in clients.items():
                if client in ready:
                    self._read(who, client, at)

    def _read(self, who, client, at):
        try:
            while True:
                kind, value = client._value()
                self.seen[who].append(Seen(at, kind == b">", value))
                if not client.buffer:
                    return
        except (harness.Closed, OSError):
            with self.lock:
                self.clients.pop(who, None)
            self.seen[who].append(Seen(at, True, ["closed"]))


class Page:
    """<rundir>/session as it was whenever it changed: (when, state, safe_until in seconds)."""

    NONE, SAFE, JEOPARDY, LOST = range(4)

    def __init__(self, daemon):
        with open(os.path.join(daemon.dir, "session"), "rb") as f:
            self.map = mmap.mmap(f.fileno(), 64, prot=mmap.PROT_READ)
        self.seen = []
        self.ending = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def read(self):
        """(epoch, state, safe_until)"""
        while True:
            magic, version, before, epoch, state, until = struct.unpack_from("=IIQQQq", self.map)
            assert (magic, version) == (0x4c425350, 1)
            if before % 2 == 0 and struct.unpack_from("=Q", self.map, 8)[0] == before:
                return epoch, state, until / 1e9

    def since(self, instant):
        """What it said from then on, with what it said then."""
        earlier = [s for s in self.seen if s[0] <= instant]
        return earlier[-1:] + [s for s in self.seen if s[0] > instant]

    def end(self):
        self.ending = True
        self.thread.join()
        self.map.close()

    def _run(self):
        last = None
        while not self.ending:
            at, (_, state, until) = now(), self.read()
            if (state, until) != last:
                self.seen.append((at, state, until))
                last = state, until
            time.sleep(0.005)  # a pace: whoever writes into the page tells nobody


class Crowd:
    """Clients that lock and unlock all the time, each some dozens of times a second."""

    PAUSE_S = 0.01

    def __init__(self, daemons, each, names):
        self.names = [f"crowd{i}" for i in range(names)]
        self.random = random.Random(1)
        self.tokens = {name: set() for name in self.names}
        self.grants = 0
        self.losses = 0
        self.wrong = []
        self.ending = False
        self.clients = {}  # -> the requests that are not answered yet
        for daemon in daemons:
            for _ in range(each):
                client = daemon.client()
                self.clients[client] = []
                self._lock(client)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def wait_busy(self, grants=100):
        """Until so many more were made."""
        goal = self.grants + grants
        harness.wait_until(lambda: self.grants >= goal or self.wrong, "the crowd")
        assert not self.wrong, self.wrong

    def end(self):
        self.ending = True
        self.thread.join()
        for client in self.clients:
            client.close()

    def _send(self, client, *words):
        self.clients[client].append(words)
        client.send(*words)

    def _lock(self, client):
        self._send(client, "LOCK", self.random.choice(self.names))

    def _run(self):
        while not self.ending:
            ready, _, _ = select.select(list(self.clients), [], [], 0.1)
            for client in ready:
                try:
                    self._read(client)
                except (harness.Closed, OSError) as e:
                    self.wrong.append(f"a connection ended: {e!r}")
                    return
            time.sleep(self.PAUSE_S)  # their pace

    def _read(self, client):
        while True:
            kind, value = client._value()
            if kind == b">":
                self.losses += value[0] == "lost"
            else:
                self._answered(client, self.clients[client].pop(0), value)
            if not client.buffer:
                return

    def _answered(self, client, words, value):
        command, name = words
        if isinstance(value, harness.Error) and value.code in ("LOST", "NOTHELD") and self.losses:
            if command == "LOCK":
                self._lock(client)
        elif isinstance(value, harness.Error):
            self.wrong.append(f"{command} {name}: {value}")
        elif command == "LOCK":
            self.grants += 1
            if value in self.tokens[name]:
                self.wrong.append(f"token {value} of {name} twice")
            self.tokens[name].add(value)
            self._send(client, "UNLOCK", name)
            self._lock(client)
