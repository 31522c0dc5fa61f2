# SPDX-License-Identifier: Apache-2.0
"""`lockbroker lock --any`: one of several locks, such as a port, a device or an account."""

import json
import os
import signal

import pytest

import harness
from test_cli import run, start
from test_cli_several import HELD, TELL

OPERATORS = True  # see clients of conftest.py


def test_the_command_learns_which_one_it_got(broker, clients):
    c = clients(broker)
    c.call("LOCK", "port 8001", "WAIT", harness.PATIENCE * 1000)
    done = run(broker, "lock", "--any", "port 8001", "port 8002", "--", *TELL)
    name, token = done.stdout.splitlines()
    assert (done.returncode, name, done.stderr) == (0, "port 8002", "") and int(token) > 0
    done = run(broker, "lock", "--any", "port 8001", "port 8002", "-c", 'echo "$LOCKBROKER_NAME"',
               env=os.environ | {"SHELL": "/bin/sh"})
    assert done.stdout == "port 8002\n"


def test_none_is_free(broker, clients):
    c = clients(broker)
    c.call("MLOCK", 2, *"ab", "WAIT", harness.PATIENCE * 1000)
    for options in ("-n",), ("-w", "0.1"):
        done = run(broker, "lock", *options, "--any", "a", "b", "--", "echo", "run")
        assert (done.returncode, done.stdout, done.stderr) == (75, "", "")
    done = run(broker, "lock", "-n", "--verbose", "--any", "a", "b", "--", "echo", "run")
    assert done.returncode == 75 and "Each of the 2 locks is held by somebody else." in done.stderr
    # A busy server may not say at once what other hosts do.
    harness.wait_until(lambda: c.call("QUEUE", "a") == c.call("QUEUE", "b") == [], "the end of the requests")


def test_it_waits_in_each_queue_and_leaves_the_others(broker, clients):
    c = clients(broker)
    c.call("MLOCK", 3, *"abc", "WAIT", harness.PATIENCE * 1000)
    p = start(broker, "lock", "--any", *"abc", "--", "sh", "-c", 'echo "$LOCKBROKER_NAME"; exec sleep 60')
    for name in "abc":
        harness.wait_queued(broker, name, 1)
    c.call("UNLOCK", "b")
    assert p.stdout.readline() == "b\n"
    assert c.call("QUEUE", "a") == c.call("QUEUE", "c") == []
    c.call("MUNLOCK", 2, "a", "c")
    assert (c.call("HOLDERS", "a"), c.call("HOLDERS", "c")) == ([], [])
    harness.end(p)


def test_no_two_commands_have_the_same_device(two_hosts, tmp_path):
    """Ten commands, three devices, two hosts."""
    use = f'mkdir {tmp_path}/"$LOCKBROKER_NAME" && echo "$LOCKBROKER_NAME" && rmdir {tmp_path}/"$LOCKBROKER_NAME"'
    many = [start(two_hosts[i % 2], "lock", "--any", "gpu0", "gpu1", "gpu2", "--", "sh", "-c", use) for i in range(10)]
    for p in many:
        out, err = p.communicate(timeout=harness.PATIENCE)
        assert (p.returncode, err) == (0, "") and out in ("gpu0\n", "gpu1\n", "gpu2\n")


def test_as_many_commands_as_devices_run_at_the_same_time(broker):
    held = []
    for _ in range(3):
        p = start(broker, "lock", "-n", "--any", "gpu0", "gpu1", "gpu2", "--", "sh", "-c", 'echo "$LOCKBROKER_NAME"; exec sleep 60')
        held.append((p, p.stdout.readline().strip()))
    assert sorted(name for _, name in held) == ["gpu0", "gpu1", "gpu2"]
    assert run(broker, "lock", "-n", "--any", "gpu0", "gpu1", "gpu2", "--", "true").returncode == 75
    for p, _ in held:
        harness.end(p)


def test_it_goes_on_waiting_at_the_next_broker(standalone, clients):
    with standalone.client() as c:
        c.call("MLOCK", 2, *"ab")
        p = start(standalone, "lock", "--any", *"ab", "--", *TELL)
        for name in "ab":
            harness.wait_queued(standalone, name, 1)
        standalone.kill()
    standalone.start()
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == 0 and out.splitlines()[0] in "ab" and "Waiting for the broker to come back." in err


def test_a_loss_is_told_of_the_one_that_is_held(broker, clients):
    c = clients(broker)
    c.call("LOCK", "a", "WAIT", harness.PATIENCE * 1000)
    p = start(broker, "lock", "--any", *"ab", "--", *HELD, says="")
    assert c.call("FORCEUNLOCK", "b") == 1
    _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == 79 and "The lock b is lost: an operator took it by force." in err


def test_inside_of_one_it_gets_another(broker):
    inner = [harness.program("lockbroker"), "-S", broker.socket, "lock", "-w", "1", "--any", "a", "b", "--", "sh", "-c",
             'echo "${LOCKBROKER_NAME}"']
    done = run(broker, "lock", "a", "--", *inner)
    assert (done.returncode, done.stdout) == (0, "b\n")
    done = run(broker, "lock", "-a", "b", "a", "--", *inner)
    assert done.returncode == 70 and "This already runs under the lock" in done.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_hold_prints_the_name(broker, clients, as_json):
    c = clients(broker)
    c.call("LOCK", "a", "WAIT", harness.PATIENCE * 1000)
    p = start(broker, "hold", *(["--json"] if as_json else []), "--any", "a", "two words")
    line = p.stdout.readline()
    token = c.call("HOLDERS", "two words")[0]["token"]
    if as_json:
        assert json.loads(line) == {"held": [{"name": "two words", "token": token}]}
    else:
        assert line == f"{token} two words\n"
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=harness.PATIENCE)


@pytest.mark.parametrize("line, said", [
    ("lock --any a b", "all words up to \"--\" are names"),
    ("lock --any a b --", "all words up to \"--\" are names"),
    ("lock --any", "NAME"),
    ("lock --any " + " ".join(f"n{i}" for i in range(65)) + " -- true", "at most 64 names, not 65"),
    ("sem -l 2 --any a b -- true", "--any"),
], ids=lambda text: text[:24])
def test_wrong_words_are_64(line, said):
    done = run(None, *line.split())
    assert (done.returncode, done.stdout) == (64, "") and said in done.stderr


def test_a_name_that_is_given_twice_is_refused(standalone):
    done = run(standalone, "lock", "--any", "a", "a", "--", "true")
    assert (done.returncode, done.stdout) == (64, "") and "The name is given twice: a" in done.stderr
