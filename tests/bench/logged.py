# SPDX-License-Identifier: Apache-2.0
"""What a pair costs the daemon where holds are in the log: two daemons, one of which logs holds, measured in turn. The log of both
goes to a journal, which is a socket of this process."""

import os
import re
import shutil
import socket
import threading
import time

import costs
import measure
import services
import targets
from services import harness

# Their /run is one of their own, where the journal is this socket; their stderr is a file that systemd could have given them.
START = """
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal
ln -s "$0" /run/systemd/journal/socket
export JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2)
exec "$@"
"""
LEAD_S = 0.2
# case: peer, processes, how much longer than other loads, further words
CASES = {"1 process": ("lockbroker", 1, 1, ()), "32 processes": ("lockbroker", 32, 1, ()),
         targets.THOUSAND: ("lockbroker", 1000, 3, ("--pause", "500000")), targets.ONE_DELEGATED: ("library", 1, 3, ("--bare",))}
# Of each case, in each round of the bench.
TURNS = 3


class Journal(threading.Thread):
    """Takes all entries, and counts those about holds."""

    def __init__(self):
        super().__init__(daemon=True)
        self.dir = harness.fast_tmp("journal.")
        self.path = os.path.join(self.dir, "socket")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.holds = 0
        self.start()

    def run(self):
        while entry := self.socket.recv(65536):
            self.holds += bool(re.search(rb"LOCKBROKER_EVENT\n.{8}(released|delegated)\n", entry, re.S))

    def end(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"", self.path)
        self.join()
        self.socket.close()
        shutil.rmtree(self.dir)


class Logging(services.Lockbroker):
    def __init__(self, grants, **options):
        self.journal = Journal()
        super().__init__(log__grants=grants, **options)

    def command(self):
        # In the foreground the log is for people.
        words = [word for word in super().command() if word != "--foreground"]
        return ["unshare", "--mount", "sh", "-ec", START, self.journal.path, *words]

    def end(self):
        complaint = super().end()
        self.journal.end()
        return complaint


def cost(daemon, peer, processes, seconds, more=()):
    """Microseconds of the daemon's CPU for each pair while the load is at work, and the load's pairs a second."""
    looks = []

    def look():
        return time.monotonic(), int(daemon.info("stats")["grants_total"]), costs.usage(daemon.pids)["ran"]

    def connected(load):
        costs.must_run(load)
        return int(daemon.info("clients")["connected_clients"]) > processes

    def during(load):
        harness.wait_until(lambda: connected(load), "the load to be connected")
        costs.lead(LEAD_S)
        looks.extend(harness.over(seconds, look)[:2])

    row = measure.Row("", peer, [daemon.target], daemon.pids)
    pairs_s = row.measure(processes, "own", LEAD_S + seconds, warm=0.1, pinned=True, more=more, during=during)["pairs_s"]
    took, pairs, ran = (now - then for then, now in zip(*looks))
    if "--bare" in more:  # the daemon hears of none
        pairs = pairs_s * took
    if not pairs:
        raise costs.TooSlow("there was not one pair while the load was looked at")
    return {"cpu_us": ran * 1e6 / pairs, "pairs_s": pairs_s}


def turn(daemons, case, seconds, further=False):
    """A turn of both; the one that comes first is another one each time."""
    peer, processes, longer, more = CASES[case]
    found = {}
    for row, daemon in sorted(daemons[peer].items(), reverse=further):
        found[row] = cost(daemon, peer, processes, seconds * longer, more)
    if "--bare" not in more:
        found[targets.LOGGED]["of_off"] = found[targets.LOGGED]["cpu_us"] / found[targets.NOT_LOGGED]["cpu_us"]
    return found


def compare(bench, daemons):
    for peer in daemons.values():  # what is logged at once is over before a figure counts
        for daemon in peer.values():
            cost(daemon, "lockbroker", 1, bench.seconds)
    for i in range(bench.rounds * TURNS):
        for case in CASES:
            try:
                for row, figures in turn(daemons, case, bench.seconds, i % 2 == 1).items():
                    bench.results.add("logged", case, row, figures)
            except costs.TooSlow as e:
                bench.results.notes.append(f"holds in the log, {case}: a turn is left out, {e}")
    check(bench, daemons)


def check(bench, daemons):
    """A row whose holds are not where they should be shows nothing."""
    for peer in daemons.values():
        for row, daemon in peer.items():
            if (row == targets.LOGGED) != (daemon.journal.holds > 0):
                bench.failed(f"{row}: the journal has {daemon.journal.holds} holds")


def logged(bench):
    if os.geteuid() != 0 or not costs.usage([os.getpid()]):
        bench.results.notes.append("holds in the log: left out, " + (
            "this kernel does not count how long a process ran" if os.geteuid() == 0 else "only root can give a daemon a journal"))
        return
    daemons = {"lockbroker": {}, "library": {}}

    def measured():
        for peer, delegation in (("lockbroker", {}), ("library", {"locks__delegation": 1})):
            for row, grants in ((targets.LOGGED, 1), (targets.NOT_LOGGED, 0)):
                daemons[peer][row] = Logging(grants, under=bench.under, **delegation)
        compare(bench, daemons)

    try:
        measure.attempt(bench, "holds in the log", measured)
    finally:
        for peer in daemons.values():
            for daemon in peer.values():
                bench.complain(daemon.end())
