# SPDX-License-Identifier: Apache-2.0
"""The service on a booted systemd, set up as README.md says: what systemctl does, and what systemd does by itself."""

import os
import re

import pytest

import harness

UNIT = "lockbrokerd.service"
SOCKET = "/run/lockbroker/lockbroker.sock"
DROP_INS = f"/run/systemd/system/{UNIT}.d"
STANDALONE = "[Service]\nExecStart=\nExecStart=/usr/sbin/lockbrokerd --standalone -c /etc/lockbroker.conf\n"


@pytest.fixture(scope="session")
def installed(machine):
    """README's steps: alice is a member of the group, bob is not."""
    machine.run("groupadd", "--system", "lockbroker")
    machine.run("useradd", "-G", "lockbroker", "alice")
    machine.run("useradd", "bob")
    machine.run("sed", "-i", "-e", "s/^socket_group =.*/socket_group = lockbroker/", "/etc/lockbroker.conf")
    return machine, machine.read("/etc/lockbroker.conf")


@pytest.fixture
def service(installed):
    """The machine with the service started, standalone, with the configuration as it was installed."""
    machine, conf = installed
    machine.run("systemctl", "stop", UNIT, "lockbrokerd.socket")
    machine.run("systemctl", "reset-failed", status=None)
    machine.run("rm", "-rf", DROP_INS)
    machine.write("/etc/lockbroker.conf", conf)
    configure(machine, standalone=STANDALONE)
    machine.run("systemctl", "start", UNIT)
    return machine


def configure(machine, **drop_ins):
    for name, text in drop_ins.items():
        machine.write(f"{DROP_INS}/{name}.conf", text)
    machine.run("systemctl", "daemon-reload")


def main_pid(machine):
    return int(machine.show("MainPID"))


def restarted(machine, before):
    """Waits until systemd has started it again after it died."""
    harness.wait_until(lambda: main_pid(machine) not in (0, before) and machine.show("ActiveState") == "active",
                       "the service to be started again")
    return main_pid(machine)


def hold(machine, name):
    """A process that holds the lock until its standard input ends; says so when it holds."""
    process = machine.start("lockbroker", "lock", name, "--", "sh", "-c", "echo held; cat")
    assert process.stdout.readline() == "held\n"
    return process


def may_lock(machine, user=None):
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
    said = machine.run(*as_user, "lockbroker", "lock", "hello", "--", "echo", "I have the lock", status=None)
    return said == "I have the lock\n"


def test_the_machine_is_whole(machine):
    """Nothing that was booted failed, so that what is tested is the service."""
    assert machine.run("systemctl", "is-system-running", "--wait", status=None) == "running\n"


def test_readmes_service_starts_and_the_group_may_lock(service):
    assert service.run("stat", "-c", "%a %G", SOCKET) == "660 lockbroker\n"
    assert may_lock(service, "alice") and may_lock(service)
    assert not may_lock(service, "bob")


def test_status_says_what_the_daemon_does(service):
    said = service.run("systemctl", "status", "--no-pager", UNIT)
    assert "Active: active (running)" in said
    assert re.search(r"lockbrokerd\[\d+\]: lockbrokerd \S+ serves /run/lockbroker/lockbroker.sock as host ", said)


def test_stop_waits_for_the_holders(service):
    holder = hold(service, "a")
    stop = service.start("systemctl", "stop", UNIT)
    harness.wait_until(lambda: service.show("ActiveState") == "deactivating", "the stop to begin")
    holder.communicate()
    assert stop.wait(harness.PATIENCE) == 0
    assert (service.show("ActiveState"), service.show("Result")) == ("inactive", "success")


def test_a_killed_daemon_is_started_again(service):
    before = main_pid(service)
    service.run("systemctl", "kill", "-s", "KILL", UNIT)
    restarted(service, before)
    assert service.show("NRestarts") == "1"
    assert may_lock(service, "alice")


def test_a_wrong_configuration_is_not_started_again_and_again(service):
    service.run("systemctl", "stop", UNIT)
    service.write("/etc/lockbroker.conf", "[locks]\nlinger = 5\n")
    service.run("systemctl", "start", UNIT, status=1)
    assert (service.show("ActiveState"), service.show("NRestarts")) == ("failed", "0")
    assert "/etc/lockbroker.conf:2: locks.linger: unknown key" in service.journal()


def test_a_connection_to_the_socket_starts_the_service(service):
    service.run("systemctl", "stop", UNIT)
    configure(service, socket="[Service]\n")
    service.run("systemctl", "start", "lockbrokerd.socket")
    assert service.show("ActiveState") == "inactive"
    assert may_lock(service)
    assert service.show("ActiveState") == "active"
