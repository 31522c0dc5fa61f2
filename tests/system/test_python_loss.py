# SPDX-License-Identifier: Apache-2.0
"""The Python library when what it holds is lost, or its broker ends: it says so, and never becomes a new owner silently."""

import asyncio
import math
import socket
import threading
import time
import types

import pytest

import harness
from fakebroker import HELLO
from mishaps import kill_and_start, stopped
from parallel import in_thread
from python_library import crash, is_free, lockbroker, program

# Proven for 4 s at a time: what must not be lost is not, however busy the machine is.
SLOW_TICK_MS = 1000
SLOW = {"zookeeper__session_timeout_ms": 6000}


@pytest.mark.parametrize("what", [lambda: lockbroker.lock("a"), lambda: lockbroker.lock("a", shared=True),
                                  lambda: lockbroker.lock_all("a", "b"), lambda: lockbroker.semaphore("a", 2),
                                  lambda: lockbroker.election("a", "me")],
                         ids=["lock", "shared", "several", "semaphore", "election"])
def test_a_broker_that_is_killed_takes_the_lock_along(alone, what, page):
    held = what().acquire()
    assert held.valid() == math.inf
    lost = held.lost
    alone.kill()
    assert lost.wait(harness.PATIENCE)
    assert (held.valid(), held.lost_reason) == (0.0, "connection")
    with pytest.raises(lockbroker.Lost, match="is void .connection.: others may hold it"):
        held.release()
    alone.start()
    assert is_free(alone), "it is not asked for again"


def test_the_block_raises_lost_at_its_end(alone):
    with pytest.raises(lockbroker.Lost) as e:
        with lockbroker.lock("a") as held:
            kill_and_start(alone)
            assert held.valid() == 0.0, "also if nobody watches"
            with pytest.raises(lockbroker.Lost):
                held.check()
    assert e.value.reason == "connection"
    with lockbroker.lock("a") as again:
        assert again.token > held.token


def test_the_block_raises_what_it_raised_itself(alone):
    with pytest.raises(KeyError):
        with lockbroker.lock("a") as held:
            kill_and_start(alone)
            raise KeyError("mine")
    assert held.valid() == 0.0


def test_whoever_took_it_meanwhile_keeps_it(alone, clients):
    held = lockbroker.lock("a").acquire()
    kill_and_start(alone)
    assert clients(alone).call("LOCK", "a") > held.token
    for use in held.check, lambda: held.renew(10), held.downgrade, held.release:
        with pytest.raises(lockbroker.Lost):
            use()
    assert not is_free(alone)


def test_who_waits_goes_on_waiting_on_the_next_broker(alone, clients):
    holder = clients(alone)
    holder.call("LOCK", "a")
    waits = in_thread(lockbroker.lock("a", wait=600).acquire)
    harness.wait_queued(alone, "a", 1)
    kill_and_start(alone)
    held = waits()
    assert held.valid() == math.inf
    held.release()


@pytest.mark.parametrize("ask", [lambda: lockbroker.ask("HOLDERS", "a"), lambda: lockbroker.leader("e") or [],
                                 lambda: asyncio.run(lockbroker.aio.ask("HOLDERS", "a"))], ids=["ask", "leader", "aio"])
def test_a_question_waits_for_the_next_broker(alone, monkeypatch, ask):
    assert ask() == []
    alone.kill()
    tried = threading.Event()
    pause = lockbroker._scripts.Retries.pause

    def noted(retries, why):
        tried.set()
        return pause(retries, why)

    monkeypatch.setattr(lockbroker._scripts.Retries, "pause", noted)
    answer = in_thread(ask)
    assert tried.wait(harness.PATIENCE)
    alone.start()
    assert answer() == []


@pytest.mark.parametrize("greets", [True, False])
def test_a_question_that_was_heard_is_not_asked_again(tmp_path, greets):
    """It may have been carried out."""
    path = str(tmp_path / "socket")
    with socket.create_server(path, family=socket.AF_UNIX) as listener:
        answer = in_thread(lockbroker.ask, "FORCEUNLOCK", "a", socket=path)
        with listener.accept()[0] as s:
            heard = b""
            while b"FORCEUNLOCK" not in heard:
                heard += s.recv(4096)
            if greets:
                s.sendall(b"%0\r\n")
        with pytest.raises(lockbroker.NoBroker):
            answer()
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_broker_that_does_not_come_back_ends_the_wait(alone, clients):
    holder = clients(alone)
    holder.call("LOCK", "a")
    waits = in_thread(lockbroker.lock("a", patience=1).acquire)
    harness.wait_queued(alone, "a", 1)
    alone.kill()
    with pytest.raises(lockbroker.NoBroker):
        waits()
    alone.start()


