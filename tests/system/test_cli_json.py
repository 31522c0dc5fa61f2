# SPDX-License-Identifier: Apache-2.0
"""--json: what commands print, for programs."""

import json
import os
import re
import subprocess
import types

import pytest

import harness
from test_cli import command, on_screen, run, start

OPERATORS = True  # see clients of conftest.py

HARM = 'x"\u202e\\'


def asked(daemon, *words, status=0):
    done = run(daemon, *words, "--json")
    assert done.returncode == status, done
    return json.loads(done.stdout)


def by_operator(daemon, *words, status=0):
    argv = [harness.program("lockbroker"), "-S", daemon.operator_socket, "--json", *words]
    done = harness.wait_until(lambda: harness.unless_late(harness.run(argv)), "an outcome")
    assert done.returncode == status, done
    assert all(character >= " " and character != "\u202e" for line in done.stdout.splitlines() for character in line)
    values = [json.loads(line) for line in done.stdout.splitlines()]
    return values if words[0] == "log" else values[-1]


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
    assert info["Server"]["host"] == "alpha" and info["Server"]["process_id"] > 0
    assert list(asked(two_hosts[0], "info", "clients")) == ["Clients"]
    assert asked(two_hosts[0], "ping")["ms"] > 0
    assert asked(two_hosts[0], "check")["verdict"] == "OK"


def test_elections(broker, clients):
    c = clients(broker)
    p = start(broker, "--json", "observe", "e")
    assert json.loads(p.stdout.readline()) is None
    token = c.call("CAMPAIGN", "e", "DATA", HARM)
    expected = {"token": token, "host": broker.host, "data": HARM}
    assert json.loads(p.stdout.readline()) == expected == asked(broker, "leader", "e")
    harness.end(p)


