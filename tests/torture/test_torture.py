# SPDX-License-Identifier: Apache-2.0
"""A short torture: a fixed list of faults, once, in under a minute. The long one is `make torture`."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "system"))

import harness  # noqa: E402

SECONDS_MAX = 300  # on a machine that does much else; a sixth of it otherwise


@pytest.mark.torture
def test_every_promise_is_kept_through_a_minute_of_faults():
    """Pitfall 6."""
    # T in seconds: a busy machine, and one with sanitizers, needs more time for the same than a quiet one.
    argv = [sys.executable, "-B", os.path.join(HERE, "torture.py"), "--short", "--minutes", "0.7", "--timeout", "8",
            "--hosts", "2"]
    run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
    assert run.returncode == 0, run.stdout[-20000:]