def test_the_time_to_wait_is_what_is_left_of_it(tmp_path):
    path, waits = str(tmp_path / "s"), []
    with socket.create_server(path, family=socket.AF_UNIX) as listener:
        got = in_thread(lockbroker.lock("a", socket=path, wait=60, group="").acquire)
        for answer in b"", b":7\r\n":
            peer, _ = listener.accept()
            with peer:
                request = peer.recv(65536)
                waits.append(int(request.split(b"WAIT\r\n")[1].split(b"\r\n")[1]))
                time.sleep(0.05)  # this is the time that is not left
                peer.sendall(HELLO + answer)
                if answer:
                    assert b"VALID" in peer.recv(65536)
                    peer.sendall(b":9000\r\n")
                    held = got()
                    assert 0 < held.valid.__self__.token == 7
    assert waits[1] < waits[0] == 60000
    with pytest.raises(lockbroker.Lost):
        held.release()


def test_a_lock_that_an_operator_took(alone, clients, page):
    held = lockbroker.lock("a").acquire()
    lost = held.lost
    assert clients(alone, operator=True).call("FORCEUNLOCK", "a")
    assert lost.wait(harness.PATIENCE)
    assert (held.lost_reason, held.valid()) == ("forced", 0.0)
    with pytest.raises(lockbroker.Lost, match="forced"):
        held.release()


def test_a_loss_is_seen_without_watching(alone, clients):
    with pytest.raises(lockbroker.Lost, match="forced"):
        with lockbroker.lock("a") as held:
            clients(alone, operator=True).call("FORCEUNLOCK", "a")
            assert held.valid() == 0.0
    with pytest.raises(lockbroker.Lost, match="forced"):
        with lockbroker.lock("a"):
            clients(alone, operator=True).call("FORCEUNLOCK", "a")


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked"])
def test_the_proof_runs_out_also_while_the_broker_hangs(daemons, own_zk, root, page, watched):
    """Nobody tells that the lock is lost: there is only the page, or, without one, the silence."""
    daemon = daemons(own_zk(tick_ms=harness.FAST_TICK_MS), root, **harness.FAST)
    held = lockbroker.lock("a", socket=daemon.socket, patience=2).acquire()
    assert 0 < held.valid() <= 2
    lost = held.lost if watched else None
    with stopped(daemon):
        if lost:
            assert lost.wait(harness.PATIENCE)
        else:
            harness.wait_until(lambda: held.valid() == 0.0, "the end of the proof")
        assert held.lost_reason in ("session", "unanswered")
        with pytest.raises(lockbroker.Lost):
            held.check()
        with pytest.raises(lockbroker.Lost):
            held.release()
    assert held.valid() == 0.0


def test_the_proof_is_renewed_for_as_long_as_zookeeper_answers(daemons, own_zk, root, page):
    """Watched, it is looked at again and again, and nothing is lost."""
    daemon = daemons(own_zk(tick_ms=SLOW_TICK_MS), root, **SLOW)
    with lockbroker.lock("a", socket=daemon.socket) as held:
        assert not held.lost.wait(5), "longer than a proof lasts"
        assert held.valid() > 0


