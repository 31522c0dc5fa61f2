# SPDX-License-Identifier: Apache-2.0
"""AUDIT, as a client and as a command, over a real ZooKeeper."""

import threading
import time

import pytest

import harness
from test_cli import run

OPERATORS = True  # see clients of conftest.py

COUNTS = ("directories", "contenders", "ours", "strays", "undeleted", "odd_children", "odd_names", "mismatched",
          "refused")


@pytest.fixture
def k(zk, kazoo_client):
    return kazoo_client(zk)


def counts(reply):
    return {key: reply[key] for key in COUNTS if reply[key]}


def make_directory(k, path):
    k.create(path, b"1\nkind=lock\nflavour=rw\n", makepath=True)


def stray_name(daemon):
    """As the daemon names its contenders, with a nonce that it has not used."""
    digits = daemon.info("session")["session_id"][2:]
    return f"_c_{digits[:8]}-{digits[8:12]}-8{digits[12:15]}-8{digits[15]}ff-ffffffffffff-__WRIT__"


def test_what_there_is_is_counted(daemons, zk, root, clients, k):
    d, other = daemons(zk, root), daemons(zk, root)
    a, b = clients(d), clients(other)
    for name in ("a", "b/c", "ü"):
        a.call("LOCK", name)
    b.send("LOCK", "a")
    b2 = clients(other)
    b2.call("LOCK", "d")
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 2, "the other host to queue")
    k.create(f"{root}/a/_c_00000000-0000-4000-8000-000000000000-__WRIT__", ephemeral=True, sequence=True)
    k.create(f"{root}/d/lock-", ephemeral=True, sequence=True)
    k.create(f"{root}/d/notes", ephemeral=True)
    k.create(f"{root}/no lock")
    k.create(f"{root}/pool", b"1\nkind=semaphore\nflavour=curator\n")
    reply = clients(d).call("AUDIT")
    assert counts(reply) == {"directories": 5, "contenders": 7, "ours": 3, "odd_children": 2, "odd_names": 1,
                             "mismatched": 1}
    assert {(e["what"], e["path"].removeprefix(root)) for e in reply["examples"] if "lock-" not in e["path"]} == {
        ("odd_children", "/d/notes"), ("odd_names", "/no lock"), ("mismatched", "/pool")}
    assert counts(b2.call("AUDIT"))["ours"] == 2


def test_a_stray_is_gone_when_audit_answers(daemons, zk, root, clients, k):
    """Pitfall 13: an orphan of our own session would block the lock for as long as the daemon lives."""
    d = daemons(zk, root)
    make_directory(k, f"{root}/a")
    path = k.create(f"{root}/a/{stray_name(d)}", sequence=True)
    reply = clients(d).call("AUDIT")
    assert counts(reply) == {"directories": 1, "contenders": 1, "strays": 1}
    assert [(e["what"], e["path"]) for e in reply["examples"]] == [("strays", path)]
    assert k.get_children(f"{root}/a") == []
    assert d.info("audit")["audit_strays"] == "1"
    assert d.info("audit")["audit_undeleted"] == "0"
    assert counts(clients(d).call("AUDIT")) == {"directories": 1}


def test_the_command_says_what_it_found(daemons, zk, root, clients, k):
    d = daemons(zk, root)
    c = clients(d)
    c.call("LOCK", "a")
    clean = run(d, "audit")
    assert (clean.returncode, clean.stderr) == (0, "")
    assert [line.split() for line in clean.stdout.splitlines()[:4]] == [
        ["directories", "1"], ["contenders", "1"], ["ours", "1"], ["strays", "0"]]
    assert "WHAT" not in clean.stdout
    k.create(f"{root}/a/{stray_name(d)}", sequence=True)
    k.create(f"{root}/a/\u202edd")
    odd = run(d, "audit")
    assert odd.returncode == 1
    assert ["strays", "1"] in [line.split() for line in odd.stdout.splitlines()]
    assert f"strays        {root}/a/{stray_name(d)}" in odd.stdout
    assert f"odd_children  {root}/a/\\u202edd" in odd.stdout
    assert len(k.get_children(f"{root}/a")) == 2
    assert c.call("VALID", "a") > 0


def test_standalone_there_is_nothing(standalone, clients):
    assert counts(clients(standalone).call("AUDIT")) == {}
    assert run(standalone, "audit").returncode == 0


def test_without_zookeeper_it_says_so(daemons, root, clients):
    d = daemons(harness.NoZookeeper, root)
    assert clients(d).call("AUDIT").code == "UNAVAILABLE"
    assert run(d, "audit").returncode == 69


def test_very_many_directories_and_nobody_waits_for_it(daemons, zk, root, clients, k):
    """One sweep of 2,000 directories while a client locks and unlocks: its session stays safe, it is served."""
    k.ensure_path(root)
    for result in [k.create_async(f"{root}/d{i}", b"1\nkind=lock\nflavour=rw\n") for i in range(2000)]:
        result.get(timeout=harness.PATIENCE)
    d = daemons(zk, root, locks__linger_ms=0)
    answer, longest, rounds = [], 0, 0

    def ask():
        with d.client(operator=True) as auditor:
            answer.append(auditor.call("AUDIT"))

    thread = threading.Thread(target=ask)
    c = clients(d)
    thread.start()
    while thread.is_alive():
        begin = time.monotonic()
        assert isinstance(c.call("LOCK", f"d{rounds % 2000}"), int)
        assert c.call("UNLOCK", f"d{rounds % 2000}") == 0
        longest = max(longest, time.monotonic() - begin)
        rounds += 1
    thread.join()
    # On a busy machine all of it takes longer.
    assert rounds > 1 and longest < max(5, answer[0]["elapsed_ms"] / 2000)
    assert answer[0]["directories"] == 2000 and answer[0]["strays"] == answer[0]["undeleted"] == 0
    info = d.info("stats")
    assert info["jeopardies_total"] == info["drops_total"] == "0"
    print(f"2,000 directories in {answer[0]['elapsed_ms']} ms; {rounds} rounds, the longest {longest * 1e3:.0f} ms")
