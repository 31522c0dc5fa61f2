# SPDX-License-Identifier: Apache-2.0
"""What ZooKeeper refuses: whether a lock can be had is what a monitor sees, and the cause is named."""

import os
import re

import kazoo.security
import pytest

import harness
from harness import FAST, FAST_TICK_MS
from test_cli import run

QUOTA = "/zookeeper/quota/t/zookeeper_"


def check(daemon, *words):
    done = run(daemon, "check", *words)
    return done.returncode, done.stdout


def await_check(daemon, status, says, lock):
    """Again and again somebody wants the lock. Returns what check says."""
    def seen():
        run(daemon, "lock", "-w", "0", lock, "true")
        found, text = check(daemon)
        return found == status and says in text and text

    return harness.wait_until(seen, f"check to exit with {status}: {says}")


class LocalSessions(harness.Zookeeper):
    """Sessions of which only one server knows, and which it never upgrades: they can make no ephemeral znode."""

    def more_conf(self):
        os.makedirs(f"{self.dir}/data", exist_ok=True)
        with open(f"{self.dir}/data/myid", "w") as f:
            f.write("1")
        return (f"server.1=127.0.0.1:{harness.free_port()}:{harness.free_port()}\nstandaloneEnabled=false\nreconfigEnabled=false\n"
                "initLimit=10\nsyncLimit=5\nlocalSessionsEnabled=true\nlocalSessionsUpgradingEnabled=false\n")


@pytest.fixture
def local_zk(ending):
    return ending(LocalSessions(tick_ms=FAST_TICK_MS))


def test_a_quota_that_is_used_up_is_critical_until_it_is_raised(own_zk, daemons, clients, kazoo_client):
    zk = own_zk(tick_ms=FAST_TICK_MS, jvm=["-Dzookeeper.enforceQuota=true"])
    d, k = daemons(zk, **FAST), kazoo_client(zk)
    c = clients(d)
    token = c.call("LOCK", "held")
    assert check(d)[0] == 0
    k.create(QUOTA + "limits", b"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=-1", makepath=True)
    k.create(QUOTA + "stats", b"count=0,bytes=0")  # the server counts
    count = int(k.get(QUOTA + "stats")[0].split(b"=")[1].split(b",")[0])
    k.set(QUOTA + "limits", b"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=%d" % count)
    text = await_check(d, 2, "no lock can be had: ", "fresh")
    assert "a quota of ZooKeeper is used up" in text
    assert "a quota of ZooKeeper is used up" in run(d, "why", "fresh").stdout
    assert "nobody holds it" not in run(d, "why", "fresh").stdout
    metrics = run(d, "metrics").stdout
    assert re.search("^lockbroker_locks_barred 1$", metrics, re.M)
    assert int(d.info()["refused_quota_total"]) > 0 and "a quota" in d.info()["refusal"]
    assert c.call("VALID", "held", "TOKEN", token) > 0
    k.set(QUOTA + "limits", b"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=-1")
    harness.wait_until(lambda: d.info()["locks_barred"] == "0", "the daemon to try again")
    assert isinstance(c.call("LOCK", "fresh"), int)
    status, text = check(d)
    assert status == 0, text


def test_an_acl_on_one_lock_is_a_warning_and_named(zk, daemons, root, clients, kazoo_client):
    k = kazoo_client(zk, auth_data=[("digest", "other:one")])
    d = daemons(zk, root)
    k.ensure_path(f"{root}/closed", acl=[kazoo.security.make_digest_acl("other", "one", all=True)])
    text = await_check(d, 1, f"{root}/closed", "closed")
    assert "no ACL allows it" in text and int(d.info()["refused_acl_total"]) > 0
    assert isinstance(clients(d).call("LOCK", "open"), int)
    harness.wait_until(lambda: check(d)[0] == 1 and d.info()["locks_barred"] == "0", "the daemon's own try")
    assert "refuses" in run(d, "why", "closed").stdout and "nobody holds it" not in run(d, "why", "closed").stdout
    assert "refuses" not in run(d, "why", "other").stdout


def test_local_sessions_that_are_not_upgraded_are_named(local_zk, daemons):
    d = daemons(local_zk, has_session=False, **FAST)
    harness.wait_until(lambda: check(d)[0] == 2 and "no lock can be had" in check(d)[1], "check to be critical")
    code, text = check(d)
    assert code == 2 and "localSessionsUpgradingEnabled=true" in text
    assert int(d.info()["refused_local_session_total"]) > 0


# ---- check --lock ----


def writes(daemon):
    return int(daemon.info()["zk_writes_total"])


def test_check_takes_a_real_lock(zk, daemons, root, clients):
    """Not one that the host still keeps from the last time."""
    d = daemons(zk, root, locks__linger_ms=60000)
    for _ in range(2):
        before = writes(d)
        code, text = check(d, "--lock", "monitor")
        assert code == 0, text
        assert re.search(r"the lock was taken in \d+\.\d\d\d s; .* lock=\d+\.\d\d\ds;;;0 ", text)
        assert d.info()["claims"] == "1"  # it lingers
        harness.wait_until(lambda: writes(d) >= before + 1, "the writes to be counted")
    assert int(d.info()["claims_total"]) == 2 and d.info()["handoffs_total"] == "0"
    c = clients(d)
    c.call("LOCK", "monitor")
    code, text = check(d, "--lock", "monitor")
    assert code == 0 and "the lock is held by another" in text and "lock=" not in text
    assert run(d, "--json", "check", "--lock", "free").stdout.startswith('{"verdict":"OK",')


def test_check_of_a_lock_without_zookeeper(standalone):
    code, text = check(standalone, "--lock", "monitor")
    assert code == 0 and "the lock was taken in" in text
    assert check(standalone, "--lock", "..")[0] == 3


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_check_of_a_lock_is_critical_when_it_cannot_be_had(own_zk, daemons):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, zookeeper__session_timeout_ms=10000)
    zk.kill()
    harness.wait_until(lambda: d.info()["zookeeper_state"] != "connected", "the connection to end")
    code, text = check(d, "--lock", "monitor")
    assert code == 2 and "there is no connection to ZooKeeper" in text
