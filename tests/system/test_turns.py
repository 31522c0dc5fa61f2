# SPDX-License-Identifier: Apache-2.0
"""What the clients of one daemon owe each other: turns, answers that wait, descriptors that run out, and the end in the
midst of it."""

import contextlib
import os
import re
import resource
import select
import signal
import socket

import pytest

import harness
from mishaps import kill_and_start, stopped


def leave_unread(daemon, client, request):
    """Asks again and again until nothing more is taken; how many bytes were."""
    client.socket.setblocking(False)
    sent = 0
    while select.select([], [client.socket], [], 0.5)[1] or daemon.state() != "S":
        with contextlib.suppress(BlockingIOError):
            sent += client.socket.send(request[sent % len(request):] + request)
        assert sent < 100 << 20
    return sent


def one_listens_to_nobody(daemons, clients):
    """A daemon, a client that has a lazy answer to come, one that holds the same lock, and those that leave too much unread."""
    d = daemons(limits={"output_bytes": 32 << 20})
    c, other, hogs = clients(d), clients(d), [clients(d, 2) for _ in range(5)]
    for each in c, other:
        assert isinstance(each.call("LOCK", "a", "SHARED"), int)
    c.send("UNLOCK", "a", "LAZY")
    harness.wait_until(lambda: len(other.call("HOLDERS", "a")) == 1, "the unlock")
    for hog in hogs:
        leave_unread(d, hog, harness.encode("ECHO", "x" * 60000))
    return d, c, other, hogs


def test_an_answer_that_may_wait_for_the_next_does_not_keep_that_from_being_asked_for(daemons, clients):
    """Others leave so much unread together that who leaves something unwritten is not listened to: a lazy answer is not
    the client's to read before the daemon has written it."""
    d, c, late, _ = one_listens_to_nobody(daemons, clients)
    c.send("PING", "asked later")
    late.send_raw(harness.encode("UNLOCK", "a", "LAZY") + harness.encode("PING", "asked at once"))
    assert (c.reply(), c.reply()) == (0, "asked later")
    assert (late.reply(), late.reply()) == (0, "asked at once")


def test_who_was_not_listened_to_is_heard_when_the_others_are_gone_before_its_answer_is_written(daemons, clients):
    """In one turn: who leaves much unread goes, who has a lazy answer to come asks, and only then both are settled."""
    d, c, _, hogs = one_listens_to_nobody(daemons, clients)
    with stopped(d):
        for hog in hogs:
            hog.close()
        c.send("PING", "asked")
    assert (c.reply(), c.reply()) == (0, "asked")


END = "that was all"


def ask_for_lists(client, count):
    client.send_raw(harness.encode("LOCKS") * count + harness.encode("ECHO", END))


def take_lists(*those):
    """Of all of them, as it comes, without looking into it."""
    last = {c.socket: b"" for c in those}
    while last:
        ready, _, _ = select.select(last, [], [], harness.PATIENCE)
        assert ready
        for s in ready:
            more = s.recv(1 << 20)
            assert more, "it was closed"
            last[s] = (last[s] + more)[-len(END) - 2:]
            if last[s] == END.encode() + b"\r\n":
                del last[s]


@pytest.mark.release_only("a hundred clients with lists; turns and pieces of lists have unit tests")
@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_who_asks_for_little_does_not_wait_for_the_lists_of_a_hundred(daemons, clients):
    """A hundred clients ask for more lists than are made in a turn. A list is made in pieces, in the turns of its user, and
    meanwhile everybody else of that user is served: each has asked for one list at most."""
    d = daemons(limits={"output_bytes": 8 << 20})
    c, hogs = clients(d), [clients(d, 2) for _ in range(100)]
    harness.lock_many(c, [f"{i:04}" + "x" * 30 for i in range(6000)])
    # One that takes long, among others that do not, is no habit: the daemon may have had to wait for its core.
    c.send_raw(harness.encode("PING") * 3 + harness.encode("LOCKS", "*" + "x" * 25 + "y"))
    assert [c.reply() for _ in range(4)] == ["PONG"] * 3 + [[]]
    for hog in hogs:
        ask_for_lists(hog, 10)
        take_lists(hog)
    before = int(harness.parse_info(clients(d).call("INFO", "stats"))["requests_total"])
    with stopped(d):
        for hog in hogs:
            ask_for_lists(hog, 4)
        c.send_raw(harness.encode("PING") + harness.encode("INFO", "stats"))
    assert c.reply() == "PONG"
    served = int(harness.parse_info(c.reply())["requests_total"]) - before
    take_lists(*hogs)
    assert served <= 100 + 2, "of 400 lists"


