# SPDX-License-Identifier: Apache-2.0
"""Locks that programs of Redis take without a time (docs/REDIS.md): they are held until their process ends. With redis-py,
unmodified, and redis-cli."""

import os
import signal
import subprocess
import sys

import pytest
import redis

import fakekeeper
import harness
from tools import need

LONG_MS = 600_000

SYNC = """
import sys
import redis
lock = redis.Redis(unix_socket_path=sys.argv[1]).lock("job")
assert lock.acquire(blocking=False) and lock.owned() and lock.locked()
print("held", flush=True)
sys.stdin.read()
"""

ASYNCIO = """
import asyncio
import sys
import redis.asyncio
async def run():
    lock = redis.asyncio.Redis(unix_socket_path=sys.argv[1]).lock("job")
    assert await lock.acquire(blocking=False) and await lock.owned() and await lock.locked()
    print("held", flush=True)
    sys.stdin.read()
asyncio.run(run())
"""

# It has no connection any longer.
CLOSED = """
import sys
import redis
client = redis.Redis(unix_socket_path=sys.argv[1])
assert client.set("job", "mine", nx=True)
client.close()
client.connection_pool.disconnect()
print("held", flush=True)
sys.stdin.read()
"""

# The child has the connection, too, until the daemon ends; the parent ends before.
FORKED = """
import os
import sys
import redis
client = redis.Redis(unix_socket_path=sys.argv[1])
assert client.set("job", "mine", nx=True)
(connection,) = client.connection_pool._available_connections
if os.fork():
    print("held", flush=True)
    sys.stdin.read(1)
    os._exit(0)
connection._sock.settimeout(None)
connection._sock.recv(1)
"""


def redis_of(daemon):
    return redis.Redis(unix_socket_path=daemon.socket, socket_timeout=harness.PATIENCE)


