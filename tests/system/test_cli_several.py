# SPDX-License-Identifier: Apache-2.0
"""`lockbroker lock` with several names, with a lease, and for an owner."""

import os
import re
import signal
import subprocess
import time

import pytest

import harness
from mishaps import stopped
from test_cli import LOST, command, run, start, started

OPERATORS = True  # see clients of conftest.py

TELL = ("sh", "-c", 'echo "$LOCKBROKER_NAME"; echo "$LOCKBROKER_TOKEN"')
HELD = ("sh", "-c", "echo; exec sleep 60")  # an empty line says so


def test_the_command_gets_all_of_them(broker, clients):
    c = clients(broker)
    done = run(broker, "lock", "-a", "b", "-a", "a", "two words", *TELL)
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[:3]) == (0, ["two words", "b", "a"])
    tokens = [int(line) for line in lines[3:]]
    assert len(tokens) == 3
    p = start(broker, "lock", "-a", "a", "b", *HELD, says="")
    assert all(c.call("HOLDERS", name)[0]["token"] > token for name, token in zip("ba", tokens[1:]))
    harness.end(p)
    assert c.call("MLOCK", 2, "a", "b", "WAIT", 20000)


def test_none_is_taken_when_one_is_not_to_be_had(broker, clients):
    c = clients(broker)
    c.call("LOCK", "b")
    for options in (("-n",), ("-w", "0.1")):
        done = run(broker, "lock", *options, "-a", "b", "a", "echo", "run")
        assert (done.returncode, done.stdout, done.stderr) == (75, "", "")
    assert c.call("HOLDERS", "a") == []
    p = start(broker, "lock", "-a", "b", "a", "echo", "run")
    harness.wait_queued(broker, "b", 1)
    assert harness.end(p) == -signal.SIGTERM
    # Not by who holds b: until the daemon has seen that end, it would close a circle.
    assert isinstance(clients(broker).call("LOCK", "a", "WAIT", 20000), int)


def test_shared_ones_are_held_together(broker):
    p = start(broker, "lock", "-s", "-a", "b", "a", *HELD, says="")
    assert run(broker, "lock", "-s", "-n", "-a", "a", "b", "true").returncode == 0
    assert run(broker, "lock", "-n", "b", "--", "true").returncode == 75
    harness.end(p)


