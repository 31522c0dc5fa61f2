# SPDX-License-Identifier: Apache-2.0
"""The library when its daemon ends: it connects again, goes on waiting, and tells what was lost."""

import os
import socket
import threading
import time

import pytest

import harness
from fakebroker import HELLO
from library import token_of
from mishaps import kill_and_start


def wait_for_waiter(daemon):
    with daemon.client() as c:
        harness.wait_until(lambda: c.call("WAITERS", "a"), "a waiter")


LOST = "LOST The lock was lost by the time the connection to lockbrokerd ended: "


@pytest.mark.parametrize("take, use, free", [
    ("lock 0 a", "lock 0 a", "unlock 0 a"),
    ("lock 0 a", "unlock 0 a", None),
    ("shared 0 a 0", "timeout 0 a 0", "unlock 0 a"),
    ("lock 0 a", "try 0 a", "unlock 0 a"),
    ("lock 0 a", "enqueue 0 a", "unlock 0 a"),
    ("lock 0 a", "renew 0 a 10000", None),
    ("lock 0 a", "downgrade 0 a", None),
    ("lock_all 0 2 b a", "unlock_all 0 1 a", None),
    ("lock_all 0 2 b a", "lock_all 0 1 a", "unlock_all 0 1 a"),
    ("acquire 0 a 3 2 0", "acquire 0 a 3 1 0", "release 0 a 1"),
    ("acquire 0 a 3 2 0", "release 0 a 1", None),
    ("campaign 0 a data 0", "campaign 0 a data 0", "resign 0 a"),
    ("campaign 0 a data 0", "resign 0 a", None),
], ids=str)
@pytest.mark.parametrize("page", [True, False], ids=["page", "no page"])
def test_a_lock_that_was_held_is_told_lost_once(standalone, programs, take, use, free, page):
    if not page:
        os.unlink(os.path.join(standalone.dir, "session"))
    p = programs(standalone.socket).open()
    assert p.do(take).startswith("OK")
    kill_and_start(standalone)
    assert p.do(use) == LOST + "a"
    again = p.do(use)
    if free:
        assert again.startswith("OK"), "it is asked for anew"
        harness.wait_until(lambda: p.do(free).startswith("OK"), "the grant")  # what is queued is granted a little later
    else:
        assert again.startswith("NOTHELD ")


def test_the_lock_is_lost_although_nobody_else_took_it_and_tokens_go_on(standalone, programs):
    p = programs(standalone.socket).open()
    token = token_of(p.do("lock 0 a"))
    p.do("lock 0 a")
    kill_and_start(standalone)
    assert p.do("lock 0 a") == LOST + "a"
    assert token_of(p.do("lock 0 a")) > token
    assert p.do("unlock 0 a") == "OK 0"
    assert p.do("unlock 0 a").startswith("NOTHELD "), "the levels of the lost grant ended with it"


