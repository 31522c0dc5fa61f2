# SPDX-License-Identifier: Apache-2.0
"""Every kind of lock by hand: the same lines into redis-cli and into `lockbroker call`, and the same comes back."""

import re
import subprocess
import types

import pytest

import harness
import test_cli
from test_redis_clients import redis_cli

OPERATORS = True  # see clients of conftest.py

N = r"\(integer\) [1-9]\d*"
ZERO, NIL, OK, QUEUED = r"\(integer\) 0", r"\(nil\)", "OK", "QUEUED"
ANY = r"(?s:.*)"


def error(code):
    return rf"\(error\) {code} .*"


def items(*values):
    return "\n".join(rf"{i}\) {value}" for i, value in enumerate(values, 1))


# Somebody else holds "taken", says that he belongs to "us", and observes nothing. What is asked, and what comes back.
ROWS = {
    "shared and exclusive": (
        ["LOCK a SHARED", "LOCK a REENTER", "LOCK a", "UNLOCK a", "LOCK a", "DOWNGRADE a", "LOCK taken SHARED WAIT 0"],
        [N, error("DEADLOCK"), error("HELD"), ZERO, N, N, NIL]),
    "lease": (
        ["LOCK a LEASE 60000", "VALID a", "RENEW a 30", "EVENTS", "UNLOCK a"],
        [N, N, N, items('"lost"', '"a"', N, '"lease"'), error("NOTHELD")]),
    "waits that do not block": (
        ["ENQUEUE a", "EVENTS", "ENQUEUE taken WAIT 10", "EVENTS", "ENQUEUE taken", "CANCEL taken", "CANCEL taken"],
        [QUEUED, items('"granted"', '"a"', N), QUEUED, items('"timeout"', '"taken"'), QUEUED, N, ZERO]),
    "semaphore": (
        ["ACQUIRE s LIMIT 3 COUNT 2", "ACQUIRE s LIMIT 3 COUNT 2 WAIT 0", "ACQUIRE s LIMIT 4", "LIMIT s", "LIMIT s 5",
         "RELEASE s COUNT 2", "LIMIT none"],
        [N, error("DEADLOCK"), error("MISMATCH"), r"\(integer\) 3", r"\(integer\) 5", ZERO, NIL]),
    "several at once": (
        ["MLOCK 3 c a b", "MUNLOCK 2 a x", "MUNLOCK 3 a b c", "MLOCK 2 a taken WAIT 0", "VALID a"],
        [items(N, N, N), error("NOTHELD"), items(ZERO, ZERO, ZERO), NIL, ZERO]),
    "election": (
        ['CAMPAIGN e DATA "10.0.0.1 80"', "LEADER e", "OBSERVE e", "EVENTS", "RESIGN e", "EVENTS", "LEADER e"],
        [N, rf'{ANY}"10.0.0.1 80"{ANY}', OK, items('"leader"', '"e"', N, '".*"', '"10.0.0.1 80"'), N,
         items('"leader"', '"e"', ZERO, '""', '""'), NIL]),
    "revocation": (
        ['REVOKE taken "if you please"', "REVOKE free", "FORCEUNLOCK taken", "LOCK taken"],
        [N, ZERO, N, N]),
    "deadlock": (
        ["CLIENT SETINFO OWNER us", "LOCK taken"],
        [OK, r'\(error\) DEADLOCK this client waits for "taken" held by .*release one of them first']),
    "questions": (
        ["WHY taken", "HOLDERS taken", "QUEUE taken", "ENQUEUE taken", "QUEUE taken", "HOSTS"],
        [rf' 1\) "why"\n 2\) "held on this host, pid \d+ {ANY}', rf' *1\)  1\) "host"{ANY}', r"\(empty array\)", QUEUED,
         rf' *1\)  1\) "host"{ANY}', rf'(\(empty array\)| *1\)  1\) "host"{ANY})']),  # standalone: no hosts
}


def with_redis_cli(broker, script):
    """Without what it adds to an answer that took half a second."""
    return re.sub(r"^\(\d+\.\d\ds\)\n", "", redis_cli(broker, options=("--no-raw",), stdin=script), flags=re.M)


def with_call(broker, script):
    """What is asked of RESP3 is shown as such; here it speaks as redis-cli does."""
    text = test_cli.run(broker, "call", input="HELLO 2\n" + script).stdout
    return text[text.index('"session_page_id"'):].split("\n", 2)[2]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("way", [with_redis_cli, with_call])
