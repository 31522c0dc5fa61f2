# SPDX-License-Identifier: Apache-2.0
"""What clients keep of connections that have ended is the service's memory: it is charged, bounded and shown."""

import contextlib
import gc
import os
import re
import select
import signal
import socket
import subprocess
import sys

import pytest

import cgroup
import delegation
import harness
from python_library import lockbroker
from test_accounts import for_all_users, needs_root
from test_resources import Limited
from users import OTHER_USER, as_other_user, let_in

CLIENTS = 40
SHARE = 30  # 75 %
ANSWER = 31000  # as the socket's buffer takes at once


def leave_answer(d):
    """A connection that has ended, with its answer unread: all of it, or a refusal, or nothing."""
    s = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        s.connect(d.socket)
        s.sendall(harness.encode("ECHO", "x" * ANSWER))
        s.shutdown(socket.SHUT_WR)
    poll = select.poll()
    poll.register(s, select.POLLRDHUP)
    assert poll.poll(harness.PATIENCE * 1000)
    return s


def all_of(s):
    text = b""
    with contextlib.suppress(ConnectionResetError):
        while part := s.recv(1 << 16):
            text += part
    s.close()
    return text


def kept(operator, of):
    mine = [row for row in operator.call("ACCOUNTS") if row["account"] == f"user {OTHER_USER}"]
    return next((row["kept"] for row in mine if row["of"] == of), "")


@needs_root
def test_unread_answers_of_ended_connections_count_until_they_are_read(daemons, clients):
    d = for_all_users(daemons, clients=CLIENTS)
    operator, mine = clients(d, operator=True), clients(d)
    assert isinstance(mine.call("LOCK", "a"), int)
    with as_other_user():
        left = [leave_answer(d) for _ in range(28)]  # 75 % of what root's two leave
        refused = leave_answer(d)
    said = all_of(refused).decode()
    assert re.match(r"-LIMIT user \d+ uses 28 of 28 allowed connections \(limits.clients, .*close some; connections that "
                    rf"have ended with unread answers \(\d+ bytes\): \d+ \(process {os.getpid()}: \d+\)\r\n$", said), said
    harness.wait_until(lambda: f"process {os.getpid()}: 28)" in kept(operator, "connections"), "the account to show them")
    assert mine.call("VALID", "a") > 0
    # Who reads has room at once, without a look of the daemon in between.
    for s in left[:5]:
        assert len(all_of(s)) > ANSWER
        with as_other_user():
            left.append(leave_answer(d))
    assert all(len(all_of(s)) > ANSWER for s in left[5:])
    harness.wait_until(lambda: not kept(operator, "connections"), "nothing to be kept")


@needs_root
def test_of_the_refused_only_some_are_told_why(daemons, clients):
    """The sentence that nobody reads is kept, too. Both libraries say what an end without a word may mean."""
    d = for_all_users(daemons, clients=CLIENTS)
    with as_other_user():
        held = [clients(d) for _ in range(SHARE)]
        assert held[-1].call("PING") == "PONG"
        refused = [leave_answer(d) for _ in range(20)]
        command = subprocess.run([harness.program("lockbroker"), "-S", d.socket, "ping"], capture_output=True, text=True,
                                 check=False)
        with pytest.raises(lockbroker.NoBroker, match="without a word"):
            lockbroker.lock("a", socket=d.socket, patience=0.1).acquire()
    assert "lockbrokerd has closed the connection without a word" in command.stderr, command
    said = [all_of(s) for s in refused]
    assert [text.startswith(b"-LIMIT") for text in said] == [True] * 16 + [False] * 4 and said[16:] == [b""] * 4
    with as_other_user():
        assert all_of(leave_answer(d)).startswith(b"-LIMIT"), "those that were read leave room"


@needs_root
def test_pages_that_are_kept_open_count(daemons, clients):
    d = for_all_users(daemons, clients=CLIENTS)
    operator = clients(d, operator=True)
    with as_other_user():
        first = delegation.Delegate(d.socket)
    first.ask_page()
    first.close()
    harness.wait_until(lambda: f"process {os.getpid()}: 1" in kept(operator, "pages of delegations"), "the page to be shown")
    os.kill(d.pid, signal.SIGIO)  # as somebody who opens the page while the daemon looks would cause it
    del first.page
    gc.collect()
    harness.wait_until(lambda: not kept(operator, "pages of delegations"), "the page to be given back")
    assert "signal" not in d.log()


HOARDERS = 6
# Far less than MemoryMax would be for these limits, and than the 279 MB that 9,000 unread answers are: but as much as 400
# connections need, which are 66 KiB in the kernel and 32 KiB in the daemon each, and the daemon by itself.
LIMITED_BYTES = 96 << 20
HOARD = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
request, kept = b"ECHO " + b"x" * 31000 + b"\\r\\n", []
for _ in range(1500):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    kept.append(s)
    try:
        s.connect(sys.argv[1])
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
print("kept", flush=True)
sys.stdin.read()
"""


@needs_root
@pytest.mark.plain_only("it is about how much memory is used")
@pytest.mark.skipif(not cgroup.memory(), reason="no control group of memory can be made here")
def test_six_processes_that_read_nothing_do_not_end_a_service_of_limited_memory(clients):
    with contextlib.closing(Limited(daemon__socket_mode="0666", limits={"clients": 400, "user_share": 75})) as limited:
        d, worker = limited.daemon, limited.daemon.pid
        let_in(d)
        limited.limit(LIMITED_BYTES)
        mine = clients(d)
        assert isinstance(mine.call("LOCK", "a"), int)
        hoarders = [harness.spawn([sys.executable, "-c", HOARD, d.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, user=OTHER_USER) for _ in range(HOARDERS)]
        assert [p.stdout.readline() for p in hoarders] == ["kept\n"] * HOARDERS
        assert d.pid == worker and "killed" not in d.log()
        assert mine.call("VALID", "a") > 0 and isinstance(clients(d).call("LOCK", "b"), int)
        operator = clients(d, operator=True)
        harness.wait_until(lambda: "unread answers" in kept(operator, "connections"), "the account to show them")
        for p in hoarders:
            p.stdin.close()
            p.wait()
            p.stdout.close()