@pytest.mark.parametrize("read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("use", ["lock 0 a", "unlock 0 a", "lock_all 0 2 b a", "enqueue 0 a"], ids=str)
def test_a_loss_before_the_end_of_the_connection_is_not_forgotten_with_it(standalone, programs, use, read):
    """The daemon remembers it until a call has said so; when the daemon has ended, only the library can."""
    p = programs(standalone.socket).open()
    p.do("lock 0 a")
    p.do("renew 0 a 1")
    with standalone.client() as c:
        harness.wait_until(lambda: not c.call("HOLDERS", "a"), "the end of the lease")
    if read:
        assert p.do("event 0 10000").startswith("LOST a ")
    kill_and_start(standalone)
    assert p.do(use) == LOST + "a"
    assert not p.do(use).startswith("LOST "), "it is told once"


@pytest.mark.parametrize("tell", ["lock 0 a", "unlock 0 a", "renew 0 a 10000", "lock_all 0 2 b a", "unlock_all 0 2 a b"], ids=str)
def test_a_loss_that_a_call_has_told_is_not_told_again_after_the_connection(standalone, programs, tell):
    p = programs(standalone.socket).open()
    p.do("lock 0 a")
    p.do("renew 0 a 1")
    assert p.do("event 0 10000").startswith("LOST a ")
    assert p.do(tell).startswith("LOST ")
    kill_and_start(standalone)
    token_of(p.do("lock 0 a"))


def test_whoever_took_it_meanwhile_keeps_it(standalone, programs, clients):
    p = programs(standalone.socket).open()
    p.do("lock 0 a")
    kill_and_start(standalone)
    assert clients(standalone).call("LOCK", "a") > 0
    assert p.do("valid 0 a").startswith("CONNECTION ")
    assert p.do("unlock 0 a") == LOST + "a"
    assert p.do("timeout 0 a 0").startswith("TAKEN ")


def test_a_call_that_waits_goes_on_waiting(standalone, programs, clients):
    p = programs(standalone.socket).open()
    for wait in "lock 0 a", "timeout 0 a 60000", "lock_all 0 2 a b", "campaign 0 a data 60000", "acquire 0 a 1 1 60000":
        take, free = {"campaign": (("CAMPAIGN", "a", "DATA", "x"), "resign 0 a"),
                      "acquire": (("ACQUIRE", "a", "LIMIT", 1), "release 0 a 1")}.get(
                          wait.split()[0], (("LOCK", "a"), "unlock 0 a"))
        holder = clients(standalone)
        assert holder.call(*take) is not None
        p.tell(wait)
        wait_for_waiter(standalone)
        kill_and_start(standalone)
        assert p.hear().startswith("OK")
        assert p.do("event 0 0").startswith("NONE ")
        assert p.do(free).startswith("OK")
        p.do("unlock 0 b")


def test_who_has_patience_without_end_goes_on_waiting(standalone, programs, clients):
    p = programs(standalone.socket).open()
    p.do(f"patience 0 {2 ** 63 - 1}")
    clients(standalone).call("LOCK", "a")
    p.tell("lock 0 a")
    wait_for_waiter(standalone)
    kill_and_start(standalone)
    token_of(p.hear())


def test_the_time_to_wait_is_what_is_left_of_it(programs, tmp_path):
    path = str(tmp_path / "s")
    with socket.create_server(path, family=socket.AF_UNIX) as listener:
        p = programs(path)
        p.tell("open 0")
        waits = []
        for answer in b"", b":7\r\n":
            peer, _ = listener.accept()
            with peer:
                assert b"HELLO" in peer.recv(65536)
                peer.sendall(HELLO)
                if not answer:
                    assert p.hear() == "OK 0"
                    p.tell("timeout 0 a 60000")
                waits.append(int(peer.recv(65536).split(b"WAIT\r\n")[1].split(b"\r\n")[1]))
                time.sleep(0.05)  # this is the time that is not left
                if answer:
                    peer.sendall(answer)
                    assert p.hear() == "OK 7"
        assert waits[0] == 60000 > waits[1] > 0
    p.do("close 0")


def test_a_broker_that_restarts_is_waited_for(standalone, programs):
    p = programs(standalone.socket).open()
    p.do("lock 0 b")
    p.do("unlock 0 b")
    standalone.kill()
    p.tell("lock 0 a")
    standalone.start()
    token_of(p.hear())
    standalone.kill()
    p.tell("command 0 PING")
    standalone.start()
    assert p.hear().startswith(("'PONG'", "CONNECTION The connection to lockbrokerd is closed")), \
        "what became of a command is not known if the connection ended under it"
    assert p.do("command 0 PING") == "'PONG'"


def test_what_was_waited_for_and_observed_is_told_by_events(standalone, programs, clients):
    p = programs(standalone.socket).open()
    clients(standalone).call("LOCK", "w")
    token = token_of(p.do("lock 0 a"))
    assert p.do("enqueue 0 w") == p.do("observe 0 e") == "OK 0"
    assert p.do("event 0 1000") == "LEADER e 0 0 "
    standalone.kill()
    told = {p.do("event 0 10000") for _ in range(3)}
    assert told == {f"LOST a {token} 0 connection", "FAILED w 0 0 the connection to lockbrokerd ended",
                    "UNOBSERVED e 0 0 the connection to lockbrokerd ended"}
    assert p.do("event 0 0").startswith("CONNECTION ") and p.do("fd 0") == "-1"
    standalone.start()
    # The time of the call bounds the connecting too.
    harness.wait_until(lambda: p.do("event 0 100").startswith("NONE "), "the next connection")
    assert p.do("fd 0") != "-1"
    assert p.do("enqueue 0 w") == "OK 0" and p.do("event 0 10000").startswith("GRANTED w ")


def test_a_broker_that_stays_away(standalone, programs):
    p = programs(standalone.socket).open()
    p.do("patience 0 300")
    standalone.kill()
    for line in "lock 0 a", "timeout 0 a 0", "command 0 PING", "event 0 -1", "unlock 0 a", "leader 0 a":
        assert p.do(line).startswith("CONNECTION "), line
    standalone.start()
    token_of(p.do("lock 0 a"))


class Breaker:
    """Greets, and ends each connection as soon as it is asked something."""

    def __init__(self, path):
        self.listener = socket.create_server(path, family=socket.AF_UNIX)
        self.greeted = 0
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            peer, _ = self.listener.accept()
            with peer:
                if not peer.recv(65536):
                    return
                peer.sendall(HELLO)
                self.greeted += 1
                peer.recv(65536)

    def end(self, path):
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(path)
            last.shutdown(socket.SHUT_WR)
            self.thread.join()
        self.listener.close()


def test_a_broker_that_ends_every_connection_is_given_up(programs, tmp_path):
    path = str(tmp_path / "s")
    breaker = Breaker(path)
    p = programs(path).open()
    p.do("patience 0 300")
    assert p.do("lock 0 a") == "CONNECTION The connection to lockbrokerd is closed: the daemon has ended, or has closed it."
    assert breaker.greeted > 2
    greeted = breaker.greeted
    assert p.do("command 0 DEL x").startswith("CONNECTION ")
    assert breaker.greeted == greeted + 1, "a command may have been carried out: it is not sent again"
    p.do("close 0")
    breaker.end(path)


# ---- lb_open() ----


def test_open_waits_for_a_broker_that_is_started_again(standalone, programs):
    """Its socket is there, and nobody listens."""
    p = programs(standalone.socket)
    standalone.kill()
    p.tell("open 0")
    standalone.start()
    assert p.hear().startswith("OK")
    assert p.do("lock 0 a").startswith("OK")


def test_open_waits_where_the_connection_ends_at_once(tmp_path, programs):
    """As while a broker is being started: the third connection is greeted."""
    path = str(tmp_path / "socket")
    with socket.create_server(path, family=socket.AF_UNIX) as listener:
        p = programs(path)
        p.tell("open 0")
        for _ in range(2):
            listener.accept()[0].close()
        peer = listener.accept()[0]
        assert b"HELLO" in peer.recv(4096)
        peer.sendall(HELLO)
        assert p.hear().startswith("OK")
        peer.close()


def test_open_does_not_wait_where_there_is_no_socket(tmp_path, programs, monkeypatch):
    monkeypatch.setenv("LOCKBROKER_OPEN_MS", "31536000000")  # a year
    p = programs(str(tmp_path / "socket"))
    assert p.do("open 0").startswith("CONNECTION No lockbrokerd is serving")


@pytest.mark.parametrize("ms, least, most", [("0", 0, 9), ("300", 0.1, 9), ("", 10, harness.PATIENCE), ("no number", 10, harness.PATIENCE)])
def test_the_environment_says_for_how_long_open_waits(standalone, programs, monkeypatch, ms, least, most):
    monkeypatch.setenv("LOCKBROKER_OPEN_MS", ms)
    p = programs(standalone.socket)
    standalone.kill()
    began = time.monotonic()
    assert p.do("open 0").startswith("CONNECTION No lockbrokerd is serving")
    assert least * 0.9 <= time.monotonic() - began < most
    standalone.start()
