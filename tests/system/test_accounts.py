# SPDX-License-Identifier: Apache-2.0
"""What one user, or one systemd unit, leaves to others of what all share; what is kept for operators."""

import contextlib
import os
import re
import select

import pytest

import cgroup
import harness
import pages
from test_cli import run
from users import OTHER_USER, as_other_user, let_in


def for_all_users(daemons, **limits):
    d = daemons(daemon__socket_mode="0666", limits={"user_share": 75} | limits)
    let_in(d)
    return d


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@needs_root
def test_idle_connections_of_one_user_leave_room_for_others_and_for_operators(daemons, clients):
    d = for_all_users(daemons, clients=100)
    with as_other_user():
        held = [clients(d) for _ in range(73)]  # 75 % of 98
        assert held[-1].call("PING") == "PONG"
        refused = clients(d, 2)
    answer = refused.reply()
    assert answer.code == "LIMIT" and refused.ended()
    (shown,) = pages.claimed("client-lib/man/lockbrokerd.8", __file__)
    assert f"-{answer}\n" == shown.replace("1000", str(OTHER_USER)).replace("9187", "73")
    mine = [clients(d) for _ in range(18)]  # 75 % of 25
    assert [c.call("PING") for c in mine] == ["PONG"] * 18
    assert clients(d, 2).reply().code == "LIMIT"
    operators = [clients(d, operator=True) for _ in range(9)]
    assert [c.call("PING") for c in operators] == ["PONG"] * 9
    assert [c.call("PING") for c in held] == ["PONG"] * 73
    # Now there is no place at all, and that is no user's fault.
    assert clients(d, 2, operator=True).reply() == "LIMIT the daemon has as many clients as it can have"
    full, = (line for line in d.log().splitlines() if "as many clients as it can have" in line)
    assert "event=client_refused why=clients" in full and "uid=" not in full
    # The share is of what the others leave: with 27 elsewhere it is 53 now, and 72 stay.
    held.pop().close()
    harness.wait_until(lambda: "connected_clients:99" in operators[0].call("INFO", "clients"), "the end of the connection")
    with as_other_user():
        assert clients(d, 2).reply().startswith(f"LIMIT user {OTHER_USER} uses 72 of 53 allowed connections")


@needs_root
def test_unfinished_requests_of_one_user_harm_no_other(daemons, clients):
    d = for_all_users(daemons, request_bytes=16 << 20, output_bytes=16 << 20)
    bystander, half = clients(d), harness.encode("ECHO", "x" * 1000000)
    assert isinstance(bystander.call("LOCK", "a"), int)
    part = harness.encode("ECHO", "x" * 15000000)[:10000000]
    with as_other_user():
        hoard = [clients(d, 2) for _ in range(12)]
    for c in hoard:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            c.send_raw(part)
    harness.wait_until(lambda: f"closed a client: user {OTHER_USER} uses" in d.log(), "the hoarder to be refused")
    bystander.send_raw(half[:500000])
    assert clients(d).call("PING") == "PONG"
    bystander.send_raw(half[500000:])
    assert bystander.reply() == "x" * 1000000
    assert bystander.call("VALID", "a") > 0


@needs_root
def test_unread_output_of_one_user_harms_no_other(daemons, clients):
    """Each connection of the hoarder has less than it may alone: only together they have too much."""
    d = for_all_users(daemons, output_bytes=16 << 20, request_bytes=16 << 20)
    bystander = clients(d)
    assert isinstance(bystander.call("LOCK", "a"), int)
    with as_other_user():
        hoard = [clients(d, 2) for _ in range(10)]
    long = harness.encode("ECHO", "x" * 12000000)
    for c in hoard:
        c.send_raw(long)
    harness.wait_until(lambda: f"that does not read: user {OTHER_USER} uses" in d.log(), "the hoarder to be closed")
    text = "x" * 1000000
    assert bystander.call("ECHO", text) == text
    assert bystander.call("VALID", "a") > 0
    with as_other_user():
        assert clients(d).call("PING") == "PONG"


