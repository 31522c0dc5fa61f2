# SPDX-License-Identifier: Apache-2.0
"""The command as process 1 of a container, where a signal without a handler is dropped: TERM, INT, HUP and QUIT end it in
each phase, and withdraw what it has asked for."""

import os
import signal
import subprocess

import pytest

import harness
from test_cli import command
from tools import need

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="makes a namespace of processes"),
              pytest.mark.plain_only("it is about namespaces")]
OPERATORS = True  # see clients of conftest.py
CATCHES_TERM = 1 << (signal.SIGTERM - 1)


@pytest.fixture
def first():
    """Starts a command as process 1 of a namespace of its own: (what waits for it, its number here)."""
    need("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true")

    def begin(daemon, *argv):
        return harness.spawn(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *command(daemon, *argv)], text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ready(p):
        return p, harness.wait_until(lambda: harness.children(p.pid), "process 1")[0]

    def end(p):
        p.kill()
        p.communicate()

    yield from harness.each_ends(begin, end, ready)


def catches_term(pid):
    with open(f"/proc/{pid}/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return fields["Name"].strip().startswith("lockbroker") and int(fields["SigCgt"], 16) & CATCHES_TERM


def ends(p, pid, number):
    os.kill(pid, number)
    return p.wait(harness.PATIENCE)


WAITS = [("lock", "a", "true"), ("lock", "-w", "1000", "a", "true"), ("sem", "-l", "1", "s", "true"), ("hold", "a"),
         ("campaign", "e", "me", "true")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_a_wait_of_process_1_and_its_request(standalone, clients, first, number):
    c = clients(standalone)
    c.call("LOCK", "a")
    c.call("ACQUIRE", "s", "LIMIT", 1)
    c.call("CAMPAIGN", "e", "DATA", "x")
    for words in WAITS:
        name = next(word for word in words if word in "ase")
        p, pid = first(standalone, *words)
        harness.wait_queued(standalone, name, 1)
        assert ends(p, pid, number) == 128 + number
        harness.wait_until(lambda: c.call("QUEUE", name) == [], "the request to go")


LASTS = [(("hold", "b"), "stdout"), (("observe", "e"), "stdout"), (("call", "-e", "PING"), "stdout"),
         (("drain", "--wait"), "stdout"), (("http", "--listen"), "stdout"),
         (("lock", "--splay", "1000000", "--verbose", "b", "true"), "stderr")]


@pytest.mark.parametrize("words, speaks", LASTS, ids=lambda v: v[0] if isinstance(v, tuple) else v)
def test_a_signal_ends_what_lasts_as_process_1(standalone, clients, first, words, speaks):
    clients(standalone).call("LOCK", "a")  # so that a drain has something to wait for
    for number in (signal.SIGTERM, signal.SIGINT):
        p, pid = first(standalone, *words, *([f"127.0.0.1:{harness.free_port()}"] if words[0] == "http" else []))
        assert getattr(p, speaks).readline()
        assert ends(p, pid, number) == 128 + number
    clients(standalone).call("DRAIN", "OFF")
    assert clients(standalone).call("HOLDERS", "b") == []


@pytest.mark.parametrize("words", [("lock", "--connect", "1000", "a", "true"), ("observe", "e")], ids=" ".join)
def test_a_signal_ends_the_wait_of_process_1_for_a_broker(daemons, first, words):
    """observe had a broker before."""
    d = daemons() if words[0] == "observe" else None
    p, pid = first(d, *words)
    if d:
        assert p.stdout.readline()
        d.kill()
        assert "Waiting for the broker" in p.stderr.readline()
    harness.wait_until(lambda: catches_term(pid), "its handlers")
    assert ends(p, pid, signal.SIGTERM) == 128 + signal.SIGTERM


def test_what_the_command_of_process_1_gets_is_as_elsewhere(standalone, first):
    p, pid = first(standalone, "lock", "a", "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done")
    assert p.stdout.readline() == "ready\n"
    assert ends(p, pid, signal.SIGTERM) == 9
    p, pid = first(standalone, "lock", "--min-hold", "1000", "a", "sh", "-c", "echo $PPID; exit 7")
    assert p.stdout.readline() == "1\n"
    harness.wait_until(lambda: not harness.children(pid), "the command to end")
    assert ends(p, pid, signal.SIGINT) == 7
