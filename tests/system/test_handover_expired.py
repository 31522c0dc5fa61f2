# SPDX-License-Identifier: Apache-2.0
"""A server says to a process that has taken over that its session has expired. The first handshake of that process names no
zxid, so a server that is behind may say so of a session that lives: it is believed when another server says so as well, or
when the session timeout has passed. Here servers lie about sessions that they are asked to continue."""

import socket
import struct

import pytest

import fakezk
import harness
from harness import Error
from test_handover import restart

EXPIRED = struct.pack(">i", 37) + struct.pack(">iiqi", 0, 0, 0, 16) + bytes(17)


class Denier(fakezk.Proxy):
    """Passes all on to a real server, but says "expired" to who wants to continue a session, while `denials` has such words
    left; they are shared by several servers."""

    def __init__(self, port, denials):
        self.denials = denials
        self.denied = 0
        super().__init__(port, lambda connection: connection.recv(1))

    def serve(self, connection):
        whole = socket.MSG_PEEK | socket.MSG_WAITALL
        handshake = fakezk.is_handshake(connection.recv(4, whole))
        session = struct.unpack_from(">q", connection.recv(28, whole), 20)[0] if handshake else 0
        if not session or not self.denials:
            super().serve(connection)
        elif self.denials.pop() == "cut":
            self.greet(connection)
        else:
            self.denied += 1
            connection.recv(100)
            connection.sendall(EXPIRED)
            connection.recv(1)

    def greet(self, connection):
        """Continues the session, and answers nothing after that."""
        with socket.create_connection(("127.0.0.1", self.port), harness.PATIENCE) as real:
            real.sendall(connection.recv(100))
            answer = real.recv(4, socket.MSG_WAITALL)
            connection.sendall(answer + real.recv(struct.unpack(">i", answer)[0], socket.MSG_WAITALL))


@pytest.fixture
def site(daemons, root):
    """Makes a daemon with that many servers, which share their denials."""
    servers = []
    harness.inherit_orphans()

    def make(zk, count, **conf):
        denials = []
        servers.extend(Denier(zk.port, denials) for _ in range(count))
        servers[0].tick_ms = zk.tick_ms
        d = daemons(servers[0], root, zookeeper__servers=",".join(s.address for s in servers), **conf)
        return d, servers, denials

    yield make
    for s in servers:
        s.end()


DOUBT = "says that the session of the process before this one has expired: asking another server"


def goes_on(made, clients, *words):
    """What was held is held on, after a hand-over in which servers have such words. The client, and the servers."""
    d, servers, denials = made
    c = clients(d)
    token, session = c.call("LOCK", "a"), d.info("session")["session_id"]
    denials.extend(words)
    restart(d)
    harness.wait_until(lambda: DOUBT in d.log(), "the doubt")
    assert isinstance(clients(d).call("LOCK", "b"), int), "another server was asked"
    assert d.info("session")["session_id"] == session and d.info("stats")["losses_total"] == "0"
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
    return c, servers


def test_one_server_alone_is_not_believed(site, zk, clients):
    c, servers = goes_on(site(zk, 2, zookeeper__session_timeout_ms=15000), clients, "expired")
    assert sum(s.denied for s in servers) == 1 and not c.pushes


def test_one_server_alone_is_not_believed_until_another_has_answered(site, zk, clients):
    """A connection that was cut before its first answer has told no zxid either."""
    goes_on(site(zk, 2, zookeeper__session_timeout_ms=15000), clients, "expired", "cut")


def test_two_servers_are_believed(site, zk, clients):
    d, servers, denials = site(zk, 2, zookeeper__session_timeout_ms=15000)
    c = clients(d)
    c.call("LOCK", "a")
    session = d.info("session")["session_id"]
    denials.extend(["expired"] * 100)
    restart(d)
    assert c.push()[:2] == ["lost", "a"]
    assert all(s.denied for s in servers), "the second one was asked"
    harness.wait_until(lambda: d.info("session")["session_id"] not in ("0x0", session), "another session")
    assert DOUBT in d.log() and "session expired by ZooKeeper" in d.log()


def test_one_server_that_says_so_again_and_again_is_like_one_that_cannot_be_reached(site, own_zk, clients):
    """The timeout that was granted counts, not the one that is configured, which is longer than this test waits."""
    d, servers, denials = site(own_zk(tick_ms=200), 1, zookeeper__session_timeout_ms=600000, locks__grant_min_ms=300)
    assert d.info("session")["session_timeout_ms"] == "4000"
    c = clients(d)
    c.call("LOCK", "a")
    session = d.info("session")["session_id"]
    denials.extend(["expired"] * 1000)
    restart(d)
    harness.wait_until(lambda: servers[0].denied > 1, "it to be asked again")
    assert c.loss()[:2] == ["lost", "a"], "its proof runs out"
    harness.wait_until(lambda: d.info("session")["session_id"] not in ("0x0", session), "another session")
    assert isinstance(c.call("UNLOCK", "a"), Error)
