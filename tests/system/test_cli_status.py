# SPDX-License-Identifier: Apache-2.0
"""What the command shows as the status of a service whose main process it is: sd_notify(3), with a socket in systemd's place."""

import os
import re
import socket

import pytest

import harness
from test_cli import command, run

OPERATORS = True  # see clients of conftest.py
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.settimeout(harness.PATIENCE)
        s.bind(str(tmp_path / "notify") if request.param == "path" else "\0" + str(tmp_path / "notify"))
        yield s


def address(manager):
    name = manager.getsockname()
    return name if isinstance(name, str) else "@" + name[1:].decode()


def spawn(manager, daemon, *words):
    """The command as the main process of a service."""
    return harness.spawn(["sh", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$@"', "sh", *command(daemon, *words)],
                         env=os.environ | {"NOTIFY_SOCKET": address(manager)})


@pytest.fixture
def service(manager):
    """service(daemon, *words) starts the command as the main process of a service; await_status(pattern) of what it returns."""

    def start(daemon, *words):
        p = spawn(manager, daemon, *words)

        def await_status(pattern):
            said = []
            while not said or not re.fullmatch(pattern, said[-1]):
                try:
                    said.append(manager.recv(4096).decode().removeprefix("STATUS="))
                except TimeoutError:
                    raise AssertionError(f"no status {pattern}, but {said}") from None

        p.await_status = await_status
        return p

    return start


def test_a_candidate_shows_who_leads(broker, clients, service):
    c = clients(broker)
    c.call("CAMPAIGN", "scheduler", "DATA", "10.0.0.1:80", "WAIT", harness.PATIENCE * 1000)
    p = service(broker, "campaign", "scheduler", "10.0.0.2:80", "sleep", "60")
    p.await_status(rf"Candidate for scheduler since {TIME}; 10\.0\.0\.1:80 leads on host \S+\.")
    c.call("RESIGN", "scheduler")
    p.await_status(rf"Leads scheduler since {TIME}, with token \d+\.")
    assert c.call("FORCEUNLOCK", "scheduler") == 1
    p.await_status("The lock scheduler is lost; ending sleep.")
    assert p.wait(harness.PATIENCE) == 79


@pytest.mark.parametrize("words, waits, holds", [
    (["lock", "a"], "Waiting for a since {}.", r"Holds a since {}, with token \d+\."),
    (["lock", "-a", "b", "a"], "Waiting for a since {}.", "Holds 2 locks since {}."),
    (["sem", "-l", "1", "s"], "Waiting for s since {}.", "Holds permits of s since {}."),
], ids=["one", "two", "permits"])
def test_one_that_waits_says_so_and_then_that_it_holds(broker, clients, service, words, waits, holds):
    c = clients(broker)
    c.call("LOCK", "a", "WAIT", harness.PATIENCE * 1000)
    c.call("ACQUIRE", "s", "LIMIT", 1, "WAIT", harness.PATIENCE * 1000)
    p = service(broker, *words, "sleep", "60")
    p.await_status(waits.format(TIME))
    c.call("UNLOCK", "a")
    c.call("RELEASE", "s")
    p.await_status(holds.format(TIME))
    harness.end(p)


def test_one_that_waits_for_long_says_who_holds_it(standalone, clients, service):
    c = clients(standalone)
    c.call("LOCK", "a")
    p = service(standalone, "lock", "a", "sleep", "60")
    p.await_status(rf"Since {TIME}: waiting \d+ s for a, held by \S+ pid {os.getpid()} .*, 1st in line\.")
    harness.end(p)


def test_the_absence_of_the_broker_is_shown(standalone, clients, service):
    with standalone.client() as c:
        c.call("CAMPAIGN", "e", "DATA", "x")
        p = service(standalone, "campaign", "e", "y", "sleep", "60")
        p.await_status(rf"Candidate for e since {TIME}; x leads on host \S+\.")
        standalone.kill()
    p.await_status(rf"Waiting for the broker, to ask it for e, since {TIME}\.")
    standalone.start()
    p.await_status(rf"Leads e since {TIME}, with token \d+\.")
    harness.end(p)


def test_what_others_wrote_is_shown_with_escapes(standalone, clients, service):
    """A character that turns the direction of what follows would make the status say something else."""
    assert clients(standalone).call("CAMPAIGN", "e", "DATA", "x\u202ey")
    p = service(standalone, "campaign", "e", "z", "sleep", "60")
    p.await_status(rf"Candidate for e since {TIME}; x[!-~]+y leads on host \S+\.")
    harness.end(p)


def test_only_the_main_process_says_anything(standalone, manager):
    """One that the main process has started would overwrite what that one says."""
    done = run(standalone, "lock", "a", "true", env=os.environ | {"NOTIFY_SOCKET": address(manager), "SYSTEMD_EXEC_PID": "1"})
    assert done.returncode == 0
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(4096)


def test_a_manager_that_does_not_read_delays_nothing(standalone, manager):
    """Its queue is full."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                s.sendto(b"x", manager.getsockname())
    assert spawn(manager, standalone, "lock", "a", "true").wait(harness.PATIENCE) == 0
