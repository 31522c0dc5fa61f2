# SPDX-License-Identifier: Apache-2.0
"""Operators drain a daemon: what it has goes to other hosts, and nothing new is granted."""

import subprocess

import harness


def drain(daemon, *words, **options):
    return subprocess.Popen([harness.program("lockbroker"), "-S", daemon.operator_socket, "drain", *words],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def told(process):
    return process.communicate(timeout=harness.PATIENCE)[0]


def test_the_waiters_of_other_hosts_go_ahead(two_hosts, clients):
    alpha, beta = two_hosts
    holder, waiter, other = clients(alpha), clients(alpha), clients(beta)
    token = holder.call("LOCK", "a")
    waiter.send("LOCK", "a")
    harness.wait_queued(alpha, "a", 1)
    idle = clients(alpha)
    assert isinstance(idle.call("LOCK", "b"), int) and idle.call("UNLOCK", "b") == 0
    other.send("LOCK", "a")
    harness.wait_queued(beta, "a", 1)
    p = drain(alpha, "--wait")
    assert waiter.reply().code == "DRAINING"
    assert holder.push() == ["revoke", "a", token, "draining"]
    assert [p.stdout.readline() for _ in range(2)][0] == "still held: 1\n"
    assert holder.call("LOCK", "c").code == "DRAINING" and p.poll() is None
    assert holder.call("VALID", "a") > 0
    assert clients(beta).call("LOCK", "b", "WAIT", 10000) > 0  # it lingers no longer
    assert holder.call("UNLOCK", "a") == 0
    assert other.reply() > token
    assert told(p).endswith("Nothing is held any longer.\n") and p.returncode == 0
    assert alpha.info()["draining"] == "1" and alpha.info()["session_state"] == "safe"
    assert told(drain(alpha, "--off")) == "The broker grants again.\n"
    assert isinstance(clients(alpha).call("LOCK", "c"), int)
    lines = [harness.parse_log_line(line) for line in alpha.log().splitlines()]
    assert [fields["on"] for _, event, fields in lines if event == "drain"] == ["1", "0"]


def test_it_says_who_still_holds_what(standalone, clients):
    holders = [clients(standalone) for _ in range(21)]
    for i, c in enumerate(holders):
        c.call("LOCK", f"lock {i:02}")
    p = drain(standalone, "--wait")
    lines = [p.stdout.readline() for _ in range(22)]
    assert lines[0] == "still held: 21\n" and lines[21] == "  and 1 more locks\n"
    client = holders[0].call("CLIENT", "ID")
    assert lines[1].startswith(f"  lock 00: client {client}, uid ") and " pid " in lines[1]
    for c in holders:
        c.close()
    assert told(p).endswith("Nothing is held any longer.\n") and p.returncode == 0
    check = subprocess.run([harness.program("lockbroker"), "-S", standalone.socket, "check"], capture_output=True, text=True,
                           timeout=harness.PATIENCE)
    assert check.returncode == 1 and "it grants nothing" in check.stdout
    p = drain(standalone, "--wait")
    assert told(p) == "Nothing is held any longer.\n"
    assert "drain takes --wait or --off" in told(drain(standalone, "soon"))


def test_a_drained_daemon_stays_so_over_a_hand_over_and_a_kill(daemons, clients):
    d = daemons()
    c, operator = clients(d), clients(d, operator=True)
    token = c.call("LOCK", "a")
    assert operator.call("DRAIN")["held"] == 1
    assert c.push() == ["revoke", "a", token, "draining"]
    assert isinstance(operator.call("RESTART"), dict)
    d.follow()
    assert c.call("LOCK", "b").code == "DRAINING" and c.call("VALID", "a") > 0
    harness.wait_until(lambda: d.info()["draining"] == "1", "the state")
    d.signal(9)
    harness.wait_until(lambda: "goes on after a crash" in d.log(), "the next process")
    assert clients(d).call("LOCK", "b").code == "DRAINING"
    assert clients(d, operator=True).call("DRAIN", "OFF")["draining"] == 0
    assert isinstance(clients(d).call("LOCK", "b"), int)
