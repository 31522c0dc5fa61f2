# SPDX-License-Identifier: Apache-2.0
"""What the tests rest on: a run that is killed leaves nothing behind."""

import os
import subprocess
import sys

import pytest

import harness

pytestmark = pytest.mark.plain_only("it is about the harness")

RUN = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
import harness
sweeper = harness.begin_run()
harness.fast_tmp("something.")
stopped = subprocess.Popen(["sh", "-c", "kill -STOP $$; sleep 60"], start_new_session=True)
print(os.environ["LOCKBROKER_RUN"], stopped.pid, flush=True)
time.sleep(60)
"""


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def test_a_run_that_is_killed_takes_its_directories_and_what_it_started_along():
    run = harness.spawn([sys.executable, "-c", RUN, harness.HERE], stdout=subprocess.PIPE, text=True)
    directory, pid = run.stdout.readline().split()
    assert os.listdir(directory)
    harness.wait_until(lambda: is_stopped(pid), "it to be stopped")
    run.kill()
    run.communicate()
    harness.wait_until(lambda: not harness.runs(int(pid)) and not os.path.exists(directory), "the run to be swept")
