# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of several folders, whose conftest.py has pytest take this file as a plugin."""

import contextlib
import signal
import threading

import pytest

import harness

TEST_SECONDS_MAX = 300  # ten times what the longest takes on an idle machine


@pytest.fixture(autouse=True)
def no_hang():
    """A test that waits for what does not come ends as a failed one."""

    def give_up(*_):
        raise AssertionError(f"still waiting after {TEST_SECONDS_MAX} s")

    # A worker runs its tests in another thread where the main one was still busy when it began; no signal can end those.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(TEST_SECONDS_MAX)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def daemons():
    """Makes daemons; they end with the test, and must end well. `start`: whether it starts at once; `has_session`: whether it
    gets a session, where that is not as usual."""
    made = []

    def make(*args, kind=harness.Daemon, start=True, has_session=None, **options):
        made.append(kind(*args, **options, wait=False))
        if has_session is not None:
            made[-1].has_session = has_session
        if start:
            made[-1].start()
        return made[-1]

    make.list = made
    yield make
    wrong = [complaint for complaint in (d.end() for d in made) if complaint]
    assert not wrong, "\n\n".join(wrong)


@pytest.fixture
def ending():
    """Of what is passed to it, each ends with the test, the latest first; it is returned."""
    with contextlib.ExitStack() as stack:

        def keep(made):
            stack.callback(made.end)
            return made

        yield keep