def test_every_kind_by_hand(broker, clients, way, row):
    other = clients(broker)
    other.call("CLIENT", "SETINFO", "OWNER", "us")
    other.call("LOCK", "taken")
    lines, expected = ROWS[row]
    door = types.SimpleNamespace(socket=broker.operator_socket)
    text = way(door, "\n".join(lines) + "\n")
    assert re.fullmatch("\n".join(expected), text.rstrip()), text
    told = [push[0] for push in (other.call("PING"), other.pushes)[1]]
    assert told == (["revoke", "lost"] if row == "revocation" else [])


# ---- call ----


def call(daemon, *argv, **options):
    return test_cli.run(daemon, "call", *argv, **options)


def test_one_request_and_its_reply(standalone, clients):
    clients(standalone).call("LOCK", "a")
    for words, text in ((("PING",), "PONG"), (("ECHO", 'say "ä"\\ \t\u202e'), r'"say \"ä\"\\ \t\xe2\x80\xae"'),
                        (("LOCK", "a", "WAIT", 0), "(nil)"), (("CANCEL", "a"), "(integer) 0"),
                        (("LOCKS", "x"), "(empty array)"), (("QUIT",), "OK")):
        done = call(standalone, *words)
        assert (done.stdout, done.stderr, done.returncode) == (text + "\n", "", 0)
    done = call(standalone, "UNLOCK", "a")
    assert done.stdout.startswith("(error) NOTHELD ") and done.returncode == 1
    assert "# Server\nredis_version:" in call(standalone, "INFO").stdout
    assert re.search(r'^1\)  1# "host" => ".*"$', call(standalone, "HOLDERS", "a").stdout, re.M)
    assert call(standalone, "COMMAND", "DOCS", "PING").stdout == '1# "ping" =>\n   1# "summary" => "PING [message]"\n'
    assert call(standalone, "-x").returncode == 64 and call(None, "PING").returncode == 69


def test_lines_that_are_no_requests_cost_the_others_nothing(standalone):
    done = call(standalone, input='\n  \nPING "\n*3\n:7\nPING \'a b\'\nECHO b')
    assert done.stdout == '"a b"\n"b"\n' and done.returncode == 1
    assert len(done.stderr.splitlines()) == 3
    assert call(standalone, input="").returncode == 0


def test_events_are_shown_when_they_come(standalone, clients):
    c = clients(standalone)
    c.call("LOCK", "a")
    p = harness.spawn(test_cli.command(standalone, "call", "-e"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      stderr=subprocess.DEVNULL, text=True, bufsize=1)
    p.stdin.write("ENQUEUE a\n")
    assert p.stdout.readline() == "QUEUED\n"
    c.call("UNLOCK", "a")
    assert [p.stdout.readline() for _ in range(2)] == ['1> "granted"\n', '2> "a"\n']
    assert re.fullmatch(rf"3> {N}\n", p.stdout.readline())
    # Also while a request waits, and when there are no more of them.
    c.call("LOCK", "b")
    p.stdin.write("LOCK b\n")
    harness.wait_queued(standalone, "b", 1)
    c.call("REVOKE", "a", "why not")
    assert [p.stdout.readline() for _ in range(4)][3] == '4> "why not"\n'
    c.call("UNLOCK", "b")
    assert re.fullmatch(rf"{N}\n", p.stdout.readline())
    p.stdin.close()
    c.call("REVOKE", "b", "once more")
    assert [p.stdout.readline() for _ in range(4)][3] == '4> "once more"\n'
    standalone.kill()
    assert p.wait(harness.PATIENCE) == 69
    p.stdout.close()


def test_the_limit_of_a_semaphore(broker, clients):
    done = test_cli.run(broker, "limit", "s")
    assert done.returncode == 1 and "There is no semaphore s:" in done.stderr
    c = clients(broker)
    c.call("ACQUIRE", "s", "LIMIT", 3)
    assert test_cli.run(broker, "limit", "s").stdout == "3\n"
    assert test_cli.run(broker, "limit", "s", 4).stdout == "4\n" and c.call("LIMIT", "s") == 4
    assert test_cli.run(broker, "limit", "s", "many").returncode == 64
    assert test_cli.run(broker, "limit").returncode == 64
