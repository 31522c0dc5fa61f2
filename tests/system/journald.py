# SPDX-License-Identifier: Apache-2.0
"""A systemd-journald of one's own, without a booted systemd: in namespaces of mounts and processes, and with a name of a host and
a machine's number. What a unit says there comes from processes in a cgroup of that unit's name, as the journal knows units."""

import json
import os
import shutil
import struct
import subprocess
import uuid

import pytest

import cgroup
import harness

JOURNALD = "/lib/systemd/systemd-journald"
NAMESPACE = "lockbroker"

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


class Journald:
    def __init__(self, host="here"):
        self.folder = harness.fast_tmp("lockbroker.")
        os.chmod(self.folder, 0o755)
        self.host, self.machine_id = host, uuid.uuid4().hex
        self.senders = {}
        # The first process of the namespace is the second of these; the journal reads /proc.
        self.process = harness.spawn(
            ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", INIT, "sh", host,
             self.machine_id, self.folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.init = harness.wait_until(lambda: harness.children(self.process.pid), "the namespace")[0]
        self.root = f"/proc/{self.init}/root"
        harness.wait_until(lambda: os.path.exists(f"{self.root}/run/systemd/journal.{NAMESPACE}/io.systemd.journal"), "journald")

    def inside(self, *argv):
        return ["nsenter", "-t", str(self.init), "-m", "-u", "-p", "--", *argv]

    def slices(self):
        """All units are in them."""
        return [f"{place}/lockbroker-test-{os.getpid()}-{self.process.pid}.slice" for place in cgroup.of_units()]

    def in_unit(self, unit, *argv):
        """The same, of a process of that unit."""
        paths = [f"{slice}/{unit}" for slice in self.slices()]
        for path in paths:
            os.makedirs(path, exist_ok=True)
        enter = 'for path in $1; do echo $$ > "$path/cgroup.procs" || exit; done; shift; exec "$@"'
        return ["sh", "-c", enter, "sh", " ".join(paths), *self.inside(*argv)]

    def sender(self, unit):
        if unit not in self.senders:
            self.senders[unit] = harness.spawn(self.in_unit(unit, "/usr/bin/python3", "-c", SENDER), stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, text=True)
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
        for sender in self.senders.values():
            sender.kill()
            sender.wait()
        self.process.kill()
        self.process.wait()
        for path in self.slices():
            harness.wait_until(lambda path=path: cgroup.remove(path), "the processes to go")
        shutil.rmtree(self.folder)
