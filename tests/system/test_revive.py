# SPDX-License-Identifier: Apache-2.0
"""A worker that is killed, and the next one: connections that the keeper has go on, and nobody gets what is still held. The
keeper is the test's own (fakekeeper.py), so that it can do what it should not."""

import os
import random
import re
import signal
import socket
import struct
import time

import pytest

import fakekeeper
import harness
from saved import HOLD, Saved, kill, processes  # noqa: F401 (processes is a fixture)

OPERATORS = True  # see clients of conftest.py

AT_ONCE = 3
LIMITS = {"clients": 61}  # one is reserved for operators
CLIENTS = 60


@pytest.fixture(params=["standalone", "zookeeper"])
def kept(request, daemons, root):
    """A daemon with a keeper, of either kind."""
    return fakekeeper.kept(request.param, request, daemons, root, limits=LIMITS)


def holds(daemon, clients, *names, version=3):
    """A client that holds these, and its connection is kept. Returns it and the tokens."""
    c = clients(daemon, version)
    tokens = [c.call("LOCK", name) for name in names]
    daemon.wait_kept(c)
    return c, tokens


def is_free(daemon, clients, name):
    c = clients(daemon)
    return isinstance(c.call("LOCK", name, "WAIT", 300), int)


def test_a_kept_connection_goes_on(kept, clients):
    c, (a, b) = holds(kept, clients, "a", "b")
    kept.crash()
    assert c.call("VALID", "a", "TOKEN", a) > 0 and c.call("VALID", "b", "TOKEN", b) > 0
    assert not is_free(kept, clients, "a")
    assert c.call("UNLOCK", "a") == 0
    assert is_free(kept, clients, "a")
    later = c.call("LOCK", "c")
    assert isinstance(later, int)
    assert c.call("VALID", "b") > 0 and c.call("UNLOCK", "b", "TOKEN", b) == 0


def test_tokens_go_on_upwards(kept, clients):
    c, (a,) = holds(kept, clients, "a")
    kept.crash()
    assert c.call("UNLOCK", "a") == 0
    assert clients(kept).call("LOCK", "a") > a


def test_crashes_in_a_row(kept, clients):
    c, (a,) = holds(kept, clients, "a")
    for _ in range(3):
        kept.crash()
    assert c.call("VALID", "a", "TOKEN", a) > 0
    kept.wait_kept(c)
    kept.crash()
    kept.crash(wait=False)
    time.sleep(random.uniform(0, 0.05))  # no wait: at any moment of its start
    kept.crash()
    assert c.call("VALID", "a", "TOKEN", a) > 0 and c.call("UNLOCK", "a") == 0


@pytest.mark.parametrize("handed_over", [False, True], ids=["crash", "hand-over"])
def test_a_connection_that_holds_nothing_any_longer_goes_on_again_and_again(kept, clients, handed_over):
    harness.inherit_orphans()
    c, _ = holds(kept, clients, "a")
    assert c.call("UNLOCK", "a") == 0
    if handed_over:
        kept.hand_over()
    for _ in range(2):
        kept.wait_kept(c)
        kept.crash()
        assert c.call("PING") == "PONG"
    assert isinstance(c.call("LOCK", "a"), int)


def test_what_waits_in_the_socket_is_served_by_the_next(kept, clients):
    """Nothing of it was read: nothing was under way."""
    c, (a,) = holds(kept, clients, "a")
    kept.signal(signal.SIGSTOP)
    c.send("VALID", "a", "TOKEN", a)
    late = harness.Client(kept.socket, 2)
    late.send("PING")
    kept.crash()
    assert c.reply() > 0
    assert late.reply() == "PONG"
    late.close()


def test_a_push_that_was_sent_is_under_way_no_longer_though_nothing_happens_after_it(kept, clients):
    c, (a,) = holds(kept, clients, "a")
    b = c.call("LOCK", "b", "LEASE", 300)
    assert c.push() == ["lost", "b", b, "lease"]
    harness.wait_until(lambda: not kept.marked(c) and kept.state() == "S", "the daemon to sleep")
    kept.crash()
    assert c.call("VALID", "a", "TOKEN", a) > 0
    assert c.push() == ["lost", "b", b, "lease"], "at least once"


