# SPDX-License-Identifier: Apache-2.0
"""--json: what commands print, for programs."""

import json
import os
import subprocess

import pytest

import harness
from test_cli import run, start

OPERATORS = True  # see clients of conftest.py

HARM = 'x"\u202e\\'


def asked(daemon, *words, status=0):
    done = run(daemon, *words, "--json")
    assert done.returncode == status, done
    return json.loads(done.stdout)


def by_operator(daemon, *words, status=0):
    command = [harness.program("lockbroker"), "-S", daemon.operator_socket, "--json", *words]
    done = harness.wait_until(lambda: harness.unless_late(
        subprocess.run(command, capture_output=True, text=True, timeout=harness.PATIENCE)), "an outcome")
    assert done.returncode == status, done
    assert all(character >= " " and character != "\u202e" for line in done.stdout.splitlines() for character in line)
    return json.loads(done.stdout)


def test_locks_and_who_holds_them(broker, clients):
    c = clients(broker)
    token = c.call("LOCK", HARM)
    waiter = clients(broker)
    waiter.send("LOCK", HARM)
    harness.wait_queued(broker, HARM, 1)
    (lock,) = asked(broker, "ls")
    assert (lock["name"], lock["holders"], lock["waiters"], lock["token"]) == (HARM, 1, 1, token)
    who = asked(broker, "who", HARM)
    assert (who["holders"][0]["token"], who["holders"][0]["pid"]) == (token, os.getpid())
    assert who["holders"][0]["lease_ms"] is None and len(who["waiting"]) == 1
    why = asked(broker, "why", HARM)
    assert why["why"].startswith("held on this host") and why["waiters"] == 1
    assert asked(broker, "who", "nobody") == {"holders": [], "waiting": []}
    assert asked(broker, "ls", "none*") == []


def test_hosts_and_what_a_broker_says_of_itself(two_hosts):
    assert [host["host"] for host in asked(two_hosts[0], "hosts")] == ["alpha", "beta"]
    info = asked(two_hosts[0], "info")
    assert info["Server"]["host"] == "alpha" and int(info["Server"]["process_id"]) > 0
    assert list(asked(two_hosts[0], "info", "clients")) == ["Clients"]
    assert asked(two_hosts[0], "ping")["ms"] > 0
    assert asked(two_hosts[0], "check")["verdict"] == "OK"


def test_elections(broker, clients):
    c = clients(broker)
    p = start(broker, "--json", "observe", "e")
    assert json.loads(p.stdout.readline())["token"] == 0
    token = c.call("CAMPAIGN", "e", "DATA", HARM)
    expected = {"token": token, "host": broker.host, "data": HARM}
    assert json.loads(p.stdout.readline()) == expected == asked(broker, "leader", "e")
    p.terminate()
    p.wait()


@pytest.mark.parametrize("words, check", [
    (["audit"], lambda reply: reply["strays"] == 0 and reply["examples"] == []),
    (["access", "root", "a"], lambda reply: {"verb": "lock", "allowed": 1, "rule": "", "where": ""} in reply),
    (["accounts"], lambda reply: isinstance(reply, list)), (["reload"], lambda reply: isinstance(reply, list)),
    (["config", "limits.*"], lambda reply: reply["limits.user_share"] == "100"),
    (["log", "2"], lambda reply: len(reply) == 2 and all("event=" in line for line in reply)),
    (["drain"], lambda reply: reply["draining"] == 1), (["drain", "--wait"], lambda reply: reply["held"] == 0),
    (["drain", "--off"], lambda reply: reply["draining"] == 0), (["restart"], lambda reply: reply["process_id"] > 0),
    (["call", "HOLDERS", "a"], lambda reply: reply == []), (["call", "ECHO", HARM], lambda reply: reply == HARM),
], ids=lambda x: " ".join(x[:2]) if isinstance(x, list) else "")
def test_what_operators_ask(standalone, words, check):
    if words[-1] in ("--wait", "--off"):
        by_operator(standalone, "drain")
    assert check(by_operator(standalone, *words))


def test_permits_and_holders_that_are_asked(standalone, clients):
    c = clients(standalone)
    c.call("ACQUIRE", "s", "LIMIT", 3)
    assert asked(standalone, "limit", "s") == {"limit": 3}
    c.call("LOCK", "a")
    assert asked(standalone, "revoke", "a") == {"holders": 1}
    assert by_operator(standalone, "force-unlock", "nobody", status=1) == {"holders": 0}


def test_an_error_and_an_event_have_a_key(standalone):
    done = run(standalone, "call", "--json", "NONSENSE")
    assert done.returncode == 1 and json.loads(done.stdout)["error"].startswith("ERR unknown command")
    p = harness.spawn([harness.program("lockbroker"), "-S", standalone.socket, "call", "--json", "-e"], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True)
    p.stdin.write("ENQUEUE a\n")
    p.stdin.close()
    assert json.loads(p.stdout.readline()) == "QUEUED"
    assert json.loads(p.stdout.readline())["event"][:2] == ["granted", "a"]
    p.terminate()
    p.wait()