def test_opposite_orders_lose_no_increments(two_hosts, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0\n")
    step = f"read n < {counter}; echo $((n + 1)) > {counter}"
    many = [start(two_hosts[i % 2], "lock", "-a", *("ab" if i % 4 < 2 else "ba"), "sh", "-c", step) for i in range(20)]
    for p in many:
        assert p.communicate(timeout=harness.PATIENCE) == ("", "")
    assert counter.read_text() == "20\n"


def test_the_loss_of_any_ends_the_command(broker, clients):
    p = start(broker, "lock", "-a", "b", "-a", "c", "a", *HELD, says="")
    assert clients(broker).call("FORCEUNLOCK", "b") == 1
    _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == LOST
    assert "The lock b is lost: an operator took it by force." in err


def test_the_loss_of_the_broker_is_that_of_all(standalone):
    p = start(standalone, "lock", "-a", "b", "-a", "c", "a", *HELD, says="")
    standalone.kill()
    _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == LOST and "The 3 locks are lost: the connection to lockbrokerd has ended. " in err


def test_a_hung_daemon_ends_the_command_of_several(own_zk, daemons):
    d = daemons(own_zk(tick_ms=harness.FAST_TICK_MS), **harness.FAST)
    p = start(d, "lock", "-a", "b", "a", *HELD, says="")
    with stopped(d):
        _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == LOST and "The 2 locks are lost: there is no longer proof" in err


def test_who_asks_for_any_of_them_asks_the_command(broker, clients):
    p = start(broker, "lock", "-r", "USR1", "-a", "b", "a", "sh", "-c",
              "trap 'echo asked; exit 3' USR1; echo ready; while :; do sleep 0.05; done", says="ready")
    assert clients(broker).call("REVOKE", "b", "please") == 1
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert (p.returncode, out) == (3, "asked\n") and "Somebody asks for the lock b: please." in err


# ---- words ----


def test_options_end_at_the_name(standalone):
    """As those of flock(1) do: the rest is the command, whatever it looks like."""
    done = run(standalone, "lock", "-n", "-a", "b", "--on-revoke", "3", "-a", "-", "-w", "5", "a",
               "printf", "%s|", "-n", "--", "x", "--help", "-a", "c")
    assert (done.returncode, done.stdout) == (0, "-n|--|x|--help|-a|c|")
    done = run(standalone, "lock", "a", "--", "printf", "%s|", "--", "x", env=os.environ | {"POSIXLY_CORRECT": "1"})
    assert (done.returncode, done.stdout) == (0, "--|x|"), "only one -- is skipped"
    assert run(standalone, "lock", "a", "-n", "--", "true").returncode == 127, "there is no command -n"


def test_names_that_begin_with_a_dash_come_after_dashes_or_by_an_option(standalone):
    done = run(standalone, "lock", "-n", "-a", "--b", "--", "-a", *TELL)
    assert done.stdout.splitlines()[:2] == ["-a", "--b"]


@pytest.mark.parametrize("line", [
    "lock a", "lock a --", "lock -- a", "lock -a -- true", "lock -a b a", "lock -y a true", "lock -d x -a b a true",
    "lock " + " ".join(f"-a {i}" for i in range(64)) + " a true", "lock -L 0 a true", "lock -L x a true", "lock --lease",
    "sem --owner x -l 2 a true", "sem -l 2 -a b a true", "campaign e", "campaign --lease=3 e d true", "hold -a b",
], ids=lambda line: line[:30])
def test_wrong_words_are_64(line):
    done = run(None, *line.split())
    assert done.returncode == 64
    assert "--help" in done.stderr and done.stdout == ""


def test_the_old_form_is_told_what_to_do(standalone):
    """`lock a b -- CMD` ran CMD under both once; now b is the command."""
    done = run(standalone, "lock", "a", "b", "--", "true")
    assert done.returncode == 127
    assert "Cannot run b" in done.stderr and "lockbroker lock -a b a CMD." in done.stderr
    assert "-a" not in run(standalone, "lock", "a", "b", "c").stderr


def test_where_an_option_follows_the_name_the_sentence_says_where_options_end(standalone):
    done = run(standalone, "lock", "a", "-n", "true")
    assert (done.returncode, done.stderr) == (127, "lockbroker: Cannot run -n: No such file or directory. Options end at the "
                                                   "name: an option of lockbroker stands before a.\n")


def test_what_the_broker_does_not_take_is_64(standalone):
    for names in (("a", "a"), ("a", ".."), ("a", "x" * 513)):
        done = run(standalone, "lock", "-a", *names, "echo", "run")
        assert (done.returncode, done.stdout) == (64, "") and done.stderr.startswith("lockbroker: ")
    assert run(standalone, "lock", *(f"-a{i}" for i in range(63)), "a", "true").returncode == 0
    assert run(standalone, "lock", "--owner", "two words", "a", "--", "true").returncode == 64


# ---- lease ----


def test_a_lease_ends_the_command(broker, clients):
    c = clients(broker)
    began = time.monotonic()
    done = run(broker, "lock", "-L", "1", "-a", "b", "a", "sleep", "1000")
    assert done.returncode == LOST and "lease has run out" in done.stderr
    assert time.monotonic() - began > 0.9
    assert c.call("MLOCK", 2, "a", "b", "WAIT", 20000)
    c.call("RESET")
    assert run(broker, "lock", "--lease=60", "-w", "20", "a", "--", "true").returncode == 0


def test_a_lease_ends_the_command_also_when_the_daemon_hangs(standalone):
    p, _ = started(standalone, "sleep", "60", options=("-L", "1"))
    with stopped(standalone):
        _, err = p.communicate(timeout=harness.PATIENCE)
    assert p.returncode == LOST and "lease has run out" in err


# ---- owner ----


def nested(daemon, first, second):
    """One command under the other; the outer one tells when it has its lock, and waits for a word."""
    inner = " ".join(command(daemon, "lock", second, "--", "echo", "both"))
    return harness.spawn(command(daemon, "lock", "--owner", first, first, "--", "sh", "-c", f"echo; read go; exec {inner}"),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_command_that_would_wait_for_itself(broker):
    unknowing = ["env", "-u", "LOCKBROKER_HELD"]  # else it is lockbroker who sees it, not the broker
    inner = command(broker, "lock", "a", "--", "echo", "run")
    done = run(broker, "lock", "--owner", "job", "a", "--", *unknowing, *inner)
    assert (done.returncode, done.stdout) == (70, "") and "one owner" in done.stderr
    assert run(broker, "lock", "a", "--", *command(broker, "lock", "-n", "a", "--", "true")).returncode == 75
    done = run(broker, "lock", "--owner", "job", "a", "--", *command(broker, "lock", "b", "--", *TELL))
    assert done.stdout.splitlines()[0] == "b" and done.returncode == 0
    inner = command(broker, "lock", "--owner", "", "-w", "0.1", "a", "--", "true")
    done = run(broker, "lock", "--owner", "job", "a", "--", *unknowing, *inner)
    assert done.returncode == 75, "nobody's, it waits as others do"
    done = run(broker, "lock", "--owner", "job", "a", "--", *command(broker, "lock", "--owner", "", "b", "--", "env"))
    assert "LOCKBROKER_OWNER" not in done.stdout
    done = run(broker, "lock", "--owner", "job", "a", "--", *command(broker, "sem", "-l", 1, "s", "--", "env"))
    assert "LOCKBROKER_OWNER=job" in done.stdout


def test_the_lock_that_closes_a_circle_of_commands_is_refused(broker):
    both = [nested(broker, "a", "b"), nested(broker, "b", "a")]
    for p in both:
        assert p.stdout.readline() == "\n"
    both[0].stdin.write("\n"), both[0].stdin.flush()
    harness.wait_queued(broker, "b", 1)
    _, err = both[1].communicate("\n", timeout=harness.PATIENCE)
    assert both[1].returncode == 70
    assert re.search(r'waits for "a" held by .*which waits for "b" held by', err), err
    out, _ = both[0].communicate(timeout=harness.PATIENCE)
    assert (both[0].returncode, out) == (0, "both\n"), "the other one goes on"


def test_permits_have_no_token_of_a_lock_around_them(standalone):
    done = run(standalone, "lock", "a", "--", *command(standalone, "sem", "-l", 2, "s", "--", *TELL))
    assert done.stdout == "s\n\n"