def lock_many(client):
    """As many as test_lists_... counts: the answer to LOCKS is long then."""
    for i in range(1500):
        client.send("LOCK", f"{i:0500}")
    assert all(isinstance(client.reply(), int) for _ in range(1500))


@needs_root
def test_lists_of_a_user_that_reads_wait_for_room_and_come_whole(daemons, clients):
    """Together they are more than the user may leave unread: none is refused or cut, and what is kept has a bound."""
    d = for_all_users(daemons)
    operator = clients(d, operator=True)
    with as_other_user():
        holder = clients(d, 2)
        readers = [clients(d, 2) for _ in range(90)]
    lock_many(holder)
    for c in readers:
        c.send_raw(harness.encode("LOCKS") + harness.encode("ECHO", "that was all"))
    holder.send("PING")  # what is short is answered meanwhile
    assert holder.reply() == "PONG"
    told = {c.socket: bytearray() for c in readers}
    left, most = set(told), 0
    while left:
        ready, _, _ = select.select(left, [], [], harness.PATIENCE)
        assert ready
        for row in operator.call("ACCOUNTS"):
            if row["account"] == f"user {OTHER_USER}" and row["of"] == "bytes of output that is not read":
                most = max(most, row["used"])
        for s in ready:
            more = s.recv(1 << 20)
            assert more, "it was closed"
            told[s] += more
            if told[s].endswith(b"that was all\r\n"):
                left.remove(s)
    assert all(each.count(b"$4\r\nname\r\n") == 1500 for each in told.values())
    assert 20 << 20 < most <= 0.75 * 0.98 * (88 << 20)
    assert "does not read" not in d.log()


@needs_root
def test_accounts_show_who_is_hoarding(daemons, clients):
    d = for_all_users(daemons, clients=100, requests=100)
    holder = clients(d)
    holder.call("LOCK", "a")
    with as_other_user():
        hoard = [clients(d) for _ in range(60)]
    for c in hoard:
        c.send("LOCK", "a")
    harness.wait_queued(d, "a", 60)
    operator = clients(d, operator=True)
    rows = operator.call("ACCOUNTS")
    assert [(r["account"], r["used"], r["of"]) for r in rows[:2]] == [
        (f"user {OTHER_USER}", 60, "connections"), (f"user {OTHER_USER}", 60, "waiting requests")]
    assert rows[0]["percent"] == 83 and rows[0]["allowed"] == 72  # 75 % of 98, less than the two of the others
    assert {r["of"]: r["reserve"] for r in rows}["connections"] == 2, "operators have a part that others cannot use"
    assert rows == sorted(rows, key=lambda r: -r["percent"])
    assert holder.call("ACCOUNTS").code == "DENIED"
    shown = run(d, "accounts", check=True).stdout
    assert f"user {OTHER_USER}" in shown.splitlines()[1] and "RESERVE" in shown.splitlines()[0]
    for c in hoard:
        c.close()
    harness.wait_until(lambda: f"user {OTHER_USER}" not in str(operator.call("ACCOUNTS")), "the hoarder to have nothing")


# ---- units ----


@contextlib.contextmanager
def in_unit(name):
    """What connects meanwhile, and is answered meanwhile, belongs to that unit."""
    own = [line.rstrip("\n").split(":", 2) for line in open("/proc/self/cgroup")]
    path = {names: path for _, names, path in own}["name=systemd" if any(names == "name=systemd" for _, names, _ in own) else ""]
    unit, root = os.path.join(cgroup.hierarchy(), name), cgroup.hierarchy()
    os.makedirs(unit, exist_ok=True)
    try:
        cgroup.enter(unit)
        yield
    finally:
        cgroup.enter(root + path)
        os.rmdir(unit)


needs_units = pytest.mark.skipif(os.geteuid() != 0 or not cgroup.hierarchy(), reason="only root can make a cgroup, where there are some")
ONE, TWO = (f"lockbroker-test-{os.getpid()}-{what}.service" for what in ("one", "two"))


def connected(daemon, clients, count):
    many = [clients(daemon) for _ in range(count)]
    assert [c.call("PING") for c in many] == ["PONG"] * count
    return many


