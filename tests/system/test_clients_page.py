# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/CLIENTS.md, one for each Redis client: each as it stands there, against a real daemon."""

import os
import signal
import subprocess

import pytest

import harness
import pages
from tools import trouble

pytestmark = pytest.mark.plain_only("it is about other programs")
OPERATORS = True  # see clients of conftest.py
GO = {"GOPATH": "/usr/share/gocode", "GO111MODULE": "off"}
NODE = {"NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs"}

# The name of the block of code, the name of the file, how it is run, what shows that it can be, and the environment.
LANGUAGES = {
    "go": ("main.go", None, ["sh", "-c", "go version && test -d /usr/share/gocode/src/github.com/gomodule/redigo"], GO),
    "ruby": ("main.rb", ["ruby", "main.rb"], ["ruby", "-e", 'require "redis"'], {}),
    "php": ("main.php", ["php", "main.php"], ["php", "-r", "new Redis();"], {}),
    "perl": ("main.pl", ["perl", "main.pl"], ["perl", "-MRedis", "-e", "1"], {}),
    "js": ("main.js", ["node", "main.js"], ["sh", "-c", f"NODE_PATH={NODE['NODE_PATH']} node -e 'require(\"redis\")'"], NODE),
}

# What the program runs under the lock: says that it runs, with which words, and waits until it is told to end. It inherits
# no socket but its input and output: else the lock would be its own, too.
SETTLE = """#!/bin/sh
find /proc/self/fd -lname 'socket:*' ! -name '[012]' >sockets
echo "$*" >started.part && mv started.part started
read -r line <go
"""
SETTLE_PHP = """<?php
function settle($order, $token)
{
    file_put_contents("started.part", "$order $token\\n");
    rename("started.part", "started");
    fgets(fopen("go", "r"));
}
"""


def build_go(text):
    """The program, built by one worker of the run for all of them."""
    def build(folder):
        with open(os.path.join(folder, "main.go"), "w") as f:
            f.write(text)
        subprocess.run(["go", "build", "-o", "settle", "main.go"], cwd=folder, check=True,
                       env=os.environ | GO | {"GOCACHE": os.path.join(folder, "cache"), "HOME": folder})

    return os.path.join(harness.once("go", build), "settle")


class Work:
    """A folder in which the program of a language runs."""

    def __init__(self, folder, language):
        self.folder, (file, self.argv, _, self.env) = folder, LANGUAGES[language]
        (text,) = pages.claimed("docs/CLIENTS.md", __file__, language)
        (folder / file).write_text(text)
        (folder / "settle").write_text(SETTLE)
        (folder / "settle").chmod(0o755)
        (folder / "settle.php").write_text(SETTLE_PHP)
        os.mkfifo(folder / "go")
        if language == "go":
            self.argv = [build_go(text)]

    def start(self, daemon):
        for name in ("started", "sockets"):
            (self.folder / name).unlink(missing_ok=True)
        self.process = harness.spawn(self.argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True,
                                     env=os.environ | self.env | {"LOCKBROKER_SOCKET": daemon.socket})

    def is_started(self):
        """The words of ./settle: the number of the order, and the token."""
        harness.wait_until(lambda: (self.folder / "started").exists() or self.process.poll() is not None, "./settle")
        assert (self.folder / "started").exists(), self.process.stdout.read()
        return (self.folder / "started").read_text().split()

    def go_on(self):
        """It is told to end, also if it does not listen yet, or not at all, being killed."""
        with open(os.open(self.folder / "go", os.O_RDWR), "w") as f:
            f.write("\n")
            f.flush()
            return self.end()

    def end(self):
        said, _ = self.process.communicate(timeout=harness.PATIENCE)
        return self.process.returncode, said


@pytest.fixture(scope="module", params=LANGUAGES)
def work(request, tmp_path_factory):
    why = trouble(*LANGUAGES[request.param][2])
    assert not why or not os.environ.get("NEED_CLIENTS"), why
    if why:
        pytest.skip(f"{why} (sh tests/deps.sh check)")
    return Work(tmp_path_factory.mktemp(request.param), request.param)


def test_it_works_under_the_lock(broker, clients, work):
    c = clients(broker)
    work.start(broker)
    order, token = work.is_started()
    (holder,) = c.call("HOLDERS", "orders/42")
    assert (order, int(token)) == ("42", holder["token"]) and holder["pid"] == work.process.pid
    if (work.folder / "sockets").exists():
        assert (work.folder / "sockets").read_text() == "", "what it starts does not inherit the connection"
    assert work.go_on() == (0, f"settled with token {token}\n")
    assert c.call("LOCK", "orders/42") > int(token)


def test_it_says_that_somebody_else_has_the_lock(standalone, clients, work):
    c = clients(standalone)
    c.call("LOCK", "orders/42")
    work.start(standalone)
    harness.wait_queued(standalone, "orders/42", 1)
    (waiter,) = c.call("QUEUE", "orders/42")
    assert c.call("CLIENT", "UNBLOCK", waiter["client"]) == 1
    status, said = work.end()
    assert status != 0 and "somebody else settles order 42" in said
    assert not (work.folder / "started").exists()


def test_it_is_told_of_a_loss(standalone, clients, work):
    work.start(standalone)
    work.is_started()
    assert clients(standalone).call("FORCEUNLOCK", "orders/42") == 1
    status, said = work.go_on()
    assert status != 0 and "the lock was lost" in said


def test_it_does_not_connect_again(standalone, work):
    """The next broker knows nothing of the lock."""
    work.start(standalone)
    work.is_started()
    standalone.kill()
    standalone.start()
    status, said = work.go_on()
    assert status != 0 and said and "settled" not in said


def test_what_a_killed_one_held_is_free(standalone, clients, work):
    """Though what it has started goes on."""
    work.start(standalone)
    work.is_started()
    os.kill(work.process.pid, signal.SIGKILL)
    assert clients(standalone).call("LOCK", "orders/42", "WAIT", 60000) > 0
    work.go_on()
