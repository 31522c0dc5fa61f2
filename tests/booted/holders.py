# SPDX-License-Identifier: Apache-2.0
"""Locks on a machine that are held, and waited for, while its packages are upgraded or its service is restarted."""

import re

import harness
import packages

# A client without a library: sends each line that it reads, and prints the first line of the answer.
RAW = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect("/run/lockbroker/lockbroker.sock")
    stream = s.makefile("rwb", 0)
    for line in sys.stdin:
        stream.write(line.encode())
        print(stream.readline().decode().strip() or "closed", flush=True)
"""


def install(machine, of):
    return machine.run("dpkg", "-i", *packages.put(f"/proc/{machine.leader}/root", of))


def serving(machine):
    """The version of the process that answers."""
    return re.search(r"^lockbroker_version:(\S+)", machine.run("lockbroker", "info", "server"), re.M).group(1)


def start_job(machine):
    """A service that holds the lock c, and whose command runs."""
    machine.run("systemd-run", "--unit=job", "--collect", "lockbroker", "lock", "c", "--", "sleep", "infinity")
    harness.wait_until(lambda: re.search(r"\d sleep infinity$", machine.run("systemd-cgls", "-u", "job.service"), re.M),
                       "the job to hold it")


class Holders:
    """One of each kind, and somebody in line behind each. check() shows that they lost nothing; release() ends them."""

    def __init__(self, machine):
        self.machine = machine
        self.command = machine.start("lockbroker", "lock", "a", "--", "sh", "-c", "echo held; cat")
        assert self.command.stdout.readline() == "held\n"
        self.raw = machine.start("python3", "-c", RAW)
        self.token = self.ask("LOCK b")
        assert re.fullmatch(r":[1-9]\d*", self.token)
        start_job(machine)
        self.waiters = [machine.start("lockbroker", "lock", name, "--", "echo", name) for name in "abc"]
        for name in "abc":
            harness.wait_until(lambda name=name: "uid" in machine.run("lockbroker", "call", "QUEUE", name), "the waiter")
        self.before = self.state()

    def ask(self, line):
        self.raw.stdin.write(line + "\n")
        self.raw.stdin.flush()
        return self.raw.stdout.readline().strip()

    def state(self):
        """Who holds and who waits, without the numbers that change with time."""
        said = "".join(self.machine.run("lockbroker", "call", word, name) for name in "abc" for word in ("HOLDERS", "QUEUE"))
        job = self.machine.show("MainPID", "job.service")
        return job, re.findall(r'"(?:client|pid|token|uid)" => \(integer\) \d+', said)

    def check(self):
        assert self.state() == self.before
        assert re.fullmatch(r":[1-9]\d*", self.ask("VALID b"))
        assert [process.poll() for process in (self.command, self.raw, *self.waiters)] == [None] * 5

    def release(self):
        self.check()
        self.command.communicate()
        assert self.command.returncode == 0
        assert self.ask("UNLOCK b") == ":0"
        self.machine.run("systemctl", "stop", "job.service")
        for name, waiter in zip("abc", self.waiters):
            assert waiter.communicate(timeout=harness.PATIENCE)[0] == f"{name}\n"
        self.raw.communicate()
