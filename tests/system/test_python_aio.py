# SPDX-License-Identifier: Apache-2.0
"""The Python library for asyncio: what differs from threads is that nothing blocks the loop, and cancellation."""

import asyncio
import gc
import math
import os
import socket
import time

import pytest

import harness
from mishaps import kill_and_start, stopped
from python_library import crash, is_free, lockbroker, program, run, until, wait_free

aio = lockbroker.aio


def queued(daemon, count):
    with daemon.client() as c:
        return len(c.call("QUEUE", "a")) == count


def test_a_block_holds_the_lock(here, clients, page):
    c = clients(here)

    async def main():
        async with aio.lock("a", lease=60, data="task") as held:
            (holder,) = c.call("HOLDERS", "a")
            assert (holder["token"], holder["data"], holder["pid"]) == (held.token, "task", os.getpid())
            assert 0 < held.valid() <= 60 and not held.lost.is_set()
            held.check()
            await held.renew(3600)
            await held.downgrade()
            assert c.call("HOLDERS", "a")[0]["mode"] == "shared"
        assert held.valid() == 0.0
        with pytest.raises(lockbroker.NotHeld):
            await held.release()
        with pytest.raises(lockbroker.NotHeld):
            held.check()
        async with aio.lock("a") as held:
            await held.release()  # the end of the block has nothing to do

    run(main())
    assert is_free(here)


def test_a_lock_object_is_shared_by_tasks_that_exclude_each_other(alone):
    shared, counter, tokens = aio.lock("a"), [0], []

    async def work():
        for _ in range(10):
            async with shared as held:
                seen = counter[0]
                await asyncio.sleep(0)  # no pause: the other tasks get a turn
                counter[0] = seen + 1
                tokens.append(held.token)

    async def main():
        await asyncio.gather(*(work() for _ in range(20)))

    run(main())
    assert counter == [200] and tokens == sorted(set(tokens))
    assert is_free(alone)


def test_refusals(here, clients):
    clients(here).call("LOCK", "a")

    async def main():
        with pytest.raises(lockbroker.Taken) as kept:
            await aio.lock("a", wait=0).acquire()
        listed = await aio.ask("CLIENT", "LIST")
        assert len(listed.splitlines()) == 2, "no connection lives as long as the exception"
        del kept
        with pytest.raises(lockbroker.TimedOut):
            await aio.lock("a", wait=0.05).acquire()
        with pytest.raises(lockbroker.BadName):
            await aio.lock("..").acquire()
        with pytest.raises(lockbroker.NoBroker):
            await aio.lock("a", socket="/nowhere").acquire()
        async with aio.lock("b"):
            with pytest.raises(lockbroker.Deadlock):
                await aio.lock("b").acquire()

    run(main())


def test_semaphores_and_elections(here):
    async def main():
        async with aio.semaphore("s", 2) as held, aio.semaphore("s", 2):
            assert held.valid() > 0
            with pytest.raises(lockbroker.Taken):
                await aio.semaphore("s", 2, wait=0).acquire()
        assert await aio.leader("e") is None
        async with aio.election("e", "me") as held:
            leader = await aio.leader("e")
            assert (leader.data, leader.token) == ("me", held.token)

    run(main())


def test_a_task_that_is_cancelled_withdraws_its_request(alone, clients):
    c = clients(alone)
    c.call("LOCK", "a")

    async def main():
        waits = asyncio.ensure_future(aio.lock("a").acquire())
        await until(lambda: queued(alone, 1), "a waiter")
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        await until(lambda: queued(alone, 0), "the queue to be empty")
        assert c.call("UNLOCK", "a") == 0
        assert is_free(alone)
        with pytest.raises(asyncio.TimeoutError):
            async with aio.lock("a"):
                await asyncio.wait_for(aio.lock("a", group="other").acquire(), 0.05)
        await until(lambda: is_free(alone), "the lock to be free")

    run(main())


