#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a hand-off between hosts is spent: by timestamps in send() and recv() of the daemons, of the processes that
lock, and of the recipe's processes. See README.md, "What limits it between hosts"."""

import argparse
import os
import shutil
import statistics
import struct
import time
from unittest import mock

import measure
import services
from services import harness

ENTRY = struct.Struct("=qii48s")  # legs.c
HELD_US = 1000  # so long that the next host has learnt its position
WARM_S = 12  # of a server
EVENT, DELETE, LISTS = b"\xff" * 4, b"\0\0\0\x02", (b"\0\0\0\x08", b"\0\0\0\x0c")  # of ZooKeeper's protocol
LEGS = {"lockbroker": ["UNLOCK sent - read by the daemon", "UNLOCK read - delete sent", "delete sent - event read by the next daemon",
                       "event read - grant sent", "grant sent - read by the process"],
        "recipe": ["delete sent - event read by the next process", "event read - list sent", "list sent - answer read"]}


def entries_of(folder, since_ns):
    """(when, process, whether it was sent, bytes, how they begin), in the order of time"""
    found = []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        for ns, sent, size, head in ENTRY.iter_unpack(data):
            if not ns:
                break
            if ns > since_ns:
                found.append((ns, int(name), sent, size, head))
    return sorted(found)


def is_event(sent, head):
    return not sent and EVENT in (head[:4], head[4:8])


def grant_times(entries, daemons):
    """Of each hand-off, the instants between its legs. An event that the next daemon reads may be an earlier look at the bytes."""
    times, events = [], {}
    for ns, pid, sent, size, head in entries:
        grants = head[:1] == b":" and size > 5
        if sent and pid not in daemons and b"UNLOCK" in head:
            times, events = [ns], {}
        elif len(times) == 1 and pid in daemons and not sent and b"UNLOCK" in head:
            times.append(ns)
        elif len(times) == 2 and sent and head[4:8] == DELETE:
            times.append(ns)
        elif len(times) == 3 and pid in daemons and is_event(sent, head):
            events.setdefault(pid, ns)
        elif len(times) == 3 and pid in events and sent and grants:
            times += [events[pid], ns]
        elif len(times) == 5 and pid not in daemons and not sent and grants:
            yield [*times, ns]
            times = []


def recipe_times(entries, _):
    times, next_pid = [], 0
    for ns, pid, sent, size, head in entries:
        if sent and head[4:8] == DELETE:
            times, next_pid = [ns], 0
        elif len(times) == 1 and is_event(sent, head):
            times.append(ns)
            next_pid = pid
        elif len(times) == 2 and pid == next_pid and sent and head[4:8] in LISTS:
            times.append(ns)
        elif len(times) == 3 and pid == next_pid and not sent and size > 30 and not is_event(sent, head):
            yield [*times, ns]
            times = []


TIMES = {"lockbroker": grant_times, "recipe": recipe_times}


def legs(peer, hosts, seconds, warm_s=WARM_S):
    """Of each hand-off, the ns of its legs."""
    folder = harness.fast_tmp("legs.")
    preload = {"LD_PRELOAD": harness.program("tests/bench-legs.so"), "BENCH_LEGS": folder}
    server = services.Zookeeper()
    daemons = []
    try:
        if peer == "lockbroker":
            daemons = [services.Lockbroker(server, root="/bench-legs", env=preload) for _ in range(hosts)]
        targets = [word for target in ([d.target for d in daemons] or [server.target]) for word in ("--target", target)]
        load = [harness.program("tests/bench-load"), "--peer", peer, "--processes", str(hosts), "--names", "one",
                "--hold", str(HELD_US), *targets, "--seconds"]
        measure.run([*load, str(warm_s)], pinned=False)
        began_ns = time.monotonic_ns()
        with mock.patch.dict(os.environ, preload):
            measure.run([*load, str(seconds)], pinned=False)
        times = TIMES[peer](entries_of(folder, began_ns), [pid for d in daemons for pid in d.pids])
        return [[after - before for before, after in zip(each, each[1:])] for each in times]
    finally:
        complaints = [complaint for complaint in (daemon.end() for daemon in daemons) if complaint]
        server.end()
        shutil.rmtree(folder)
        assert not complaints, complaints


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", default=harness.build_dir())
    options.add_argument("--hosts", type=int, default=2)
    options.add_argument("--seconds", type=float, default=4)
    asked = options.parse_args()
    sweeper = harness.begin_run()
    os.environ["LOCKBROKER_BUILD"] = os.path.abspath(asked.build)
    for peer, names in LEGS.items():
        found = legs(peer, asked.hosts, asked.seconds)
        print(f"{peer}, {asked.hosts} hosts, held {HELD_US} us: us, mean and median of {len(found)} hand-offs")
        for name, each in zip([*names, "together"], [*zip(*found), [sum(all_legs) for all_legs in found]]):
            print(f"  {statistics.mean(each) / 1000:6.1f}  {statistics.median(each) / 1000:6.1f}  {name}")
    sweeper.stdin.close()


if __name__ == "__main__":
    main()
