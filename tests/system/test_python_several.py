# SPDX-License-Identifier: Apache-2.0
"""The Python library's lock_all(): several locks, all or none, for threads and asyncio."""

import os
import signal
import threading

import pytest

import harness
from parallel import all_at_once
from python_library import is_free, lockbroker, run, until, wait_free

NAMES = ("a", "b")


def tokens(client):
    return {name: client.call("HOLDERS", name)[0]["token"] for name in NAMES}


def test_a_block_holds_all_of_them(here, clients, page):
    c = clients(here)
    with lockbroker.lock_all("b", "a") as held:
        assert held.tokens == tokens(c) and set(held.tokens) == set(NAMES)
        assert held.name == "b, a" and 0 < held.valid()
        with pytest.raises(ValueError, match="see tokens: the locks b, a"):
            held.token  # pylint: disable=pointless-statement
        held.check()
        held.renew(3600)
        assert all(3500 * 1000 < c.call("HOLDERS", name)[0]["lease_ms"] for name in NAMES)
        held.downgrade()
        assert c.call("LOCK", "a", "SHARED") and c.call("LOCK", "b", "SHARED")
        assert c.call("MUNLOCK", 2, "a", "b") == [0, 0]
    assert is_free(here, "a") and is_free(here, "b")
    with lockbroker.lock_all("a", shared=True, lease=60) as held:
        assert held.token == held.tokens["a"] == c.call("HOLDERS", "a")[0]["token"]
        assert 0 < held.valid() <= 60 and c.call("LOCK", "a", "SHARED")


def test_tasks_hold_all_of_them(here, clients, page):
    c = clients(here)

    async def main():
        async with lockbroker.aio.lock_all(*NAMES) as held:
            assert held.tokens == tokens(c) and held.valid() > 0
            await held.renew(3600)
            with pytest.raises(lockbroker.Taken, match="One of the locks b, c is held by this owner already"):
                await lockbroker.aio.lock_all("b", "c", wait=0).acquire()
        assert is_free(here, "a") and is_free(here, "b")

    run(main())


def test_all_or_none(here, clients):
    c = clients(here)
    c.call("LOCK", "b")
    with pytest.raises(lockbroker.Taken, match="One of the locks a, b is held by somebody else"):
        lockbroker.lock_all("a", "b", wait=0).acquire()
    with pytest.raises(lockbroker.TimedOut):
        lockbroker.lock_all("a", "b", wait=0.05).acquire()
    wait_free(here, "a")
    assert c.call("UNLOCK", "b") == 0
    with lockbroker.lock("b"), pytest.raises(lockbroker.Deadlock):
        lockbroker.lock_all("a", "b").acquire()
    wait_free(here, "a")


def test_whoever_names_the_same_locks_never_waits_for_each_other(alone):
    """Two orders, and no Deadlock."""
    counter = [0]

    def work(*names):
        for _ in range(25):
            with lockbroker.lock_all(*names):
                seen = counter[0]
                os.sched_yield()
                counter[0] = seen + 1

    all_at_once(work, (("a", "b"), ("b", "a")) * 3)
    assert counter == [150]


@pytest.mark.parametrize("names, error, sentence", [
    ((), ValueError, "say which locks"), ((["a", "b"],), TypeError, "a name is a str, not list"),
    (("a", "a"), lockbroker.Refused, "twice"), (("a", ".."), lockbroker.BadName, "name"),
    (tuple(f"n{i}" for i in range(65)), lockbroker.Refused, "wrong number of names"),
])
def test_what_cannot_be_taken_together(alone, names, error, sentence):
    with pytest.raises(error, match=sentence):
        lockbroker.lock_all(*names).acquire()


def test_of_many_names_a_sentence_has_some(alone, clients):
    clients(alone).call("LOCK", "n0")
    names = [f"n{i}" for i in range(64)]
    with pytest.raises(lockbroker.Taken, match="One of the locks n0, n1, n2, n3 and 60 more is held"):
        lockbroker.lock_all(*names, wait=0).acquire()
    with lockbroker.lock_all(*names[1:]) as held:
        assert len(held.tokens) == 63 and held.valid() > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_one_is_the_loss_of_all(here, clients, name, page):
    held = lockbroker.lock_all(*NAMES).acquire()
    lost = held.lost
    assert clients(here, operator=True).call("FORCEUNLOCK", name)
    assert lost.wait(harness.PATIENCE)
    assert (held.lost_reason, held.valid()) == ("forced", 0.0)
    with pytest.raises(lockbroker.Lost, match="The grant of the locks a, b is void .forced."):
        held.release()
    wait_free(here, "a")
    wait_free(here, "b")


def test_the_loss_of_one_is_seen_at_the_release(alone, clients):
    with pytest.raises(lockbroker.Lost):
        with lockbroker.lock_all(*NAMES):
            clients(alone, operator=True).call("FORCEUNLOCK", "b")
    wait_free(alone, "a")


def test_who_is_asked_for_one_of_them(alone, clients):
    with lockbroker.lock_all(*NAMES) as held:
        assert not held.revoked.is_set()
        clients(alone, operator=True).call("REVOKE", "b", "at noon")
        assert held.revoked.wait(harness.PATIENCE) and held.revoke_reason == "at noon"


@pytest.mark.parametrize("loop", [False, True], ids=["threads", "asyncio"])
def test_a_question_that_does_not_fit_into_the_socket_at_once(alone, monkeypatch, loop):
    """Without a page the broker is asked for each of the names; it stands still meanwhile."""
    monkeypatch.setattr("lockbroker._page.find", lambda *_: None)
    names = [f"{i:02}" * 250 for i in range(64)]

    def ask_while_it_stands(held):
        held._wire._socket.setsockopt(harness.socket.SOL_SOCKET, harness.socket.SO_SNDBUF, 4096)
        held._wire.grant._asked_until = 0
        alone.signal(signal.SIGSTOP)
        threading.Timer(0.3, alone.signal, [signal.SIGCONT]).start()

    async def main():
        async with lockbroker.aio.lock_all(*names) as held:
            ask_while_it_stands(held)
            await until(held.valid, "the answer")
            await held.renew(60)

    if loop:
        run(main())
    else:
        with lockbroker.lock_all(*names) as held:
            ask_while_it_stands(held)
            assert held.valid() > 0
            held.renew(60)
