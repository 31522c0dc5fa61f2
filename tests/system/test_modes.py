# SPDX-License-Identifier: Apache-2.0
"""Shared and exclusive: among the clients of a host, and among hosts. With Curator's read/write lock: test_interop_modes.py."""

import os
import re
import signal

import harness
import test_cli
from test_redis_clients import redis_cli

OPERATORS = True  # see clients of conftest.py

SOON = 20000  # milliseconds: a wait that is expected to end well before


# ---- on one host ----


def test_redis_cli_shares(broker, clients):
    other = clients(broker)
    token = other.call("LOCK", "a", "SHARED")
    lines = redis_cli(broker, stdin="LOCK a SHARED\nLOCK a\nDOWNGRADE a\nlock a wait 5 shared reenter\n").splitlines()
    lines = [line for line in lines if line]
    assert lines[0] == lines[2] == lines[3] == str(token)
    assert lines[1].startswith("HELD ")


def test_the_command_shares(broker, clients):
    c = clients(broker)
    c.call("LOCK", "a", "SHARED")
    for option in (["-s"], ["--shared"], ["-x", "-s"]):
        done = test_cli.run(broker, "lock", "-n", *option, "a", "--", "sh", "-c", "echo $LOCKBROKER_TOKEN")
        assert (done.returncode, done.stderr) == (0, "") and re.fullmatch(r"\d+\n", done.stdout)
    for option in ([], ["-x"], ["-s", "--exclusive"]):
        assert test_cli.run(broker, "lock", "-n", *option, "a", "--", "true").returncode == 75
    p, pid = test_cli.started(broker, "sleep", "100", options=["-s"])
    shown = test_cli.run(broker, "who", "a").stdout
    assert shown.count(" shared ") == 2
    os.kill(pid, signal.SIGKILL)
    p.communicate(timeout=harness.PATIENCE)


# ---- two hosts ----


def test_readers_of_two_hosts_hold_it_together(two_hosts, clients):
    a, b, c = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    tokens = [a.call("LOCK", "a", "SHARED", "WAIT", SOON), b.call("LOCK", "a", "SHARED", "WAIT", SOON)]
    c.send("LOCK", "a")
    harness.wait_queued(two_hosts[1], "a", 1)
    b.call("UNLOCK", "a")
    assert c.quiet()
    a.call("UNLOCK", "a")
    assert c.reply() > max(tokens)
    assert a.call("LOCK", "a", "SHARED", "WAIT", 200) is None


def queued_writer(daemon, k, root, clients):
    """One that waits on that daemon for the lock a, its znode behind that of the readers."""
    writer = clients(daemon)
    writer.send("LOCK", "a")
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 2, "the writer to be queued")
    return writer


def enters_before(writer, readers, late):
    """The writer, when the readers have gone; and all that came after it, when it has."""
    for c in readers:
        c.call("UNLOCK", "a")
    token = writer.reply()
    assert all(c.quiet(0.05) for c in late)
    writer.call("UNLOCK", "a")
    assert all(c.reply() > token for c in late)


def test_a_reader_does_not_pass_the_waiting_writer_of_another_host(two_hosts, zk, root, clients, kazoo_client):
    """Pitfall 18. Readers who come while it waits might read for hours: none of them joins those who were there."""
    alpha, beta = two_hosts
    first = clients(alpha)
    first.call("LOCK", "a", "SHARED", "WAIT", SOON)
    writer = queued_writer(beta, kazoo_client(zk), root, clients)
    for wait in (0, 0, 100):
        assert clients(alpha).call("LOCK", "a", "SHARED", "WAIT", wait) is None
    late = [clients(alpha) for _ in range(5)]
    for number, c in enumerate(late):
        c.send("LOCK", "a", "SHARED")
        harness.wait_queued(alpha, "a", number + 1)
    assert clients(alpha).call("LOCK", "a", "SHARED", "WAIT", 0) is None
    assert "a waiter on another host comes before further readers of this host" in clients(alpha).call("WHY", "a")["why"]
    enters_before(writer, [first], late)


def test_a_stream_of_readers_ends_when_a_writer_of_another_host_is_known(daemons, zk, root, clients, kazoo_client):
    """Where nobody waits each joins at once. Whoever comes is told of by the watch: from then on none does, whatever
    the bounds of hand-offs are."""
    alpha, beta = daemons(zk, root, locks__handoff_max=1000000, locks__handoff_ms=60000), daemons(zk, root)
    readers = [clients(alpha), clients(alpha)]
    for c in readers:
        c.call("LOCK", "a", "SHARED", "WAIT", SOON)
    writer = queued_writer(beta, kazoo_client(zk), root, clients)

    def known():
        c = clients(alpha)
        if c.call("LOCK", "a", "SHARED", "WAIT", 0) is None:
            return True
        readers.append(c)
        return False

    harness.wait_until(known, "the writer to be known")
    late = [clients(alpha) for _ in range(5)]
    for c in late:
        c.send("LOCK", "a", "SHARED")
    assert all(c.quiet(0.05) for c in late)
    enters_before(writer, readers, late)


def test_a_writers_try_elsewhere_does_not_lock_readers_out(two_hosts, zk, root, clients, kazoo_client):
    """Who reads for long, and a writer that came and went: those who want to read meanwhile are let in."""
    alpha, beta = two_hosts
    keeper, passer = clients(alpha), clients(beta)
    keeper.call("LOCK", "a", "SHARED", "WAIT", SOON)
    assert passer.call("LOCK", "a", "WAIT", 300) is None
    reader = clients(alpha)
    assert isinstance(reader.call("LOCK", "a", "SHARED", "WAIT", SOON), int)
    k = kazoo_client(zk)
    passer.send("LOCK", "a")
    harness.wait_until(lambda: any("__WRIT__" in name for name in k.get_children(f"{root}/a")), "the writer's znode")

    def waits():
        """A reader of a host that knows of the writer, which is told a moment after the znode is there."""
        late = clients(alpha)
        late.send("LOCK", "a", "SHARED")
        if late.quiet(0.3):
            return late
        late.close()
        return None

    late = harness.wait_until(waits, "a reader to wait behind the writer")
    passer.close()
    assert isinstance(late.reply(), int)


def test_a_downgrade_lets_no_writer_of_another_host_in(two_hosts, clients):
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    token = a.call("LOCK", "a", "WAIT", SOON)
    b.send("LOCK", "a")
    harness.wait_queued(two_hosts[1], "a", 1)
    assert a.call("DOWNGRADE", "a") == token
    assert b.quiet(0.3)
    assert a.call("VALID", "a") > 0
    a.call("UNLOCK", "a")
    assert b.reply() > token


def test_counters_between_hosts_see_no_reader_beside_a_writer(two_hosts, clients, tmp_path):
    """Shells of two hosts: a writer changes two files one after the other, a reader must see them equal."""
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("0"), right.write_text("0")
    write = f'n=$(($(cat {left}) + 1)); echo $n > {left}; sleep 0.02; echo $n > {right}'
    read = f'for i in 1 2 3; do [ "$(cat {left})" = "$(cat {right})" ] || exit 9; sleep 0.005; done'
    jobs = []
    for i in range(24):
        mode, work = (["-s"], read) if i % 3 else ([], write)
        jobs.append(test_cli.start(two_hosts[i % 2], "lock", *mode, "a", "--", "sh", "-c", work))
    assert [job.wait(harness.PATIENCE) for job in jobs] == [0] * len(jobs)
    for job in jobs:
        job.communicate()
    assert left.read_text() == right.read_text() == "8\n"
