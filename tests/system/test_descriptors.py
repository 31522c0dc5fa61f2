# SPDX-License-Identifier: Apache-2.0
"""Descriptors on the clients' socket: those that a client does not receive, and those that a client sends."""

import contextlib
import os
import select
import shutil
import socket

import pytest

import delegation
import harness
from test_accounts import as_other_user, needs_root

OPERATORS = True  # see clients of conftest.py

FILES = 200
SO_PASSRIGHTS = 83  # of Linux 6.16


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
    d = harness.Daemon(wait=False, daemon__socket_mode="0666", limits={"user_share": 75}, **delegation.CONF)
    daemons.list.append(d)
    d.under = ["prlimit", f"--nofile={FILES}", "setpriv", "--bounding-set", "-sys_resource,-sys_admin"]
    d.start()
    os.chmod(d.dir, 0o755)
    os.chmod(os.path.dirname(d.dir), 0o711)
    with as_other_user():
        left = [leave_unread(d) for _ in range(2 * FILES)]
    honest = delegation.Delegate(d.socket)
    honest.ask_page()
    operator = clients(d)
    operator.send("RESTART")
    assert isinstance(operator.reply(), dict)
    d.follow()
    assert honest.delegate("a", 1)
    honest.close()
    with as_other_user():
        assert leave_unread(d).recv(100).startswith(b"-LIMIT"), "the next process has charged them, too"
    for s in left:
        s.close()
    with as_other_user():
        harness.wait_until(lambda: leave_unread(d).recv(100).startswith(b"%"), "what is left unread no longer to count")


@pytest.mark.skipif(not descriptors_can_be_refused(), reason="needs Linux 6.16")
def test_nobody_sends_descriptors(standalone, clients):
    """The receiver has to close them, and the close of a socket that lingers takes as long as its sender likes."""
    c = clients(standalone)
    with pytest.raises(PermissionError):
        socket.send_fds(c.socket, [harness.encode("PING")], [0])
    assert c.call("PING") == "PONG"