@pytest.mark.parametrize("words, check", [
    (["audit"], lambda reply: reply["strays"] == 0 and reply["examples"] == []),
    (["access", "root", "a"], lambda reply: {"verb": "lock", "allowed": True, "rule": None, "where": None} in reply),
    (["accounts"], lambda reply: isinstance(reply, list)), (["reload"], lambda reply: isinstance(reply, list)),
    (["config", "limits.*"], lambda reply: reply["limits.user_share"] == 100),
    (["log", "2"], lambda reply: len(reply) == 2 and all(record["event"] for record in reply)),
    (["drain"], lambda reply: reply["draining"] is True), (["drain", "--wait"], lambda reply: reply["held"] == 0),
    (["drain", "--off"], lambda reply: reply["draining"] is False), (["restart"], lambda reply: reply["process_id"] > 0),
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
    harness.end(p)


# ---- docs/JSON.md ----


def schema():
    """Of each section its fields, with the types that each may have."""
    found = {}
    for section in harness.read_source("docs/JSON.md").split("\n## ")[1:]:
        fields = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.M)
        found[section.split("\n")[0]] = {name: re.split(", | or ", kinds.strip()) for name, kinds in fields}
    return found


SCHEMA = schema()
SIMPLE = {"text": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}


def fits(value, kinds):
    """True if it has one of the types."""
    for name in kinds:
        if name.startswith("array of "):
            if isinstance(value, list) and all(is_of(item, name.removeprefix("array of ")) for item in value):
                return True
        elif name in SIMPLE and isinstance(value, SIMPLE[name]) and (name == "boolean") == isinstance(value, bool):
            return True
    return False


def is_of(value, section):
    """An object that has the fields of that section, and no other. Says what is wrong."""
    fields = SCHEMA[section]
    assert fields and isinstance(value, dict), (section, value)
    assert set(value) <= set(fields) and {name for name in fields if "absent" not in fields[name]} <= set(value), (section, value)
    for name, item in value.items():
        assert fits(item, fields[name]), (section, name, item)
    return True


def lines_of(daemon, *words, status=0):
    done = harness.run([harness.program("lockbroker"), "-S", daemon.socket, *words, "--json"])
    assert done.returncode == status, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_what_shows(d):
    """All that only looks."""
    for words, section in ((["ls"], "ls"), (["ls", "--all"], "ls --all"), (["hosts"], "hosts"), (["accounts"], "accounts"),
                           (["access", "root", "a"], "access")):
        (rows,) = lines_of(d, *words)
        assert isinstance(rows, list) and all(is_of(row, section) for row in rows), words
    for words, section in ((["who", "a"], "who"), (["who", "s"], "who"), (["who", "none"], "who"), (["why", "a"], "why"), (["why", "none"], "why"),
                           (["limit", "s"], "limit"), (["leader", "e"], "leader"), (["check"], "check"), (["ping"], "ping"), (["audit"], "audit")):
        (value,) = lines_of(d, *words)
        assert is_of(value, section)
    assert is_of(lines_of(d, "check", "--lock", "monitor")[0], "check")
    assert lines_of(d, "leader", "none", status=1) == [None] == lines_of(d, "limit", "none", status=1)
    records = lines_of(d, "log")
    assert len(records) > 3 and all(is_of(record, "log") for record in records)
    (info,) = lines_of(d, "info")
    assert list(info) == ["Server", "Clients", "Locks", "Session", "ZooKeeper", "Audit", "Limits", "Stats"]
    for key, value in ((key, value) for section in info.values() for key, value in section.items()):
        assert fits(value, SCHEMA["info"].get(key, ["integer"])), (key, value)
    (keys,) = lines_of(d, "config")
    assert keys["limits.user_share"] == 100 and all(fits(value, ["integer", "text", "null"]) for value in keys.values())
    return set(info["Server"]) | set(info["Session"]) | set(info["ZooKeeper"]) | set(info["Audit"])


def test_what_json_prints_is_what_its_page_says(broker, clients):
    c, waiter = clients(broker), clients(broker)
    c.call("LOCK", "a", "DATA", "42", "LEASE", 60000), c.call("ACQUIRE", "s", "LIMIT", 2), c.call("CAMPAIGN", "e", "DATA", "7")
    waiter.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    other = clients(broker)
    other.send("ACQUIRE", "s", "LIMIT", 2, "COUNT", 2)
    harness.wait_queued(broker, "s", 1)
    check_what_shows(broker)
    (leader,) = lines_of(broker, "leader", "e")
    assert leader["data"] == "7" and lines_of(broker, "who", "a")[0]["holders"][0]["data"] == "42", "chosen texts stay texts"


def test_what_json_prints_of_other_hosts_is_what_its_page_says(two_hosts, clients):
    a, waiter = clients(two_hosts[0]), clients(two_hosts[1])
    a.call("LOCK", "a"), a.call("ACQUIRE", "s", "LIMIT", 2), a.call("CAMPAIGN", "e", "DATA", "x")
    assert lines_of(two_hosts[1], "who", "a")[0]["holders"][0]["pid"] is None, "not described yet"
    waiter.send("LOCK", "a")
    harness.wait_queued(two_hosts[1], "a", 1)
    keys = [check_what_shows(d) for d in two_hosts]
    assert lines_of(two_hosts[0], "who", "a")[0]["waiting"][0]["waited_ms"] is None
    assert set(SCHEMA["info"]) - keys[0] == {"session_id"}, "what the page names is there, but for what operators see"
    assert [host["self"] for host in lines_of(two_hosts[0], "hosts")[0]] == [True, False]


def test_what_json_prints_of_what_operators_do_is_what_its_page_says(standalone, clients):
    c = clients(standalone)
    c.call("LOCK", "a")
    for words, section, status in ((["revoke", "a"], "revoke", 0), (["force-unlock", "a"], "revoke", 0), (["force-unlock", "a"], "revoke", 1),
                                   (["drain"], "drain", 0), (["drain", "--wait"], "drain", 0), (["drain", "--off"], "drain", 0),
                                   (["restart"], "restart", 0)):
        assert all(is_of(value, section) for value in lines_of(standalone, *words, status=status)), words
    assert lines_of(standalone, "reload") == [[]]
    p = start(standalone, "hold", "--json", "42")
    held = json.loads(p.stdout.readline())
    assert is_of(held, "hold") and held["held"][0]["name"] == "42"
    clients(standalone).call("FORCEUNLOCK", "42")
    assert is_of(json.loads(p.stdout.readline()), "hold") and p.wait(harness.PATIENCE) == 79
    (missing,) = lines_of(types.SimpleNamespace(socket="/nonexistent/socket"), "check", status=2)
    assert is_of(missing, "check") and missing["locks"] is None and missing["why"]


def test_a_text_of_the_log_is_whole_whatever_it_has(standalone, clients):
    """In quotes there, with what is not printable ASCII as numbers."""
    c = clients(standalone)
    name = 'a "b"  c=d \\ \u00e4\u65e5 42'
    token = c.call("LOCK", name)
    assert c.call("FORCEUNLOCK", name) == 1
    (lost,) = [record for record in lines_of(standalone, "log") if record["event"] == "grant_lost"]
    assert (lost["name"], lost["token"], lost["text"]) == (name, token, "a grant was lost") and is_of(lost, "log")


def test_each_command_that_has_json_is_on_its_page():
    offered = harness.run([harness.program("lockbroker"), "--complete", ""], check=True).stdout
    commands = {line.split("\t")[0] for line in offered.splitlines()} - {"help"}
    without = {word for word in commands if "--json" not in run(None, word, "--help").stdout}
    assert without == {"lock", "sem", "campaign", "top", "metrics", "http"}
    text = harness.read_source("docs/JSON.md")
    assert all(f"`{word}`" in text.split("\n## ")[0] for word in without)
    assert {word for word in commands - without if word not in SCHEMA} == {"force-unlock", "observe"}
    assert "`force-unlock`" in text and "`observe`" in text


def test_json_is_the_same_at_a_terminal_and_not_cut(standalone, clients):
    c = clients(standalone)
    c.call("LOCK", "x" * 200, "DATA", "y" * 200)
    for words in (["ls", "--all", "--json"], ["who", "x" * 200, "--json"], ["info", "--json"]):
        lines, status = on_screen(command(standalone, *words))
        assert status == 0 and len(lines) == 1 and json.loads(lines[0])