def test_who_unlocks_lazily_and_hangs_up_has_unlocked(broker, clients):
    last = clients(broker)
    for how in "close", "shutdown", "both":
        holder = clients(broker)
        assert holder.call("LOCK", "a") > 0
        last.send("LOCK", "a")
        harness.wait_queued(broker, "a", 1)
        holder.send("UNLOCK", "a", "LAZY")
        if how != "close":
            holder.socket.shutdown(1)
        if how != "shutdown":
            holder.close()
        assert last.reply() > 0 and last.call("UNLOCK", "a") == 0
        if how == "shutdown":
            assert holder.reply() == 0 and holder.ended()


def test_lazy_unlocks_of_a_client_that_never_reads_end_with_what_it_may_leave_unread(daemons, clients):
    d = daemons(limits={"output_bytes": 65536})
    c, deaf = clients(d), clients(d, 2)
    request = harness.encode("UNLOCK", "a", "LAZY")
    sent = leave_unread(d, deaf, request * 1000)
    assert c.call("LOCK", "a") > 0
    deaf.socket.settimeout(harness.PATIENCE)
    whole, part = divmod(sent, len(request))
    for i in range(whole):
        if i == whole - 10:  # the last answers may wait for one that may not
            deaf.send_raw((request[part:] if part else b"") + harness.encode("PING"))
        assert deaf.reply().code == "NOTHELD"
    assert not part or deaf.reply().code == "NOTHELD"
    assert deaf.reply() == "PONG"
    assert c.call("UNLOCK", "a") == 0


def set_most_files(daemon, most):
    """A number from there on is not given out any more. None: as at first."""
    pid, which = daemon.pid, resource.RLIMIT_NOFILE
    hard = resource.prlimit(pid, which)[1]
    resource.prlimit(pid, which, (hard if most is None else most, hard))


def lowest_free(daemon):
    """The number that the next file gets."""
    is_open = {int(number) for number in os.listdir(f"/proc/{daemon.pid}/fd")}
    return min(set(range(len(is_open) + 1)) - is_open)


def is_alone(daemon, client, connections):
    """Nobody else comes or goes, and the worker, which opens files, has ended."""
    return (len(client.call("CLIENT", "LIST").splitlines()) == connections and
            len(os.listdir(f"/proc/{daemon.pid}/task")) == 1)


def cpu_seconds(daemon):
    with open(f"/proc/{daemon.pid}/stat") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def without_descriptors(broker, clients, most):
    """Those who are there are served. Returns one of them, and one who came late and waits."""
    c, waiter = clients(broker), clients(broker)
    assert c.call("LOCK", "a") > 0
    waiter.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    set_most_files(broker, most(c))
    late = clients(broker, 2)
    late.send("PING")
    harness.wait_until(lambda: "cannot accept clients: Too many open files" in broker.log(), "the log")
    before = cpu_seconds(broker)
    assert late.quiet(0.5)
    assert cpu_seconds(broker) - before < 0.2
    assert c.call("UNLOCK", "a") == 0 and waiter.reply() > 0
    return waiter, late


LEAKS = pytest.mark.plain_only("who looks for leaks at the end opens files for that")


