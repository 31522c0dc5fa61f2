# SPDX-License-Identifier: Apache-2.0
"""What the log has of holds and of long waits (log.grants, log.long_wait_ms); test_journal.py has it in a journal."""

import os
import re
import subprocess
import time

import harness
import pages
from test_cli import command


def lines(daemon, *events):
    """The fields of these events."""
    found = map(harness.parse_log_line, daemon.log().splitlines())
    return [fields | {"event": event} for _, event, fields in found if event in events]


def wait_lines(daemon, count, *events):
    return harness.wait_until(lambda: (found := lines(daemon, *events)) and len(found) >= count and found, f"{count} lines")


def operator(daemon, *words):
    with daemon.client(operator=True) as c:
        return c.call(*words)


def hold_command(daemon, name, text):
    """`lockbroker lock` holds it, for a command that has said so."""
    process = harness.spawn(command(daemon, "lock", "-d", text, name, "--", "sh", "-c", "echo held; exec cat"),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_end_of_each_hold_says_why(daemons, clients):
    d = daemons(log__grants=1)
    begun_ms = time.time() * 1000
    c = clients(d)
    token = c.call("LOCK", "released", "DATA", "invoice 7")
    assert c.call("UNLOCK", "released") == 0
    assert c.call("LOCK", "leased", "LEASE", 1)
    assert c.push()[3] == "lease"
    assert c.call("LOCK", "forced")
    assert operator(d, "FORCEUNLOCK", "forced") == 1
    with d.client() as other:
        assert other.call("LOCK", "closed")
    ended, killed = hold_command(d, "ended", "a text"), hold_command(d, "killed", 'x"  why=forced')
    killed.kill()
    for process in ended, killed:
        process.communicate(timeout=harness.PATIENCE)
    found = {fields["name"]: fields for fields in wait_lines(d, 6, "released", "lost")}
    assert {name: (fields["event"], fields["why"]) for name, fields in found.items()} == {
        "released": ("released", "released"), "leased": ("lost", "lease"), "forced": ("lost", "forced"),
        "closed": ("released", "closed"), "ended": ("released", found["ended"]["why"]), "killed": ("released", "closed")}
    assert found["ended"]["why"] in ("released", "closed")
    first = found["released"]
    assert (first["token"], first["data"], first["pid"], first["uid"]) == (str(token), "invoice 7", str(os.getpid()), str(os.getuid()))
    assert (first["kind"], first["mode"], int(first["waited_ms"]) >= 0) == ("lock", "exclusive", True) and "before" not in first
    assert begun_ms - 2000 <= int(first["since_ms"]) <= time.time() * 1000 + 2000 and int(first["held_ms"]) >= 0
    assert found["ended"]["data"] == "a text" and found["killed"]["data"] == 'x"  why=forced'
    assert found["ended"]["command"] == "sh" and found["killed"]["command"] in ("sh", "cat")


def test_nothing_is_logged_of_holds_unless_the_log_goes_to_a_journal(daemons, clients):
    d = daemons()
    c = clients(d)
    assert c.call("LOCK", "a") and c.call("UNLOCK", "a") == 0
    assert not lines(d, "released")
    assert "auto" in str(operator(d, "CONFIG", "GET", "log.grants"))


def test_a_long_wait_names_the_holder(daemons, clients):
    d = daemons(log__long_wait_ms=50)
    holder, waiter = clients(d), clients(d)
    assert holder.call("LOCK", "a")
    waiter.send("LOCK", "a")
    (waits,) = wait_lines(d, 1, "waits")
    assert (waits["name"], waits["holder_pid"], int(waits["waited_ms"]) >= 50) == ("a", str(os.getpid()), True)
    assert waits["holder"] and waits["holder_command"]
    assert holder.call("UNLOCK", "a") == 0
    assert waiter.reply()
    (waited,) = wait_lines(d, 1, "waited")
    assert waited["why"] == "granted" and int(waited["waited_ms"]) >= int(waits["waited_ms"])
    assert not lines(d, "released")


def test_the_host_before_is_named_and_so_is_the_one_that_is_waited_for(daemons, zk, root, clients):
    """The line leaves the holder out if the daemon has not read the queue by then: so the test repeats until it has."""
    alpha, beta = (daemons(zk, root, host=host, log__grants=1, log__long_wait_ms=200) for host in ("alpha", "beta"))
    first, second = clients(alpha), clients(beta)
    count = 0

    def waited_for_another_host():
        nonlocal count
        count += 1
        assert first.call("LOCK", "a")
        second.send("LOCK", "a")
        holder = wait_lines(beta, count, "waits")[-1].get("holder")
        assert first.call("UNLOCK", "a") == 0
        assert second.reply()
        assert second.call("UNLOCK", "a") == 0
        return holder

    assert harness.wait_until(waited_for_another_host, "a line with a holder") == "alpha"
    released = wait_lines(beta, count, "released")[-1]
    assert released["before"] == "alpha" and int(released["waited_ms"]) >= 200
    assert "before" not in wait_lines(alpha, 1, "released")[0]


def test_a_hold_goes_on_over_a_hand_over(daemons, clients):
    d = daemons(log__grants=1)
    c = clients(d)
    assert c.call("LOCK", "a", "DATA", "x")
    held = int(time.time() * 1000)
    d.hand_over()
    assert c.call("UNLOCK", "a") == 0
    (first,) = wait_lines(d, 1, "released")
    assert (first["data"], first["why"]) == ("x", "released") and int(first["since_ms"]) <= held and "waited_ms" in first


def test_beyond_the_budget_holds_are_summed_up(daemons, clients):
    d = daemons(log__grants=1)
    c = clients(d)
    for _ in range(700):
        assert c.call("LOCK", "a") and c.call("UNLOCK", "a") == 0
    assert d.terminate() == 0
    released, (summary,) = lines(d, "released"), lines(d, "summary")
    assert 400 <= len(released) < 420 and len(released) + int(summary["count"]) == 700
    assert (summary["name"], summary["waits"]) == ("a", "0") and summary["commands"] == released[0]["command"]
    assert int(summary["since_ms"]) <= int(summary["until_ms"])


def test_the_lines_of_the_manual_have_the_shape_that_is_logged(daemons, clients):
    """The unit test has from the code those that take minutes, or a thousand holds."""
    d = daemons(log__grants=1)
    c = clients(d)
    c.call("LOCK", "a", "DATA", "text")
    c.call("UNLOCK", "a")
    assert isinstance(c.call("CAMPAIGN", "e", "DATA", "me"), int)
    assert operator(d, "FORCEUNLOCK", "e") == 1
    wait_lines(d, 2, "released", "lost")

    def shape(text):
        return re.sub(r"\d+", "N", re.sub(r"lost \(\w+\)", "lost ()", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)))

    code = re.sub(r'"\s*\n\s*"', "", harness.read_source("tests/unit/test_hold_log.c"))
    literals = [text.replace('\\"', '"') for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code)]
    expected = "\n".join(map(shape, literals + d.log().splitlines()))
    (shown,) = pages.claimed("client-lib/man/lockbrokerd.8", __file__)
    lines_shown = shown.splitlines()
    assert len(lines_shown) == 5
    for line in lines_shown:
        assert shape(line) in expected, line
