# SPDX-License-Identifier: Apache-2.0
"""The Python library in a program of gevent or of eventlet, which make greenlets of threads, and take epoll away; eventlet
takes poll as well. Where one of them is missing, its tests are skipped with its name."""

import os
import signal
import subprocess
import textwrap

import pytest

import harness
from tools import need

PATCHED = {"gevent": "from gevent import monkey; monkey.patch_all()", "eventlet": "import eventlet; eventlet.monkey_patch()"}


class Program:
    """Of one of them, with the library and a greenlet that runs beside."""

    def __init__(self, greenlets):
        self.greenlets = greenlets

    def start(self, path, text):
        program = PATCHED[self.greenlets] + textwrap.dedent("""
            import threading, time, lockbroker
            ticked = threading.Event()
            def tick():
                while True:
                    time.sleep(0.01)  # a pace
                    ticked.set()
            threading.Thread(target=tick, daemon=True).start()
            def others_go_on():
                ticked.clear()
                ticked.wait()
            def say(*words):
                print(*words, flush=True)
            def name_of_error(call, *words, **options):
                try:
                    call(*words, **options)
                except lockbroker.LockBrokerError as e:
                    return type(e).__name__
            def start(work, *words):
                made = threading.Thread(target=work, args=words)
                made.start()
                return made
            """) + textwrap.dedent(text)
        env = os.environ | {"LOCKBROKER_SOCKET": path, "PYTHONPATH": os.path.join(harness.SOURCE, "client-lib", "python")}
        return harness.spawn(["/usr/bin/python3", "-c", program], env=env, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def runs(self, path, text):
        return ended(self.start(path, text))


def ended(p):
    """The rest of what it prints."""
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert (p.returncode, err) == (0, "")
    return out


@pytest.fixture(params=PATCHED)
def greenlets(request):
    need("/usr/bin/python3", "-c", f"import {request.param}")
    return Program(request.param)


def test_a_lock_whose_loss_is_watched_is_free_after_its_block(broker, greenlets):
    """The first greenlet keeps the object, as a traceback does."""
    assert greenlets.runs(broker.socket, """
        keep = []
        def work():
            with lockbroker.lock("a", wait=30) as held:
                assert not held.lost.is_set() and not held.revoked.is_set()
                held.renew(60)
                keep.append(held)
        for _ in range(3):
            start(work).join()
        for other in [start(work) for _ in range(5)]:
            other.join()
        tokens = [held.token for held in keep]
        say(len(keep), tokens == sorted(set(tokens)))
        """) == "8 True\n"


def test_greenlets_that_share_a_lock_exclude_each_other(broker, greenlets):
    """They may share its object: each has entered it by itself."""
    assert greenlets.runs(broker.socket, """
        shared, inside, most = lockbroker.lock("a"), [], []
        def work():
            for _ in range(5):
                with shared:
                    inside.append(1)
                    most.append(len(inside))
                    others_go_on()
                    inside.pop()
        for other in [start(work) for _ in range(6)]:
            other.join()
        say(len(most), max(most))
        """) == "30 1\n"


def test_the_others_go_on_while_a_greenlet_waits(standalone, greenlets):
    with standalone.client() as c:
        c.call("LOCK", "a")
        p = greenlets.start(standalone.socket, """
            def wait():
                with lockbroker.lock("a") as held:
                    say("held", held.valid() > 0)
            waits = start(wait)
            while not lockbroker.ask("QUEUE", "a"):
                others_go_on()
            others_go_on()
            say("others go on")
            waits.join()
            """)
        assert p.stdout.readline() == "others go on\n"
        c.call("UNLOCK", "a")
        assert ended(p) == "held True\n"


def test_a_greenlet_hears_of_a_loss_while_the_others_go_on(standalone, greenlets):
    p = greenlets.start(standalone.socket, """
        def tell_that_they_go_on():
            others_go_on()
            say("others go on")

        with lockbroker.lock("b") as other:
            assert not other.lost.is_set()
            try:
                with lockbroker.lock("a") as held:
                    say("held")
                    start(tell_that_they_go_on)
                    assert held.lost.wait(60)
                    say(held.lost_reason, other.lost.is_set())
            except lockbroker.Lost:
                say("lost")
        """)
    assert p.stdout.readline() == "held\n"
    assert p.stdout.readline() == "others go on\n"
    with standalone.client(operator=True) as c:
        assert c.call("FORCEUNLOCK", "a") == 1
    assert ended(p) == "forced False\nlost\n"


def test_an_ask_for_a_lock_reaches_a_greenlet_that_waits_for_it(standalone, greenlets):
    p = greenlets.start(standalone.socket, """
        with lockbroker.lock("a") as held:
            say("held")
            assert held.revoked.wait(60)
            say(held.revoke_reason)
        """)
    assert p.stdout.readline() == "held\n"
    with standalone.client(operator=True) as c:
        assert c.call("REVOKE", "a", "please") == 1
    assert ended(p) == "please\n"


def test_each_error_is_one_of_the_library_s(daemons, greenlets, tmp_path):
    """The broker is killed, and hangs, while greenlets hold and wait."""
    daemon = daemons(daemon__keeper=0)
    p = greenlets.start(daemon.socket, f"""
        lock = lockbroker.lock
        say(name_of_error(lock("", wait=0).acquire), name_of_error(lock("a", socket={str(tmp_path / 'none')!r}, patience=0.1).acquire))
        held = lock("a", group="").acquire()
        say(name_of_error(lock("a", wait=0).acquire), name_of_error(lock("a", wait=0.05).acquire))
        say(name_of_error(lockbroker.lock_any("a", wait=0).acquire), lockbroker.lock_any("a", "b", wait=0).acquire().name)
        say(name_of_error(lockbroker.semaphore("a", 2, wait=0).acquire), name_of_error(lockbroker.ask, "NO"))
        held.release()
        say(name_of_error(held.release), name_of_error(held.renew, 1), name_of_error(held.check))
        held, other = lock("a", group="").acquire(), lock("c", group="").acquire()
        assert not held.lost.is_set() and not other.lost.is_set()
        names = []
        def wait():
            names.append(name_of_error(lock("a", patience=1).acquire))
        waits = [start(wait) for _ in range(2)]
        others_go_on()
        say("ready")
        assert held.lost.wait(60) and other.lost.wait(60)
        for one in waits:
            one.join()
        say(held.lost_reason, *names)
        say(name_of_error(held.check), name_of_error(held.release), name_of_error(other.renew, 1))
        """)
    assert [p.stdout.readline() for _ in range(6)] == [
        "BadName NoBroker\n", "Taken TimedOut\n", "Taken b\n", "Mismatch Refused\n", "NotHeld NotHeld NotHeld\n", "ready\n"]
    daemon.kill()
    assert ended(p) == "connection NoBroker NoBroker\nLost Lost Lost\n"


def test_a_broker_that_hangs_is_one_that_does_not_answer(daemons, greenlets):
    daemon = daemons(daemon__keeper=0)
    p = greenlets.start(daemon.socket, """
        held = lockbroker.lock("a", patience=0.1).acquire()
        say("held")
        while not (name := name_of_error(lockbroker.ask, "PING", patience=0.1)):
            others_go_on()
        say(name, name_of_error(lockbroker.lock("b", patience=0.1).acquire))
        others_go_on()
        """)
    assert p.stdout.readline() == "held\n"
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        assert ended(p) == "NoBroker NoBroker\n"
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def test_what_ends_a_greenlet_withdraws_its_request(standalone, greenlets):
    kill = {"gevent": "import gevent\nspawn, kill = gevent.spawn, lambda one: one.kill()",
            "eventlet": "spawn, kill = eventlet.spawn, lambda one: one.kill()"}[greenlets.greenlets]
    with standalone.client() as c:
        c.call("LOCK", "a")
        p = greenlets.start(standalone.socket, kill + textwrap.dedent("""
            waits = spawn(lockbroker.lock("a", group="").acquire)
            while not lockbroker.ask("QUEUE", "a"):
                others_go_on()
            kill(waits)
            while lockbroker.ask("QUEUE", "a"):
                others_go_on()
            say("withdrawn")
            """))
        assert ended(p) == "withdrawn\n"
        c.call("UNLOCK", "a")


def test_a_forked_child_of_greenlets_has_locks_of_its_own(standalone, greenlets):
    assert greenlets.runs(standalone.socket, """
        import os
        with lockbroker.lock("a") as held:
            assert not held.lost.is_set()
            time.sleep(0.05)  # the watcher waits, which it tells nobody
            child = os.fork()
            if child == 0:
                try:
                    held.valid()
                except lockbroker.NotOwner:
                    with lockbroker.lock("b") as own:
                        assert not own.lost.is_set()
                        time.sleep(0.05)  # so does its own
                        say("own")
                os._exit(0)
            assert os.waitpid(child, 0) == (child, 0)
            assert not held.lost.is_set() and held.valid() > 0
        """) == "own\n"
