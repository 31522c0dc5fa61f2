# SPDX-License-Identifier: Apache-2.0
"""Who held a lock, on a machine as it is installed: `lockbroker history` finds it in the journal, for those who may read that."""

import json
import re

import pytest

import harness
import pages

UNIT = "lockbrokerd.service"
DROP_IN = f"/run/systemd/system/{UNIT}.d/standalone.conf"
DENIED = ("lockbroker: This user may not read the journal, which has the history: root may, and the members of the groups adm and "
          "systemd-journal.\n")


@pytest.fixture(scope="module")
def service(machine):
    machine.run("systemd-sysusers", "lockbrokerd.conf")
    for name, groups in ("reader", "systemd-journal"), ("clerk", "adm"), ("worker", "lockbroker"):
        machine.run("useradd", "-G", groups, name)
    machine.write(DROP_IN, "[Service]\nExecStart=\nExecStart=/usr/sbin/lockbrokerd --standalone -c /etc/lockbroker.conf\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", UNIT)
    yield machine
    machine.run("systemctl", "stop", UNIT, "lockbrokerd.socket")
    machine.run("rm", DROP_IN)
    machine.run("systemctl", "daemon-reload")


def run_as(machine, user, *argv, **options):
    return machine.run("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *argv, **options)


def holds(machine, name, count):
    """What history shows of it, once it is so many holds."""
    def found():
        rows = json.loads(machine.run("lockbroker", "history", "--json", name))["holds"]
        return rows if len(rows) == count else None

    return harness.wait_until(found, f"{count} holds")


def test_who_held_it_is_answered_to_those_who_may_read_the_journal(service):
    uid = service.run("id", "-u", "worker").strip()
    run_as(service, "worker", "lockbroker", "lock", "-d", "the books of November", "nightly", "true")
    (row,) = holds(service, "nightly", 1)
    assert (str(row["uid"]), row["data"], row["mode"], row["state"]) == (uid, "the books of November", "exclusive", "ended")
    at = service.run("date", "-d", f"@{row['since_ms'] / 1000}", "+%F %T.%3N").strip()
    for user in "root", "reader", "clerk":
        text = run_as(service, user, "lockbroker", "history", "nightly", "--at", at)
        assert re.search(rf"^{at} .*\(the books of November\) +{uid} +exclusive +(released|closed)", text, re.M), text
        assert "Other hosts have journals" not in text, "it has none: it is standalone"
    assert run_as(service, "worker", "lockbroker", "history", "nightly", status=77) == DENIED
    assert "No hold of nightly in that time" in service.run("lockbroker", "history", "nightly", "--until", "yesterday")


def test_a_restart_of_the_daemon_and_its_end_hide_nothing(service):
    process = service.start("lockbroker", "lock", "longer", "--", "sh", "-c", "echo held; cat")
    assert process.stdout.readline() == "held\n"
    service.run("systemctl", "restart", UNIT)
    process.communicate()
    (row,) = holds(service, "longer", 1)
    assert row["state"] == "ended" and row["held_ms"] > 0
    service.run("systemctl", "stop", UNIT, "lockbrokerd.socket")
    assert holds(service, "longer", 1) == [row]
    service.run("systemctl", "start", UNIT)


def test_the_journal_is_asked_for_one_event_as_the_manual_says(service):
    """With an event that this daemon has had."""
    (command,) = pages.claimed("client-lib/man/lockbrokerd.8", __file__)
    assert "-- No entries --" in service.run("sh", "-c", command, status=None)
    assert "serves /run/lockbroker/lockbroker.sock" in service.run("sh", "-c", command.replace("session_lost", "serves"))