def test_zookeeper_that_is_gone_ends_the_session(daemons, own_zk, root, page):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    daemon = daemons(zk, root, **harness.FAST)
    held = lockbroker.lock("a", socket=daemon.socket).acquire()
    lost = held.lost
    zk.kill()
    assert lost.wait(harness.PATIENCE)
    assert (held.lost_reason, held.valid()) == ("session", 0.0)
    zk.start()
    harness.wait_until(lambda: daemon.info("session")["session_state"] == "safe", "the session")
    assert held.valid() == 0.0, "that of the next session is another grant"
    with pytest.raises(lockbroker.Lost):
        held.release()


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked"])
def test_a_crash_that_takes_nothing_is_not_seen(daemons, zk, root, page, watched):
    daemon = daemons(zk, root)
    held = lockbroker.lock("a", socket=daemon.socket).acquire()
    lost = held.lost if watched else None
    for _ in range(2):
        crash(daemon)
        assert held.valid() > 0
        with daemon.client() as c:
            assert c.call("HOLDERS", "a")[0]["token"] == held.token
    held.renew(60)
    assert not lost or not lost.is_set()
    held.release()
    assert is_free(daemon)


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked"])
def test_who_did_not_look_between_two_crashes_asks_where_the_page_is(daemons, own_zk, root, clients, watched):
    """All that the first page proves runs out meanwhile."""
    daemon = daemons(own_zk(tick_ms=SLOW_TICK_MS), root, **SLOW)
    with lockbroker.lock("a", socket=daemon.socket) as held:
        lost = held.lost if watched else None
        for _ in range(2):
            crash(daemon)
        assert clients(daemon).call("LOCK", "a", "WAIT", 4500) is None, daemon.log()  # for longer than that page proves
        assert held.valid() > 0
        assert not lost or not lost.is_set()
        assert held._wire.grant.has_page and not held._wire.grant.must_ask, "it has the latest page"


def test_a_hand_over_is_not_seen(daemons, zk, root, clients):
    daemon = daemons(zk, root)
    c = clients(daemon, operator=True)
    with lockbroker.lock("a", socket=daemon.socket) as held:
        lost = held.lost
        waits = in_thread(lockbroker.lock("a", socket=daemon.socket).acquire)
        harness.wait_queued(daemon, "a", 1)
        daemon.hand_over(c)
        assert held.valid() > 0 and not lost.is_set()
    again = waits()
    assert again.token > held.token
    again.release()


def test_a_silent_broker_at_release(alone):
    """What is proven by the page at that time was held, and the end of the connection releases it."""
    held = lockbroker.lock("a", patience=1).acquire()
    with stopped(alone):
        held.release()
    harness.wait_until(lambda: is_free(alone), "the lock to be free")


def test_a_silent_broker_at_a_request(alone):
    held = lockbroker.lock("a", patience=1).acquire()
    lost = held.lost
    with stopped(alone):
        with pytest.raises(lockbroker.Lost, match="unanswered"):
            held.renew(60)
        with pytest.raises(lockbroker.NoBroker, match="did not answer in time"):
            lockbroker.lock("b", wait=0, patience=1).acquire()
        with pytest.raises(lockbroker.Lost):
            held.release()
    assert lost.is_set()
    harness.wait_until(lambda: is_free(alone) and is_free(alone, "b"), "both to be free")


def test_another_thread_may_close_what_waits_for_a_silent_broker(alone, monkeypatch):
    monkeypatch.setattr("lockbroker._wire._POLL_MAX_S", 600)
    held = lockbroker.lock("a", patience=600).acquire()
    assert not held.lost.is_set()
    with stopped(alone):
        waits = in_thread(held.renew, 60)
        harness.wait_until(lambda: held._wire.grant._answers, "the thread to ask")
        time.sleep(0.2)  # and to wait for the answer, which it tells nobody
        held.close()
        with pytest.raises(lockbroker.Lost):
            waits()
        assert held._wire.fd == -1
    assert not held.lost.is_set() and held.valid() == 0.0, "it was released, not lost"
    harness.wait_until(lambda: is_free(alone), "the lock to be free")


@pytest.mark.parametrize("answer", [b"?\r\n", b":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", b"*1\r\n$5\r\nab\r\nxyz\r\n", b"$-5\r\n"], ids=repr)
def test_who_speaks_something_else_is_no_broker(tmp_path, answer):
    path = str(tmp_path / "s")
    with socket.create_server(path, family=socket.AF_UNIX) as listener:
        got = in_thread(lockbroker.lock("a", socket=path, patience=0.5).acquire)
        peer, _ = listener.accept()
        with peer:
            peer.sendall(answer)
            with pytest.raises((lockbroker.ProtocolError, lockbroker.NoBroker, lockbroker.Lost)):
                got()


FORK = """
    import lockbroker, os, sys, threading
    held = lockbroker.lock("a").acquire()
    done, say = os.pipe()
    {before}
    if os.fork() == 0:
        for use in (held.valid, held.check, held.downgrade, held.release, lambda: held.renew(1), lambda: held.lost,
                    lambda: held.__exit__(None, None, None)):
            try:
                use()
                print("no error")
            except lockbroker.NotOwner as e:
                assert "forked child and does not own the lock a" in str(e)
        {close}
        other = lockbroker.lock("b").acquire()
        assert not other.lost.is_set() and other.valid() > 0
        print("child", lockbroker.ask("HOLDERS", "a")[0]["pid"] == os.getppid(), flush=True)
        other.release()
        os.write(say, b"x")
        sys.stdin.readline()
        os._exit(0)
    os.read(done, 1)
    os.wait() if {wait} else os._exit(0)
    assert held.valid() > 0
    held.release()
    print("parent", lockbroker.ask("HOLDERS", "a") == [], flush=True)
"""


