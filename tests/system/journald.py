# SPDX-License-Identifier: Apache-2.0
"""A systemd-journald of one's own, without a booted systemd: in a namespace of mounts, with a name of a host and a number of a
machine. What a unit says there comes from processes in a cgroup of that unit's name, which is how the journal knows units."""

import json
import os
import shutil
import signal
import struct
import subprocess
import uuid

import pytest

import cgroup
import harness

JOURNALD = "/lib/systemd/systemd-journald"
NAMESPACE = "lockbroker"
SLICE = "lockbroker-test-"

INIT = f"""
set -e
hostname "$1"
printf '%s\\n' "$2" > "$3/machine-id"
mount --bind "$3/machine-id" /etc/machine-id
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal /run/log/journal /run/systemd/journald@{NAMESPACE}.conf.d /var/log/journal
mount -t tmpfs tmpfs /var/log/journal
ln -s "$2.{NAMESPACE}" "/var/log/journal/$2" # where journalctl looks that knows nothing of the namespace
ln -s /run/systemd/journal.{NAMESPACE}/socket /run/systemd/journal/socket
printf '[Journal]\\nRateLimitIntervalSec=0\\n' > /run/systemd/journald@{NAMESPACE}.conf.d/rate.conf
exec {JOURNALD} {NAMESPACE}
"""
# Sends each line of its input, which is a datagram in hexadecimal, and says when it has.
SENDER = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect("/run/systemd/journal/socket")
for line in sys.stdin:
    s.send(bytes.fromhex(line))
    print(flush=True)
"""


def need():
    """Of what it cannot do without."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a journald")
    if not os.path.exists(JOURNALD):
        pytest.skip("there is no systemd-journald")
    if not cgroup.of_units():
        pytest.skip("no cgroup can be made that systemd-journald takes for a unit")


def datagram(fields):
    made = b""
    for key, value in fields.items():
        value = value if isinstance(value, bytes) else str(value).encode()
        made += key.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"
    return made


# Its stderr is the journal's stream, as far as the daemon can tell: a file, where nothing may arrive.
DAEMON = """
exec 2>/run/stderr
export JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2)
exec "$@"
"""


class Journald:
    def __init__(self, host="here"):
        for place in cgroup.of_units():  # of runs that were killed
            for name in os.listdir(place):
                if name.startswith(SLICE) and not harness.runs(name.removeprefix(SLICE).partition("-")[0]):
                    cgroup.remove(os.path.join(place, name))
        self.folder = harness.fast_tmp("lockbroker.")
        os.chmod(self.folder, 0o755)
        self.host, self.machine_id = host, uuid.uuid4().hex
        self.senders, self.started = {}, []
        self.process = harness.spawn(["unshare", "--mount", "--uts", "sh", "-c", INIT, "sh", host, self.machine_id, self.folder],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.root = f"/proc/{self.process.pid}/root"
        harness.wait_until(lambda: os.path.exists(f"{self.root}/run/systemd/journal.{NAMESPACE}/io.systemd.journal"), "journald")

    def inside(self, *argv):
        return ["nsenter", "-t", str(self.process.pid), "-m", "-u", "--", *argv]

    def slices(self):
        """All units are in them."""
        return [f"{place}/{SLICE}{os.getpid()}-{self.process.pid}.slice" for place in cgroup.of_units()]

    def in_unit(self, unit, *argv):
        """The same, of a process of that unit."""
        paths = [f"{slice}/{unit}" for slice in self.slices()]
        for path in paths:
            os.makedirs(path, exist_ok=True)
        enter = 'for path in $1; do echo $$ > "$path/cgroup.procs" || exit; done; shift; exec "$@"'
        return ["sh", "-c", enter, "sh", " ".join(paths), *self.inside(*argv)]

    def start(self, *argv, **options):
        """A standalone daemon that logs there, as its unit does; returns its socket."""
        place = os.path.join(self.folder, "daemon")
        os.mkdir(place)
        conf = {"daemon.socket": f"{place}/socket", "daemon.rundir": place, "daemon.statedir": place} | options
        words = [word for key, value in conf.items() for word in ("-o", f"{key}={value}")]
        self.started.append(harness.spawn(
            self.in_unit("lockbrokerd.service", "sh", "-c", DAEMON, "sh", harness.program("lockbrokerd"), "--standalone", *argv, *words),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        harness.wait_until(lambda: self.entries("LOCKBROKER_EVENT=serves"), "a daemon")
        return conf["daemon.socket"]

    def sender(self, unit):
        if unit not in self.senders:
            self.senders[unit] = harness.spawn(self.in_unit(unit, "/usr/bin/python3", "-c", SENDER), stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, text=True)
            self.started.append(self.senders[unit])
        return self.senders[unit]

    def send(self, fields, unit="lockbrokerd.service"):
        """An entry with exactly these fields, from a process of that unit."""
        sender = self.sender(unit)
        sender.stdin.write(datagram(fields).hex() + "\n")
        sender.stdin.flush()
        assert sender.stdout.readline()

    def log(self, event, unit="lockbrokerd.service", **fields):
        """A line of the log, as lockbrokerd would send it."""
        self.send({"MESSAGE": f"about a lock  event={event}", "PRIORITY": 6, "SYSLOG_IDENTIFIER": "lockbrokerd",
                   "LOCKBROKER_EVENT": event} | {f"LOCKBROKER_{key.upper()}": value for key, value in fields.items()}, unit)

    def sync(self):
        """What was sent can be read."""
        subprocess.run(self.inside("journalctl", "--namespace", NAMESPACE, "--sync"), check=True, timeout=harness.PATIENCE)

    def run(self, *argv, env=None, **options):
        self.sync()
        return subprocess.run(self.inside(*argv), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=harness.PATIENCE, env=os.environ | (env or {}), **options)

    def entries(self, *matches):
        return [json.loads(line) for line in self.run("journalctl", "-o", "json", *matches).stdout.splitlines()]

    def files(self):
        """Where its journal is, as others see it."""
        return f"{self.root}/var/log/journal/{self.machine_id}.{NAMESPACE}"

    def end(self):
        for path in self.slices():
            for folder, _, _ in os.walk(path):
                with open(f"{folder}/cgroup.procs") as f:
                    for pid in f.read().split():
                        os.kill(int(pid), signal.SIGKILL)
        for process in self.started:
            process.wait()
        self.process.kill()
        self.process.wait()
        for path in self.slices():
            harness.wait_until(lambda path=path: cgroup.remove(path), "the processes to go")
        shutil.rmtree(self.folder)
