# SPDX-License-Identifier: Apache-2.0
"""Servers on loopback that only pretend to be ZooKeeper, or stand between a daemon and a real one."""

import contextlib
import select
import socket
import struct
import threading
import time

import harness

TIMEOUT_MS = 3000


def handshake(timeout_ms=TIMEOUT_MS, session=0x123456789, read_only=False):
    """A server's answer to a client's handshake."""
    body = struct.pack(">iiqi", 0, timeout_ms, session, 16) + b"p" * 16 + bytes([read_only])
    return struct.pack(">i", len(body)) + body


def is_handshake(head):
    """Of the length of a request: anything else is no client, but a probe of how long a request may be."""
    return len(head) == 4 and int.from_bytes(head, "big") in range(40, 50)


def pass_on(connection, server):
    """Both ways, until one of the two has ended."""
    while True:
        for ready in select.select([connection, server], [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            (server if ready is connection else connection).sendall(data)


def frames(held):
    """What is there as a whole, each with its length; and the rest."""
    whole = []
    while len(held) >= 4 and len(held) >= (end := 4 + int.from_bytes(held[:4], "big")):
        whole.append(held[:end])
        held = held[end:]
    return whole, held


class Listener:
    """Calls serve(connection) in a thread for each connection; `times` has when they came."""

    def __init__(self, host="127.0.0.1", at=0):
        self.times = []
        self.open = []
        self.tick_ms = 500
        self.listening = socket.create_server((host, at), backlog=100)
        self.port_of = self.listening.getsockname()[1]
        self.address = f"{host}:{self.port_of}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.times.append(time.monotonic())
            self.open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            self.serve(connection)
        except OSError:
            pass
        except ValueError:
            if connection.fileno() >= 0:  # else end() has closed it
                raise

    def serve(self, connection):
        raise NotImplementedError

    def end(self):
        try:
            self.listening.shutdown(socket.SHUT_RDWR)
        except OSError:  # it has ended
            return
        self.listening.close()
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


class Liar(Listener):
    """Answers whatever it is sent with `answer`: None closes at once, b"" never answers."""

    def __init__(self, answer):
        self.answer = answer
        super().__init__()

    def serve(self, connection):
        if self.answer is None:
            connection.close()
            return
        connection.recv(1000)
        connection.sendall(self.answer)
        while connection.recv(1000):
            pass


class Proxy(Listener):
    """Passes on what begins with a handshake. Any other connection is given to odd(); `lengths` has what each sent."""

    def __init__(self, port, odd):
        self.port = port
        self.odd = odd
        self.lengths = []
        self.over = 0  # of those connections
        super().__init__()

    def serve(self, connection):
        head = connection.recv(4, socket.MSG_WAITALL)
        if is_handshake(head):
            with socket.create_connection(("127.0.0.1", self.port)) as server:
                server.sendall(head)
                pass_on(connection, server)
                connection.close()
        elif len(head) == 4:
            self.lengths += struct.unpack(">i", head)
            self.odd(connection)
            self.over += 1


class Gate(Listener):
    """Passes on what begins with a handshake, while it is open; `seen` has the last zxid and the session that each
    handshake named."""

    def __init__(self, port, is_open=True, **where):
        self.port = port
        self.is_open = is_open
        self.seen = []
        self.serving = set()
        self.cuts = 0
        self.held = set()  # connections on which nothing is passed on
        super().__init__(**where)

    def serve(self, connection):
        self.serving.add(connection)
        try:
            if self.is_open:
                self._pass_on(connection)
        finally:
            # A reset: the other side learns of the end at once, also when it sends.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            self.serving.discard(connection)

    def _pass_on(self, connection):
        head = connection.recv(4, socket.MSG_WAITALL)
        if not is_handshake(head):
            return
        request = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        _, zxid, _, session = struct.unpack_from(">iqiq", request)
        cuts = self.cuts
        self.seen.append((zxid, session))
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.sendall(head + request)
            while self.is_open and self.cuts == cuts:
                if connection in self.held:
                    time.sleep(0.01)  # what there is to be read is left where it is, and so wakes nobody
                    if select.select([connection], [], [], 0)[0] and not connection.recv(1, socket.MSG_PEEK):
                        return
                    continue
                for ready in select.select([connection, server], [], [], 0.01)[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    (server if ready is connection else connection).sendall(data)

    def cut(self):
        """Ends the connections that there are."""
        self.cuts += 1

    def hold(self):
        """Passes nothing on any longer on the connections that there are."""
        self.held |= self.serving

    def shut(self):
        self.is_open = False
        harness.wait_until(lambda: not self.serving, "the connections to end")


class Spoiler(Listener):
    """Passes everything on; while it `lies`, spoil(answer, number) says what it sends in place of an answer, which is given
    with its length. `spoiled` counts the answers that it changed."""

    def __init__(self, zk, spoil):
        self.port = zk.port
        self.spoil = spoil
        self.lies = False
        self.answers = self.spoiled = 0
        super().__init__()
        self.tick_ms = zk.tick_ms

    def serve(self, connection):
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            try:
                self._pass_on(connection, server)
            finally:
                connection.close()

    def _pass_on(self, connection, server):
        held, first = b"", True
        while True:
            for ready in select.select([connection, server], [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                if ready is connection:
                    server.sendall(data)
                    continue
                answers, held = frames(held + data)
                for answer in answers:
                    connection.sendall(answer if first else self._instead(answer))
                    first = False

    def _instead(self, answer):
        if not self.lies:
            return answer
        self.answers += 1
        instead = self.spoil(answer, self.answers)
        self.spoiled += instead != answer
        return instead


CREATE, CREATE2, CREATE_CONTAINER = 1, 15, 19
REMOVE_WATCHES = 18
WATCH_OPERATIONS = (17, REMOVE_WATCHES, 101, 103, 105, 106)  # check, remove, set, remove, set and add watches
UNIMPLEMENTED, BAD_ARGUMENTS = -6, -8
STAT_BYTES = 68


class Lesser(Listener):
    """Stands before a real server, and answers as a server that can do less. `lacks` says of operation codes what it does at
    such a request: an error code is its answer, CLOSE ends the connection, DROP is no answer. `stat` is what it makes of the
    Stat in an answer to create2. Without `restores`, each connection gets a session of its own. `asked` has the codes of
    all requests that came."""

    CLOSE, DROP = "close", "drop"

    def __init__(self, zk, lacks=None, stat=None, get_stat=None, restores=True):
        self.zk = zk
        self.port = zk.port
        self.lacks = lacks or {}
        self.stat, self.get_stat = stat, get_stat
        self.restores = restores
        self.asked = []
        super().__init__()
        self.tick_ms = zk.tick_ms

    def serve(self, connection):
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            try:
                _Relayed(self, connection, server).run()
            finally:
                connection.close()


class _Relayed:
    """One connection: what this relay answers itself has its turn among the answers of the server."""

    def __init__(self, relay, connection, server):
        self.relay, self.connection, self.server = relay, connection, server
        self.order = []  # (xid, operation, answer of the relay or None), of requests that are not answered
        self.zxid = 0
        self.greeted = False

    def run(self):
        if not self._handshake():
            return
        held = {self.connection: b"", self.server: b""}
        while True:
            for ready in select.select(list(held), [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                whole, held[ready] = frames(held[ready] + data)
                for frame in whole:
                    if not (self._asked if ready is self.connection else self._answered)(frame[4:]):
                        return

    def _handshake(self):
        """False: that is no client."""
        head = self.connection.recv(4, socket.MSG_WAITALL)
        if not is_handshake(head):
            self.connection.recv(1)
            return False
        request = self.connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        if not self.relay.restores:  # the session of before is not looked at
            version, zxid, timeout, _ = struct.unpack_from(">iqiq", request)
            request = struct.pack(">iqiqi", version, zxid, timeout, 0, 16) + bytes(16) + request[44:]
        self.server.sendall(head + request)
        return True

    def _asked(self, frame):
        xid, operation = struct.unpack_from(">ii", frame)
        self.relay.asked.append(operation)
        how = self.relay.lacks.get(operation)
        if how == Lesser.CLOSE:
            return False
        if how == Lesser.DROP:
            return True
        if how is None:
            if xid > 0:
                self.order.append((xid, operation, None))
            self._send(self.server, frame)
        else:
            self.order.append((xid, operation, how))
            self._own_answers()
        return True

    def _own_answers(self):
        while self.order and self.order[0][2] is not None:
            xid, _, error = self.order.pop(0)
            self._send(self.connection, struct.pack(">iqi", xid, self.zxid, error))

    def _answered(self, frame):
        if not self.greeted:
            self.greeted = True
            self._send(self.connection, frame)
            return True
        xid, zxid, error = struct.unpack_from(">iqi", frame)
        self.zxid = max(self.zxid, zxid)
        if self.order and xid == self.order[0][0]:
            _, operation, _ = self.order.pop(0)
            lie = {CREATE2: self.relay.stat, 4: self.relay.get_stat}.get(operation)
            if lie and error == 0:
                frame = frame[:-STAT_BYTES] + lie(frame[-STAT_BYTES:])
        self._send(self.connection, frame)
        self._own_answers()
        return True

    @staticmethod
    def _send(to, frame):
        to.sendall(struct.pack(">i", len(frame)) + frame)
