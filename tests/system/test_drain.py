# SPDX-License-Identifier: Apache-2.0
"""Operators drain a daemon: what it has goes to other hosts, and nothing new is granted."""

import subprocess

import harness
import library
from test_cli import command, run, start


def drain(daemon, *words):
    return harness.spawn(command(daemon, "drain", *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)


def told(process):
    return process.communicate(timeout=harness.PATIENCE)[0]


def requests(client):
    """How many the daemon has answered."""
    return int(harness.parse_info(client.call("INFO", "stats"))["requests_total"])


def test_the_waiters_of_other_hosts_go_ahead(two_hosts, clients):
    alpha, beta = two_hosts
    holder, waiter, other = clients(alpha), clients(alpha), clients(beta)
    token = holder.call("LOCK", "a")
    waiter.send("LOCK", "a")
    harness.wait_queued(alpha, "a", 1)
    idle = clients(alpha)
    assert isinstance(idle.call("LOCK", "b"), int) and idle.call("UNLOCK", "b") == 0
    other.send("LOCK", "a")
    harness.wait_queued(beta, "a", 1)
    p = drain(alpha, "--wait")
    assert waiter.reply().code == "DRAINING"
    assert holder.push() == ["revoke", "a", token, "draining"]
    assert [p.stdout.readline() for _ in range(2)][0] == "still held: 1\n"
    assert holder.call("LOCK", "c").code == "DRAINING" and p.poll() is None
    assert holder.call("VALID", "a") > 0
    assert clients(beta).call("LOCK", "b", "WAIT", 10000) > 0  # it lingers no longer
    assert holder.call("UNLOCK", "a") == 0
    assert other.reply() > token
    assert told(p).endswith("Nothing is held any longer.\n") and p.returncode == 0
    assert alpha.info()["draining"] == "1" and alpha.info()["session_state"] == "safe"
    assert told(drain(alpha, "--off")) == "The broker grants again.\n"
    assert isinstance(clients(alpha).call("LOCK", "c"), int)
    lines = [harness.parse_log_line(line) for line in alpha.log().splitlines()]
    assert [fields["on"] for _, event, fields in lines if event == "drain"] == ["1", "0"]


def test_it_says_who_still_holds_what(standalone, clients):
    holders = [clients(standalone) for _ in range(21)]
    for i, c in enumerate(holders):
        c.call("LOCK", f"lock {i:02}")
    p = drain(standalone, "--wait")
    lines = [p.stdout.readline() for _ in range(22)]
    assert lines[0] == "still held: 21\n" and lines[21] == "  and 1 more locks\n"
    client = holders[0].call("CLIENT", "ID")
    assert lines[1].startswith(f"  lock 00: client {client}, uid ") and " pid " in lines[1]
    for c in holders:
        c.close()
    assert told(p).endswith("Nothing is held any longer.\n") and p.returncode == 0
    check = run(standalone, "check")
    assert check.returncode == 1 and "it grants nothing" in check.stdout
    p = drain(standalone, "--wait")
    assert told(p) == "Nothing is held any longer.\n"
    assert 'drain does not take the argument "soon"' in told(drain(standalone, "soon"))


def test_a_drained_daemon_stays_so_over_a_hand_over_and_a_kill(daemons, clients, locked):
    d = daemons()
    (c, token), operator = locked(d), clients(d, operator=True)
    assert operator.call("DRAIN")["held"] == 1
    assert c.push() == ["revoke", "a", token, "draining"]
    d.hand_over(operator)
    assert c.call("LOCK", "b").code == "DRAINING" and c.call("VALID", "a") > 0
    harness.wait_until(lambda: d.info()["draining"] == "1", "the state")
    d.signal(9)
    harness.wait_until(lambda: "goes on after a crash" in d.log(), "the next process")
    assert clients(d).call("LOCK", "b").code == "DRAINING"
    assert clients(d, operator=True).call("DRAIN", "OFF")["draining"] == 0
    assert isinstance(clients(d).call("LOCK", "b"), int)


def test_the_command_tries_again_until_the_broker_grants(standalone, clients):
    operator = clients(standalone, operator=True)
    assert operator.call("DRAIN")["draining"] == 1
    at_first, asked = requests(operator), 0

    def asked_by_others():
        nonlocal asked
        asked += 1
        return requests(operator) - at_first - asked

    p = start(standalone, "lock", "a", "--", "echo", "ran")
    harness.wait_until(lambda: asked_by_others() >= 8, "some tries: each is a LOCK, the first one a HELLO before it")
    assert p.poll() is None
    assert operator.call("DRAIN", "OFF")["draining"] == 0
    assert p.communicate(timeout=harness.PATIENCE)[0] == "ran\n" and p.returncode == 0


def test_who_waits_when_a_drain_begins_is_told_what_it_waits_for(standalone, clients):
    operator, c = clients(standalone, operator=True), clients(standalone)
    c.call("LOCK", "a")
    p = start(standalone, "lock", "a", "echo", "ran")
    harness.wait_queued(standalone, "a", 1)
    queued_ms = lambda: max((row["waited_ms"] for row in c.call("QUEUE", "a")), default=0)
    harness.wait_until(lambda: queued_ms() >= 200, "it to have waited for longer than a refusal takes")
    assert operator.call("DRAIN")["draining"] == 1
    line = p.stderr.readline()
    assert line.startswith("lockbroker: operators drain this daemon: ")
    assert line.endswith(" `lockbroker drain --off`. Waiting until it grants again.\n")
    c.call("UNLOCK", "a")
    assert operator.call("DRAIN", "OFF")["draining"] == 0
    assert p.communicate(timeout=harness.PATIENCE) == ("ran\n", "") and p.returncode == 0


def test_the_library_says_so_and_is_served_on_the_same_connection_afterwards(standalone, programs, clients):
    operator, p = clients(standalone, operator=True), programs(standalone.socket)
    p.do("open 0")
    assert operator.call("DRAIN")["draining"] == 1
    assert p.do("lock 0 a").startswith("DRAINING ")
    assert operator.call("DRAIN", "OFF")["draining"] == 0
    assert library.token_of(p.do("lock 0 a")) > 0 and p.do("unlock 0 a") == "OK 0"


def test_a_leader_and_a_holder_of_permits_are_asked_too(standalone, clients):
    """Nobody who waits succeeds them here; what they have is theirs until they let go."""
    leader, candidate, holder, other = (clients(standalone) for _ in range(4))
    elected = leader.call("CAMPAIGN", "e", "DATA", "me")
    candidate.send("CAMPAIGN", "e", "DATA", "next")
    assert holder.call("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2) == 2
    other.send("ACQUIRE", "s", "LIMIT", 2)
    for name in "es":
        harness.wait_queued(standalone, name, 1)
    p = drain(standalone, "--wait")
    assert candidate.reply().code == "DRAINING" and other.reply().code == "DRAINING"
    assert leader.push() == ["revoke", "e", elected, "draining"]
    assert holder.push() == ["revoke", "s", 0, "draining"]
    assert candidate.call("CAMPAIGN", "e", "DATA", "next").code == "DRAINING"
    assert other.call("ACQUIRE", "s", "LIMIT", 2).code == "DRAINING"
    assert leader.call("VALID", "e") > 0 and holder.call("VALID", "s") > 0 and p.poll() is None
    assert leader.call("RESIGN", "e") == 1 and isinstance(holder.call("RELEASE", "s", "COUNT", 2), int)
    assert told(p).endswith("Nothing is held any longer.\n") and p.returncode == 0
    assert told(drain(standalone, "--off")) == "The broker grants again.\n"
    assert isinstance(candidate.call("CAMPAIGN", "e", "DATA", "next"), int)
    assert isinstance(other.call("ACQUIRE", "s", "LIMIT", 2), int)
