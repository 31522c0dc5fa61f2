# SPDX-License-Identifier: Apache-2.0
"""The Go module for the tests: built with the race detector, and a program that does what the tests tell it."""

import os
import queue
import subprocess
import threading

import harness
from tools import trouble

MODULE = os.path.join(harness.SOURCE, "client-lib", "go")
DRIVER = os.path.join(harness.HERE, "go")
FIND = ["sh", os.path.join(harness.SOURCE, "tests", "go.sh")]


def missing():
    """Why the module cannot be built here; empty: it can. The race detector needs a C compiler."""
    return trouble(*FIND) or trouble("gcc", "--version")


def toolchain():
    return subprocess.run(FIND, check=True, capture_output=True, text=True).stdout.strip()


def environment(folder):
    """Nothing is fetched, and nothing is kept but in that folder, or in $GOCACHE. Two processors: others test meanwhile."""
    return os.environ | {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "1", "CC": "gcc",
                         "GOCACHE": os.environ.get("GOCACHE", os.path.join(folder, "cache")), "HOME": folder, "GOMAXPROCS": "2"}


def go(folder, *words, cwd=MODULE):
    return subprocess.run([toolchain(), *words], cwd=cwd, env=environment(folder), capture_output=True, text=True)


def build_in(folder):
    """The driver, and the tests of the module."""
    for words, cwd in ((["build", "-o", f"{folder}/driver", "."], DRIVER), (["test", "-c", "-o", f"{folder}/tests", "."], MODULE)):
        done = go(folder, words[0], "-race", "-p", "2", *words[1:], cwd=cwd)
        assert done.returncode == 0, done.stderr


def built():
    return harness.once("go-library", build_in)


class Go:
    """The program of tests/system/go: do() gives a line that begins with a key, and gets what came of it."""

    def __init__(self, socket, patience_ms=60000, under=()):
        self.process = harness.spawn([*under, os.path.join(built(), "driver")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, bufsize=1,
                                     env=os.environ | {"LOCKBROKER_SOCKET": socket, "PATIENCE_MS": str(patience_ms)})
        self.said = {}
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        assert self.hear("main") == "ok"

    def _read(self):
        for line in self.process.stdout:
            key, _, rest = line.rstrip("\n").partition(" ")
            self._of(key).put(rest)

    def _of(self, key):
        with self.lock:
            return self.said.setdefault(key, queue.Queue())

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
        except BrokenPipeError:
            raise AssertionError(self.process.stderr.read()) from None

    def hear(self, key):
        try:
            return self._of(key).get(timeout=harness.PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no answer to {key}") from None

    def has_said(self, key):
        return not self._of(key).empty()

    def do(self, line):
        self.tell(line)
        return self.hear(line.split()[0])

    def end(self):
        """It must end well: a race that was detected is another status, and a complaint."""
        if self.process.poll() is not None:
            return
        self.process.stdin.close()
        complaints = self.process.stderr.read()
        assert (self.process.wait(harness.PATIENCE), complaints) == (0, "")
