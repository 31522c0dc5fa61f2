# SPDX-License-Identifier: Apache-2.0
"""The Python library, as the tests use it: from the sources."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import harness
from saved import Saved

FOLDER = os.path.join(harness.SOURCE, "client-lib", "python")
sys.path.insert(0, FOLDER)

import lockbroker  # noqa: E402, F401


def program(daemon, text, python=sys.executable, **options):
    """A Python program that uses it, with pipes; it says what it does in lines."""
    return harness.spawn([python, "-B", "-u", "-W", "error::ResourceWarning", "-c", textwrap.dedent(text)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=os.environ | {"PYTHONPATH": FOLDER, "LOCKBROKER_SOCKET": daemon.socket}, **options)


def is_free(daemon, name="a"):
    """Whether nobody of this daemon holds it or waits for it."""
    with daemon.client() as c:
        return c.call("HOLDERS", name) == [] and c.call("QUEUE", name) == []


def crash(daemon):
    """Of the process that serves, once the keeper has our connection: the next process takes that back. Of a request that
    is under way nobody would know what came of it, and who watches a lock without a page asks now and then: so it is looked
    while the process stands still."""
    old = daemon.pid

    def is_kept():
        os.kill(old, signal.SIGSTOP)
        harness.wait_until(lambda: set(harness.thread_states(old)) == {"T"}, "the process to stand still")
        kept = any(conn[3] == os.getpid() and conn[1] and not conn[0] for conn in Saved(daemon).conns().values())
        if not kept:
            os.kill(old, signal.SIGCONT)
        return kept

    harness.wait_until(is_kept, "the keeper to have the connection")
    os.kill(old, signal.SIGKILL)
    daemon.await_another(old)


async def until(condition, what):
    """As harness.wait_until(), while the loop goes on."""
    end = time.monotonic() + harness.PATIENCE
    while not condition():
        assert time.monotonic() < end, f"gave up waiting for {what}"
        await asyncio.sleep(0.01)  # as there: nothing can wake it


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, harness.PATIENCE))


def wait_free(daemon, name="a"):
    harness.wait_until(lambda: is_free(daemon, name), f"{name} to be free")
