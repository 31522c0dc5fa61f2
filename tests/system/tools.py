# SPDX-License-Identifier: Apache-2.0
"""Programs that not every machine has, or lets run. What needs one is skipped where that is so; java, kazoo and the
like are no such programs: without them there is next to nothing to be tested."""

import functools
import subprocess

import pytest

import harness


@functools.cache
def trouble(*argv):
    """Why that cannot be run; empty: it can."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE)
    except OSError as e:
        return f"{argv[0]}: {e.strerror}"
    return f"{argv[0]}: {' '.join((done.stderr or done.stdout).split())[-200:]}" if done.returncode else ""


def need(*argv):
    """A test that cannot do without: `argv` is a harmless call."""
    if trouble(*argv):
        pytest.skip(trouble(*argv))
