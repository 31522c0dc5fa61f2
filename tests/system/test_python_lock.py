# SPDX-License-Identifier: Apache-2.0
"""The Python library for threads: locks, permits, leadership, options and refusals."""

import contextlib
import gc
import inspect
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback

import pytest

import harness
from mishaps import stopped
from parallel import all_at_once, in_thread
from python_library import FOLDER, is_free, lockbroker, program, wait_free


def test_a_block_holds_the_lock(here, clients):
    c = clients(here)
    with lockbroker.lock("a") as held:
        (holder,) = c.call("HOLDERS", "a")
        assert holder["token"] == held.token > 0
        assert (holder["pid"], holder["mode"], held.name) == (os.getpid(), "exclusive", "a")
        assert held.valid() > 0 and not held.lost.is_set() and held.lost_reason is None
        held.check()
        first = held.token
    assert is_free(here)
    assert held.valid() == 0.0
    with lockbroker.lock("a") as held:
        assert held.token > first


def test_the_options_reach_the_broker(here, clients):
    c = clients(here)
    with lockbroker.lock("a", shared=True, lease=60, data="from a test") as held:
        (holder,) = c.call("HOLDERS", "a")
        assert (holder["mode"], holder["data"]) == ("shared", "from a test")
        assert 0 < holder["lease_ms"] <= 60000
        assert 0 < held.valid() <= 60
        assert held.valid() <= 60 and c.call("LOCK", "a", "SHARED", "WAIT", "0")


def test_without_a_lease_standalone_it_cannot_run_out(alone):
    with lockbroker.lock("a") as held:
        assert held.valid() == math.inf


def test_with_zookeeper_it_is_proven_for_seconds(daemons, zk, root):
    daemon = daemons(zk, root)
    with lockbroker.lock("a", socket=daemon.socket) as held:
        assert 0 < held.valid() < 3600


def test_a_lock_that_is_taken(here, clients):
    c = clients(here)
    c.call("LOCK", "a")
    with pytest.raises(lockbroker.Taken, match="The lock a is held by somebody else") as e:
        lockbroker.lock("a", wait=0).acquire()
    assert not isinstance(e.value, lockbroker.TimedOut)
    with pytest.raises(lockbroker.TimedOut, match="was held for 0.05 s") as e:
        lockbroker.lock("a", wait=0.05).acquire()
    assert isinstance(e.value, TimeoutError) and isinstance(e.value, lockbroker.Taken)
    assert c.call("QUEUE", "a") == []


def test_readers_share_and_writers_wait(here, clients):
    reader = lockbroker.lock("a", shared=True).acquire()
    with lockbroker.lock("a", shared=True):
        with pytest.raises(lockbroker.Taken):
            lockbroker.lock("a", wait=0).acquire()
    reader.release()
    writer = lockbroker.lock("a").acquire()
    writer.downgrade()
    assert clients(here).call("LOCK", "a", "SHARED", "WAIT", "60000") > 0
    writer.release()


def test_a_lock_object_is_shared_by_threads_that_exclude_each_other(alone):
    shared, counter, tokens = lockbroker.lock("a"), [0], []

    def work():
        for _ in range(25):
            with shared as held:
                seen = counter[0]
                os.sched_yield()
                counter[0] = seen + 1
                tokens.append(held.token)

    all_at_once(work, [()] * 8)
    assert counter == [200]
    assert tokens == sorted(set(tokens))
    assert is_free(alone)


def test_who_waits_does_not_hold_the_interpreter(alone, clients):
    """The thread that waits for the lock needs this one to go on."""
    c = clients(alone)
    c.call("LOCK", "a")
    acquired = in_thread(lockbroker.lock("a").acquire)
    harness.wait_queued(alone, "a", 1)
    assert c.call("UNLOCK", "a") == 0
    acquired().release()


def test_a_lock_that_the_same_thread_holds_is_told_from_one_of_another(here):
    with lockbroker.lock("a"):
        with pytest.raises(lockbroker.Taken, match="^The lock a is held by this owner already: release it first.$"):
            lockbroker.lock("a", wait=0).acquire()
        with pytest.raises(lockbroker.Taken, match="^The lock a is held by somebody else.$"):
            in_thread(lockbroker.lock("a", wait=0).acquire)()