def test_a_request_under_way_ends_its_connection_and_nobody_else_gets_the_lock(kept, clients, processes):
    other = clients(kept)
    assert isinstance(other.call("LOCK", "b"), int)
    c, _ = holds(kept, clients, "a")
    c.send("LOCK", "b")
    harness.wait_queued(kept, "b", 1)
    kept.crash()
    assert c.ended()
    assert not is_free(kept, clients, "a")


def test_a_lock_of_a_process_that_was_not_taken_back_is_free_when_it_has_ended(kept, clients, processes):
    holder = processes(HOLD, kept.socket, "a")  # for less than a second: nobody has kept its connection
    kept.crash()
    assert not is_free(kept, clients, "a")
    kill(holder)
    assert isinstance(clients(kept).call("LOCK", "a"), int)


def test_a_lease_goes_on_and_its_end_is_told(kept, clients):
    c = clients(kept)
    token = c.call("LOCK", "a", "LEASE", 3000)
    kept.wait_kept(c)
    kept.crash()
    assert c.push() == ["lost", "a", token, "lease"]
    assert is_free(kept, clients, "a")


def test_a_semaphore_goes_on(kept, clients):
    c = clients(kept)
    assert c.call("ACQUIRE", "s", "LIMIT", 3, "COUNT", 2) == 2
    kept.wait_kept(c)
    kept.crash()
    other = clients(kept)
    assert other.call("ACQUIRE", "s", "LIMIT", 3) == 1
    assert other.call("ACQUIRE", "s", "LIMIT", 3, "WAIT", 100) is None
    assert c.call("RELEASE", "s", "COUNT", 2) == 0
    assert other.call("ACQUIRE", "s", "LIMIT", 3) == 2


def test_a_leader_goes_on(kept, clients):
    c = clients(kept)
    token = c.call("CAMPAIGN", "e", "DATA", "me")
    kept.wait_kept(c)
    kept.crash()
    assert clients(kept).call("LEADER", "e")["token"] == token
    assert c.call("RESIGN", "e") == 1


def test_an_observer_goes_on_and_is_told_each_leader_once(kept, clients):
    leader, observer = clients(kept), clients(kept, 3)
    token = leader.call("CAMPAIGN", "e", "DATA", "me")
    observer.call("LOCK", "a")
    assert observer.call("OBSERVE", "e") == "OK"
    assert observer.push()[:3] == ["leader", "e", token]
    for c in leader, observer:
        kept.wait_kept(c)
    kept.crash()
    assert observer.call("LOCK", "b") and leader.call("RESIGN", "e") == 1
    later = clients(kept).call("CAMPAIGN", "e", "DATA", "me")
    told = [observer.push()]
    while told[-1][2] != later:
        told.append(observer.push())
    assert [event[2] for event in told] in ([0, later], [later])
    assert observer.call("UNOBSERVE", "e") == 1 and not observer.pushes and observer.quiet(0)


def test_an_observer_that_was_not_told_yet_is_told(kept, clients):
    leader, (observer, _) = clients(kept), holds(kept, clients, "a", version=2)
    token = leader.call("CAMPAIGN", "e", "DATA", "me")
    assert observer.call("OBSERVE", "e") == "OK"
    for c in leader, observer:
        kept.wait_kept(c)
    kept.crash()
    assert observer.call("EVENTS", "WAIT", 60000)[:3] == ["leader", "e", token]


def test_a_loss_that_was_told_is_told_again(kept, clients):
    """Nothing says whether the client has read it; a client knows it by its token."""
    c, _ = holds(kept, clients, "a")
    token = c.call("LOCK", "b", "LEASE", 20)
    assert c.push() == ["lost", "b", token, "lease"]
    kept.wait_kept(c)
    kept.crash()
    assert c.push() == ["lost", "b", token, "lease"]


def test_a_ghost_stays_no_longer_after_another_kill(kept, clients):
    """Its process was told by the end of its connection at the first one, and believes nothing that was proven since."""
    c, _ = holds(kept, clients, "a", version=2)
    c.send("EVENTS", "WAIT", 60000)
    harness.wait_until(lambda: kept.marked(c), "the request")
    found = []
    for _ in range(2):
        kept.crash()
        found.append(Saved(kept).ghosts())
        harness.wait_until(lambda: kept.standalone or Saved(kept).safe_until() > found[-1][0], "more to be proven")
    assert len(found[0]) == 1 and found[1] == found[0]