@pytest.mark.parametrize("before", ["", "held.lost"], ids=["", "watched"])
def test_a_forked_child_does_not_own(alone, before):
    p = program(alone, FORK.format(before=before, close="held.close()", wait=True))
    assert p.stdout.readline() == "child True\n"
    assert p.communicate("\n", harness.PATIENCE)[0] == "parent True\n"
    assert p.returncode == 0


def test_a_child_that_lives_on_keeps_nothing(alone):
    """The parent ends without releasing; its child has a copy of nothing."""
    p = program(alone, FORK.format(before="", close="", wait=False))
    assert p.stdout.readline() == "child True\n"
    harness.wait_until(lambda: is_free(alone), "the lock to be free")
    p.communicate("\n", harness.PATIENCE)


def test_a_block_that_both_leave(alone):
    p = program(alone, """
        import lockbroker, os
        try:
            with lockbroker.lock("a") as held:
                child = os.fork()
                if child:
                    os.waitpid(child, 0)
                    held.check()
            print("parent")
        except lockbroker.NotOwner:
            print("child")
            os._exit(0)
    """)
    assert p.communicate(timeout=harness.PATIENCE)[0] == "child\nparent\n"


def test_pools_of_processes(alone):
    """What concurrent.futures starts by fork locks for itself."""
    p = program(alone, """
        import concurrent.futures, multiprocessing, lockbroker
        lock = lockbroker.lock("a")
        def work(_):
            with lock as held:
                return held.token
        with lockbroker.lock("b") as mine:
            assert not mine.lost.is_set()
            with concurrent.futures.ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
                print(len(set(pool.map(work, range(40)))))
            assert mine.valid() > 0
    """)
    assert p.communicate(timeout=harness.PATIENCE)[0] == "40\n"
    assert p.returncode == 0


def all_pauses(retries, why, now):
    """Until it gives up."""
    pauses = []
    while (pause := retries.pause(why)) is not None:
        pauses.append(pause)
        now[0] += pause
    return pauses


def test_a_broker_that_was_reached_is_tried_again_with_growing_pauses(monkeypatch):
    scripts, grant = lockbroker._scripts, lockbroker._grant
    now = [1000.0]
    monkeypatch.setattr(scripts, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(grant, "reached", set())
    request = lockbroker._request.request("lock", ["a"], "/nowhere", patience=1.0)
    ended, absent = grant.Ended("it has ended"), grant.Absent("there is no socket")
    # One that was never reached is tried again if its socket is there, and for as long as it may take to start.
    assert all_pauses(scripts.Retries(request), absent, now) == []
    monkeypatch.setenv("LOCKBROKER_OPEN_MS", "50")
    assert all_pauses(scripts.Retries(request), ended, now) == pytest.approx([0.01, 0.02])
    monkeypatch.setenv("LOCKBROKER_OPEN_MS", "5000")
    assert len(all_pauses(scripts.Retries(request), ended, now)) == 7
    monkeypatch.setenv("LOCKBROKER_OPEN_MS", "-50")
    assert len(all_pauses(scripts.Retries(request), ended, now)) == 7
    patient = lockbroker._request.request("lock", ["a"], "/nowhere", patience=100.0)
    for open_ms, count in ((10059, 43), (10061, 44)):  # with the last one, 10.06 s are over
        monkeypatch.setenv("LOCKBROKER_OPEN_MS", str(open_ms))
        assert len(all_pauses(scripts.Retries(patient), ended, now)) == count
    # One that was reached, for as long as the patience allows.
    monkeypatch.setenv("LOCKBROKER_OPEN_MS", "50")
    grant.reached.add("/nowhere")
    retries = scripts.Retries(request)
    assert all_pauses(retries, absent, now) == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.25])
    now[0] += 0.9
    assert retries.pause(absent) is None
    # What ends long after that has ended anew.
    now[0] += 1.1
    assert all_pauses(retries, ended, now) == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.25])
