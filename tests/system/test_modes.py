# SPDX-License-Identifier: Apache-2.0
"""Shared and exclusive: among the clients of a host, among hosts, and with contenders of Curator's read/write lock."""

import os
import re
import signal

import pytest

import harness
import test_cli
from test_redis_clients import redis_cli

OPERATORS = True  # see clients of conftest.py

SOON = 20000  # milliseconds: a wait that is expected to end well before


class Curator:
    """A contender as Curator's InterProcessReadWriteLock makes it: its znode, and whether it may go on."""

    number = 0

    def __init__(self, k, path, tag):
        Curator.number += 1
        self.k, self.dir, self.tag = k, path, tag
        self.path = k.create(f"{path}/_c_00000000-0000-4000-8000-{Curator.number:012x}-{tag}", b"10.0.0.1",
                             ephemeral=True, sequence=True)

    def holds(self):
        """By Curator's rule: a writer is the first of all, a reader has no writer before it."""
        children = sorted(self.k.get_children(self.dir), key=lambda name: name[-10:])
        before = children[:children.index(self.path.rsplit("/", 1)[1])]
        return not [name for name in before if self.tag == "__WRIT__" or "__WRIT__" in name]

    def release(self):
        self.k.delete(self.path)


# ---- on one host ----


def test_readers_share_and_writers_do_not(broker, clients):
    a, b, c = (clients(broker) for _ in range(3))
    token = a.call("LOCK", "a", "SHARED")
    assert b.call("LOCK", "a", "WAIT", SOON, "SHARED") == token
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert sorted(holder["mode"] for holder in c.call("HOLDERS", "a")) == ["shared", "shared"]
    c.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    assert a.call("QUEUE", "a")[0]["mode"] == "exclusive"
    a.call("UNLOCK", "a")
    assert c.quiet()
    b.call("UNLOCK", "a")
    assert c.reply() > token
    assert a.call("LOCK", "a", "WAIT", 0, "SHARED") is None


def test_a_reader_waits_behind_a_waiting_writer(broker, clients):
    holder, writer, *readers = (clients(broker) for _ in range(5))
    holder.call("LOCK", "a", "SHARED")
    writer.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    for number, reader in enumerate(readers):
        reader.send("LOCK", "a", "SHARED")
        harness.wait_queued(broker, "a", number + 2)
    holder.call("UNLOCK", "a")
    token = writer.reply()
    assert all(reader.quiet(0.05) for reader in readers)
    writer.call("UNLOCK", "a")
    first, *others = [reader.reply() for reader in readers]
    assert first > token and others == [first] * 2


def test_an_upgrade_is_an_error_at_once(broker, clients):
    a, b = clients(broker), clients(broker)
    for c in (a, b):
        assert isinstance(c.call("LOCK", "a", "SHARED"), int)
    for c in (a, b, a):
        assert c.call("LOCK", "a", "REENTER").code == "DEADLOCK"
        assert c.call("LOCK", "a", "WAIT", 0, "REENTER").code == "DEADLOCK"
        assert c.call("LOCK", "a").code == "HELD"
    assert a.call("LOCK", "a", "SHARED", "REENTER") == b.call("LOCK", "a", "REENTER", "SHARED")
    assert a.call("UNLOCK", "a") == b.call("UNLOCK", "a") == 1


def test_downgrade_keeps_the_token_and_lets_readers_in(broker, clients):
    a, b, c = (clients(broker) for _ in range(3))
    token = a.call("LOCK", "a")
    b.send("LOCK", "a", "SHARED")
    harness.wait_queued(broker, "a", 1)
    assert a.call("DOWNGRADE", "a") == token
    assert b.reply() > token
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert a.call("DOWNGRADE", "a") == token
    assert a.call("UNLOCK", "a", "TOKEN", token) == 0
    assert a.call("DOWNGRADE", "a").code == "NOTHELD"


def test_a_reader_that_dies_lets_the_writer_in(broker, clients):
    a, b, writer = (clients(broker) for _ in range(3))
    for c in (a, b):
        c.call("LOCK", "a", "SHARED")
    writer.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    a.close()
    assert writer.quiet()
    b.close()
    assert isinstance(writer.reply(), int)


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


def test_where_nobody_else_waits_readers_join_without_a_word_to_zookeeper(two_hosts, clients):
    """Also while others read on another host."""
    alpha, beta = two_hosts
    for daemon in (alpha, beta, alpha, alpha):
        assert isinstance(clients(daemon).call("LOCK", "a", "SHARED", "WAIT", SOON), int)
    reads = alpha.info()["zk_reads_total"]
    for _ in range(50):
        assert isinstance(clients(alpha).call("LOCK", "a", "SHARED", "WAIT", 0), int)
    assert alpha.info()["zk_reads_total"] == reads


