# SPDX-License-Identifier: Apache-2.0
"""`lockbroker ls`: the locks of this host or of all hosts, once and again and again."""

import json
import os
import re
import signal

import pytest

import harness
from test_cli import at_a_terminal, command, run, start

OPERATORS = True  # see clients of conftest.py


def block(p):
    """The lines of the next picture."""
    lines = []
    while (line := p.stdout.readline()) != "\n":
        assert line, p.stderr.read()
        lines.append(line.rstrip("\n"))
    return lines


def test_the_table_has_a_row_for_each_holder(two_hosts, clients):
    a, b, waiter = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    for c in a, b:
        c.call("LOCK", "shared", "SHARED")
    a.call("LOCK", "alone")
    a.call("ACQUIRE", "gate", "LIMIT", 3, "COUNT", 2)
    waiter.send("LOCK", "alone")
    harness.wait_until(lambda: b.call("QUEUE", "alone"), "it to wait")
    lines = run(two_hosts[0], "ls", "--all").stdout.splitlines()
    assert re.split("  +", lines[0]) == ["NAME", "MODE", "HOST", "HOLDER", "SINCE", "WAITERS"], "nobody waits on this host"
    rows = [re.split("  +", line) for line in lines[1:]]
    comm = harness.read_source(f"/proc/{os.getpid()}/comm").strip()
    assert rows[0][:4] == ["alone", "exclusive", "alpha", comm] and rows[0][5] == "0 + 1 host"
    assert rows[1][:3] == ["gate", "2 of 3", "alpha"]
    assert [row[:3] for row in rows[2:]] == [["shared", "shared", "alpha"], ["shared", "shared", "beta"]]
    assert rows[3][3:] == ["-", "-", "0"], "what is not known is -"
    assert [re.split("  +", line)[0] for line in run(two_hosts[0], "ls", "-a", "a*").stdout.splitlines()] == ["NAME", "alone"]
    assert run(two_hosts[0], "ls", "-a", "none").stdout == ""


def test_the_longest_wait_is_asked_for_so_many_locks_only(standalone, clients):
    """Each is a request of its own, and another host's queue is read from ZooKeeper for it."""
    holder, waiter = clients(standalone), clients(standalone)
    names = [f"l{i:03}" for i in range(300)]
    for name in names:
        holder.call("LOCK", name), waiter.call("ENQUEUE", name)
    before = int(standalone.info("stats")["requests_total"])
    locks = json.loads(run(standalone, "ls", "--all", "--json").stdout)
    asked = int(standalone.info("stats")["requests_total"]) - before
    assert [lock["name"] for lock in locks] == names and all(lock["waiters"] == 1 for lock in locks)
    assert [lock["longest_wait_ms"] is not None for lock in locks] == [True] * 256 + [False] * 44
    assert 256 < asked < 256 + 20
    heads, *rows = run(standalone, "ls", "--all").stdout.splitlines()
    assert heads.endswith("LONGEST") and [row.endswith(" -") for row in rows] == [False] * 256 + [True] * 44


def test_json_is_an_array_of_locks(two_hosts, clients):
    clients(two_hosts[0]).call("LOCK", "a")
    for words in (["--json", "ls", "-a"], ["ls", "--all", "--json"]):
        (lock,) = json.loads(run(two_hosts[1], *words).stdout)
        assert (lock["name"], lock["kind"], [h["host"] for h in lock["holders"]]) == ("a", "lock", ["alpha"])
    assert json.loads(run(two_hosts[1], "ls", "-a", "--json", "none").stdout) == []


def test_a_pattern_may_look_like_an_option(standalone, clients):
    clients(standalone).call("LOCK", "--all")
    assert "--all" in run(standalone, "ls", "--", "--all").stdout


@pytest.mark.parametrize("options", [[], ["--all"]], ids=["here", "all"])
def test_a_pattern_that_is_broken_is_said_to_be(standalone, clients, options):
    clients(standalone).call("LOCK", "[a")
    done = run(standalone, "ls", *options, "[a")
    assert done.returncode == 64 and "[ without its ]" in done.stderr and not done.stdout
    assert "[a" in run(standalone, "ls", *options, r"\[a").stdout


@pytest.mark.parametrize("options", [[], ["--all"]], ids=["here", "all"])
def test_watch_appends_pictures_where_there_is_no_terminal(standalone, clients, options):
    c = clients(standalone)
    c.call("LOCK", "a")
    p = start(standalone, "ls", "--watch=0.1", *options)
    assert len(block(p)) == 2
    c.call("LOCK", "b")
    while len(block(p)) < 3:
        pass
    c.call("RESET")
    while block(p):
        pass
    assert (harness.end(p), p.stderr.read()) == (0, "")


def test_watch_with_json_is_a_line_for_each_picture(standalone, clients):
    clients(standalone).call("LOCK", "a")
    p = start(standalone, "ls", "--watch=0.1", "--json")
    assert [[lock["name"] for lock in json.loads(p.stdout.readline())] for _ in range(3)] == [["a"]] * 3
    assert harness.end(p, signal.SIGINT) == 0


def test_watch_tells_once_that_the_broker_is_gone_and_goes_on_when_it_is_back(daemons, clients):
    d = daemons(daemon__keeper=0)
    with d.client() as c:
        c.call("LOCK", "a")
        p = start(d, "ls", "--watch=0.1")
        assert block(p)[1].startswith("a ")
    d.kill()
    line = p.stderr.readline()
    assert line.startswith("lockbroker: ") and line.endswith("\n")
    d.start()
    clients(d).call("LOCK", "b")
    while not any(row.startswith("b ") for row in block(p)):
        pass
    assert (harness.end(p), p.stderr.read()) == (0, "")


def test_watch_ends_with_its_reader(standalone, clients):
    clients(standalone).call("LOCK", "a")
    p = start(standalone, "ls", "--watch=0.1")
    assert block(p)
    p.stdout.close()
    assert p.wait(harness.PATIENCE) == -signal.SIGPIPE


def test_watch_draws_over_what_was_there_and_fits_the_terminal(standalone, clients):
    c = clients(standalone)
    for i in range(20):
        c.call("LOCK", f"n{i:02}" + "x" * 100)
    text, status = at_a_terminal(command(standalone, "ls", "--watch=0.1"), rb"(?s)(\x1b\[J.*){3}", b"\x03",
                                 lines=10, columns=40, TERM="xterm")
    assert status == 0
    pictures = text.split(b"\x1b[H")[1:3]
    for picture in pictures:
        shown = re.sub(rb"\x1b\[\d*[KJm]", b"", picture).decode().split("\r\n")
        assert len(shown) == 10 and all(len(line) <= 40 for line in shown), shown
        assert shown[2].startswith("NAME") and shown[3].startswith("n00x") and shown[8] == "(and 15 more)"
