# SPDX-License-Identifier: Apache-2.0
"""A broker of one's own on a booted systemd: the units for `systemctl --user`, and that nobody uses it who has not asked for it."""

import os
import re
import subprocess

import pytest

import harness
import pages

UNIT = "lockbrokerd.service"
SYSTEMS = "/run/lockbroker/lockbroker.sock"
PROGRAM = """
#include <lockbroker.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct lb *lb;
	int failed = lb_open(argc > 1 ? argv[1] : NULL, &lb) != LB_OK || lb_try(lb, "a", NULL) != LB_OK;

	printf("%s\\n", failed ? lb_error(lb) : "locked");
	lb_close(lb);
	return failed;
}
"""


class User:
    """Does what it is told as a user with a systemd of its own."""

    def __init__(self, machine, name):
        self.machine = machine
        self.uid = machine.run("id", "-u", name).strip()
        self.runtime = f"/run/user/{self.uid}"
        self.socket = f"{self.runtime}/lockbroker/lockbroker.sock"
        self.prefix = ["setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups", "env", f"HOME=/home/{name}",
                       f"XDG_RUNTIME_DIR={self.runtime}"]

    def run(self, *argv, status=0):
        return self.machine.run(*self.prefix, *argv, status=status)

    def start(self, *argv):
        return self.machine.start(*self.prefix, *argv)

    def systemctl(self, *words, status=0):
        return self.run("systemctl", "--user", *words, status=status)

    def show(self, name, unit=UNIT):
        return self.systemctl("show", "--value", "-p", name, unit).strip()

    def hold(self, name):
        process = self.start("lockbroker", "--user", "lock", name, "--", "sh", "-c", "echo held; cat")
        assert process.stdout.readline() == "held\n"
        return process


@pytest.fixture(scope="module")
def ann(machine):
    """A member of the group of the system's broker, so that nothing but the choice of a broker decides. Other tests of the
    machine have users of other names."""
    machine.run("systemd-sysusers", "lockbrokerd.conf")
    for name in ("ann", "ben"):
        machine.run("useradd", "--create-home", "-G", "lockbroker", name)
        machine.run("loginctl", "enable-linger", name)
    made = User(machine, "ann")
    harness.wait_until(lambda: "running" in made.systemctl("is-system-running", status=None), "the systemd of the user")
    return made


@pytest.fixture
def user(ann):
    """Nothing runs, and nothing is enabled, as it is installed."""
    ann.machine.run("systemctl", "stop", UNIT, "lockbrokerd.socket")
    ann.systemctl("disable", "--now", "lockbrokerd.socket")
    ann.systemctl("stop", UNIT)
    ann.systemctl("reset-failed")
    return ann


@pytest.fixture
def enabled(user):
    """As the manual says."""
    user.systemctl("enable", "--now", "lockbrokerd.socket")
    return user


@pytest.fixture(scope="module")
def program(machine):
    """It has the library of the machine."""
    path = f"/proc/{machine.leader}/root/usr/local/bin/program"
    subprocess.run(["cc", f"-I{harness.SOURCE}/client-lib", "-o", path, "-x", "c", "-", "-x", "none", harness.program("liblockbroker.so.1")],
                   input=PROGRAM, text=True, check=True)
    machine.run("ldconfig")
    return "/usr/local/bin/program"


def test_it_is_not_enabled_and_the_error_says_how_it_is_enabled(user):
    assert user.systemctl("is-enabled", "lockbrokerd.socket", status=1) == "disabled\n"
    said = user.run("lockbroker", "--user", "lock", "--connect", "0", "a", "true", status=69)
    assert said.endswith(f"No lockbrokerd is serving {user.socket}: No such file or directory. "
                         "Start it by `systemctl --user enable --now lockbrokerd.socket`.\n")
    command = re.search("`(.*)`", said).group(1).split()
    user.run(*command)
    assert "PONG" in user.run("lockbroker", "ping", "--user")


def test_the_first_client_starts_it_and_its_locks_are_exclusive(enabled):
    assert enabled.show("ActiveState") == "inactive"
    holder = enabled.hold("a")
    assert enabled.show("ActiveState") == "active"
    enabled.run("lockbroker", "--user", "lock", "-n", "a", "true", status=75)
    holder.communicate()
    assert holder.returncode == 0
    assert enabled.run("lockbroker", "--user", "lock", "-n", "a", "echo", "free") == "free\n"
    assert "mode:standalone" in enabled.run("lockbroker", "--user", "info", "server")
    assert "LOCKBROKER OK" in enabled.run("lockbroker", "--user", "check")


@pytest.mark.parametrize("page, said", [("docs/INSTALL.md", "I have the lock\n"), ("client-lib/man/lockbrokerd.8", "made\n")])
def test_the_commands_of_the_page_give_a_user_a_broker(user, page, said):
    """make(1) is not on the machine; what it would do is no matter."""
    blocks = {"docs/INSTALL.md": pages.claimed("docs/INSTALL.md", __file__), "client-lib/man/lockbrokerd.8":
              pages.claimed("client-lib/man/lockbrokerd.8", __file__)}
    user.machine.write("/usr/local/bin/make", "#!/bin/sh\necho made\n")
    user.machine.run("chmod", "755", "/usr/local/bin/make")
    (text,) = blocks[page]
    *_, out = [user.run("sh", "-c", line) for line in text.splitlines()]
    assert out == said


