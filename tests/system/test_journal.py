# SPDX-License-Identifier: Apache-2.0
"""The log as entries of a real systemd-journald, which runs in a mount namespace of its own, without a booted systemd."""

import json
import os
import shutil
import signal
import subprocess

import pytest

import harness
from journald import DAEMON, JOURNALD, NAMESPACE

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a journald"),
              pytest.mark.skipif(not os.path.exists(JOURNALD), reason="there is no systemd-journald")]

INIT = f"""
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal /run/log/journal /var/log/journal
mount -t tmpfs tmpfs /var/log/journal
ln -s /run/systemd/journal.{NAMESPACE}/socket /run/systemd/journal/socket
while {JOURNALD} {NAMESPACE} || :; do sleep 0.1; done # it is restarted when it ends
"""


class Journal:
    def __init__(self, folder):
        self.folder = folder
        self.process = harness.spawn(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", INIT],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.wait_until(lambda: harness.children(self.process.pid) and os.path.exists(
            f"/proc/{harness.children(self.process.pid)[0]}/root/run/systemd/journal.{NAMESPACE}/socket"), "journald")
        self.init = harness.children(self.process.pid)[0]

    @property
    def journald(self):
        def found():
            return [pid for pid in harness.children(self.init) if "journal" in open(f"/proc/{pid}/comm").read()]

        return harness.wait_until(found, "journald")[0]

    def inside(self, *argv):
        return ["nsenter", "-t", str(self.init), "-m", "-p", "--", *argv]

    def start(self, *argv, **options):
        """A standalone daemon that logs there."""
        self.socket = os.path.join(self.folder, "socket")
        conf = {"daemon.socket": self.socket, "daemon.rundir": self.folder, "daemon.statedir": self.folder} | options
        words = [w for key, value in conf.items() for w in ("-o", f"{key}={value}")]
        self.daemon = harness.spawn(self.inside("sh", "-c", DAEMON, "sh", harness.program("lockbrokerd"), "--standalone", *argv, *words),
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        harness.wait_until(lambda: self.entries("LOCKBROKER_EVENT=serves"), "an entry")

    def entries(self, *matches):
        done = harness.run(self.inside("journalctl", "--namespace", NAMESPACE, "-o", "json", "--no-pager", *matches))
        return [json.loads(line) for line in done.stdout.split("\n") if line]

    def stderr(self):
        return harness.read_source(f"/proc/{self.init}/root/run/stderr")


@pytest.fixture
def journal():
    folder = harness.fast_tmp("lockbroker.")
    made = Journal(folder)
    yield made
    harness.end(made.process, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def client(journal):
    return harness.Client(journal.socket)


def test_each_field_of_a_line_is_a_field_of_its_entry(journal):
    journal.start()
    (entry,) = journal.entries("LOCKBROKER_EVENT=serves")
    assert entry["LOCKBROKER_SOCKET"] == journal.socket and entry["LOCKBROKER_STANDALONE"] == "1"
    assert entry["MESSAGE"].endswith(f'standalone=1 version={entry["LOCKBROKER_VERSION"]}')
    assert (entry["PRIORITY"], entry["SYSLOG_IDENTIFIER"], entry["_TRANSPORT"]) == ("6", "lockbrokerd", "journal")
    assert journal.stderr() == ""


def test_no_name_and_no_text_looks_like_a_field(journal):
    """And holds are logged there without being asked for."""
    journal.start()
    name = 'a\u2028"\\=LOCKBROKER_EVENT=session_lost MESSAGE=x'
    with client(journal) as c:
        token = c.call("LOCK", name, "DATA", name)
        c.call("UNLOCK", name)
    (entry,) = harness.wait_until(lambda: journal.entries("LOCKBROKER_EVENT=released"), "the entry")
    assert entry["LOCKBROKER_NAME"] == entry["LOCKBROKER_DATA"] == name and entry["LOCKBROKER_TOKEN"] == str(token)
    assert entry["LOCKBROKER_WHY"] == "released" and int(entry["LOCKBROKER_HELD_MS"]) >= 0
    assert not journal.entries("LOCKBROKER_EVENT=session_lost")


def test_a_journal_that_stands_still_gets_in_order_what_there_was_room_for_and_how_much_there_was_not(journal):
    """And clients wait for none of it."""
    journal.start()
    journald = journal.journald
    os.kill(journald, signal.SIGSTOP)
    try:
        with client(journal) as c:
            for _ in range(400):
                assert c.call("LOCK", "orders/" + "x" * 250, "DATA", "y" * 250)
                c.call("UNLOCK", "orders/" + "x" * 250)
    finally:
        os.kill(journald, signal.SIGCONT)
    harness.wait_until(lambda: journal.entries("LOCKBROKER_EVENT=unread"), "the count")
    (unread,) = journal.entries("LOCKBROKER_EVENT=unread")
    lines = journal.entries("LOCKBROKER_EVENT=released")
    assert len(lines) + int(unread["LOCKBROKER_LINES"]) == 400 and len(lines) > 100
    tokens = [int(e["LOCKBROKER_TOKEN"]) for e in lines]
    assert tokens == sorted(tokens)
    assert journal.stderr() == ""


def test_a_journal_that_is_restarted_misses_nothing(journal):
    journal.start()
    with client(journal) as c:
        before = journal.journald
        os.kill(before, signal.SIGKILL)
        # What lies in its socket when it dies is lost: of systemd's own journald, process 1 keeps the socket.
        harness.wait_until(lambda: not harness.runs(before), "its end")
        assert c.call("LOCK", "a") and c.call("UNLOCK", "a") == 0
        harness.wait_until(lambda: journal.journald != before, "another journald")
        harness.wait_until(lambda: journal.entries("LOCKBROKER_EVENT=released", "LOCKBROKER_NAME=a"), "the entry")


def test_an_event_that_somebody_has_to_act_on_is_explained(journal, tmp_path):
    """By its MESSAGE_ID, which leads into the catalogue, as `journalctl -x` has it."""
    conf = tmp_path / "conf"
    conf.write_text("[locks]\n")
    journal.start("-c", str(conf))
    conf.write_text("[locks]\nlinger = 1\n")
    with harness.Client(os.path.join(journal.folder, "operator.sock")) as c:
        assert c.call("RELOAD").startswith("ERR")
    (entry,) = harness.wait_until(lambda: journal.entries("LOCKBROKER_EVENT=conf_refused"), "the entry")
    root = f"/proc/{journal.init}/root/run/catalog"
    for folder in "usr/lib/systemd/catalog", "var/lib/systemd/catalog":
        os.makedirs(os.path.join(root, folder))
    shutil.copy(os.path.join(harness.SOURCE, "conf", "lockbroker.catalog"), f"{root}/usr/lib/systemd/catalog")
    for words in ["--update-catalog"], ["--dump-catalog", entry["MESSAGE_ID"]]:
        done = subprocess.run(journal.inside("journalctl", "--root=/run/catalog", *words), check=True, capture_output=True, text=True)
    assert "Subject: The new configuration of lockbrokerd has an error" in done.stdout


def test_a_stop_logs_its_last_line(journal):
    journal.start()
    os.kill([*harness.children(journal.daemon.pid), journal.daemon.pid][0], signal.SIGTERM)
    harness.wait_until(lambda: journal.entries("LOCKBROKER_EVENT=stopped"), "the last line")
