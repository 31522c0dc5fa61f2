# SPDX-License-Identifier: Apache-2.0
"""A host behind a slow link that waits for many locks, each of which many others wait for: what it has to look at again
after a cut takes seconds to come, and is no silence."""

import time

import pytest

import harness
import network
import queues

pytestmark = [pytest.mark.plain_only("it is about time, on a link that is the bottleneck"),
              pytest.mark.release_only("ninety thousand znodes; the simulator has a slow server and cuts")]

T_MS = 15000
NAMES, CONTENDERS = 300, 300
HELD, BATCH = 9000, 500


@pytest.fixture(scope="module")
def net():
    return network.Network()


@pytest.fixture(scope="module")
def crowded():
    """A server with as many directories, and as many contenders in each."""
    with queues.crowded(NAMES, CONTENDERS) as made:
        yield made


@pytest.fixture
def waiting(crowded, net, daemons, clients):
    def make(bytes_s):
        far = queues.Far(net, crowded[0])
        daemon = daemons(far, "/q", zookeeper__session_timeout_ms=T_MS)
        w = queues.Waiting(daemon, clients(daemon), clients(daemon), far, NAMES, bytes_s)
        w.link = far.link
        return w

    return make


def test_after_a_cut_it_comes_to_rest_and_is_granted_what_becomes_free(crowded, waiting):
    bytes_s = 1000000
    backlog_s = NAMES * CONTENDERS * queues.NAME_BYTES / bytes_s
    w = waiting(bytes_s)
    w.link.reset()
    cut_at = time.monotonic()
    harness.wait_until(lambda: w.more("suspensions") and w.is_proven(), "the session to be proven again")
    time.sleep(backlog_s / 2)  # in the middle of what only time brings
    queues.free(crowded[1], f"/q/x{NAMES // 2}")
    w.waiter.socket.settimeout(2 * backlog_s + T_MS / 3000)
    assert w.waiter.push()[:2] == ["granted", f"x{NAMES // 2}"]
    harness.wait_until(w.settled, "all to be found again", 2 * backlog_s + T_MS / 3000)
    time.sleep(max(0, 3 * backlog_s - (time.monotonic() - cut_at)))  # for so long nothing bad is to happen
    w.holder.call("PING")
    told = [push[0] for push in w.holder.pushes]
    assert w.more("drops") <= 2 and w.more("losses") == 0
    assert w.more("jeopardies") <= 1 and told.count("jeopardy") <= 1, told


def test_many_locks_that_end_at_once_do_not_cost_the_connection(own_zk, net, daemons, clients):
    far = queues.Far(net, own_zk())
    daemon = daemons(far, "/h", zookeeper__session_timeout_ms=T_MS, locks__linger_ms=0)
    keeper, client = clients(daemon), clients(daemon)
    assert isinstance(keeper.call("LOCK", "kept"), int)
    for first in range(0, HELD, BATCH):
        for i in range(first, first + BATCH):
            client.send("ENQUEUE", f"h{i}")
        for _ in range(BATCH):
            assert client.reply() == "QUEUED"
        for _ in range(BATCH):
            assert client.push()[0] == "granted"
    harness.wait_until(lambda: daemon.info("zookeeper")["operations"] == "0", "the last of them")
    far.link.throttle(250000)
    before = daemon.info("stats")
    client.close()
    harness.wait_until(lambda: daemon.info("locks")["claims"] == "1", "all of them to be given back")
    after = daemon.info("stats")
    for what in ("drops", "suspensions", "jeopardies"):
        assert after[f"{what}_total"] == before[f"{what}_total"], what
    keeper.call("PING")
    assert not keeper.pushes