def test_exceptions_are_called_as_programs_import_them(tmp_path):
    with pytest.raises(lockbroker.NoBroker) as e:
        lockbroker.lock("a", socket=str(tmp_path / "none")).acquire()
    assert traceback.format_exception_only(type(e.value), e.value)[0].startswith("lockbroker.NoBroker: No lockbrokerd")
    assert type(pickle.loads(pickle.dumps(e.value))) is lockbroker.NoBroker
    for name in lockbroker.__all__:
        kind = getattr(lockbroker, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert (kind.__module__, kind.__name__) == ("lockbroker", name)


@pytest.mark.parametrize("options, kind, sentence", [
    ({"wait": "5"}, TypeError, "wait is a number of seconds, not str"), ({"lease": "5"}, TypeError, "lease is a number"),
    ({"patience": "5"}, TypeError, "patience is a number"), ({"wait": True}, TypeError, "not bool"),
    ({"data": ""}, ValueError, "data is a text of 1 to 512 bytes"), ({"data": "\u00e9" * 257}, ValueError, "not of 514"),
], ids=str)
def test_what_cannot_be_asked_for_names_the_argument(options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        lockbroker.lock("a", **options)


def test_a_thread_that_would_wait_for_itself_is_refused(here):
    with lockbroker.lock("a") as held:
        with pytest.raises(lockbroker.Deadlock):
            lockbroker.lock("a").acquire()
        assert held.valid() > 0


def test_threads_that_would_wait_for_each_other_are_refused(alone):
    both, refused = threading.Barrier(2), []

    def work(first, second):
        with lockbroker.lock(first):
            both.wait(harness.PATIENCE)
            try:
                with lockbroker.lock(second):
                    pass
            except lockbroker.Deadlock as e:
                refused.append(str(e))

    all_at_once(work, (("a", "b"), ("b", "a")))
    assert len(refused) == 1 and "release one of them first" in refused[0]


def test_without_a_group_another_thread_may_release(alone):
    held = lockbroker.lock("a", group="").acquire()
    released = in_thread(lambda: (harness.wait_queued(alone, "a", 1), held.release()))
    lockbroker.lock("a", group="").acquire().release()
    released()


def test_a_lease_runs_out_and_is_restarted(here):
    held = lockbroker.lock("a", lease=30).acquire()
    held.renew(3600)
    assert here.standalone is False or held.valid() > 3000
    with contextlib.suppress(lockbroker.Lost):  # it may have run out by the time of the answer
        held.renew(0.001)
    assert held.lost.wait(harness.PATIENCE)
    assert (held.lost_reason, held.valid()) == ("lease", 0.0)
    with pytest.raises(lockbroker.Lost):
        held.check()
    with pytest.raises(lockbroker.Lost):
        held.renew(10)
    with pytest.raises(lockbroker.Lost, match="The grant of the lock a is void .lease.") as e:
        held.release()
    assert e.value.reason == "lease"
    assert is_free(here)


def test_the_lease_counts_from_the_grant(alone, clients):
    """It had to wait for a good part of it."""
    c = clients(alone)
    c.call("LOCK", "a")
    acquired = in_thread(lockbroker.lock("a", lease=10).acquire)
    harness.wait_queued(alone, "a", 1)
    assert clients(alone).call("LOCK", "a", "WAIT", 1000) is None  # another second, behind it
    granted = time.monotonic()
    c.call("UNLOCK", "a")
    held = acquired()
    assert held.valid() > 10 - (time.monotonic() - granted) - 0.5
    held.release()


def test_release_is_once(alone):
    held = lockbroker.lock("a").acquire()
    held.release()
    for use in held.release, held.downgrade, held.check, lambda: held.renew(1):
        with pytest.raises(lockbroker.NotHeld, match="released already: the lock a"):
            use()
    held.close()
    with lockbroker.lock("a") as inner:
        inner.release()


def test_what_the_block_raises_goes_on_and_the_lock_is_free(alone):
    with pytest.raises(KeyError):
        with lockbroker.lock("a"):
            raise KeyError("mine")
    wait_free(alone)


def test_semaphores(here):
    with lockbroker.semaphore("s", 3, count=2) as held:
        assert held.token == 0 and held.valid() > 0
        with lockbroker.semaphore("s", 3):
            with pytest.raises(lockbroker.Taken, match="The semaphore s is held"):
                lockbroker.semaphore("s", 3, wait=0).acquire()
        with pytest.raises(lockbroker.Mismatch):
            lockbroker.semaphore("s", 4).acquire()
        with pytest.raises(lockbroker.Mismatch):
            lockbroker.lock("s").acquire()
    assert is_free(here, "s")


def test_elections(here):
    assert lockbroker.leader("e") is None
    with lockbroker.election("e", "http://me") as held:
        assert lockbroker.leader("e") == lockbroker.Leader(
            lockbroker.ask("HOLDERS", "e")[0]["host"], "http://me", held.token)
        with pytest.raises(lockbroker.Taken):
            lockbroker.election("e", "http://you", wait=0).acquire()
        assert held.valid() > 0
    assert lockbroker.leader("e") is None


def test_a_holder_is_asked_to_release(alone, clients):
    with lockbroker.lock("a") as held:
        assert not held.revoked.is_set()
        clients(alone, operator=True).call("REVOKE", "a", "maintenance at noon")
        assert held.revoked.wait(harness.PATIENCE)
        assert held.revoke_reason == "maintenance at noon"
        assert held.valid() > 0


@pytest.mark.parametrize("ask, error, sentence", [
    (lambda: lockbroker.lock(".."), lockbroker.BadName, "lock name"),
    (lambda: lockbroker.lock("x" * 513), lockbroker.BadName, "512"),
    (lambda: lockbroker.lock("a", data="\n"), lockbroker.Refused, ""),
    (lambda: lockbroker.lock("a", group="two words"), lockbroker.Refused, ""),
    (lambda: lockbroker.semaphore("a", 0), lockbroker.Refused, ""),
    (lambda: lockbroker.semaphore("a", 1, count=2), lockbroker.Refused, ""),
])
def test_what_the_broker_refuses(alone, ask, error, sentence):
    with pytest.raises(error, match=sentence) as e:
        ask().acquire()
    assert isinstance(e.value, lockbroker.LockBrokerError)
    wait_free(alone)


@pytest.mark.parametrize("options", [{"wait": -1}, {"wait": math.nan}, {"lease": 0}, {"lease": -1}, {"patience": 0}], ids=str)
def test_what_is_no_time(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        lockbroker.lock("a", **options)


@pytest.mark.parametrize("wait", [math.inf, 1e12, 1e-9, 31536000])
def test_all_other_times_are_times(alone, wait):
    lockbroker.lock("a", wait=wait, lease=max(wait, 30)).acquire().close()


def test_a_lock_name_is_a_text():
    with pytest.raises(TypeError):
        lockbroker.lock(b"a")


def test_nobody_serves(tmp_path):
    with pytest.raises(lockbroker.NoBroker, match="No lockbrokerd is serving .*/none") as e:
        lockbroker.lock("a", socket=str(tmp_path / "none")).acquire()
    assert isinstance(e.value, lockbroker.NotAvailable) and isinstance(e.value, ConnectionError)
    with pytest.raises(lockbroker.NoBroker, match="too long"):
        lockbroker.lock("a", socket="x" * 200).acquire()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode, sentence", [(0o755, "socket_mode"), (0o700, "a directory of the path cannot be searched")])
def test_a_user_who_may_not(daemons, mode, sentence):
    daemon = daemons(daemon__socket_mode="0600")
    os.chmod(os.path.dirname(daemon.dir), 0o755)
    os.chmod(daemon.dir, mode)
    code = f"import lockbroker\ntry: lockbroker.lock('a', socket={daemon.socket!r}).acquire()\nexcept lockbroker.Denied as e: print(e)"
    told = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-B", "-c", code],
                          env={"PYTHONPATH": FOLDER}, capture_output=True, text=True, timeout=harness.PATIENCE)
    if "Permission denied" in told.stderr or "No module" in told.stderr:
        pytest.skip("that user may not read the sources")
    assert "This user may not use lockbrokerd" in told.stdout and sentence in told.stdout


def test_a_limit_of_the_broker(daemons):
    daemon = daemons(limits={"clients": 2})
    held = [lockbroker.lock(name, socket=daemon.socket).acquire() for name in "ab"]
    with pytest.raises(lockbroker.LimitReached):
        lockbroker.lock("c", socket=daemon.socket).acquire()
    for h in held:
        h.release()


def test_a_drained_broker(alone, clients):
    clients(alone, operator=True).call("DRAIN")
    with pytest.raises(lockbroker.Draining) as e:
        lockbroker.lock("a").acquire()
    assert isinstance(e.value, lockbroker.NotAvailable)


def test_zookeeper_is_not_there(daemons):
    daemon = daemons(harness.NoZookeeper)
    for wait in 0, 0.05:
        with pytest.raises(lockbroker.NotAvailable):
            lockbroker.lock("a", wait=wait, socket=daemon.socket).acquire()


def test_who_interrupts_a_wait_leaves_nothing(alone, clients):
    """Ctrl-C, as a terminal sends it."""
    c = clients(alone)
    c.call("LOCK", "a")
    p = program(alone, """
        import lockbroker
        try:
            lockbroker.lock("a").acquire()
        except KeyboardInterrupt:
            print(len(lockbroker.ask("QUEUE", "a")))
            lockbroker.lock("b").acquire().release()
            print("goes on")
            input()
    """)
    harness.wait_queued(alone, "a", 1)
    p.send_signal(signal.SIGINT)
    assert p.stdout.readline() == "0\n"
    assert p.stdout.readline() == "goes on\n"
    assert c.call("UNLOCK", "a") == 0
    assert is_free(alone)
    p.communicate("\n", harness.PATIENCE)


def test_a_signal_handler_that_returns_does_not_end_a_wait(alone, clients):
    c = clients(alone)
    c.call("LOCK", "a")
    p = program(alone, """
        import lockbroker, signal
        signal.signal(signal.SIGUSR1, lambda *_: print("signal"))
        with lockbroker.lock("a", wait=60) as held:
            print("held")
    """)
    harness.wait_queued(alone, "a", 1)
    p.send_signal(signal.SIGUSR1)
    assert p.stdout.readline() == "signal\n"
    assert c.call("UNLOCK", "a") == 0
    assert p.stdout.read() == "held\n"
    assert p.wait(harness.PATIENCE) == 0


def test_what_is_dropped_is_released(alone):
    lock = lockbroker.lock("a")
    held = lock.acquire()
    assert not held.lost.is_set(), "the watching thread keeps nothing"
    with pytest.warns(ResourceWarning):
        del held
        gc.collect()
        wait_free(alone)


def test_the_end_of_the_process_releases(alone):
    p = program(alone, """
        import lockbroker
        held = lockbroker.lock("a").acquire()
        held.lost
        print("held")
        input()
    """)
    assert p.stdout.readline() == "held\n"
    p.kill()
    p.wait()
    wait_free(alone)


def test_descriptors_are_not_inherited_nor_left(alone):
    lockbroker.lock("a").acquire().release()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with lockbroker.lock("a") as held:
            assert not os.get_inheritable(held._wire.fd)
        with pytest.raises(lockbroker.BadName):
            lockbroker.lock("..").acquire()
    del held  # and what it has mapped
    assert len(os.listdir("/proc/self/fd")) <= before


def test_valid_reads_the_page_and_asks_nobody(alone):
    """While the broker stands still, nobody else could answer."""
    with lockbroker.lock("a") as held:
        with stopped(alone):
            assert held.valid() == math.inf
            held.check()


def test_every_public_thing_says_what_it_is():
    for module in lockbroker, lockbroker.aio:
        for name in module.__all__:
            thing = getattr(module, name)
            assert inspect.getdoc(thing), name
    assert set(lockbroker.aio.__all__) < set(lockbroker.__all__)


# ---- a broker that is being started again ----

FIRST = """
import lockbroker, sys
print("begins", flush=True)
try:
    with lockbroker.lock("a", patience=60):
        print("held")
except lockbroker.NoBroker:
    print("none")
"""


def first(daemon, **env):
    """A process that has never reached the broker."""
    p = harness.spawn(["/usr/bin/python3", "-c", FIRST], env=os.environ | {"PYTHONPATH": f"{harness.SOURCE}/client-lib/python",
                      "LOCKBROKER_SOCKET": daemon.socket} | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "begins\n"
    return p


def test_a_first_lock_waits_for_a_broker_that_is_started_again(standalone):
    standalone.kill()
    p = first(standalone)
    standalone.start()
    assert p.stdout.read() == "held\n"


def test_a_first_lock_need_not_wait_and_does_not_without_a_socket(standalone):
    standalone.kill()
    assert first(standalone, LOCKBROKER_OPEN_MS="0").stdout.read() == "none\n"
    os.unlink(standalone.socket)
    began = time.monotonic()
    assert first(standalone).stdout.read() == "none\n"
    assert time.monotonic() - began < 50, "the patience is 60 s"
    standalone.start()
