# SPDX-License-Identifier: Apache-2.0
"""The Python library, as the tests use it: from the sources."""

import os
import signal
import subprocess
import sys
import textwrap

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
    """Of the process that serves, once the keeper has our connection: the next process takes that back."""

    def is_kept():
        return any(conn[3] == os.getpid() and conn[1] and not conn[0] for conn in Saved(daemon).conns().values())

    harness.wait_until(is_kept, "the keeper to have the connection")
    old = daemon.pid
    os.kill(old, signal.SIGKILL)
    daemon.await_another(old)


def wait_free(daemon, name="a"):
    harness.wait_until(lambda: is_free(daemon, name), f"{name} to be free")
