# SPDX-License-Identifier: Apache-2.0
"""Locks under a value that another host has granted: an unchanged program whose pool was switched to the other host."""

import os
import re
import signal

import pytest
import redis
from redis.exceptions import LockNotOwnedError, ResponseError

import harness
from mishaps import stopped


def redis_of(daemon):
    return redis.Redis(unix_socket_path=daemon.socket)


RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


def wait_released(client):
    """Asks again as long as nobody knows. 0 means that it is gone, and then it is."""

    def known():
        try:
            return client.eval(RELEASE, 1, "job", "v") in (0, 1)
        except ResponseError as e:
            assert "UNAVAILABLE" in str(e)
            return False

    harness.wait_until(known, "the release")
    harness.wait_until(lambda: client.set("job", "w", nx=True, px=600000), "the lock to be free")


@pytest.fixture
def switched(two_hosts):
    """Makes a Lock of redis-py that was acquired at alpha, and asks beta from now on."""
    pools = [redis_of(daemon) for daemon in two_hosts]

    def make(name, **options):
        lock = pools[0].lock(name, blocking=False, **options)
        assert lock.acquire()
        lock.redis = pools[1]
        return lock

    make.alpha, make.beta = pools
    yield make
    for pool in pools:
        pool.connection_pool.disconnect()


def test_a_lock_is_extended_and_released_at_the_other_host(switched):
    lock = switched("job", timeout=20)
    assert lock.extend(30) and 40 < switched.alpha.pttl("job") / 1000 <= 50
    assert lock.extend(30, replace_ttl=True) and 20 < switched.alpha.pttl("job") / 1000 <= 30
    assert lock.reacquire() and 10 < switched.alpha.pttl("job") / 1000 <= 20
    assert switched.beta.set("job", lock.local.token, xx=True, px=40000)
    assert 30 < switched.alpha.pttl("job") / 1000 <= 40
    lock.release()
    assert not switched.alpha.exists("job")
    other = switched.beta.lock("job", timeout=20)
    assert other.acquire(blocking_timeout=harness.PATIENCE)
    other.release()


def test_the_wrong_value_is_told_so_and_changes_nothing(switched):
    lock = switched("job", timeout=20)
    token, lock.local.token = lock.local.token, b"another"
    for act in (lambda: lock.extend(5), lock.reacquire, lock.release):
        lock.local.token = b"another"
        with pytest.raises(LockNotOwnedError):
            act()
    assert switched.beta.set("job", "another", xx=True, px=5) is None
    assert 10 < switched.alpha.pttl("job") / 1000 <= 20
    lock.local.token = token
    lock.release()
    lock.local.token = token
    with pytest.raises(LockNotOwnedError):
        lock.release()


def test_what_names_no_value_is_denied_with_the_holder(switched):
    switched("job", timeout=20)
    for act in (lambda: switched.beta.delete("job"), lambda: switched.beta.expire("job", 5)):
        # Its process is not written down there: nobody elsewhere has asked for the lock.
        with pytest.raises(ResponseError, match="DENIED job is held by host alpha: "):
            act()


def test_the_process_of_another_host_is_named_once_somebody_asked_for_the_lock(switched):
    switched("job", timeout=20)

    def names_the_process():
        # It has to be held for a second before a try counts.
        assert not switched.beta.set("job", "another", nx=True, px=1000)
        with pytest.raises(ResponseError) as denied:
            switched.beta.delete("job")
        return re.match(f"DENIED job is held by host alpha, pid {os.getpid()} .* ms ago: ", str(denied.value))

    harness.wait_until(names_the_process, "alpha to write down who holds it")


def test_a_host_that_does_not_answer_is_not_taken_for_a_lock_that_is_gone(daemons, zk, root):
    alpha, beta = (daemons(zk, root, host=host, daemon__keeper=0) for host in ("alpha", "beta"))
    there = redis_of(beta)
    assert redis_of(alpha).set("job", "v", nx=True, px=600000)
    with stopped(alpha):
        with pytest.raises(ResponseError, match="UNAVAILABLE job is held by host alpha"):
            there.eval(RELEASE, 1, "job", "v")
    wait_released(there)


def test_a_release_after_a_kill_of_the_host_that_granted_it(daemons, zk, root):
    alpha, beta = (daemons(zk, root, host=host) for host in ("alpha", "beta"))
    assert redis_of(alpha).set("job", "v", nx=True, px=600000)
    alpha.signal(signal.SIGKILL)
    wait_released(redis_of(beta))
