# SPDX-License-Identifier: Apache-2.0
"""Ten thousand connections, by a hand-over and by the descriptor store of the service manager, of a daemon without any
privilege: more descriptors than go into one message, and than a socket holds by default."""

import resource
import shutil

import pytest

import harness
from test_keep import Manager

CONNECTIONS, SPARE = 10000, 300
UNPRIVILEGED = [shutil.which("setpriv"), "--bounding-set", "-all", "--inh-caps", "-all"]


@pytest.fixture(autouse=True)
def orphans():
    harness.inherit_orphans()


@pytest.fixture
def count():
    """How many this process may have; its limit is raised meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield min(CONNECTIONS, before[1] - SPARE) // 2 * 2
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.plain_only("numbers of connections: the parts are tested with sanitizers by test_handover.py and test_keep.py")
@pytest.mark.parametrize("with_zookeeper", [
    pytest.param(False, id="standalone"),
    pytest.param(True, id="zookeeper", marks=pytest.mark.release_only("it carries as many, and a connection to a server")),
])
def test_ten_thousand_connections_are_carried(daemons, zk, root, count, with_zookeeper):
    """Every other one holds a lock, the next one waits for it, and has sent half of another request."""
    d = daemons(zk if with_zookeeper else None, root, under=UNPRIVILEGED, limits={"clients": (count + SPARE) * 50 // 49 + 1})
    made = [d.client(2) for _ in range(count)]
    holders, waiters = made[::2], made[1::2]
    manager = Manager(d)
    try:
        for i, c in enumerate(holders):
            c.send("LOCK", i)
        tokens = [c.reply() for c in holders]
        assert all(isinstance(t, int) for t in tokens), tokens
        for i, c in enumerate(waiters):
            c.send_raw(harness.encode("LOCK", i) + b"*1\r\n$4\r\nPI")
        harness.wait_until(lambda: d.info("locks")["requests"] == str(len(waiters)), "the waiters")
        manager.restart()
        d.hand_over()
        for i, (c, token) in enumerate(zip(holders, tokens)):
            c.send("UNLOCK", i, "TOKEN", token)
        assert [c.reply() for c in holders] == [0] * len(holders)
        assert all(c.reply() > token for c, token in zip(waiters, tokens))
        for c in waiters:
            c.send_raw(b"NG\r\n")
        assert {c.reply() for c in waiters} == {"PONG"}
        assert d.info("stats")["losses_total"] == "0"
    finally:
        manager.end()
        for c in made:
            c.close()