def test_a_hand_over_keeps_what_is_kept(kept, clients):
    harness.inherit_orphans()
    c, (a,) = holds(kept, clients, "a")
    kept.hand_over()
    kept.wait_kept(c)
    kept.crash()
    assert c.call("VALID", "a", "TOKEN", a) > 0 and c.call("UNLOCK", "a") == 0


def test_a_hand_over_that_is_asked_for_before_it_serves_follows_when_it_does(kept, clients):
    """The worker has just been started, after a crash, and finds the signal when it looks for one."""
    harness.inherit_orphans()
    c, (a,) = holds(kept, clients, "a")
    kept.kill()
    kept.early = [signal.SIGUSR2]
    kept.spawn(crashes=1)
    kept.follow()
    assert "goes on after a crash" in kept.log() and "has taken over 1 connections" in kept.log()
    assert c.call("VALID", "a", "TOKEN", a) > 0 and c.call("UNLOCK", "a") == 0


def test_a_closed_connection_ends_though_the_keeper_has_a_copy(kept, clients):
    c, _ = holds(kept, clients, "a")
    c.call("QUIT")
    assert c.ended()
    assert is_free(kept, clients, "a")
    harness.wait_until(lambda: not kept.connections(), "the copy to be dropped")


def test_the_third_crash_within_a_minute_starts_anew(kept, clients):
    c, _ = holds(kept, clients, "a")
    kept.crash(crashes=3)
    assert c.ended()
    assert "this process starts without their state" in kept.log()
    assert isinstance(clients(kept).call("LOCK", "b"), int)


def test_ghosts_take_no_place_of_those_who_come_back(kept, clients):
    """As many as there may be hold something, and lose their connections by the kill: as many may connect, and no more."""
    lost = [clients(kept, operator=False) for _ in range(CLIENTS)]
    for n, c in enumerate(lost):
        assert isinstance(c.call("LOCK", n), int)
    kept.crash(back=[(i, fd) for i, fd in kept.kept.items() if i & fakekeeper.ROLE], wait=False)
    assert all(c.ended() for c in lost)
    again = [clients(kept, operator=False) for _ in range(CLIENTS)]
    assert [c.call("PING") for c in again] == ["PONG"] * len(again)
    assert "whose locks stay held for now: 60" in kept.log()
    one_more = clients(kept, 2, operator=False)
    assert one_more.reply().code == "LIMIT" and one_more.ended()
    again[0].close()
    harness.wait_until(lambda: fits(kept), "the place to be free")


def fits(daemon):
    try:
        with daemon.client() as c:
            return c.call("PING") == "PONG"
    except (OSError, harness.Closed):
        return False

# ---- what cannot be gone by ----


def write(at, data):
    return lambda d: Saved(d).write(at, data)


def cut(d):
    os.truncate(Saved(d).path, 5000)


def link(d):
    os.rename(Saved(d).path, Saved(d).path + ".real")
    os.symlink(Saved(d).path + ".real", Saved(d).path)


def session(at, value):
    """Of the present session: the instant at 24, the timeout at 32."""
    return lambda d: Saved(d).write(Saved.SESSIONS + 40 * Saved(d).present() + at, struct.pack("=q", value))


