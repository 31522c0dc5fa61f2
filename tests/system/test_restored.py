# SPDX-License-Identifier: Apache-2.0
"""An ensemble that was restored from a backup: its transactions begin again behind what this host has seen."""

import shutil

import pytest

import harness

# More than a daemon needs for a few locks.
TRANSACTIONS = 300


def go_on(zk, kazoo_client, transactions):
    k = kazoo_client(zk)
    k.ensure_path("/elsewhere")
    for i in range(transactions):
        k.set("/elsewhere", str(i).encode())
    return k


def restore(zk):
    """The oldest state there can be."""
    zk.kill()
    shutil.rmtree(f"{zk.dir}/data")
    zk.start()


@pytest.mark.parametrize("between", ["nothing", "a hand-over", "a kill"])
def test_no_token_is_given_twice_when_the_ensemble_is_restored(own_zk, daemons, clients, kazoo_client, between):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    d = daemons(zk, **harness.FAST)
    k = go_on(zk, kazoo_client, TRANSACTIONS)
    c = clients(d)
    token = c.call("LOCK", "a")
    assert c.call("UNLOCK", "a") == 0
    k.stop()
    if between == "a hand-over":
        with d.client(operator=True) as operator:
            assert isinstance(operator.call("RESTART"), dict)
        d.follow()
    elif between == "a kill":
        old = d.pid
        d.signal(harness.signal.SIGKILL)
        d.await_another(old)
    restore(zk)
    c = clients(d)
    harness.wait_until(lambda: "ZooKeeper has gone back to transaction 0x" in d.log() or
                       getattr(c.call("LOCK", "a", "WAIT", 500), "code", "") == "UNAVAILABLE", "the session")
    refused = harness.wait_until(lambda: answer if "tokens would repeat" in (answer := str(c.call("LOCK", "a", "WAIT", 3000)))
                                 else None, "the refusal")
    assert refused.startswith("UNAVAILABLE tokens would repeat, because an older state of ZooKeeper was restored")
    assert "ZooKeeper has gone back to transaction 0x" in d.log()
    go_on(zk, kazoo_client, TRANSACTIONS + 100)
    again = c.call("LOCK", "a")
    assert again > token, f"{again} after {token}"
    assert c.call("UNLOCK", "a") == 0
