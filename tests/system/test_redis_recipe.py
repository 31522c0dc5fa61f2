# SPDX-License-Identifier: Apache-2.0
"""Programs that lock as with Redis (docs/REDIS.md): a value owns the lock, whatever connection it comes over. With redis-py,
unmodified, and redis-cli."""

import glob
import os
import signal
import subprocess
import time

import pytest
import redis

import fakekeeper
import harness
import pages
from mishaps import kill_and_start
from parallel import all_at_once
from tools import need

LONG_MS = 600_000


def redis_of(daemon, **options):
    return redis.Redis(unix_socket_path=daemon.socket, socket_timeout=harness.PATIENCE, **options)


def denied(call, *args, code="DENIED"):
    with pytest.raises(redis.ResponseError) as refused:
        call(*args)
    assert str(refused.value).startswith(code), refused.value


def test_a_program_moves_by_the_line_of_the_page(standalone):
    (line,) = pages.claimed("docs/REDIS.md", __file__)
    names = {"redis": redis}
    exec(line.replace("/run/lockbroker/lockbroker.sock", standalone.socket), names)  # pylint: disable=exec-used
    assert names["r"].set("a", "mine", nx=True, px=LONG_MS) is True and names["r"].get("a") == b"mine"
    by_url = redis.Redis.from_url(f"unix://{standalone.socket}")
    assert by_url.get("a") == b"mine"


def test_what_redis_py_does_without_scripts(broker):
    """Each call may go over another connection of the pool."""
    r = redis_of(broker)
    assert r.set("a", "mine", nx=True, px=LONG_MS) is True
    assert r.set("a", "other", nx=True, px=LONG_MS) is None
    assert r.get("a") == b"mine" and r.exists("a", "b") == 1
    assert 0 < r.pttl("a") <= LONG_MS and r.ttl("a") > 1 and r.ttl("b") == -2
    assert r.set("a", "mine", xx=True, ex=2000) is True and r.ttl("a") > LONG_MS / 1000
    assert r.set("a", "other", xx=True, ex=1) is None and r.set("b", "other", xx=True, ex=1) is None
    assert r.expire("a", 3000) and r.ttl("a") > 2000 and not r.expire("b", 3)
    assert r.pexpire("a", LONG_MS) and r.pttl("a") <= LONG_MS
    assert r.execute_command("TOKEN", "a", "mine") > 0
    assert r.delete("a", "b") == 1 and r.unlink("a") == 0 and r.get("a") is None
    assert r.set("a", "other", nx=True, ex=2000) is True
    assert r.set("b", "x", nx=True, exat=int(time.time()) + 2000) is True and r.ttl("b") > 1000


def test_locks_of_redis_py_are_asked_for_and_seen(broker):
    """What its Lock does by itself needs no script: to acquire, blocking or not, `locked` and `owned`."""
    r = redis_of(broker)
    lock = r.lock("a", timeout=LONG_MS / 1000)
    assert lock.acquire(blocking=False) and lock.owned() and lock.locked()
    other = r.lock("a", timeout=LONG_MS / 1000, blocking_timeout=0.3)
    assert not other.acquire() and not other.owned() and other.locked()
    assert r.delete("a") == 1
    # The value that has given up may have a turn for the rest of its second.
    harness.wait_until(other.acquire, "the lock")
    assert not lock.owned()


def test_threads_that_share_a_pool_exclude_each_other(broker):
    """With LOCK they would need a connection each."""
    r = redis_of(broker)
    inside, most, rounds = 0, 0, []

    def work(name):
        nonlocal inside, most
        for turn in range(10):
            harness.wait_until(lambda value=f"{name}-{turn}": r.set("a", value, nx=True, px=LONG_MS), "the lock")
            inside += 1
            most = max(most, inside)
            rounds.append(name)
            inside -= 1
            assert r.delete("a") == 1

    all_at_once(work, zip(range(4)))
    assert most == 1 and len(rounds) == 40


