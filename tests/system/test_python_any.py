# SPDX-License-Identifier: Apache-2.0
"""The Python library's lock_any(): one of several locks, for threads and asyncio."""

import asyncio
import os
import threading

import pytest

import harness
from parallel import all_at_once, in_thread
from python_library import crash, is_free, lockbroker, run, until, wait_free

NAMES = ("a", "b", "c")


@pytest.fixture(params=["threads", "asyncio"])
def hold(request):
    """hold(work, *names, **options) holds one of them while it does work(held), and returns what that does."""

    def by_threads(work, *names, **options):
        with lockbroker.lock_any(*names, **options) as held:
            return work(held)

    def by_asyncio(work, *names, **options):
        async def main():
            async with lockbroker.aio.lock_any(*names, **options) as held:
                return work(held)

        return run(main())

    return by_threads if request.param == "threads" else by_asyncio


def hold_all(c, *names):
    assert c.call("MLOCK", len(names), *names, "WAIT", harness.PATIENCE * 1000)


def test_the_only_one_that_is_free(here, clients, hold):
    c = clients(here)
    for free in NAMES:
        others = [name for name in NAMES if name != free]
        hold_all(c, *others)

        def look(held):
            return held.name, held.token, held.tokens, held.valid() > 0, c.call("HOLDERS", held.name)[0]["token"]

        name, token, tokens, valid, of_broker = hold(look, *NAMES)
        assert (name, tokens, valid, token) == (free, {free: token}, True, of_broker)
        wait_free(here, free)
        c.call("MUNLOCK", 2, *others)


def test_the_first_grant_wins_and_nothing_is_left_of_the_others(here, clients, hold):
    c, in_block = clients(here), clients(here)
    for name in NAMES:
        hold_all(c, *NAMES)
        join = in_thread(hold, lambda held: (held.name, [in_block.call("QUEUE", other) for other in NAMES]), *NAMES)
        for other in NAMES:
            harness.wait_queued(here, other, 1)
        c.call("UNLOCK", name)
        assert join() == (name, [[], [], []])
        c.call("MUNLOCK", 2, *(other for other in NAMES if other != name))
        assert all(is_free(here, other) for other in NAMES if other != name)
        wait_free(here, name)


def test_surplus_grants_are_released(here, clients, hold):
    c, in_block = clients(here), clients(here)
    for _ in range(10):
        hold_all(c, *NAMES)
        join = in_thread(hold, lambda held: (held.name, [other for other in NAMES if in_block.call("HOLDERS", other)]),
                             *NAMES)
        for other in NAMES:
            harness.wait_queued(here, other, 1)
        c.call("MUNLOCK", 3, *NAMES)
        name, held = join()
        assert held == [name]
        wait_free(here, name)


def test_none_is_free(here, clients, hold):
    c = clients(here)
    hold_all(c, *NAMES)
    with pytest.raises(lockbroker.Taken, match="Each of the locks a, b, c is held by somebody else."):
        hold(None, *NAMES, wait=0)
    with pytest.raises(lockbroker.TimedOut, match="Each of the locks a, b, c is held by somebody else, and was held for 0.05 s."):
        hold(None, *NAMES, wait=0.05)
    assert all(c.call("QUEUE", name) == [] for name in NAMES)


def test_it_goes_on_waiting_at_the_next_broker(alone, clients, hold):
    with alone.client() as c:
        c.call("MLOCK", 2, "a", "b")
        join = in_thread(hold, lambda held: held.name, "a", "b")
        for name in "ab":
            harness.wait_queued(alone, name, 1)
        alone.kill()
    alone.start()
    assert join() in "ab"
    wait_free(alone, "a")
    wait_free(alone, "b")


def test_a_loss_while_it_chooses_is_not_overlooked(alone, clients, monkeypatch):
    """The winner is taken away before the others were withdrawn."""
    operator = clients(alone, operator=True)
    c = clients(alone)
    c.call("MLOCK", 2, "a", "b")
    withdraw = lockbroker._scripts._withdraw

    def late(choice, names):
        assert operator.call("FORCEUNLOCK", "a") == 1
        return withdraw(choice, names)

    monkeypatch.setattr("lockbroker._scripts._withdraw", late)
    acquired = in_thread(lockbroker.lock_any("a", "b").acquire)
    for name in "ab":
        harness.wait_queued(alone, name, 1)
    c.call("UNLOCK", "a")
    with pytest.raises(lockbroker.Lost) as lost:
        acquired()
    assert lost.value.reason == "forced"
    wait_free(alone, "a")


def test_a_task_that_is_cancelled_withdraws_all(alone, clients):
    c = clients(alone)
    c.call("MLOCK", 2, "a", "b")

    async def main():
        task = asyncio.create_task(lockbroker.aio.lock_any("a", "b").acquire())
        await until(lambda: c.call("QUEUE", "a") and c.call("QUEUE", "b"), "the requests")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    harness.wait_until(lambda: c.call("QUEUE", "a") == c.call("QUEUE", "b") == [], "the end of the requests")


def test_its_lease_and_its_loss_are_those_of_a_lock(here, clients, page):
    c = clients(here, operator=True)
    with pytest.raises(lockbroker.Lost, match="The grant of the lock [ab] is void .forced."):
        with lockbroker.lock_any("a", "b", lease=60, data="job") as held:
            assert 0 < held.valid() <= 60
            held.renew(3600)
            (holder,) = c.call("HOLDERS", held.name)
            assert holder["data"] == "job" and 3500 * 1000 < holder["lease_ms"]
            assert c.call("FORCEUNLOCK", held.name) == 1
            assert held.lost.wait(harness.PATIENCE)
    wait_free(here, "a")
    wait_free(here, "b")


def test_a_crash_of_the_broker_leaves_it(alone, clients):
    held = lockbroker.lock_any("a", "b").acquire()
    crash(alone)
    held.check()
    held.release()


def test_threads_share_few_devices(alone):
    """Eight threads, three devices: no device is used by two."""
    busy, wrong = set(), []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(10):
            with lockbroker.lock_any(*NAMES) as held:
                if held.name in busy:
                    wrong.append(held.name)
                busy.add(held.name)
                os.sched_yield()
                busy.remove(held.name)

    all_at_once(work, [()] * 8)
    assert not wrong and not busy


@pytest.mark.parametrize("names, error, sentence", [
    ((), ValueError, "say which locks"), (("a", "a"), ValueError, "different names"),
    (tuple(f"n{i}" for i in range(65)), ValueError, "one of 1 to 64 different names can be taken, not of 65"),
    (("a", ".."), lockbroker.BadName, "name"),
])
def test_what_is_refused(alone, clients, names, error, sentence):
    clients(alone).call("LOCK", "a")
    with pytest.raises(error, match=sentence):
        lockbroker.lock_any(*names).acquire()
