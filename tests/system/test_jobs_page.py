# SPDX-License-Identifier: Apache-2.0
"""The lines of docs/JOBS.md that need no systemd, on the hosts of a fleet."""

import os
import re
import signal
import subprocess

import pytest

import harness
import pages

HOST = "web-1"
PAGE = "docs/JOBS.md"


@pytest.fixture
def shell(tmp_path):
    """shell(daemon, line) starts the line on that host, where its programs are in a folder of this test."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "hostname").write_text(f"#!/bin/sh\necho {HOST}\n")
    for name, text in {"report": f"echo run >> {tmp_path}/runs", "train": 'echo "$CUDA_VISIBLE_DEVICES"; exec sleep 60'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    path = f"{programs}:{harness.build_dir()}:{os.environ['PATH']}"

    def start(daemon, line):
        return harness.spawn(["sh", "-c", line.replace("/usr/local/sbin/", "").replace("./train", "train")],
                             env=os.environ | {"PATH": path, "LOCKBROKER_SOCKET": daemon.socket}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    return start


def test_the_line_of_the_crontab_runs_the_report_once(two_hosts, shell, tmp_path):
    """Whichever host is first, and however late the other one is: the report has ended when it asks."""
    (entry,) = pages.claimed(PAGE, __file__, "crontab")
    *_, line = entry.strip().split(None, 6)
    for first, second in (two_hosts, two_hosts[::-1], two_hosts):
        (tmp_path / "runs").unlink(missing_ok=True)
        holder = shell(first, line)
        harness.wait_until((tmp_path / "runs").exists, "the report")
        late = shell(second, line)
        assert late.communicate(timeout=harness.PATIENCE) == ("", "") and late.returncode == 0
        assert holder.poll() is None, "it holds the lock on"
        assert (tmp_path / "runs").read_text() == "run\n"
        os.killpg(holder.pid, signal.SIGTERM)
        holder.communicate(timeout=harness.PATIENCE)


def test_without_min_hold_a_late_host_would_run_it_again(two_hosts, shell, tmp_path):
    (entry,) = pages.claimed(PAGE, __file__, "crontab")
    line, count = re.subn(r"--min-hold \d+ ", "", entry.strip().split(None, 6)[6])
    assert count == 1
    for host in two_hosts:
        harness.wait_until(lambda: shell(host, line).wait(harness.PATIENCE) == 0 and (tmp_path / "runs").exists(), "a run")
    harness.wait_until(lambda: shell(two_hosts[1], line).wait(harness.PATIENCE) == 0 and
                       (tmp_path / "runs").read_text().count("run") >= 2, "a second run")


def test_two_jobs_have_the_two_devices_and_the_third_waits(broker, shell, clients):
    (line,) = pages.claimed(PAGE, __file__, "sh")
    jobs = [shell(broker, line)]
    devices = [jobs[0].stdout.readline().strip()]
    jobs.append(shell(broker, line))
    devices.append(jobs[1].stdout.readline().strip())
    assert sorted(devices) == ["0", "1"]
    jobs.append(shell(broker, line))
    for device in devices:
        harness.wait_queued(broker, f"gpu/{HOST}/{device}", 1)
    os.killpg(jobs[0].pid, signal.SIGTERM)
    assert jobs[2].stdout.readline().strip() == devices[0]
    for p in jobs[1:]:
        os.killpg(p.pid, signal.SIGTERM)
    for p in jobs:
        p.communicate(timeout=harness.PATIENCE)
