# SPDX-License-Identifier: Apache-2.0
"""Every refusal that PROTOCOL.md lists: each code of its table of errors, by each command that the table names for it."""

import hashlib
import os
import re
import signal
import subprocess

import pytest

import harness
from test_documents import tables
from users import as_other_user, let_in

pytestmark = [pytest.mark.plain_only("it is about a document"),
              pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")]

# A script that takes a lock, as redlock's.
SCRIPT = "return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2])"
SHA = hashlib.sha1(SCRIPT.encode()).hexdigest()
ELECTION, SEMAPHORE = ("CAMPAIGN", "RESIGN", "LEADER", "OBSERVE", "UNOBSERVE"), ("ACQUIRE", "RELEASE", "LIMIT")
BEHIND = {"RENEW": ["1000"], "ACQUIRE": ["LIMIT", "2"], "CAMPAIGN": ["DATA", "me"], "SET": ["v", "NX", "PX", "60000"], "SETNX": ["v"],
          "TOKEN": ["v"], "DELIFEQ": ["v"], "DELEX": ["IFEQ", "v"], "EXPIRE": ["10"], "PEXPIRE": ["10000"]}
ALL = {"RESTART": [], "RELOAD": [], "CONFIG": ["GET", "*"], "ACCOUNTS": [], "LOG": [], "DRAIN": [], "AUDIT": [], "LOCKS": ["*", "ALL"], "HOSTS": [],
       "DELEGATE": [], "HELLO": ["9"]}


def request(word, name):
    """As it would be granted, were nothing against it."""
    if word in ("EVAL", "EVALSHA"):
        return [word, SHA if word == "EVALSHA" else SCRIPT, "1", name, "v", "60000"]
    if word in ("MLOCK", "MUNLOCK"):
        return [word, "1", name]
    return [word, *ALL.get(word, ["0", name] if word == "ACCESS" else [name, *BEHIND.get(word, [])])]


def commands(code):
    """Those that may be refused by it."""
    (table,) = [table for table in tables("protocol/PROTOCOL.md") if table[0] == ["code", "means", "comes from"]]
    (cell,) = [row[2] for row in table[1:] if row[0] == f"`{code}`"]
    return re.findall(r"`([A-Z]+)[ `]", cell)


def knows_the_script(client):
    assert client.call("SCRIPT", "LOAD", SCRIPT) == SHA
    return client


def refused(code, client, word, name, *more):
    answer = client.call(*request(word, name), *more)
    assert getattr(answer, "code", None) == code, f"{word}: {answer} and not {code}"


def take(client, word, name):
    """A lock, an election or permits, whichever the command is about."""
    kind = "CAMPAIGN" if word in ELECTION else "ACQUIRE" if word in SEMAPHORE else "LOCK"
    assert isinstance(client.call(*request(kind, name)), int)


def test_the_codes_are_those_that_are_tried_here():
    (table,) = [table for table in tables("protocol/PROTOCOL.md") if table[0] == ["code", "means", "comes from"]]
    tried = {"BADNAME", "HELD", "NOTHELD", "LOST", "DEADLOCK", "DENIED", "MISMATCH", "UNAVAILABLE", "DRAINING", "NOPROTO", "NOSCRIPT"}
    # Any command may get these two: test_hostile.py, test_accounts.py, test_limits.py.
    assert {row[0].strip("`") for row in table[1:]} == tried | {"ERR", "LIMIT"}
    assert [word for code in ("ERR", "LIMIT") for word in commands(code)] == []


def test_a_name_that_is_none(standalone, clients):
    c = knows_the_script(clients(standalone, operator=True))
    for word in commands("BADNAME"):
        refused("BADNAME", c, word, "")


def test_what_is_held_or_not_held(standalone, clients):
    c = clients(standalone)
    for word in commands("HELD"):
        take(c, word, f"held by {word}")
        refused("HELD", c, word, f"held by {word}")
    for word in commands("NOTHELD"):
        refused("NOTHELD", c, word, "free")


def test_what_was_lost(standalone, clients):
    operator = clients(standalone, operator=True)
    for word in commands("LOST"):
        c = clients(standalone)
        take(c, word, f"lost by {word}")
        assert operator.call("FORCEUNLOCK", f"lost by {word}") == 1
        assert c.push()[0] == "lost"
        refused("LOST", c, word, f"lost by {word}")


def test_what_would_be_a_deadlock(standalone, clients):
    """Another client has the name, and waits for what this one holds; ENQUEUE closes no circle, and asks for more than is shared."""
    for word in commands("DEADLOCK"):
        c, other = clients(standalone), clients(standalone)
        if word == "ENQUEUE":
            assert isinstance(c.call("LOCK", "shared", "SHARED"), int)
            refused("DEADLOCK", c, word, "shared", "REENTER")
            continue
        take(c, "LOCK", f"{word} mine")
        take(other, word, f"{word} other's")
        if word == "ACQUIRE":
            assert isinstance(other.call("ACQUIRE", f"{word} other's", "LIMIT", "2"), int)
        other.send("LOCK", f"{word} mine")
        harness.wait_queued(standalone, f"{word} mine", 1)
        refused("DEADLOCK", c, word, f"{word} other's")


def test_what_is_not_allowed(daemons, clients):
    d = daemons(argv=["-o", "access.rule=deny * denied *", "-o", "locks.delegation=0", "-o", "daemon.socket_mode=0666"])
    let_in(d)
    subprocess.run(["redis-cli", "-s", d.socket, "SET", "another's", "v", "NX", "PX", "600000"], check=True, capture_output=True)
    take(clients(d), "LOCK", "taken")
    with as_other_user():
        waits = clients(d)
    number = waits.call("CLIENT", "ID")
    waits.send("LOCK", "taken")
    harness.wait_queued(d, "taken", 1)
    for word in commands("DENIED"):
        c = knows_the_script(clients(d))
        if word == "CLIENT":
            answer = c.call("CLIENT", "UNBLOCK", number)
            assert answer.code == "DENIED", answer
        else:
            refused("DENIED", c, word, "another's" if word in ("DEL", "UNLINK", "EXPIRE", "PEXPIRE") else "denied",
                    *(["5"] if word == "LIMIT" else []))


def test_what_is_of_another_kind(standalone, clients):
    """An election, for what is about locks; a lock, for all else. The two that ask for a grant ask for their own."""
    c = knows_the_script(clients(standalone))
    take(c, "CAMPAIGN", "election")
    take(c, "LOCK", "lock")
    for word in commands("MISMATCH"):
        asks = c if word in ("MUNLOCK", "RENEW") else knows_the_script(clients(standalone))
        refused("MISMATCH", asks, word, "lock" if word in ELECTION + SEMAPHORE else "election")


def test_what_needs_zookeeper(daemons, root, clients):
    """A page that cannot be made is UNAVAILABLE, too; that needs a kernel without memory."""
    d = daemons(harness.NoZookeeper, root)
    waits = clients(d)
    waits.send("LOCK", "waited for")
    harness.wait_until(lambda: d.info("locks")["requests"] == "1", "the request")
    for word in commands("UNAVAILABLE"):
        if word != "DELEGATE":
            c = knows_the_script(clients(d, operator=True))
            refused("UNAVAILABLE", c, word, "waited for" if word == "OBSERVE" else "free",
                    *(["WAIT", "100"] if word in ("LOCK", "MLOCK", "ACQUIRE", "CAMPAIGN") else []))


def test_what_comes_while_the_daemon_stops(daemons, zk, root, clients):
    d = daemons(zk, root, daemon__stop_timeout_ms=harness.PATIENCE * 1000)
    holder, asks = clients(d), [(word, knows_the_script(clients(d, operator=True))) for word in commands("DRAINING")]
    take(holder, "LOCK", "held")
    d.process.send_signal(signal.SIGTERM)
    assert holder.push()[0] == "revoke"
    for word, c in asks:
        refused("DRAINING", c, word, "free")
    assert holder.call("UNLOCK", "held") == 0
    assert d.process.wait(harness.PATIENCE) == 0


def test_what_is_not_known(standalone, clients):
    assert commands("NOPROTO") == ["HELLO"] and commands("NOSCRIPT") == ["EVALSHA"]
    c = clients(standalone)
    refused("NOPROTO", c, "HELLO", "")
    assert c.call("EVALSHA", "0" * 40, "1", "a", "v").code == "NOSCRIPT"
