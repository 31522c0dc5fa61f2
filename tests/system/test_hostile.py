# SPDX-License-Identifier: Apache-2.0
"""Hostile and clumsy clients: one clear error, a closed connection where the stream cannot be trusted any more,
everybody else undisturbed, memory bounded."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

import harness
from mishaps import stopped


def resident_kb(daemon):
    """0 under a sanitizer, which keeps what was freed."""
    if harness.sanitizer_options():
        return 0
    with open(f"/proc/{daemon.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def descriptors(daemon):
    """Without its directory, which it opens when it has time."""
    folder = f"/proc/{daemon.pid}/fd"
    return sum(not os.path.isdir(f"{folder}/{number}") for number in os.listdir(folder))


def wait_alone(client):
    harness.wait_until(lambda: len(client.call("CLIENT", "LIST").splitlines()) == 1, "the others to be gone")


BROKEN = {
    "negative array": b"*-5\r\n",
    "huge array": b"*1000000000\r\n",
    "array over 64 bits": b"*99999999999999999999\r\n",
    "array of words": b"*two\r\n",
    "negative bulk": b"*1\r\n$-1\r\n",
    "huge bulk": b"*1\r\n$2000000000\r\n",
    "bulk over 64 bits": b"*1\r\n$99999999999999999999\r\n",
    "bulk without length": b"*1\r\n$\r\n",
    "not a bulk": b"*1\r\n:5\r\n",
    "bulk longer than said": b"*1\r\n$4\r\nPINGPONG\r\n",
    "endless line": b"x" * 2000000,
    "endless length line": b"*" + b"1" * 2000000,
    "unbalanced quotes": b"PING \"abc\r\n",
}


@pytest.mark.parametrize("junk", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_request_gets_one_error_and_the_end(standalone, clients, junk):
    other = clients(standalone)
    other.call("LOCK", "a")
    c = clients(standalone, 2)
    with contextlib.suppress(ConnectionError):  # it did not read all of it, rightly
        c.send_raw(junk)
    answer = c.reply()
    assert isinstance(answer, harness.Error) and answer.code == "ERR"
    assert c.ended()
    assert c.buffer == b""
    assert other.call("VALID", "a") > 0


def test_random_bytes_disturb_nobody(standalone, clients):
    rng = random.Random(2)
    other = clients(standalone)
    other.call("LOCK", "a")
    for _ in range(100):
        with standalone.client(2) as c:
            alphabet = rng.choice([bytes(range(256)), b"*$:\r\n0123456789-", b"*1\r\n$4PINGLOCK "])
            with contextlib.suppress(OSError):
                c.send_raw(bytes(rng.choices(alphabet, k=rng.randrange(1, 3000))))
                c.socket.shutdown(socket.SHUT_WR)
            assert c.ended()
    assert other.call("UNLOCK", "a") == 0
    assert len(other.call("CLIENT", "LIST").splitlines()) == 1


@pytest.mark.parametrize("part", [b"*", b"*2\r\n$4\r\nLO", b"LOCK a",
                                  b"*2\r\n$4\r\nLOCK\r\n$1\r\na", b"*1\r\n$4\r\nPING\r"])
def test_half_a_request_waits_and_goes_with_its_client(standalone, clients, part):
    c = clients(standalone, 2)
    c.send_raw(part)
    assert c.quiet()
    c.close()
    other = clients(standalone)
    wait_alone(other)
    assert other.call("LOCKS") == []


def test_a_request_may_come_byte_by_byte(standalone, clients):
    c = clients(standalone, 2)
    for byte in harness.encode("PING", "slowly") + b"PING again\r\n":
        c.send_raw(bytes([byte]))
    assert c.reply() == "slowly"
    assert c.reply() == "again"


def test_an_error_stays_one_line_whatever_was_sent(standalone, clients):
    c = clients(standalone, 2)
    assert c.call("bad\r\n+OK\r\n$-1\r\n").code == "ERR"
    assert c.call("PING") == "PONG"


def test_a_client_that_never_reads_is_dropped_and_memory_stays_bounded(standalone, clients):
    other = clients(standalone)
    before = resident_kb(standalone)
    with standalone.client(2) as c:
        c.socket.settimeout(0.5)
        sent = 0
        with pytest.raises((TimeoutError, ConnectionError)):  # that it stopped reading is as good
            while sent < 400 * 1024 * 1024:
                sent += c.socket.send(harness.encode("ECHO", "x" * 4000) * 16)
        assert other.call("PING") == "PONG"
        grown = resident_kb(standalone) - before
        assert grown < 64 * 1024, f"{grown} kB"
    assert other.call("PING") == "PONG"


def test_thousands_of_idle_connections(daemons):
    d = daemons()
    before = descriptors(d)
    many = [socket.socket(socket.AF_UNIX) for _ in range(3000)]
    try:
        for s in many:
            s.connect(d.socket)
        with d.client() as c:
            assert len(c.call("CLIENT", "LIST").splitlines()) == 3001
            assert isinstance(c.call("LOCK", "a"), int)
        assert resident_kb(d) < 400 * 1024
    finally:
        for s in many:
            s.close()
    with d.client() as c:
        wait_alone(c)
    harness.wait_until(lambda: descriptors(d) <= before, "the descriptors to be closed")


HALF_A_REQUEST = b"*2\r\n$4\r\nECHO\r\n$65000\r\n" + b"x" * 60000
BEHIND_ONE_THAT_WAITS = b"LOCK a SHARED\r\n" + b"PING\r\n" * 10000


@pytest.mark.parametrize("sent", [HALF_A_REQUEST, BEHIND_ONE_THAT_WAITS], ids=["halves", "behind"])
def test_requests_that_cannot_be_served_yet_take_bounded_memory(standalone, clients, sent):
    """What is behind a request that waits stays in the socket, and who has half a long one has to come again."""
    c = clients(standalone)
    assert c.call("LOCK", "a") > 0
    before = resident_kb(standalone)
    many = [clients(standalone, 2) for _ in range(3000)]
    for each in many:
        each.socket.setblocking(False)
        each.socket.send(sent)
    assert c.call("PING") == "PONG"
    assert resident_kb(standalone) - before < 150 * 1024
    if sent == HALF_A_REQUEST:
        last = many[-1]
        last.socket.settimeout(harness.PATIENCE)
        assert last.reply().code == "LIMIT" and last.ended()
        late = clients(standalone)
        assert late.call("ECHO", "x" * 8000) == "x" * 8000
        # Those that are there go on as soon as there is room.
        for each in many[:-1]:
            each.close()
    else:
        assert c.call("UNLOCK", "a") == 0
        for each in many:
            each.socket.settimeout(harness.PATIENCE)
            assert isinstance(each.reply(), int) and each.reply() == "PONG"
            each.close()
    other = clients(standalone)
    other.send_raw(HALF_A_REQUEST)
    assert other.quiet()
    other.send_raw(b"x" * 5000 + b"\r\n")
    assert other.reply() == "x" * 65000


# ---- limits: at each and one past it ----


def test_limit_of_clients(daemons):
    d = daemons(limits={"clients": 3})
    three = [d.client() for _ in range(3)]
    fourth = d.client(2)
    answer = fourth.reply()
    assert answer.code == "LIMIT"
    assert fourth.ended()
    assert [c.call("PING") for c in three] == ["PONG"] * 3
    three.pop().close()

    def accepted():
        with d.client(2) as c:
            try:
                return c.call("PING") == "PONG"
            except (harness.Closed, ConnectionError):
                return False

    harness.wait_until(accepted, "a place to be free")
    for c in [*three, fourth]:
        c.close()


def test_limit_of_locks(daemons, clients):
    d = daemons(limits={"locks": 3}, locks__linger_ms=0)
    c = clients(d)
    for name in "abc":
        assert isinstance(c.call("LOCK", name), int)
    assert c.call("LOCK", "d").code == "LIMIT"
    assert c.call("UNLOCK", "a") == 0
    assert isinstance(c.call("LOCK", "d"), int)


def test_limit_of_requests_per_lock(daemons, clients):
    d = daemons(limits={"requests_per_lock": 2})
    holder, a, b, one_more = (clients(d) for _ in range(4))
    holder.call("LOCK", "a")
    a.send("LOCK", "a")
    b.send("LOCK", "a")
    harness.wait_until(lambda: len(holder.call("QUEUE", "a")) == 2, "both to be queued")
    assert one_more.call("LOCK", "a").code == "LIMIT"
    holder.call("UNLOCK", "a")
    assert isinstance(a.reply(), int)


def test_limit_of_requests_of_a_user(daemons, clients):
    d = daemons(limits={"requests": 3, "user_share": 75})
    holder, a, b, one_more = (clients(d) for _ in range(4))
    holder.call("LOCK", "a")
    holder.call("LOCK", "b")
    a.send("LOCK", "a")
    b.send("LOCK", "b")
    harness.wait_until(lambda: len(holder.call("QUEUE", "a")) + len(holder.call("QUEUE", "b")) == 2, "the queue")
    assert one_more.call("LOCK", "a").code == "LIMIT"
    assert one_more.call("LOCK", "a").code == "LIMIT"


@pytest.mark.parametrize("which", ["grants_per_client", "grants"])
def test_limit_of_grants(daemons, clients, which):
    d = daemons(limits={which: 3})
    c = clients(d)
    for name in "abc":
        assert isinstance(c.call("LOCK", name), int)
    assert c.call("LOCK", "d").code == "LIMIT"
    assert isinstance(c.call("LOCK", "a", "REENTER"), int), "re-entry is no further grant"
    if which == "grants_per_client":
        assert isinstance(clients(d).call("LOCK", "d"), int), "another client has its own"
    c.call("UNLOCK", "b")
    assert isinstance(c.call("LOCK", "e"), int)


def test_limit_of_words_and_bytes_of_a_request(daemons, clients):
    d = daemons(limits={"request_args": 8, "request_bytes": 2000})
    c = clients(d)
    assert "redis_version" in c.call("INFO", *["server"] * 7)
    frame = len(harness.encode("ECHO", "x" * 1000)) - 1000
    assert c.call("ECHO", "x" * (2000 - frame)) == "x" * (2000 - frame)
    c.send("INFO", *["server"] * 8)
    assert c.reply().code == "ERR" and c.ended()
    c = clients(d)
    c.send("ECHO", "x" * (2001 - frame))
    assert c.reply().code == "ERR" and c.ended()
    c = clients(d, 2)
    c.send_raw(b"ECHO " + b"x" * 2000 + b"\r\n")
    assert c.reply().code == "ERR" and c.ended()


def ask_without_reading(daemon, c):
    """Until the daemon takes no more; returns how many whole answers of 2000 bytes are due."""
    request = harness.encode("ECHO", "x" * 2000)
    c.socket.setblocking(False)
    sent = 0
    while harness.select.select([], [c.socket], [], 0.5)[1] or daemon.state() != "S":
        with contextlib.suppress(BlockingIOError):
            sent += c.socket.send(request[sent % len(request):] + request * 100)
        assert sent < 10000000
    c.socket.settimeout(harness.PATIENCE)
    return sent // len(request)


def cpu_ticks(daemon):
    return sum(map(int, harness.stat(f"/proc/{daemon.pid}/stat")[11:13]))


def assert_idle(daemon):
    def idle():
        before, after, _ = harness.over(0.5, lambda: cpu_ticks(daemon))
        return after - before < 10

    harness.wait_until(idle, "the daemon to be idle")  # on a busy machine something may yet be begun


def test_a_holder_that_dies_with_unread_replies_is_gone_at_once(standalone, clients):
    other = clients(standalone)
    other.call("LOCK", "busy")
    c = clients(standalone)
    c.send("LOCK", "mine")
    c.send("LOCK", "busy")
    c.send("PING")
    harness.wait_until(lambda: len(other.call("QUEUE", "busy")) == 1, "the second request")
    c.close()
    # A third one asks: the two would be a circle for as long as it is not known that one is gone.
    assert isinstance(clients(standalone).call("LOCK", "mine", "WAIT", 20000), int)
    assert other.call("QUEUE", "busy") == []
    assert_idle(standalone)


def test_a_half_closed_slow_reader_costs_nothing(standalone, clients):
    c = clients(standalone, 2)
    ask_without_reading(standalone, c)
    c.socket.shutdown(socket.SHUT_WR)
    c.socket.recv(100000)
    assert clients(standalone).call("PING") == "PONG"
    assert_idle(standalone)


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_heavy_requests_do_not_cost_the_session(zk, root, daemons, clients):
    """Pitfall 11. A pattern made to be slow, over many locks, pipelined by many: the heartbeat goes on between them, and
    so does whatever else there is. The session is so long that a busy machine alone costs it nothing."""
    d = daemons(zk, root, zookeeper__session_timeout_ms=20 * zk.tick_ms)
    holder = clients(d)
    for i in range(300):
        holder.send("LOCK", "a" * 395 + str(1000 + i))
    for i in range(300):
        assert isinstance(holder.reply(), int)
    pattern, before = "*" + "a" * 150 + "b", d.info("stats")
    heavy, light = [clients(d, 2) for _ in range(8)], clients(d)

    def served():
        return int(harness.parse_info(light.call("INFO", "stats"))["requests_total"])

    def in_turns():
        """Seen by who asks again and again: so many were served meanwhile. Who is asleep, as on a busy machine, sees less of it."""
        seen = [served()]
        for c in heavy:
            c.send_raw(harness.encode("LOCKS", pattern) * 30)
        while seen[-1] < seen[0] + 8 * 30:
            seen.append(served())
        for c in heavy:
            for _ in range(30):
                answer = c.reply()
                assert answer == [] or answer.code == "LIMIT"
        # Most of them a few at a time: no connection's all, nor more than a few rounds of all connections.
        return sum(b - a for a, b in zip(seen, seen[1:]) if b - a < 30) > 8 * 30 / 2

    harness.wait_until(in_turns, "turns of heavy requests and of light ones")
    after = d.info("stats")
    for what in ("sessions_lost_total", "drops_total", "stalls_total", "jeopardies_total"):
        assert after[what] == before[what]


def test_a_log_that_nobody_takes_does_not_stop_the_locks():
    d = harness.Daemon(wait=False, limits={"clients": 2})
    os.mkfifo(d.log_path)
    reader = os.open(d.log_path, os.O_RDONLY | os.O_NONBLOCK)
    d.start()
    writer = os.open(d.log_path, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    one, two = d.client(), d.client()
    for _ in range(3):  # each is logged
        assert d.client(2).reply().code == "LIMIT"
    assert one.call("PING") == two.call("PING") == "PONG"
    one.close()
    two.close()
    d.kill()
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("last", [b"", b"\r\n", b"*1\r\n$4\r\nPI", b"LOCK busy\r\n", b"PING\r\n"], ids=repr)
def test_a_holder_that_sends_something_and_dies_with_unread_replies_is_gone_at_once(standalone, clients, last):
    """The daemon learns of both at the same instant, and the kernel reports the end as if it were input."""
    other = clients(standalone)
    other.call("LOCK", "busy")
    c = clients(standalone)
    c.send("LOCK", "mine")
    harness.wait_until(lambda: other.call("HOLDERS", "mine"), "the grant")
    with stopped(standalone):
        harness.wait_until(lambda: standalone.state() == "T", "the daemon to stop")
        c.send_raw(last)
        c.close()
    assert isinstance(clients(standalone).call("LOCK", "mine", "WAIT", 20000), int)
    assert other.call("QUEUE", "busy") == []


def test_limit_of_unread_answers(daemons, clients):
    """Who does not read is not listened to either, and goes on when he reads."""
    d = daemons(limits={"output_bytes": 4096})
    other, c = clients(d), clients(d, 2)
    due = ask_without_reading(d, c)
    assert other.call("PING") == "PONG"
    for _ in range(due):
        assert c.reply() == "x" * 2000


def test_limits_of_events_that_are_not_read(daemons, clients):
    """Bytes more than may be pending end a connection. A daemon that stops tells every holder of every lock, but
    stops before one has more events than he may: that would cost him what he is to be waited for."""
    d = daemons(limits={"events_per_client": 4, "output_bytes": 4096})
    two_at, two_past, three_at, three_past = clients(d, 2), clients(d, 2), clients(d), clients(d)
    for c, which, count in ((two_at, "two_at", 3), (two_past, "two_past", 4), (three_at, "x" * 400, 8),
                            (three_past, "y" * 400, 12)):
        for i in range(count):
            assert isinstance(c.call("LOCK", f"{which}{i}"), int)
    ask_without_reading(d, three_past)
    d.signal(signal.SIGTERM)
    assert [two_at.call("EVENTS")[0] for _ in range(3)] == ["revoke"] * 3
    assert [three_at.push()[0] for _ in range(8)] == ["revoke"] * 8
    assert [two_past.call("EVENTS")[0] for _ in range(3)] == ["revoke"] * 3
    assert two_past.call("EVENTS", "WAIT", 0) is None and two_past.call("VALID", "two_past3") > 0
    assert three_past.ended() and b"revoke" not in three_past.buffer


def test_limit_of_the_sessions_paths(daemons, zk, root, clients):
    """What protects the ensemble: the sum of the paths, with room for what is being handed over."""
    d = daemons(zk, root, limits={"session_path_bytes": 2000})
    c, taken = clients(d), []
    while True:
        answer = c.call("LOCK", f"lock{len(taken)}")
        if isinstance(answer, harness.Error):
            break
        taken.append(f"lock{len(taken)}")
    assert answer.code == "LIMIT" and 3 < len(taken) < 40
    paths = next(p for p in zk.sessions().values() if f"{root}/.hosts/{d.host}" in p)
    assert len(paths) == len(taken) + 1
    assert sum(map(len, paths)) <= 2000
    assert c.call("PING") == "PONG"
    for name in taken:
        assert c.call("UNLOCK", name) == 0
    harness.wait_until(lambda: isinstance(c.call("LOCK", "again"), int), "room")


def test_pipelined_requests_are_answered_in_order(broker, clients):
    c = clients(broker)
    for i in range(500):
        c.send("LOCK", f"n{i % 7}")
        c.send("ECHO", i)
        c.send("UNLOCK", f"n{i % 7}")
    for i in range(500):
        assert isinstance(c.reply(), int)
        assert c.reply() == str(i)
        assert c.reply() == 0


def test_churn_leaks_nothing(standalone):
    def churn(count):
        for i in range(count):
            with standalone.client() as a, standalone.client(2) as b:
                a.call("LOCK", f"churn{i}")
                b.send("LOCK", f"churn{i}")
                b.send_raw(b"*3\r\n$4\r\nLOCK\r\n$10\r\nhal")

        with standalone.client() as c:
            wait_alone(c)

    churn(200)
    before, open_before = resident_kb(standalone), descriptors(standalone)
    churn(600)
    harness.wait_until(lambda: descriptors(standalone) <= open_before, "the descriptors to be closed")
    assert resident_kb(standalone) < before + 8 * 1024


def test_pairs_by_the_hundred_thousand_take_no_memory(standalone, clients):
    c = clients(standalone, 2)
    batch = b"".join(harness.encode(word, f"n{i}") for i in range(1000) for word in ("LOCK", "UNLOCK"))

    def pairs(thousands):
        for _ in range(thousands):
            c.send_raw(batch)
            assert not any(isinstance(c.reply(), harness.Error) for _ in range(2000))

    pairs(40)
    before = resident_kb(standalone)
    pairs(160)
    assert resident_kb(standalone) < before + 512


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_nobody_else_is_slowed_by_a_flood(standalone, clients):
    """It is held up, and not thrown out: all that it sent is answered once it reads."""
    flood, c = clients(standalone, 2), clients(standalone)
    request = harness.encode("PING")
    flood.socket.settimeout(0.05)
    sent = worst = held_up = 0
    while held_up < 3:
        try:
            sent += flood.socket.send(request[sent % len(request):] + request * 10000)
        except TimeoutError:
            held_up += 1
        began = time.monotonic()
        assert c.call("PING") == "PONG"
        worst = max(worst, time.monotonic() - began)
    assert worst < 5
    flood.socket.settimeout(harness.PATIENCE)
    due, got = sent // len(request) * b"+PONG\r\n", b""
    while len(got) < len(due):
        got += flood.socket.recv(1 << 20)
    assert got == due
    flood.send_raw(request[sent % len(request):])
    assert flood.reply() == "PONG"


NAMELESS = """
import ctypes, sys; sys.path.insert(0, sys.argv[1])
import harness
ctypes.CDLL(None).prctl(15, b"a b=c\\nid=7 d", 0, 0, 0)
c = harness.Client(sys.argv[2])
c.call("LOCK", "a")
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_name_of_a_process_forges_nothing(standalone, clients):
    p = harness.spawn([sys.executable, "-c", NAMELESS, harness.HERE, standalone.socket],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    c = clients(standalone)
    (holder,) = c.call("HOLDERS", "a")
    assert holder["pid"] == p.pid
    lines = c.call("CLIENT", "LIST").splitlines()
    assert len(lines) == 2
    for line in lines:
        fields = dict(field.split("=", 1) for field in line.split(" "))
        assert {"id", "name", "pid", "uid", "cmd", "resp", "held"} <= set(fields)
        assert int(fields["pid"]) in (p.pid, os.getpid())
    p.communicate()


def test_who_was_held_back_by_what_others_leave_unread_goes_on_when_they_are_gone(standalone, clients):
    """What all connections leave unread together is bounded: who leaves something unread has to wait meanwhile."""
    request, count = harness.encode("COMMAND", "DOCS"), 300
    c, end = clients(standalone, 2), b"+PONG\r\n"
    c.send_raw(request + harness.encode("PING"))
    answer = b""
    while not answer.endswith(end):
        answer += c.socket.recv(1 << 20)
    hogs = [clients(standalone, 2) for _ in range(200)]
    for hog in hogs:
        hog.send_raw(request * count)
    late = clients(standalone, 2)
    late.send_raw(request * count)
    assert_idle(standalone)  # it can do no more for any of them
    for hog in hogs:
        hog.close()
    left = (len(answer) - len(end)) * count
    while left > 0:
        left -= len(late.socket.recv(1 << 20))
    assert left == 0 and late.quiet()