@pytest.mark.parametrize("end", ["raised", pytest.param("stopped", marks=LEAKS)])
def test_without_descriptors_who_is_there_is_served_and_others_wait(broker, clients, end):
    waiter, late = without_descriptors(broker, clients, lambda c: 3)  # also of what is closed meanwhile
    if end == "raised":
        set_most_files(broker, None)
        assert late.reply() == "PONG"
    else:
        broker.signal(signal.SIGTERM)
        waiter.close()
        assert broker.process.wait(harness.PATIENCE) == 0
        assert late.ended()


def test_a_descriptor_that_one_leaves_is_for_who_waits(standalone, clients):
    def as_many_as_now(client):
        harness.wait_until(lambda: is_alone(standalone, client, 2), "the daemon to be idle")
        return lowest_free(standalone)

    waiter, late = without_descriptors(standalone, clients, as_many_as_now)
    waiter.close()
    assert late.reply() == "PONG"


def test_without_descriptors_a_lost_connection_to_zookeeper_comes_back(own_zk, daemons, clients):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    d = daemons(zk, **harness.FAST)
    c = clients(d)
    assert c.call("LOCK", "a") > 0
    set_most_files(d, 3)  # also of what is closed meanwhile
    kill_and_start(zk)
    c.loss()
    assert c.call("LOCK", "b", "WAIT", 100).code == "UNAVAILABLE"
    set_most_files(d, None)
    harness.wait_until(lambda: isinstance(c.call("LOCK", "b", "WAIT", 1000), int), "the session")


def test_a_list_that_cannot_be_told_is_not_made(daemons, clients):
    """All of a great many locks is more than an answer may be: that is known long before all is written."""
    d = daemons(limits={"locks": 62000, "grants_per_client": 62000, "grants": 62000})
    c = clients(d, 2)
    harness.lock_many(c, [f"one/of/many/locks/{i * 7919 % 60000:05}" for i in range(60000)])

    def most():
        with open(f"/proc/{d.pid}/status") as f:
            return int(re.search(r"^VmHWM:\s+(\d+) kB", f.read(), re.M).group(1))

    before = most()
    assert c.call("LOCKS").code == "LIMIT"
    assert most() - before < 6 << 10
    assert len(c.call("LOCKS", "one/of/many/locks/01???")) == 1000


def test_a_half_closed_client_in_a_queue_gets_all_it_asked_for(daemons, clients):
    d = daemons(limits={"output_bytes": 1 << 20})
    c, some = clients(d), [clients(d, 2) for _ in range(8)]
    harness.lock_many(c, [f"{i:04}" + "x" * 100 for i in range(500)])
    for each in some:
        ask_for_lists(each, 40)
        each.send("LOCK", "0000" + "x" * 100)
        each.send("LOCK", "mine")
        each.socket.shutdown(socket.SHUT_WR)
    for each in some:
        data = bytearray()
        while more := each.socket.recv(1 << 20):
            data += more
        assert data.count(b"*500\r\n") == 40
        assert re.search(END.encode() + rb"\r\n\$-1\r\n(:\d+|\$-1)\r\n$", data)


def test_it_stops_in_the_midst_of_all_that(broker, clients):
    """Queues of lists nobody reads, lazy answers, clients that hang up, half-closed ones and those who wait."""
    holder = clients(broker)
    harness.lock_many(holder, [f"{i:04}" + "x" * 100 for i in range(500)])
    deaf, lazy, half, gone, waiting = ([clients(broker, 2) for _ in range(20)] for _ in range(5))
    with stopped(broker):
        for c in deaf:
            c.send_raw(harness.encode("LOCKS") * 100)
        for c in lazy:
            c.send_raw(harness.encode("LOCK", "lazy", "SHARED") + harness.encode("UNLOCK", "lazy", "LAZY"))
        for c in half + gone + waiting:
            c.send_raw(harness.encode("LOCKS") + harness.encode("LOCK", "0000" + "x" * 100))
        for c in half:
            c.socket.shutdown(socket.SHUT_WR)
        for c in gone:
            c.close()
        broker.signal(signal.SIGTERM)
    assert broker.process.wait(harness.PATIENCE) == 0