def test_a_local_writer_queues_next_behind_its_hosts_shared_claim(two_hosts, zk, root, clients, kazoo_client):
    """Its place among the hosts is from when it asked, not from when the last reader of its host has gone."""
    reader, writer, other = clients(two_hosts[0]), clients(two_hosts[0]), clients(two_hosts[1])
    reader.call("LOCK", "a", "SHARED", "WAIT", SOON)
    writer.send("LOCK", "a")
    k = kazoo_client(zk)
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 2, "the next znode")
    other.send("LOCK", "a")
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 3, "the other host's")
    assert sorted(name[-18:-10] for name in k.get_children(f"{root}/a")) == ["__READ__", "__WRIT__", "__WRIT__"]
    reader.call("UNLOCK", "a")
    token = writer.reply()
    assert other.quiet()
    writer.call("UNLOCK", "a")
    assert other.reply() > token


def test_local_readers_share_one_znode(two_hosts, zk, root, clients, kazoo_client):
    readers = [clients(two_hosts[i % 2]) for i in range(12)]
    for c in readers:
        assert isinstance(c.call("LOCK", "a", "SHARED", "WAIT", SOON), int)
    children = kazoo_client(zk).get_children(f"{root}/a")
    assert len(children) == 2 and all("-__READ__" in name for name in children)


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
    late = clients(alpha)
    late.send("LOCK", "a", "SHARED")
    assert late.quiet(0.3)
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


# ---- contenders of Curator's read/write lock ----


@pytest.fixture
def curator(daemons, zk, root, clients, kazoo_client):
    """A client of ours, and a maker of theirs in the directory of the lock a."""
    d = daemons(zk, root, locks__linger_ms=0)
    c = clients(d)
    k = kazoo_client(zk)
    c.call("LOCK", "a")
    c.call("UNLOCK", "a")
    harness.wait_until(lambda: k.get_children(f"{root}/a") == [], "the znode to go")
    return d, c, lambda tag: Curator(k, f"{root}/a", tag)


def test_with_curators_reader_we_share_and_exclude(curator):
    _, c, contender = curator
    reader = contender("__READ__")
    assert isinstance(c.call("LOCK", "a", "SHARED", "WAIT", SOON), int)
    late = contender("__WRIT__")
    assert reader.holds() and not late.holds()
    c.call("UNLOCK", "a")
    assert c.call("LOCK", "a", "WAIT", 300) is None
    c.send("LOCK", "a")
    assert c.quiet()
    reader.release()
    assert late.holds() and c.quiet()
    late.release()
    assert isinstance(c.reply(), int)
    assert not contender("__READ__").holds()


def test_curators_writer_is_not_passed_by_our_readers(curator, clients):
    d, c, contender = curator
    early = contender("__READ__")
    writer = contender("__WRIT__")
    c.send("LOCK", "a", "SHARED")
    assert c.quiet(0.3)
    holders = clients(d).call("HOLDERS", "a")
    assert [(h["znode"], h["mode"]) for h in holders] == [(early.path.rsplit("/", 1)[1], "shared")]
    early.release()
    assert writer.holds() and c.quiet(0.3)
    writer.release()
    assert isinstance(c.reply(), int)


def test_our_writer_between_curators_readers(curator, clients):
    _, c, contender = curator
    first = contender("__READ__")
    c.send("LOCK", "a")
    harness.wait_until(lambda: len(first.k.get_children(first.dir)) == 2, "our znode")
    second = contender("__READ__")
    assert first.holds() and not second.holds()
    first.release()
    assert isinstance(c.reply(), int)
    assert not second.holds()
    c.call("UNLOCK", "a")
    harness.wait_until(second.holds, "the reader behind us to go on")


def test_a_reader_watches_the_nearest_writer_only(own_zk, daemons, clients, kazoo_client):
    """As the server tells it: readers come and go before ours, and it asks for nothing."""
    zk = own_zk()
    d = daemons(zk, locks__linger_ms=0)
    c = clients(d)
    k = kazoo_client(zk)
    c.call("LOCK", "a")
    c.call("UNLOCK", "a")
    writer = Curator(k, "/t/a", "__WRIT__")
    readers = [Curator(k, "/t/a", "__READ__") for _ in range(5)]
    c.send("LOCK", "a", "SHARED")
    harness.wait_queued(d, "a", 1)
    ours = [f"/t/a/{name}" for name in k.get_children("/t/a")]
    own = {path for paths in zk.sessions().values() for path in paths} - {r.path for r in readers} - {writer.path}

    def watched():
        return {line.strip() for line in zk.ask("wchp").splitlines() if line.startswith("/t/a")}

    # Its own znode, too: it is next.
    harness.wait_until(lambda: watched() == {writer.path} | (own & set(ours)), "the watches")
    reads = d.info()["zk_reads_total"]
    for reader in readers:
        reader.release()
    assert c.quiet(0.3)
    assert d.info()["zk_reads_total"] == reads
    writer.release()
    assert isinstance(c.reply(), int)