def shares(operator):
    return {(row["account"], row["of"]): row["used"] for row in operator.call("ACCOUNTS") if "unit" in row["account"]}


@needs_units
def test_units_of_a_user_that_is_named_have_shares_of_their_own(daemons, clients, tmp_path):
    conf = tmp_path / "lockbroker.conf"
    conf.write_text("[limits]\nrequests = 100\n")
    os.mkdir(f"{conf}.d")
    drop_in = tmp_path / "lockbroker.conf.d" / "50-units.conf"
    drop_in.write_text(f"[limits]\nby_unit = daemon,\n  {OTHER_USER}\n")
    d = daemons(daemon__socket_mode="0666", argv=["-c", str(conf)], limits={"user_share": 75, "clients": 100})
    let_in(d)
    operator = clients(d, operator=True)
    assert operator.call("CONFIG", "GET", "limits.by_unit") == {"limits.by_unit": f"daemon,{OTHER_USER}"}
    one, two = (f"user {OTHER_USER} (unit {unit})" for unit in (ONE, TWO))
    with in_unit(ONE), as_other_user():
        many = connected(d, clients, 70)
        for c in many:
            c.send("LOCK", "a")
        answer = [clients(d, 2) for _ in range(4)][-1].reply()
        assert answer.startswith(f"LIMIT {one} uses 7") and "allowed connections" in answer
    harness.wait_queued(d, "a", 69)
    with in_unit(TWO), as_other_user():
        others = connected(d, clients, 10)
        others[0].send("LOCK", "b")
    assert others[0].reply() > 0
    harness.wait_until(lambda: shares(operator).get((two, "connections")) == 10, "those that were refused to be gone")
    assert shares(operator)[one, "waiting requests"] == 69
    shown = run(d, "accounts", check=True).stdout
    assert one in shown and two in shown

    # A hand-over finds everybody where they were, in both kinds of pools.
    before = shares(operator)
    d.hand_over(operator)
    assert shares(operator) == before
    # A reload is for who comes.
    drop_in.write_text("")
    assert operator.call("RELOAD").splitlines()[1] == (
        "limits.by_unit: this is for new connections, and for all after a restart or a hand-over")
    with in_unit(TWO), as_other_user():
        connected(d, clients, 1)
    assert shares(operator) == before
    assert any(row["account"] == f"user {OTHER_USER}" for row in operator.call("ACCOUNTS"))
    d.hand_over(operator)
    assert not shares(operator)
    for c in many:
        c.close()


def test_a_user_that_is_not_there_is_an_error(conf):
    conf.write_text("[limits]\nby_unit = root,no-such-user\n")
    done = harness.run([harness.program("lockbrokerd"), "--check-config", str(conf)])
    assert (done.returncode, done.stderr) == (2, f"{conf}:2: limits.by_unit: there is no user no-such-user; make it, or name its "
                                                 "number\n")


# ---- memory ----


# What a name may need: its lock, claim and grant, and its records in the file saved and in the spare of that.
NAME_BYTES = 7 << 10
# What a page of delegations may need in the kernel, beside its memory, which is counted: its file, inode, entry and mapping,
# 1.5 KiB with Linux 6.18. There are no more pages than connections.
PAGE_BYTES = 2 << 10


