# SPDX-License-Identifier: Apache-2.0
"""The units of docs/JOBS.md, as they stand there, on a booted systemd."""

import re

import pytest

import harness
import pages
from test_booted import DROP_INS, STANDALONE, UNIT

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
PROGRAMS = {"/usr/local/sbin/report": "echo run >> /run/reports",
            "/usr/local/bin/encode": "exec sleep 600",
            "/usr/local/bin/scheduler": "echo $LOCKBROKER_TOKEN >> /run/schedulers; exec sleep 600"}


def units():
    """The unit files, by their paths."""
    return {re.match(r"# (\S+)\n", text)[1]: text for text in pages.claimed("docs/JOBS.md", __file__, "ini")}


@pytest.fixture(scope="module")
def host(machine):
    machine.run("systemd-sysusers", "lockbrokerd.conf")
    machine.write(f"{DROP_INS}/standalone.conf", STANDALONE)
    for path, text in units().items():
        machine.write(path, text)
    for path, text in PROGRAMS.items():
        machine.write(path, f"#!/bin/sh\n{text}\n")
        machine.run("chmod", "755", path)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", UNIT)
    return machine


def hold(host, *words):
    """A process of another host, as far as the lock goes."""
    p = host.start("lockbroker", *words, "sh", "-c", "echo held; cat")
    assert p.stdout.readline() == "held\n"
    return p


def end(p):
    p.stdin.close()
    p.wait(harness.PATIENCE)


def await_status(host, unit, pattern):
    text = []

    def is_shown():
        text[:] = [host.run("systemctl", "status", "--no-pager", unit, status=None)]
        return re.search(rf'^ +Status: "{pattern}"$', text[0], re.M)

    harness.wait_until(is_shown, f"the status {pattern}, which is {text}")


def test_systemd_finds_nothing_wrong_with_the_units(host):
    paths = [path for path in units() if "@" not in path] + [path.replace("@", "@a") for path in units() if "@" in path]
    assert len(paths) == 4
    assert host.run("systemd-analyze", "verify", *paths) == ""


def test_the_timer_starts_the_report_which_holds_its_lock_on(host):
    host.run("systemctl", "enable", "--now", "report.timer")
    assert "02:15:00" in host.run("systemctl", "list-timers", "--no-pager", "report.timer")
    host.run("systemctl", "start", "--no-block", "report.service")
    harness.wait_until(lambda: host.run("cat", "/run/reports", status=None) == "run\n", "the report")
    assert host.run("lockbroker", "lock", "-n", "nightly-report", "/usr/local/sbin/report", status=75) == ""
    assert host.read("/run/reports") == "run\n"
    host.run("systemctl", "stop", "report.service")


def test_the_timer_of_the_manual_writes_the_metrics(host):
    (text,) = pages.claimed("client-lib/man/lockbroker.1", __file__)
    files = dict(re.findall(r"^# (/etc/systemd/system/\S+)\n(.*?)(?=^# |\Z)", text, re.M | re.S))
    for path, unit in files.items():
        host.write(path, unit)
    host.run("mkdir", "-p", "/var/lib/prometheus/node-exporter")
    host.run("systemctl", "daemon-reload")
    assert len(files) == 2 and host.run("systemd-analyze", "verify", *files) == ""
    host.run("systemctl", "start", "lockbroker-metrics.service")
    assert "\nlockbroker_up 1\n" in host.read("/var/lib/prometheus/node-exporter/lockbroker.prom")
    host.run("systemctl", "enable", "--now", "lockbroker-metrics.timer")
    host.run("systemctl", "disable", "--now", "lockbroker-metrics.timer")


def test_where_another_host_runs_the_report_the_unit_succeeds(host):
    p = hold(host, "lock", "nightly-report")
    host.run("rm", "-f", "/run/reports")
    host.run("systemctl", "start", "report.service")
    assert (host.show("Result", "report.service"), host.show("ExecMainStatus", "report.service")) == ("success", "75")
    assert "No such file" in host.run("cat", "/run/reports", status=1)
    end(p)


def test_three_encoders_run_and_the_fourth_waits(host):
    names = [f"encode@{name}.service" for name in "abcd"]
    for name in names:
        host.run("systemctl", "start", name)

    def running():
        return [name for name in names if "sleep 600" in host.run("systemctl", "status", "--no-pager", name)]

    harness.wait_until(lambda: len(running()) == 3, "three of them")
    (waits,) = set(names) - set(running())
    await_status(host, waits, rf"Waiting for encoders since {TIME}\.|Since {TIME}: waiting \d+ s for encoders.*")
    host.run("systemctl", "stop", running()[0])
    await_status(host, waits, rf"Holds permits of encoders since {TIME}\.")
    host.run("systemctl", "stop", *names)


def test_systemctl_status_shows_who_leads(host):
    other = hold(host, "campaign", "scheduler", "web-9:8080")
    host.run("systemctl", "start", "scheduler.service")
    await_status(host, "scheduler", rf"Candidate for scheduler since {TIME}; web-9:8080 leads on host \S+\.")
    end(other)
    await_status(host, "scheduler", rf"Leads scheduler since {TIME}, with token \d+\.")
    assert ":8080" in host.run("lockbroker", "leader", "scheduler")
    host.run("lockbroker", "force-unlock", "scheduler")
    harness.wait_until(lambda: len(set(host.read("/run/schedulers").split())) == 2, "the unit to lead again")
    host.run("systemctl", "stop", "scheduler.service")


def test_what_the_page_shows_of_a_status_is_what_is_shown():
    shown = [re.fullmatch(r' +Status: "(.*)"\n', text)[1] for text in pages.claimed("docs/JOBS.md", __file__, "text")]
    assert len(shown) == 2
    assert re.fullmatch(rf"Candidate for scheduler since {TIME}; \S+ leads on host \S+\.", shown[0])
    assert re.fullmatch(rf"Leads scheduler since {TIME}, with token \d+\.", shown[1])
