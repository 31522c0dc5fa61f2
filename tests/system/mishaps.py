# SPDX-License-Identifier: Apache-2.0
"""What befalls daemons and servers: they stand still for a while, and go on whatever came of it; or they are killed, and
start again."""

import contextlib
import signal

import harness


def kill_and_start(process):
    process.kill()
    process.start()


@contextlib.contextmanager
def stopped(process):
    """The process that serves, of a daemon or of ZooKeeper, stands still during the block."""
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


@contextlib.contextmanager
def standing_still(daemon):
    """None of its threads does anything any more when the block begins."""
    with stopped(daemon):
        harness.wait_until(lambda: set(harness.thread_states(daemon.pid)) == {"T"}, "the daemon to stand still")
        yield