def test_another_process_needs_the_value(broker, clients):
    need("redis-cli", "--version")

    def cli(*words):
        return subprocess.run(["redis-cli", "-s", broker.socket, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=harness.PATIENCE, check=False).stdout.strip()

    assert cli("SET", "a", "sesame", "NX", "PX", str(LONG_MS)) == "OK"
    r = redis_of(broker)
    assert r.get("a") == b"sesame"
    denied(r.delete, "a")
    denied(r.expire, "a", 5)
    assert r.set("a", "sesame", xx=True, px=LONG_MS) is True
    assert "sesame" not in cli("HOLDERS", "a") + cli("QUEUE", "a") + cli("LOCKS") + cli("CLIENT", "LIST")
    c = clients(broker)
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert r.set("a", "sesame", xx=True, px=1) is True
    assert c.call("LOCK", "a") > 0  # its lease is over
    assert r.get("a").startswith(b"held@")


def test_two_hosts_exclude_each_other(two_hosts):
    alpha, beta = map(redis_of, two_hosts)
    assert alpha.set("a", "mine", nx=True, px=LONG_MS) is True
    assert beta.set("a", "mine", nx=True, px=LONG_MS) is None
    token = alpha.execute_command("TOKEN", "a", "mine")
    assert beta.get("a") == b"held@alpha" and beta.exists("a") == 1 and beta.pttl("a") == -1
    denied(beta.delete, "a")
    denied(beta.pexpire, "a", 5)
    assert beta.set("a", "other", xx=True, px=1) is None and beta.set("a", "mine", xx=True, px=LONG_MS) is True
    assert alpha.delete("a") == 1
    harness.wait_until(lambda: beta.set("a", "next", nx=True, px=LONG_MS), "the other host")
    assert beta.execute_command("TOKEN", "a", "next") > token
    assert alpha.get("a") == b"held@beta"


def test_conditions_on_the_value_release_and_extend_on_either_host(two_hosts):
    """As in Valkey 9 and Redis 8.4, whose clients send these words."""
    alpha, beta = map(redis_of, two_hosts)
    for holder, asker in (alpha, alpha), (alpha, beta):
        for release in ["DELIFEQ", "a", "mine"], ["DELEX", "a", "IFEQ", "mine"]:
            harness.wait_until(lambda: holder.set("a", "mine", nx=True, px=LONG_MS), "the other host")
            assert asker.execute_command(*(word.replace("mine", "other") for word in release)) == 0
            assert asker.execute_command("SET", "a", "other", "IFEQ", "other", "PX", 1) is None
            assert asker.execute_command("SET", "a", "mine", "IFEQ", "mine", "PX", 2 * LONG_MS) in (True, b"OK")
            assert LONG_MS < holder.pttl("a") <= 2 * LONG_MS
            assert asker.execute_command(*release) == 1 and asker.execute_command(*release) == 0
    assert alpha.set("a", "mine", nx=True, px=LONG_MS) is True
    for words in (["SET", "a", "next", "IFEQ", "mine", "PX", 1], ["SET", "a", "mine", "IFNE", "other", "PX", 1],
                  ["SET", "a", "mine", "IFEQ", "mine"], ["DELEX", "a"], ["DELEX", "a", "IFNE", "other"]):
        with pytest.raises(redis.ResponseError, match="a lock keeps the value|say how long|DELEX releases a lock with IFEQ"):
            beta.execute_command(*words)
    assert alpha.get("a") == b"mine" and alpha.delete("a") == 1


def test_a_lease_ends_for_the_other_host(two_hosts):
    alpha, beta = map(redis_of, two_hosts)
    assert alpha.set("a", "mine", nx=True, px=50) is True
    harness.wait_until(lambda: beta.set("a", "next", nx=True, px=LONG_MS), "the end of the lease")
    assert alpha.set("a", "mine", nx=True, px=50) is None


RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
EXTEND = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"


def bytes_below(folder):
    found = b""
    for path in glob.glob(os.path.join(folder, "**"), recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as f:
                found += f.read()
    return found


def test_a_value_is_in_no_log_and_was_never_in_zookeeper(own_zk, daemons, root):
    """Who knows it owns the lock. ZooKeeper's log of transactions has all that was ever written there."""
    zk = own_zk()
    hosts = [daemons(zk, root, host=host, daemon__log_level="debug", log__grants=1) for host in ("alpha", "beta")]
    alpha, beta = map(redis_of, hosts)
    assert alpha.set("vault", "sesame-1", nx=True, px=LONG_MS)
    denied(beta.delete, "vault")
    denied(alpha.execute_command, "SET", "vault", "sesame-1", "NX", "PX", "sesame-1", code="")
    denied(alpha.eval, "return 'sesame-1'", 1, "vault", "sesame-1", code="")
    for daemon in (alpha, beta):
        for _ in range(2):  # the second time it gets a place
            assert daemon.set("vault", "sesame-2", nx=True, px=LONG_MS) is None
    assert beta.eval(RELEASE, 1, "vault", "sesame-3") == 0
    assert beta.eval(EXTEND, 1, "vault", "sesame-1", LONG_MS) == 1
    hosts[0].hand_over()
    assert alpha.get("vault") == b"sesame-1"
    assert beta.eval(RELEASE, 1, "vault", "sesame-1") == 1
    for host in hosts:
        host.signal(signal.SIGTERM)
        host.process.wait(harness.PATIENCE)
    zk.kill()
    written = bytes_below(zk.dir)
    assert b"vault" in written and b"sesame" not in written
    logs = [host.log() for host in hosts]
    assert "vault" in logs[0]  # beta's has it only if beta's turn for the lock came in time
    assert all("event=stopped" in log and "sesame" not in log for log in logs)


def test_a_value_is_shown_to_no_operator(broker, clients):
    alpha = redis_of(broker)
    assert alpha.set("vault", "sesame", nx=True, px=LONG_MS)
    with broker.client(operator=True) as c:
        for words in (("HOLDERS", "vault"), ("QUEUE", "vault"), ("WHY", "vault"), ("LOCKS",), ("LOCKS", "*", "ALL"), ("LOG",),
                      ("CLIENT", "LIST"), ("ACCOUNTS",), ("INFO",), ("METRICS",)):
            assert "sesame" not in repr(c.call(*words)), words


@pytest.mark.parametrize("how", ["standalone", "zookeeper"])
def test_it_survives_a_restart_and_a_kill(how, request, daemons, root):
    """Nobody has a connection: what is written down is all there is."""
    harness.inherit_orphans()
    daemon = fakekeeper.kept(how, request, daemons, root)
    r = redis_of(daemon)
    assert r.set("a", "mine", nx=True, px=LONG_MS) is True
    token = r.execute_command("TOKEN", "a", "mine")
    r.close()
    for end in harness.Daemon.hand_over, fakekeeper.Kept.crash, fakekeeper.Kept.crash:
        end(daemon)
        assert r.get("a") == b"mine" and 0 < r.pttl("a") <= LONG_MS
        assert r.execute_command("TOKEN", "a", "mine") == token
        assert r.set("a", "other", nx=True, px=5) is None
        r.close()
    assert r.delete("a") == 1
    assert r.set("a", "other", nx=True, px=LONG_MS) is True
    assert r.execute_command("TOKEN", "a", "other") > token


def test_a_daemon_that_starts_anew_respects_what_nobody_can_look_at(daemons, zk, root):
    """Who knows the value may live anywhere, though the process that set it has ended: the session before counts until its
    last instant."""
    daemon = daemons(zk, root, host="alpha", zookeeper__session_timeout_ms=20000)
    need("redis-cli", "--version")
    done = subprocess.run(["redis-cli", "-s", daemon.socket, "SET", "a", "mine", "NX", "PX", str(LONG_MS)], capture_output=True,
                          text=True, timeout=harness.PATIENCE, check=True)
    assert done.stdout == "OK\n"
    kill_and_start(daemon)
    assert daemon.info()["leftover_sessions"] == "1" and int(daemon.info()["leftover_wait_ms"]) > 1000
    r = redis_of(daemon)
    assert r.set("a", "next", nx=True, px=LONG_MS) is None
    harness.wait_until(lambda: r.set("a", "next", nx=True, px=LONG_MS), "the end of the session before")
