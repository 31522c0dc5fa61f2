# SPDX-License-Identifier: Apache-2.0
"""A short torture: a fixed list of faults, once, in under a minute. The long one is `make torture`."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS_MAX = 300  # on a machine that does much else; a sixth of it otherwise


@pytest.mark.torture
def test_every_promise_is_kept_through_a_minute_of_faults():
    """Pitfall 6."""
    argv = [sys.executable, "-B", os.path.join(HERE, "torture.py"), "--short", "--minutes", "0.7", "--timeout", "5",
            "--hosts", "2"]
    run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
    assert run.returncode == 0, run.stdout[-20000:]