async def turn(steps):
    for _ in range(steps):
        await asyncio.sleep(0.0002)  # no wait: at any moment


def test_a_task_that_is_cancelled_at_any_moment_leaves_nothing(alone):
    """Steps of the loop are counted: the grant may be there already."""

    async def main():
        for steps in range(40):
            task = asyncio.ensure_future(aio.lock("a").acquire())
            await turn(steps)
            task.cancel()
            try:
                (await task).close()
            except asyncio.CancelledError:
                pass
            await until(lambda: is_free(alone), "the lock to be free")
            task = None
            held = await aio.lock("a").acquire()
            task = asyncio.ensure_future(held.release())
            await turn(steps)
            task.cancel()
            await asyncio.wait([task])
            held.close()
            await until(lambda: is_free(alone), "the lock to be free")

    run(main())


def test_a_block_that_is_cancelled_releases(alone):
    async def main():
        entered = asyncio.Event()

        async def work():
            async with aio.lock("a"):
                entered.set()
                await asyncio.Event().wait()  # for ever

        task = asyncio.ensure_future(work())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: is_free(alone), "the lock to be free")

    run(main())


def test_a_loop_that_ends_releases(alone):
    held = []

    async def main():
        held.append(await aio.lock("a").acquire())

    run(main())
    held.clear()
    gc.collect()
    wait_free(alone)


def test_what_is_dropped_is_released_and_the_loop_goes_on(alone):
    async def main():
        for _ in range(3):
            await aio.lock("a").acquire()
            gc.collect()
            await until(lambda: is_free(alone), "the lock to be free")
        async with aio.lock("a"), aio.lock("b"):
            pass

    run(main())


def test_a_broker_that_is_killed_takes_the_lock_along(alone, page):
    async def main():
        with pytest.raises(lockbroker.Lost, match="connection"):
            async with aio.lock("a") as held:
                assert held.valid() == math.inf
                alone.kill()
                await held.lost.wait()
                assert held.lost_reason == "connection" and held.valid() == 0.0
                with pytest.raises(lockbroker.Lost):
                    await held.renew(1)
                alone.start()
        assert is_free(alone), "it is not asked for again"

    run(main())


def test_who_waits_goes_on_waiting_on_the_next_broker(alone, clients):
    clients(alone).call("LOCK", "a")

    async def main():
        waits = asyncio.ensure_future(aio.lock("a").acquire())
        await until(lambda: queued(alone, 1), "a waiter")
        kill_and_start(alone)
        await (await waits).release()

    run(main())


def test_a_lock_that_an_operator_took(alone, clients, page):
    async def main():
        with pytest.raises(lockbroker.Lost, match="forced"):
            async with aio.lock("a") as held:
                clients(alone, operator=True).call("FORCEUNLOCK", "a")
                assert held.valid() == 0.0, "also before the loop has turned"
                await held.lost.wait()

    run(main())


def test_a_holder_is_asked_to_release(alone, clients):
    async def main():
        async with aio.lock("a") as held:
            clients(alone, operator=True).call("REVOKE", "a", "at noon")
            await held.revoked.wait()
            assert held.revoke_reason == "at noon" and held.valid() > 0

    run(main())


def test_the_proof_runs_out_also_while_the_broker_hangs(daemons, own_zk, root, page):
    daemon = daemons(own_zk(tick_ms=1000), root, zookeeper__session_timeout_ms=6000)

    async def main():
        held = await aio.lock("a", socket=daemon.socket, patience=1).acquire()
        first = held.valid()
        assert 0 < first <= 4
        proven_until = time.monotonic() + first
        await until(lambda: time.monotonic() + held.valid() > proven_until + 1, "it to be proven again")
        with stopped(daemon):
            await held.lost.wait()
            assert held.valid() == 0.0
            with pytest.raises(lockbroker.Lost):
                await held.release()

    run(main())


