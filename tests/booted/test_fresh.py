# SPDX-License-Identifier: Apache-2.0
"""tests/fresh.sh: what runs there finds nothing but a minimal Debian and the sources, and leaves nothing behind."""

import glob
import os
import signal
import subprocess

import pytest

import harness

FOLDER = os.path.join(harness.build_dir(), "fresh")
SCRIPT = ["sh", os.path.join(harness.SOURCE, "tests", "fresh.sh"), "bookworm", FOLDER]


@pytest.fixture(autouse=True)
def checkout():
    if not os.path.exists(os.path.join(harness.SOURCE, ".git")):
        pytest.skip("these sources are no checkout of git")


def run(*commands):
    return subprocess.run([*SCRIPT, *commands], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=10 * harness.PATIENCE)


def machines():
    return set(glob.glob(f"{FOLDER}/machine.*"))


def processes(word):
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                found += [path] if word.encode() in f.read() else []
        except OSError:
            continue  # it has just ended
    return found


def test_there_is_nothing_but_a_minimal_system_and_the_sources():
    done = run("for p in git make cc python3 java; do ! command -v $p || exit 3; done",
               "test -f README.md && test ! -e .git && test ! -e build && test -z \"$(ls /dev/shm)\"",
               "unshare --user --map-root-user true && test -d /sys/fs && test $$ -lt 50")
    assert done.returncode == 0, done.stdout


def test_the_first_command_that_fails_is_the_last_and_gives_the_status():
    done = run("true", "exit 7", "echo not reached")
    assert done.returncode == 7 and "\nnot reached" not in done.stdout, done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_it_is_killed_its_processes_end_and_its_files_are_removed_by_the_next_one(number):
    before, word = machines(), f"86{os.getpid():07}.{number:d}"
    p = harness.spawn([*SCRIPT, f"setsid sleep {word} & echo begun; sleep {word}"], stdin=subprocess.DEVNULL,
                      stdout=subprocess.PIPE, text=True)
    while p.stdout.readline() != "begun\n":
        assert p.poll() is None
    (left,) = machines() - before
    p.send_signal(number)
    assert p.wait(harness.PATIENCE) != 0
    harness.wait_until(lambda: not processes(word), "the processes to end")
    assert left not in harness.read_source("/proc/self/mountinfo")
    assert number == signal.SIGKILL or not os.path.exists(left)
    assert run("true").returncode == 0 and not os.path.exists(left)
