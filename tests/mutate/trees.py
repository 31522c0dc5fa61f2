# SPDX-License-Identifier: Apache-2.0
"""Copies of the sources below BUILD/mutate, each with a build of its own, and how tests run in one.

`marked` shows what is executed, `plain` is as the sources are, and in `mutant` one place is changed. What is mutated may send a
signal to anybody: tests run in a PID namespace of their own, and all that they leave ends with it.
"""

import glob
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytext

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PATTERNS = ["daemon/*.c", "daemon/io/**/*.c", "daemon/keeper/*.c", "client-lib/*.c", "client-lib/cli/*.c", "client-lib/http/*.c", "client-lib/top/*.c",
            "client-lib/python/lockbroker/*.py"]
SYSTEM = ["tests/torture", "tests/system"]
ALONE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh"]


def mutable():
    """The files that may be mutated, below ROOT."""
    return sorted({name for pattern in PATTERNS for name in glob.glob(pattern, root_dir=ROOT, recursive=True)})


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def digest(text):
    return hashlib.sha1(text.encode()).hexdigest()[:12]


def sources_digest():
    """Of all that may be mutated: a map of other sources says nothing of these."""
    return digest("".join(f"{name} {digest(read(os.path.join(ROOT, name)))}\n" for name in mutable()))


def may_run():
    """What is wrong if tests cannot be kept apart from everything else here."""
    ran = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else f"mutate: no PID namespace can be made, so that a mutant could end anything here: {ran.stderr}"


def clean():
    """The environment without what a make above says, or what somebody says to a daemon of his own."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "LOCKBROKER"))}


def stop(process):
    """Its namespace goes with it."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Ran:
    """How a command ended: `hung`, or with `status`; what it wrote is in `output`."""

    def __init__(self, status, output, seconds, hung=False):
        self.status, self.output, self.seconds, self.hung = status, output, seconds, hung

    @property
    def failed(self):
        return self.hung or self.status != 0


class Tree:
    def __init__(self, name, folder, jobs):
        self.name, self.jobs = name, jobs
        self.folder = os.path.join(folder, name)
        self.mark = os.path.join(folder, "mark.o")
        self.told = {}
        self.python = {n for n in mutable() if n.endswith(".py")} if name == "marked" else set()

    def path(self, name):
        return os.path.join(self.folder, name)

    def sync(self):
        """The sources as they are now. What has not changed keeps its time."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True)
        names = {name for name in listed.stdout.decode().split("\0") if name and os.path.exists(os.path.join(ROOT, name))}
        for name in sorted(names):
            self.copy(name)
        for folder, folders, files in os.walk(self.folder):
            folders[:] = [f for f in folders if os.path.join(folder, f) != self.path("build")]
            for file in files:
                if os.path.relpath(os.path.join(folder, file), self.folder) not in names:
                    os.unlink(os.path.join(folder, file))

    def copy(self, name):
        source, target = os.path.join(ROOT, name), self.path(name)
        if name in self.python:
            self.write(name, pytext.marked(read(source), os.path.basename(name)))
        elif os.path.islink(source):
            if not os.path.islink(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.symlink(os.readlink(source), target)
        elif not os.path.exists(target) or not same(source, target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)

    def write(self, name, text):
        if not os.path.exists(self.path(name)) or read(self.path(name)) != text:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            with open(self.path(name), "w", encoding="utf-8") as f:
                f.write(text)

    def options(self):
        """Of make: nothing is optimized as a whole, so that a mutant costs one object and a few links."""
        if self.name != "marked":
            return ["CC=gcc", "CFLAGS=-O1", "LTO="]
        return [f"CC=sh {self.path('tests/mutate/cc.sh')}", "CFLAGS=-O1 -g", "LTO=", f"LDFLAGS={self.mark}", f"LD=ld {self.mark}"]

    def make_mark(self):
        """What is linked with it is linked again when it changes."""
        source, lists = self.path("tests/mutate/mark.c"), self.path("build/.lists")
        if not os.path.exists(self.mark) or os.path.getmtime(self.mark) < os.path.getmtime(source):
            subprocess.run(["gcc", "-O2", "-g", "-fPIC", "-c", source, "-o", self.mark], check=True)
            if os.path.exists(lists):
                os.utime(lists)

    def make(self, *goals, quiet=True):
        """Returns what went wrong, or nothing."""
        if self.name == "marked":
            self.make_mark()
        ran = subprocess.run(["nice", "-n", "19", "make", f"-j{self.jobs}", "BUILD=build", *self.options(), *goals], cwd=self.folder,
                             env=clean(), stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT, text=True, check=False)
        return "" if ran.returncode == 0 else ran.stdout or "make failed"

    def must_make(self, *goals):
        wrong = self.make(*goals)
        if wrong:
            sys.exit(f"mutate: {self.folder} cannot be built:\n{wrong[-3000:]}")

    def words(self, variable):
        """Of a variable of the Makefile."""
        if variable not in self.told:
            told = subprocess.run(["make", "-s", "BUILD=build", "--eval", f"told: ; @echo $({variable})", "told"], cwd=self.folder,
                                  env=clean(), capture_output=True, text=True, check=True)
            self.told[variable] = told.stdout.split()
        return self.told[variable]

    def start(self, argv, output, **more):
        env = clean() | {"PYTHONDONTWRITEBYTECODE": "1", "LOCKBROKER_BUILD": self.path("build")} | more
        return subprocess.Popen(["nice", "-n", "19", *ALONE, *argv], cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
                                stdout=output, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, argv, patience, progress=None, **more):
        """Ends it when nothing has happened for `patience` seconds: it writes no more to the file `progress`, or has not ended."""
        log = os.path.join(os.path.dirname(self.folder), f"{self.name}.out")
        began = time.monotonic()
        with open(log, "w", encoding="utf-8") as output:
            process = self.start(argv, output, **more)
            try:
                hung = not waited(process, patience, progress)
            finally:
                if process.poll() is None:
                    stop(process)
        with open(log, encoding="utf-8", errors="replace") as f:
            return Ran(process.returncode, f.read(), time.monotonic() - began, hung)


def waited(process, patience, progress):
    """Whether it ended before patience did."""
    size, since = -1, time.monotonic()
    while True:
        try:
            process.wait(0.3)
            return True
        except subprocess.TimeoutExpired:
            pass
        now = os.path.getsize(progress) if progress and os.path.exists(progress) else 0
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > patience:
            return False


def same(one, other):
    with open(one, "rb") as a, open(other, "rb") as b:
        return a.read() == b.read() and os.stat(one).st_mode == os.stat(other).st_mode
