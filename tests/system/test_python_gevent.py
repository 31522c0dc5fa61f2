# SPDX-License-Identifier: Apache-2.0
"""The Python library in a program of gevent, which takes select.epoll away and makes greenlets of threads."""

import os
import subprocess
import textwrap

import harness


def start(daemon, text):
    """The program has the library, and a greenlet that runs beside."""
    program = textwrap.dedent("""
        from gevent import monkey; monkey.patch_all()
        import gevent.event, lockbroker
        ticked = gevent.event.Event()
        def tick():
            while True:
                gevent.sleep(0.01)  # a pace
                ticked.set()
        gevent.spawn(tick)
        """) + textwrap.dedent(text)
    env = os.environ | {"LOCKBROKER_SOCKET": daemon.socket, "PYTHONPATH": os.path.join(harness.SOURCE, "client-lib", "python")}
    return harness.spawn(["/usr/bin/python3", "-c", program], env=env, text=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def runs(daemon, text):
    p = start(daemon, text)
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert (p.returncode, err) == (0, "")
    return out


def test_a_lock_whose_loss_is_watched_is_free_after_its_block(broker):
    """The first greenlet keeps the object, as a traceback does."""
    assert runs(broker, """
        keep = []
        def work():
            with lockbroker.lock("a", wait=30) as held:
                keep.append(held)
                assert not held.lost.is_set() and not held.revoked.is_set()
                held.renew(60)
        for _ in range(3):
            gevent.spawn(work).get()
        others = [gevent.spawn(work) for _ in range(5)]
        gevent.joinall(others, raise_error=True)
        print(len(keep))
        """) == "8\n"


def test_a_greenlet_hears_of_a_loss_while_the_others_go_on(standalone):
    p = start(standalone, """
        def tell_that_they_go_on():
            ticked.clear()
            ticked.wait()
            print("others go on", flush=True)

        with lockbroker.lock("b") as other:
            assert not other.lost.is_set()
            try:
                with lockbroker.lock("a") as held:
                    print("held", flush=True)
                    gevent.spawn(tell_that_they_go_on)
                    assert held.lost.wait(60)
                    print(held.lost_reason, other.lost.is_set(), flush=True)
            except lockbroker.Lost:
                print("lost", flush=True)
        """)
    assert p.stdout.readline() == "held\n"
    assert p.stdout.readline() == "others go on\n"
    with standalone.client(operator=True) as c:
        assert c.call("FORCEUNLOCK", "a") == 1
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert (out, err, p.returncode) == ("forced False\nlost\n", "", 0)


def test_an_ask_for_a_lock_reaches_a_greenlet_that_waits_for_it(standalone):
    p = start(standalone, """
        with lockbroker.lock("a") as held:
            print("held", flush=True)
            assert held.revoked.wait(60)
            print(held.revoke_reason, flush=True)
        """)
    assert p.stdout.readline() == "held\n"
    with standalone.client(operator=True) as c:
        assert c.call("REVOKE", "a", "please") == 1
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert (out, err, p.returncode) == ("please\n", "", 0)


def test_a_forked_child_of_greenlets_has_locks_of_its_own(standalone):
    assert runs(standalone, """
        import os
        with lockbroker.lock("a") as held:
            assert not held.lost.is_set()
            gevent.sleep(0.05)  # the watcher waits, which it tells nobody
            child = os.fork()
            if child == 0:
                try:
                    held.valid()
                except lockbroker.NotOwner:
                    with lockbroker.lock("b") as own:
                        assert not own.lost.is_set()
                        gevent.sleep(0.05)  # so does its own
                        print("own", flush=True)
                os._exit(0)
            assert os.waitpid(child, 0) == (child, 0)
            assert not held.lost.is_set() and held.valid() > 0
        """) == "own\n"