def test_a_crash_and_a_hand_over_are_not_seen(daemons, own_zk, root, clients, page):
    """All that the first pages prove runs out meanwhile, and the loop did not turn while the process crashed."""
    daemon = daemons(own_zk(tick_ms=1000), root, zookeeper__session_timeout_ms=6000)

    async def main():
        async with aio.lock_all("a", "b", socket=daemon.socket) as held:
            for _ in range(2):
                crash(daemon)
            # Of four seconds, while which nobody else is granted it.
            assert await asyncio.to_thread(clients(daemon).call, "LOCK", "a", "WAIT", 4500) is None
            assert held.valid() > 0 and not held.lost.is_set()
            daemon.hand_over()
            await held.renew(60)
            assert held.valid() > 0 and not held.lost.is_set()

    run(main())
    assert is_free(daemon, "a") and is_free(daemon, "b")


def test_a_silent_broker(alone):
    async def main():
        held = await aio.lock("a", patience=1).acquire()
        kept = await aio.lock("b", patience=1).acquire()
        with stopped(alone):
            with pytest.raises(lockbroker.Lost, match="unanswered"):
                await held.renew(60)
            with pytest.raises(lockbroker.NoBroker, match="did not answer in time"):
                await aio.lock("c", wait=0, patience=1).acquire()
            await kept.release()
        await until(lambda: is_free(alone) and is_free(alone, "b"), "both to be free")

    run(main())


def test_a_queue_of_connections_that_is_full_does_not_stop_the_loop(tmp_path):
    """connect() would block until somebody accepts."""
    path = str(tmp_path / "s")

    async def main():
        with socket.create_server(path, family=socket.AF_UNIX, backlog=0):
            with socket.socket(socket.AF_UNIX) as first:
                first.connect(path)
                with pytest.raises(lockbroker.NoBroker, match="does not accept|did not answer"):
                    await aio.lock("a", socket=path, patience=0.1).acquire()

    run(main())


def test_a_forked_child_does_not_own(alone):
    """And what it does to its copy of the loop does not disturb that of the parent."""
    p = program(alone, """
        import asyncio, lockbroker, os
        async def main():
            async with lockbroker.aio.lock("a") as held:
                if os.fork() == 0:
                    for use in held.valid, held.check, lambda: held.lost:
                        try:
                            use()
                            print("no error")
                        except lockbroker.NotOwner:
                            pass
                    try:
                        await held.release()
                    except lockbroker.NotOwner:
                        print("child", len(lockbroker.ask("HOLDERS", "a")))
                    held.close()
                    os._exit(0)
                os.wait()
                held.check()
                lockbroker.ask("CLIENT", "SETNAME", "x")
                waits = asyncio.ensure_future(lockbroker.aio.lock("a").acquire())
                while not lockbroker.ask("QUEUE", "a"):
                    await asyncio.sleep(0)  # no pause: the task gets a turn, and asks
            await (await waits).release()
            print("parent")
        asyncio.run(main())
    """)
    assert p.communicate(timeout=harness.PATIENCE)[0] == "child 1\nparent\n"
    assert p.returncode == 0


def test_a_child_that_lives_on_keeps_nothing(alone):
    p = program(alone, """
        import asyncio, lockbroker, os, sys
        async def main():
            held = await lockbroker.aio.lock("a").acquire()
            if os.fork() == 0:
                print("child")
                sys.stdin.readline()
            os._exit(0)
        asyncio.run(main())
    """)
    assert p.stdout.readline() == "child\n"
    wait_free(alone)
    p.communicate("\n", harness.PATIENCE)


def test_an_exit_stack_may_be_left_by_another_task(alone):
    import contextlib

    async def main():
        stack = contextlib.AsyncExitStack()
        await asyncio.ensure_future(stack.enter_async_context(aio.lock("a")))
        assert not is_free(alone)
        await stack.aclose()
        assert is_free(alone)

    run(main())