def test_a_restart_costs_nobody_a_lock(enabled):
    holder, before = enabled.hold("a"), enabled.show("MainPID")
    for _ in range(2):
        enabled.systemctl("restart", UNIT)
        assert enabled.show("MainPID") != before and holder.poll() is None
        before = enabled.show("MainPID")
        enabled.run("lockbroker", "--user", "lock", "-n", "a", "true", status=75)
    enabled.systemctl("reload", UNIT)
    enabled.run("lockbroker", "--user", "restart")
    holder.communicate()
    assert holder.returncode == 0
    assert enabled.show("NRestarts") == "0"


def test_a_killed_one_is_started_again(enabled):
    enabled.run("lockbroker", "--user", "ping")
    before = enabled.show("MainPID")
    enabled.systemctl("kill", "-s", "KILL", UNIT)
    harness.wait_until(lambda: enabled.show("MainPID") not in ("0", before) and enabled.show("ActiveState") == "active",
                       "the service to be started again")
    assert enabled.run("lockbroker", "--user", "lock", "a", "echo", "locked") == "locked\n"


def test_each_kind_of_client_finds_it_where_it_is_asked_for(enabled, program):
    assert enabled.run(program, "user") == "locked\n"
    assert enabled.run("env", "LOCKBROKER_SOCKET=user", program) == "locked\n"
    assert enabled.run("env", "LOCKBROKER_SOCKET=user", "lockbroker", "lock", "a", "echo", "locked") == "locked\n"
    assert enabled.run("env", "-u", "XDG_RUNTIME_DIR", program, "user") == "locked\n", "it is where systemd makes it"
    assert "user_share = 100" in enabled.run("lockbroker", "--user", "config", "limits.user_share"), "an operator of its own"


@pytest.mark.parametrize("of_the_user", ["stopped", "running"])
def test_while_the_systems_broker_is_stopped_nobody_gets_a_lock_unasked(user, program, of_the_user):
    """A job of a fleet would take a lock of its user alone for one of all hosts."""
    if of_the_user == "running":
        user.systemctl("enable", "--now", "lockbrokerd.socket")
        assert "PONG" in user.run("lockbroker", "--user", "ping")
    said = user.run("lockbroker", "lock", "--connect", "0", "a", "echo", "locked", status=69)
    assert said == (f"lockbroker: No lockbrokerd is serving {SYSTEMS}: No such file or directory. Start it, or set "
                    "LOCKBROKER_SOCKET to the socket that it serves; `lockbroker --user` uses one of your own.\n")
    said = user.run(program, status=1)
    assert "locked" not in said and f"No lockbrokerd is serving {SYSTEMS}: " in said


def test_it_is_its_users_alone(enabled):
    enabled.run("lockbroker", "--user", "lock", "a", "true")
    folder = os.path.dirname(enabled.socket)
    owners = enabled.machine.run("find", folder, "-printf", "%u %m %f\n").splitlines()
    assert {line.split()[0] for line in owners} == {"ann"} and "ann 700 lockbroker" in owners
    assert not [line for line in owners if int(line.split()[1], 8) & 0o22]
    ben = User(enabled.machine, "ben")
    said = ben.run("env", f"XDG_RUNTIME_DIR={enabled.runtime}", "lockbroker", "--user", "ping", status=69)
    assert f"XDG_RUNTIME_DIR = {enabled.runtime} is not a directory that only this user ({ben.uid}) may write to" in said
    assert "This user may not look for lockbrokerd" in ben.run("lockbroker", "-S", enabled.socket, "ping", status=77)


def test_its_user_sees_who_held_a_lock_and_not_what_the_system_broker_logs(enabled):
    enabled.run("lockbroker", "--user", "lock", "-d", "my notes", "notes", "true")
    harness.wait_until(lambda: "(my notes)" in enabled.run("lockbroker", "--user", "history", "notes"), "the hold in the journal")
    assert "--directory" not in enabled.run("lockbroker", "--user", "history", "notes"), "there are no other hosts"
    assert "This user may not read the journal" in enabled.run("lockbroker", "history", "notes", status=77)


def test_it_has_what_confinement_a_user_can_give(enabled):
    enabled.run("lockbroker", "--user", "ping")
    pid = enabled.show("MainPID")
    (worker,) = enabled.machine.run("cat", f"/proc/{pid}/task/{pid}/children").split()
    for process in (pid, worker):
        status = enabled.machine.read(f"/proc/{process}/status")
        assert "\nNoNewPrivs:\t1\n" in status and "\nSeccomp:\t2\n" in status
        assert set(re.findall(r"^Uid:(.*)$", status, re.M)[0].split()) == {enabled.uid}
    said = enabled.machine.run("journalctl", "-o", "cat", f"_UID={enabled.uid}", "-t", "lockbrokerd", f"_PID={worker}", f"_PID={pid}")
    assert set(re.findall(r"  event=(\w+)", said)) <= {"serves", "descriptors"}, said


def test_the_systems_broker_goes_on_beside_it(enabled):
    drop_in = f"/run/systemd/system/{UNIT}.d/standalone.conf"
    enabled.machine.write(drop_in, "[Service]\nExecStart=\nExecStart=/usr/sbin/lockbrokerd --standalone -c /etc/lockbroker.conf\n")
    enabled.machine.run("systemctl", "daemon-reload")
    enabled.machine.run("systemctl", "start", UNIT)
    holder = enabled.hold("a")
    assert enabled.run("lockbroker", "lock", "-n", "a", "echo", "another lock") == "another lock\n"
    holder.communicate()
    assert holder.returncode == 0
