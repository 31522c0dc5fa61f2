# SPDX-License-Identifier: Apache-2.0
"""What the tests rest on: a run that is killed leaves nothing behind."""

import os
import shutil
import subprocess
import sys

import pytest

import cgroup
import harness

pytestmark = pytest.mark.plain_only("it is about the harness")

RUN = """
import os, signal, subprocess, sys
sys.path.insert(0, sys.argv[1])
import cgroup
import harness
sweeper = harness.begin_run()
harness.fast_tmp("something.")
stopped = subprocess.Popen(["sh", "-c", "kill -STOP $$; sleep 60"], start_new_session=True)
print(os.environ["LOCKBROKER_RUN"], stopped.pid, flush=True)
signal.pause()
"""


def test_a_run_that_is_killed_takes_its_directories_and_what_it_started_along():
    run = harness.spawn([sys.executable, "-c", RUN, harness.HERE], stdout=subprocess.PIPE, text=True)
    directory, pid = run.stdout.readline().split()
    assert os.listdir(directory)
    harness.wait_until(lambda: set(harness.thread_states(pid)) == {"T"}, "it to be stopped")
    run.kill()
    run.communicate()
    harness.wait_until(lambda: not harness.runs(int(pid)) and not os.path.exists(directory), "the run to be swept")


@pytest.mark.parametrize("files, used", [
    ({"memory.current": "900", "memory.stat": "anon 300\nfile 250\nkernel 100\nslab 60\nsock 7\nshmem 40\n"}, (900, 300, 147)),
    ({"memory.current": "900", "memory.stat": "anon 300\nfile 250\nslab 60\nsock 7\nshmem 40\n"}, (900, 300, 107)),
    ({"memory.usage_in_bytes": "900", "memory.stat": "cache 250\nrss 300\nshmem 40\ntotal_rss 301\n",
      "memory.kmem.usage_in_bytes": "100", "memory.kmem.tcp.usage_in_bytes": "7"}, (900, 300, 147))],
    ids=["unified", "unified, before Linux 5.18", "older"])
def test_the_memory_of_a_control_group_is_read_in_either_hierarchy(tmp_path, files, used):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cgroup.used(tmp_path) == used


@pytest.fixture
def commit(tmp_path):
    """Writes files of a checkout that has the script, and commits them all."""
    if not shutil.which("git"):
        pytest.skip("there is no git")

    def git(*argv):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path), *argv], check=True,
                       stdout=subprocess.DEVNULL)

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", "a")

    git("init", "-q")
    (tmp_path / "client-lib").mkdir()
    write({"tests/changed.sh": harness.read_source("tests/changed.sh")})
    return write


def changed(folder, *argv):
    done = subprocess.run(["sh", "tests/changed.sh", *argv], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_what_differs_is_known_with_the_sources_that_include_it(commit, tmp_path):
    assert changed(tmp_path) == [] and changed(tmp_path, "--sources") == ["all"], "there is no commit before"
    commit({"daemon/one.c": '#include "one.h"\n', "daemon/one.h": "", "protocol/two.c": "int a;\n"})
    commit({"protocol/two.c": "int b;\n"})
    assert changed(tmp_path) == changed(tmp_path, "--sources") == ["protocol/two.c"]
    commit({"daemon/one.h": "int c;\n"})
    assert changed(tmp_path) == ["daemon/one.h"] and changed(tmp_path, "--sources") == ["daemon/one.c"]
    (tmp_path / "protocol/three.c").touch()
    assert sorted(changed(tmp_path, "--sources")) == ["daemon/one.c", "protocol/three.c"]
    commit({"tests/lint.sh": ""})
    assert changed(tmp_path, "--sources") == ["all"], "what reads the sources differs"
