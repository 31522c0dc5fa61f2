# SPDX-License-Identifier: Apache-2.0
"""The library and the command over a crash of the daemon: the keeper has their connection, and the next process takes it
back."""

import os
import signal
import subprocess
import threading
import time

import pytest

import harness
from library import token_of
from saved import wait_process_kept

PROVEN_S = 4  # of a session of 6 s


@pytest.fixture(params=["standalone", "zookeeper"])
def kept(request, daemons, own_zk, root):
    """A daemon with a keeper. What it proves before a crash runs out in PROVEN_S, and not sooner on a busy machine."""
    if request.param == "standalone":
        return daemons()
    return daemons(own_zk(tick_ms=harness.FAST_TICK_MS), root, zookeeper__session_timeout_ms=6000, locks__grant_min_ms=300)


def crash(daemon):
    old = daemon.pid
    os.kill(old, signal.SIGKILL)
    daemon.await_another(old)


def holder(daemon, programs):
    p = programs(daemon.socket).open()
    token_of(p.do("lock 0 a"))
    wait_process_kept(daemon, p.process.pid)
    return p


def test_a_lock_is_proven_at_every_moment_of_a_crash(kept, programs):
    p = holder(kept, programs)
    crashing = threading.Thread(target=crash, args=(kept,))
    crashing.start()
    begun = time.monotonic()
    while time.monotonic() < begun + PROVEN_S + 1 or crashing.is_alive():  # what was proven before has run out then
        answer = p.do("valid 0 a")
        assert token_of(answer) > 0, (time.monotonic() - begun, answer)
    crashing.join()
    assert p.do("event 0 0").startswith(("NONE ", "JEOPARDY ", "SAFE "))
    assert p.do("unlock 0 a") == "OK 0"
    token_of(p.do("lock 0 a"))


def test_who_did_not_look_between_two_crashes_has_the_latest_page(kept, programs, clients):
    p = holder(kept, programs)
    for _ in range(2):
        crash(kept)
        wait_process_kept(kept, p.process.pid)
    assert clients(kept).call("LOCK", "a", "WAIT", 1000 * PROVEN_S + 500) is None  # for longer than the first page proves

    def has_the_page():
        assert token_of(p.do("valid 0 a")) > 0
        with open(f"/proc/{p.process.pid}/maps", encoding="ascii") as f:
            return [line.split()[5:] for line in f if kept.dir in line] == [[os.path.join(kept.dir, "session")]]

    harness.wait_until(has_the_page, "the latest page")
    assert p.do("unlock 0 a") == "OK 0"


def test_a_command_goes_on(kept, clients):
    p = harness.spawn([harness.program("lockbroker"), "-S", kept.socket, "lock", "a", "--", "sh", "-c",
                       "echo ready; read line; echo $line"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    wait_process_kept(kept, p.pid)
    crash(kept)
    assert clients(kept).call("LOCK", "a", "WAIT", 1000 * PROVEN_S + 500) is None  # for longer than the earlier page proves
    assert p.poll() is None and len(clients(kept).call("HOLDERS", "a")) == 1
    out, err = p.communicate("done\n", timeout=harness.PATIENCE)
    assert (p.returncode, out) == (0, "done\n") and "lost" not in err
    assert isinstance(clients(kept).call("LOCK", "a", "WAIT", 20000), int)


def test_a_call_that_waits_goes_on_and_what_else_was_held_is_lost(kept, programs, clients):
    """Its connection had a request under way."""
    other = clients(kept)
    assert isinstance(other.call("LOCK", "b"), int)
    p = holder(kept, programs)
    wait_process_kept(kept, os.getpid())
    p.tell("lock 0 b")
    harness.wait_queued(kept, "b", 1)
    crash(kept)
    harness.wait_queued(kept, "b", 1)
    assert other.call("UNLOCK", "b") == 0
    assert token_of(p.hear()) > 0
    told = [p.do("event 0 0") for _ in range(3)]
    assert [event for event in told if event.startswith("LOST")] == told[:1] and " a " in told[0], told
    assert p.do("unlock 0 a").startswith("LOST") and p.do("unlock 0 b").startswith("OK")