def copy(d):
    data = Saved(d).read()
    os.unlink(Saved(d).path)
    with open(os.open(Saved(d).path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
        f.write(data)


def garble(d):
    data = Saved(d).read()
    at = len(data) - (1 << 20)  # of the ledger's first chunk
    Saved(d).write(at, random.Random(1).randbytes(16384))


HOSTILE = {
    "version": (write(4, struct.pack("=I", 99)), "another version wrote it"),
    "magic": (write(0, b"none"), "it is corrupt"),
    "host": (write(Saved.HOST, b"elsewhere\0"), "it is from another zookeeper.host"),
    "boot": (write(Saved.BOOT_ID, b"another\0"), "it is from another boot"),
    "namespace": (write(8, struct.pack("=Q", 1)), "of other namespaces"),
    "identity": (write(Saved.PAGE, b"x"), "does not say who it is"),
    "mode": (lambda d: os.chmod(Saved(d).path, 0o644), "others have access to it"),
    "user": (lambda d: os.chown(Saved(d).path, 65534, 65534), "it belongs to another user"),
    "cut": (cut, "it is corrupt"),
    "none": (lambda d: os.unlink(Saved(d).path), "its file saved is gone, or cannot be used"),
    "link": (link, "it is a symbolic link"),
    "copy": (copy, "it is a copy"),
    "timeout": (session(32, 1 << 62), "it is corrupt"),
    "no timeout": (session(32, -1), "it is corrupt"),
    "instant": (session(24, -1), "it is corrupt"),
    "network": (write(16, struct.pack("=Q", 1)), "of other namespaces"),
    "ledger": (garble, "the state of the process that crashed cannot be used"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_cannot_be_gone_by_is_told_and_replaced(kept, clients, what):
    if what == "user" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    change, sentence = HOSTILE[what]
    c, _ = holds(kept, clients, "a")
    kept.crash(change=lambda: change(kept))
    assert sentence in kept.log(), kept.log()
    assert c.ended()
    again, (b,) = holds(kept, clients, "b")
    kept.crash()
    assert again.call("VALID", "b", "TOKEN", b) > 0


def test_a_group_that_cannot_be_looked_up_any_longer_is_no_end(kept, clients):
    """The sockets are there, and belong to it."""
    c, (a,) = holds(kept, clients, "a")
    conf = fakekeeper.ROLE | 5
    text = os.pread(kept.kept[conf], 1 << 20, 0).decode()
    assert "socket_group =" in text and "operator_group =" in text
    other = os.memfd_create("other")
    os.write(other, re.sub(r"(?m)^(socket|operator)_group =.*", r"\1_group = no_such_group", text).encode())
    kept.crash(back=[(i, other if i == conf else fd) for i, fd in kept.kept.items()])
    os.close(other)
    assert "daemon.socket_group = no_such_group: there is no such group" in kept.log()
    assert "daemon.operator_group = no_such_group: there is no such group" in kept.log()
    assert c.call("VALID", "a", "TOKEN", a) > 0 and isinstance(clients(kept).call("LOCK", "b"), int)


def strangers():
    """Descriptors that are no connection of that client, and what ends them."""
    a, b = socket.socketpair(socket.AF_UNIX)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("")
    listening.listen()
    gone, other = socket.socketpair(socket.AF_UNIX)
    other.close()
    return [a, b, listening, gone, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_INET),
            open("/dev/null", "rb")]


@pytest.mark.parametrize("stranger", range(7))
def test_descriptors_of_strangers_are_closed(kept, clients, stranger):
    c, (a,) = holds(kept, clients, "a")
    some = strangers()
    (number,) = kept.connections()
    roles = [(i, fd) for i, fd in kept.kept.items() if i & fakekeeper.ROLE]
    kept.crash(back=[*roles, (number, some[stranger].fileno()), (12345 + stranger, some[stranger].fileno())])
    assert "differs from the connection in the file saved" in kept.log()
    kept.drop(number)
    assert not is_free(kept, clients, "a"), "its process lives"
    c.close()
    for s in some:
        s.close()


@pytest.mark.parametrize("at", [3, 4, 5, 7], ids=["pid", "uid", "gid", "cookie"])
def test_a_connection_that_is_not_as_the_file_says_is_closed(kept, clients, at):
    c, _ = holds(kept, clients, "a")
    saved = Saved(kept)
    ((number, conn),) = saved.conns().items()
    kept.crash(change=lambda: saved.change(number, at, conn[at] + 1))
    assert c.ended()
    assert not kept.connections(), "the keeper has no copy of it"
    again, (b,) = holds(kept, clients, "b")
    kept.crash()
    assert again.call("VALID", "b", "TOKEN", b) > 0


def test_too_many_descriptors_are_closed(kept, clients):
    c, (a,) = holds(kept, clients, "a")
    pairs = [socket.socketpair(socket.AF_UNIX) for _ in range(300)]
    back = [*kept.kept.items(), *((1000000000 + n, p[0].fileno()) for n, p in enumerate(pairs))]
    kept.crash(back=back)
    assert c.call("VALID", "a", "TOKEN", a) > 0
    for ours, theirs in pairs:
        assert theirs.recv(1) == b""
        ours.close()
        theirs.close()


def test_one_connection_twice_is_one(kept, clients):
    c, (a,) = holds(kept, clients, "a")
    kept.crash(back=[*kept.kept.items(), *kept.kept.items()])
    assert c.call("VALID", "a", "TOKEN", a) > 0 and c.call("UNLOCK", "a") == 0