def test_the_service_may_have_the_memory_that_users_can_take(standalone, clients):
    """With the default limits: twice what is counted in bytes, and what a connection may have without being counted; and
    what a connection and its page may cost in the kernel, and what names may need."""
    printed = harness.run([harness.program("lockbrokerd"), "--print-config"], check=True).stdout
    limit = {key: int(value) for key, value in re.findall(r"^(\w+) = (\d+)$", printed.partition("[limits]")[2], re.M)}
    source = harness.read_source("daemon/io/socket/conn.h")
    small = sum(int(value) for value in re.findall(r"_SMALL = (\d+),", source))
    pool = metrics(clients(standalone, operator=True), "pool_limit")
    assert small == 16384
    taken = (pool["memory_bytes"] + pool["input_bytes"] + pool["output_bytes"] + limit["clients"] * small +
             2 * limit["session_path_bytes"])
    assert pool["memory_bytes"] == limit["memory_bytes"] and pool["input_bytes"] == pool["output_bytes"] == 88 << 20
    unit = harness.read_source("systemd/lockbrokerd.service")
    in_kernel = 4 * int(re.search(r"CONN_KERNEL_BYTES = (\d+),", source).group(1))
    assert in_kernel == 64 << 10
    most = 2 * taken + limit["clients"] * (in_kernel + PAGE_BYTES) + limit["locks"] * NAME_BYTES
    assert int(re.search(r"^MemoryMax=(\d+)M$", unit, re.M).group(1)) == -(-most // (1 << 20))
    assert "MemoryHigh" not in unit, "a daemon that is slowed down loses its session"


@pytest.mark.plain_only("it is about how much memory is used")
def test_a_name_needs_no_more_memory_than_the_service_may_have_for_it(daemons, clients):
    """The longest ones, each byte of which is three in a path."""
    d = daemons()
    c = clients(d)
    c.call("PING")
    before = resident(d.pid)
    for i in range(10):
        c.send_raw(b"".join(harness.encode("LOCK", f"{i}{n:03}" + 508 * "/") for n in range(1000)))
        assert all(isinstance(c.reply(), int) for _ in range(1000))
    anonymous, shared = (now - then for now, then in zip(resident(d.pid), before, strict=True))
    assert 2 << 10 < (anonymous + 2 * shared) / 10000 < NAME_BYTES


@pytest.mark.plain_only("it is about how much memory is used")
def test_an_idle_connection_keeps_no_words_of_its_last_request(daemons, clients):
    d = daemons()
    many = [clients(d) for _ in range(100)]
    before = resident(d.pid)[0]
    for c in many:
        c.send_raw(b'echo "' + 60000 * b"x" + b'"\r\n')
        assert c.reply() == 60000 * "x"
    assert resident(d.pid)[0] < before + (2 << 20)


@pytest.mark.plain_only("it is about how much memory is used")
def test_what_is_left_of_much_needs_little_memory(daemons, clients):
    """Of a long answer all but the end is read, of a long request all but the end of the next one is served."""
    d = daemons()
    holder = clients(d, 2)
    lock_many(holder)
    whole = len(listed(holder, b"that was all\r\n", 1 << 30))
    many = [clients(d, 2) for _ in range(60)]
    before = resident(d.pid)[0]
    for c in many[:30]:
        listed(c, b"", whole - 38000)  # the kernel has room for 32 KB
    for c in many[30:]:
        c.send_raw(harness.encode("ECHO", "x" * 60000)[:-1])
        c.send_raw(b"\n" + harness.encode("ECHO", "x" * 6000)[:-3])
        assert c.reply() == "x" * 60000
    assert resident(d.pid)[0] < before + (4 << 20)


def listed(client, until, most):
    """So much of an answer that is the longest that there is, or all of it until then."""
    told = bytearray()
    client.send_raw(harness.encode("LOCKS") + harness.encode("ECHO", "that was all"))
    while len(told) < most and not (until and told.endswith(until)):
        told += client.socket.recv(min(1 << 16, most - len(told)))
    return told


def resident(pid):
    """Bytes of its own memory, and of files in memory."""
    with open(f"/proc/{pid}/status") as f:
        return [1024 * int(n) for n in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", f.read(), re.M)]


def metrics(client, name):
    return {pool: int(value) for pool, value in
            re.findall(rf'^lockbroker_{name}{{pool="(\w+)"}} (\d+)$', client.call("METRICS"), re.M)}


def test_what_is_not_read_is_a_metric(standalone, clients):
    operator, hoarder, half = clients(standalone, operator=True), clients(standalone), clients(standalone)

    def unread():
        return [metrics(operator, "pool_used")[pool] for pool in ("input_bytes", "output_bytes")]

    assert not any(unread())
    half.send_raw(harness.encode("ECHO", "x" * 50000)[:40000])
    for _ in range(8):
        hoarder.send("ECHO", "x" * 60000)
    harness.wait_until(lambda: min(unread()) > 8192, "both")
    hoarder.close()
    half.close()
    harness.wait_until(lambda: not any(unread()), "none")
