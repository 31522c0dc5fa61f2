# SPDX-License-Identifier: Apache-2.0
"""Descriptors on the clients' socket: those that a client does not receive, and those that a client sends."""

import contextlib
import os
import re
import select
import shutil
import socket
import struct

import pytest

import delegation
import harness
from saved import Saved, wait_kept
from test_accounts import needs_root
from test_cli import run
from users import as_other_user, let_in

OPERATORS = True  # see clients of conftest.py

FILES = 200
SPARE = int(re.search(r"SOCKET_SPARE_FILES = (\d+)", harness.read_source("daemon/io/socket/socket_pools.h")).group(1))
MANY = SPARE + 9  # of a daemon that may have more than twice as many open files as it needs for itself
SO_PASSRIGHTS = 83  # of Linux 6.16
LINGER_S = 3600


def descriptors_can_be_refused():
    with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
        s.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        return True
    return False


def leave_unread(daemon):
    """A connection that asks for a page, receives nothing, and will send no more. It has ended for the daemon."""
    s = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was refused
        s.connect(daemon.socket)
        s.sendall(harness.encode("HELLO", 3) + harness.encode("DELEGATE"))
        s.shutdown(socket.SHUT_WR)
    poll = select.poll()
    poll.register(s, select.POLLRDHUP)
    assert poll.poll(harness.PATIENCE * 1000)
    return s


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_who_receives_no_page_keeps_nobody_from_theirs(daemons, clients):
    """If RLIMIT_NOFILE descriptors of one user are under way, the kernel passes no more for that user, unless it is
    privileged: neither to a client, nor to another process of the daemon."""
    harness.inherit_orphans()
    d = daemons(daemon__socket_mode="0666", limits={"user_share": 75, "clients": (FILES - SPARE) // 3}, **delegation.CONF,
                under=["prlimit", f"--nofile={FILES}", "setpriv", "--bounding-set", "-sys_resource,-sys_admin"])
    let_in(d)
    with as_other_user():
        left = [leave_unread(d) for _ in range(2 * FILES)]
    honest = delegation.Delegate(d.socket)
    honest.ask_page()
    operator = clients(d)
    d.hand_over(operator)
    assert honest.delegate("a", 1)
    honest.close()
    with as_other_user():
        assert leave_unread(d).recv(100).startswith(b"-LIMIT"), "the next process has charged them, too"
    for s in left:
        s.close()
    with as_other_user():
        harness.wait_until(lambda: leave_unread(d).recv(100).startswith(b"%"), "what is left unread no longer to count")


@pytest.mark.parametrize("files, served, pages", [(MANY + SPARE - 8, MANY - 8, 0), (MANY + SPARE + 1, MANY, 0),
                                                  (MANY + SPARE + 7, MANY, 3), (MANY + SPARE + 2 * 99, MANY, 99)])
def test_few_descriptors_are_for_connections_before_pages(daemons, files, served, pages):
    """All clients that may connect do, with a page or without; who gets none locks by messages. A hand-over finds all of
    them, and a page at the limit is the last one then, too."""
    harness.inherit_orphans()
    d = daemons(limits={"clients": MANY}, under=["prlimit", f"--nofile={files}"])
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(delegation.Delegate(d.operator_socket)) for _ in range(served - 1)]
        with d.client(operator=True) as last, d.client(2, operator=True) as late:
            assert last.call("PING") == "PONG" and late.reply().code == "LIMIT"
        for c in made[:pages]:
            c.ask_page()
        assert ("so it has pages of delegations for" in d.log()) == (pages < served)
        for _ in range(2):
            for c in made[pages:]:
                refused = c.call("DELEGATE")
                assert refused.code == "LIMIT" and f"uses {pages} of {pages} allowed pages of delegations" in refused
            for number, c in enumerate(made):
                token = c.delegate(f"{number}", 1) if c.page else c.lock(f"{number}", 1)
                assert isinstance(token, int) and c.call("UNLOCK", f"{number}") == 0
            d.hand_over(made[0])


