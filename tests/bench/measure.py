# SPDX-License-Identifier: Apache-2.0
"""One measurement each: a load that is run, and what it cost the service."""

import contextlib
import json
import os
import re
import subprocess
import time

import services
from services import harness

TICKS = os.sysconf("SC_CLK_TCK")
LOAD_PATIENCE = 120


class Failed(Exception):
    """A load that said no: its row has no figure, and the run fails in the end."""


def attempt(bench, what, action):
    """Its result; None when it failed, which is noted and fails the run in the end."""
    try:
        return action()
    except (Failed, services.Missing, OSError, AssertionError, RuntimeError, harness.Closed, subprocess.SubprocessError) as e:
        bench.failed(f"{what}: {e}")
        return None


def add(bench, section, case, row, figures):
    if figures is not None:
        bench.results.add(section, case, row, figures)


@contextlib.contextmanager
def serving(bench, *args, **conf):
    """A daemon, and a list for its clients; they end with the block."""
    daemon, clients = services.Lockbroker(*args, **conf), []
    try:
        yield daemon, clients
    finally:
        for client in clients:
            client.close()
        bench.complain(daemon.end())


def cpus_to_pin():
    """The last one that we may use: the first is where interrupts go."""
    return {max(os.sched_getaffinity(0))}


def pin(pids, cpus):
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), cpus)


@contextlib.contextmanager
def beside(pids, pinned, cpus=None):
    """Meanwhile, the service is on the core of a pinned load, or on those."""
    everywhere = os.sched_getaffinity(0)
    if pinned:
        pin(pids, cpus or cpus_to_pin())
    try:
        yield
    finally:
        if pinned:
            pin(pids, everywhere)


def cpu_seconds(pids):
    """Theirs, and that of their children that have ended."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            ticks += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15]))
    return ticks / TICKS


def memory_bytes(pid):
    """What the process alone keeps in memory."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return 1024 * sum(int(n) for n in re.findall(r"^Private_\w+: +(\d+) kB", f.read(), re.M))


def wake_ups(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M).group(1))


def run(argv, pinned, during=None):
    """Runs a load to its end: the figures of its one line of JSON. during() is called once it runs, with its pid."""
    prefix = ["taskset", "-c", str(min(cpus_to_pin()))] if pinned else []
    process = harness.spawn([*prefix, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    try:
        if during:
            during(process.pid)
        out, complaints = process.communicate(timeout=LOAD_PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failed(f"{argv[0]} did not end") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode:
        raise Failed(complaints.strip()[-400:] or f"{argv[0]} ended with {process.returncode}")
    return json.loads(out)


class Row:
    """A service, and how load is put on it: by bench-load with that peer, or by a program of its own."""

    def __init__(self, label, peer, targets, pids=(), program=None, few=False):
        self.label = label
        self.peer = peer
        self.targets = targets
        self.pids = list(pids)
        self.program = program
        self.few = few  # slow to start: not pinned, one round

    def argv(self, processes, names, seconds, warm, more):
        if self.program:
            return [*self.program, self.targets[0], str(processes), str(seconds), str(warm), names, *more]
        return [harness.program("tests/bench-load"), "--peer", self.peer,
                *[w for t in self.targets for w in ("--target", t)], "--processes", str(processes), "--names", names,
                "--seconds", str(seconds), "--warm", str(warm), *more]

    def measure(self, processes, names, seconds, warm=None, pinned=False, more=(), during=None):
        """The load's figures, with pairs and hand-offs per second, and the service's CPU time per pair."""
        if warm is None:
            warm = max(0.1, seconds / 8)
        with beside(self.pids, pinned):
            before, began = cpu_seconds(self.pids), time.monotonic()
            figures = run(self.argv(processes, names, seconds, warm, more), pinned, during)
            took, spent = time.monotonic() - began, cpu_seconds(self.pids) - before
        pairs = figures["pairs"]
        figures["pairs_s"] = pairs / seconds
        figures["hand_offs_s"] = figures["hand_offs"] / seconds
        if pairs and self.pids:
            # The load counted for `seconds` of what it ran; the pairs of the rest cost as much.
            figures["cpu_us"] = spent * 1e6 / (pairs * min(took, seconds + warm) / seconds)
        return figures


def connect(daemon, version=2):
    """A client that sits out a full queue of the listener."""
    while True:
        try:
            return daemon.client(version)
        except BlockingIOError:
            time.sleep(0.001)  # a queue of the listener tells nobody when it has room


def pipeline(target, kind, seconds, pinned=False, during=None):
    """Requests per second."""
    return float(run([harness.program("tests/bench-pipeline"), target, kind, "50", "16", str(seconds)], pinned, during))


def redis_benchmark(target, test, requests):
    done = subprocess.run([services.found("redis-benchmark"), "-s", target, "-P", "16", "-c", "50", "-n", str(requests),
                           "-t", test, "--csv"], capture_output=True, text=True, timeout=LOAD_PATIENCE)
    figures = re.findall(r'^"[^"]+","([0-9.]+)"', done.stdout, re.M)
    if done.returncode or not figures:
        raise Failed(f"redis-benchmark: {(done.stderr or done.stdout).strip()[-400:]}")
    return float(figures[0])