@pytest.fixture
def holders():
    """Starts programs that hold "job" when they say so, killed with the test."""
    started = []

    def start(daemon, text):
        started.append(harness.spawn([sys.executable, "-c", text, daemon.socket], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"held\n"
        return started[-1]

    yield start
    for p in started:
        p.kill()
        p.stdin.close()
        p.stdout.close()
        p.wait()


def kill(process):
    process.kill()
    process.wait()


def wait_free(r):
    harness.wait_until(lambda: not r.exists("job"), "the lock to be free")


def pidfds(daemon):
    folder = f"/proc/{daemon.pid}/fd"
    count = 0
    for name in os.listdir(folder):
        try:
            count += "pidfd" in os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            pass
    return count


def test_redis_pys_lock_needs_no_timeout(broker):
    """Unchanged, as its documents show it."""
    r = redis_of(broker)
    lock, other = r.lock("job"), r.lock("job", blocking=False)
    with lock:
        assert lock.owned() and lock.locked() and r.ttl("job") == -1
        assert not other.acquire()
    assert not lock.locked()
    assert r.setnx("job", "mine") is True and r.setnx("job", "other") is False
    assert r.delete("job") == 1
    assert r.set("job", "mine", nx=True) is True and r.expire("job", 600) and 0 < r.ttl("job") <= 600


@pytest.mark.parametrize("text", [SYNC, ASYNCIO, CLOSED], ids=["redis-py", "asyncio", "no connection"])
def test_a_killed_process_releases(broker, holders, text):
    r = redis_of(broker)
    process = holders(broker, text)
    assert r.exists("job") == 1 and not r.lock("job").acquire(blocking=False)
    kill(process)
    assert r.lock("job", blocking_timeout=harness.PATIENCE).acquire()


def test_a_child_does_not_inherit_it(broker, holders):
    r = redis_of(broker)
    process = holders(broker, FORKED)
    assert r.exists("job") == 1
    process.stdin.write(b"x")
    process.stdin.flush()
    process.wait()
    wait_free(r)


def test_it_ends_with_redis_cli(broker):
    need("redis-cli", "--version")
    done = subprocess.run(["redis-cli", "-s", broker.socket, "SET", "job", "mine", "NX"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=harness.PATIENCE, check=True)
    assert done.stdout == "OK\n"
    wait_free(redis_of(broker))


def test_a_process_has_one_descriptor_whatever_it_holds(broker, holders):
    r, other = redis_of(broker), redis_of(broker)
    assert pidfds(broker) == 0
    for name in "abc":
        assert r.set(name, "mine", nx=True) and other.set(name + name, "mine", nx=True)
    assert pidfds(broker) == 1
    process = holders(broker, SYNC)
    assert pidfds(broker) == 2
    kill(process)
    wait_free(r)
    assert pidfds(broker) == 1
    assert other.delete(*"abc", "aa", "bb", "cc") == 6
    harness.wait_until(lambda: pidfds(broker) == 0, "the descriptor to be closed")


def fill(daemon, clients):
    """As many connections as this user may have."""
    made = []
    while True:
        try:
            c = clients(daemon)
            reply = c.call("PING")
        except (harness.Closed, OSError):
            return made
        if reply != "PONG":
            return made
        made.append(c)


def test_it_counts_as_a_connection_at_the_limit_and_one_past(daemons, clients, holders):
    d = daemons(limits__clients=12)
    process = holders(d, CLOSED)
    mine = fill(d, clients)
    assert len(mine) > 2
    mine.pop().close()
    # The process that was killed gives its place back, too.
    kill(process)
    harness.wait_until(lambda: mine[0].call("EXISTS", "job") == 0, "the end of the process")
    mine += fill(d, clients)
    refused = mine[0].call("SET", "a", "mine", "NX")
    assert refused.code == "LIMIT" and "limits.clients" in str(refused) and "give a time with PX" in str(refused)
    assert mine[0].call("SET", "b", "mine", "NX", "PX", LONG_MS) == "OK"
    assert pidfds(d) == 0
    mine.pop().close()
    harness.wait_until(lambda: mine[0].call("SET", "a", "mine", "NX") == "OK", "the place of the connection")
    assert pidfds(d) == 1 and mine[1].call("SET", "c", "mine", "NX") == "OK"
    assert not fill(d, clients)


@pytest.mark.parametrize("how", ["standalone", "zookeeper"])
def test_it_survives_a_hand_over_and_a_kill_until_the_process_ends(how, request, daemons, root, holders):
    harness.inherit_orphans()
    daemon = fakekeeper.kept(how, request, daemons, root)
    process = holders(daemon, CLOSED)
    for end in harness.Daemon.hand_over, fakekeeper.Kept.crash, harness.Daemon.hand_over:
        end(daemon)
        r = redis_of(daemon)
        assert r.get("job") == b"mine" and r.ttl("job") == -1 and pidfds(daemon) == 1
        assert r.set("job", "other", nx=True) is None
        r.close()
    kill(process)
    wait_free(redis_of(daemon))


@pytest.mark.parametrize("how", ["standalone", "zookeeper"])
def test_a_process_that_ends_while_nobody_serves_has_released(how, request, daemons, root, holders):
    daemon = fakekeeper.kept(how, request, daemons, root)
    process = holders(daemon, CLOSED)
    daemon.crash(change=lambda: kill(process))
    wait_free(redis_of(daemon))
    assert pidfds(daemon) == 0


def test_a_killed_process_releases_for_the_other_host(two_hosts, holders):
    alpha, beta = two_hosts
    process = holders(alpha, SYNC)
    r = redis_of(beta)
    assert r.get("job") == b"held@alpha" and not r.lock("job").acquire(blocking=False)
    kill(process)
    assert r.lock("job", blocking_timeout=harness.PATIENCE).acquire()


@pytest.mark.parametrize("words", [("PX", LONG_MS), ()], ids=["with a time", "without"])
def test_a_stop_does_not_wait_for_who_cannot_be_asked(daemons, zk, root, words):
    """The session stays: another host gets the lock when that times out."""
    options = {"daemon__stop_timeout_ms": 3600000, "zookeeper__session_timeout_ms": 20000}
    alpha, beta = (daemons(zk, root, host=host, **options) for host in ("alpha", "beta"))
    with alpha.client() as a, alpha.client() as other:
        assert a.call("SET", "job", "mine", "NX", *words) == "OK"
        assert other.call("LOCK", "held") > 0
        alpha.signal(signal.SIGTERM)
        harness.wait_until(lambda: alpha.info()["stopping"] == "1", "the stop to begin")
        assert a.call("EXISTS", "job", "held") == 2
        assert other.call("UNLOCK", "held") == 0
        assert alpha.process.wait(harness.PATIENCE) == 0
    with beta.client() as b:
        assert b.call("LOCK", "held") > 0, "its znode is deleted"
        assert b.call("SET", "job", "next", "NX", "PX", LONG_MS) is None
        assert b.call("LOCK", "job") > 0


def test_a_stop_alone_does_not_wait_for_who_cannot_be_asked(daemons):
    d = daemons(daemon__stop_timeout_ms=3600000)
    with d.client() as a:
        assert a.call("SET", "job", "mine", "NX", "PX", LONG_MS) == "OK"
        assert d.terminate() == 0