def test_a_user_has_a_share_of_the_pages(daemons, clients):
    """Of 50 pages there is 1 for operators, and 75 % of the rest are 36."""
    d = daemons(limits={"clients": 100, "user_share": 75}, under=["prlimit", f"--nofile={100 + SPARE + 2 * 50}"])
    operator, users = clients(d), [clients(d, operator=False) for _ in range(37)]

    def used():
        return re.findall(r'^lockbroker_pool_\w+{pool="pages"} (\d+)$', operator.call("METRICS"), re.M)

    assert all(c.call("DELEGATE") == delegation.SLOTS for c in users[:36])
    assert [(row["used"], row["allowed"], row["reserve"]) for row in operator.call("ACCOUNTS")
            if row["of"] == "pages of delegations"] == [(36, 36, 1)]
    assert users[36].call("DELEGATE").code == "LIMIT"
    assert operator.call("DELEGATE") == delegation.SLOTS
    assert used() == ["37", "50"] and operator.call("INFO", "stats").count("\nlimits_total:0\r") == 1
    users[0].close()
    harness.wait_until(lambda: used() == ["36", "50"], "the page to be given back")
    checked = run(d, "check", "-w", "limit=60")
    assert checked.returncode == 0, checked.stdout  # though 72 % of the pages are in use


@pytest.mark.skipif(not descriptors_can_be_refused(), reason="needs Linux 6.16")
@pytest.mark.parametrize("flags", [0, socket.MSG_OOB])
def test_nobody_sends_descriptors(standalone, clients, flags):
    """The receiver has to close them, and the close of a socket that lingers takes as long as its sender likes."""
    c = clients(standalone)
    with pytest.raises(PermissionError):
        socket.send_fds(c.socket, [b"*"], [0], flags)
    assert c.call("PING") == "PONG"


class Lingering:
    """A TCP socket of which the close waits for an hour, because its peer does not read."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.socket = socket.create_connection(listener.getsockname())
            self.peer, _ = listener.accept()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.socket.send(b"x" * 65536)

    def send_away(self, client, text, flags=0):
        socket.send_fds(client.socket, [text], [self.socket.fileno()], flags)
        self.socket.close()

    def await_end(self):
        """Waits until no process has the socket any longer."""
        self.peer.settimeout(harness.PATIENCE)
        while self.peer.recv(1 << 20):
            pass
        self.peer.close()


@pytest.fixture
def early(launch):
    """A daemon on the socket of a service manager, not started yet, and clients that are connected already. The kernel lets
    these clients send descriptors, as earlier kernels let all clients."""
    d = harness.Daemon(wait=False)
    with socket.create_server(d.socket, family=socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        yield d, [stack.enter_context(harness.Client(d.socket, version=2)) for _ in range(3)], \
            lambda: launch(d, listening=[listener.fileno()])


def is_refused(client):
    assert client.socket.recv(1000) == b"-ERR Protocol error: clients send no file descriptors (SCM_RIGHTS)\r\n"
    with contextlib.suppress(ConnectionResetError):
        assert client.socket.recv(1000) == b""
    return True


@pytest.mark.parametrize("flags", [0, socket.MSG_OOB])
def test_a_client_that_sends_a_descriptor_is_refused_and_delays_nobody(early, flags):
    d, (sender, other, _), start = early
    lingering = [Lingering() for _ in range(3)]
    for one in lingering:
        one.send_away(sender, harness.encode("PING"), flags)
        sender.socket.send(b"more")
    start()
    assert other.call("PING") == "PONG"
    assert is_refused(sender)
    assert other.call("PING") == "PONG"
    for one in lingering:
        one.await_end()
    (line,) = [line for line in d.log().splitlines() if "event=client_closed" in line]
    assert "why=descriptors" in line
    harness.wait_until(lambda: len(os.listdir(f"/proc/{d.pid}/task")) == 1, "the thread to have ended")


def test_a_client_that_sends_a_descriptor_and_disconnects_delays_nobody(early):
    d, (sender, other, _), start = early
    gone = Lingering()
    gone.send_away(sender, b"*")
    sender.close()
    start()
    assert other.call("PING") == "PONG"
    gone.await_end()
    assert other.call("PING") == "PONG"


def test_sent_descriptors_delay_neither_a_hand_over_nor_a_restart_after_a_kill(early, clients):
    """The clients wait for a lock, so the daemon reads nothing from them, and the keeper has their connections."""
    d, waiting, start = early
    start()
    holder = clients(d)
    assert isinstance(holder.call("LOCK", "a"), int)
    lingering = [Lingering() for _ in waiting]
    for i, c in enumerate(waiting):
        assert isinstance(c.call("LOCK", f"own{i}"), int)
        wait_kept(Saved(d), c)
        c.send("LOCK", "a")
    harness.wait_until(lambda: holder.call("QUEUE", "a"), "the clients to wait")
    for one, c in zip(lingering, waiting):
        one.send_away(c, harness.encode("PING"))
    operator = clients(d, operator=True)
    d.hand_over(operator)
    assert holder.call("PING") == "PONG"
    d.crash()
    with d.client() as c:
        assert c.call("PING") == "PONG"
    for one in lingering:
        one.await_end()
    d.crash()
