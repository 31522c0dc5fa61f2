# SPDX-License-Identifier: Apache-2.0
"""Hand-offs between hosts that are some way from the servers of their lock service: each has a way of its own (way.c)."""

import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile

import measure
import services
import targets
from measure import Row

COUNTS, WAYS_US = (2, 4, 8), (1000, 200)
SECONDS = 1
JVM_SECONDS = 3
LEFT_OUT = 77  # the exit status of netem.py where a kernel lacks it
# How many ways a hand-off takes, from the release by one host to the grant for the next.
TAKES = {"lockbroker": 2, targets.RECIPE: 4, targets.ETCD: 2, targets.CURATORS: 4}


def counts(way_us, delivered_us):
    """Whether a figure was measured over that way: the machine may have been too busy to deliver in time."""
    return way_us <= delivered_us <= way_us * 1.05 + 20


class Hosts:
    """Hosts with a way each to that service, and what measures hand-offs between them."""

    def __init__(self, label, port, count, way_us, prefix=""):
        self.label, self.count = label, count
        self.ways = [services.Way(port, way_us) for _ in range(count)]
        self.targets = [prefix + way.address for way in self.ways]

    def end(self):
        for way in self.ways:
            way.end()

    def measure(self, hold_us):
        """By one bench-load, which knows the instant of each release."""
        row = Row(self.label, "etcd" if self.label == targets.ETCD else "recipe", self.targets)
        return row.measure(self.count, "one", SECONDS, more=held(hold_us))


class Ours(Hosts):
    """A daemon on each host."""

    def __init__(self, bench, label, port, count, way_us):
        super().__init__(label, port, count, way_us)
        self.bench = bench
        self.daemons = [services.Lockbroker(way, root=f"/bench-ways-{count}-{way_us}") for way in self.ways]

    def measure(self, hold_us):
        row = Row(self.label, "lockbroker", [d.target for d in self.daemons], [p for d in self.daemons for p in d.pids])
        return row.measure(self.count, "one", SECONDS, more=held(hold_us))

    def end(self):
        for daemon in self.daemons:
            self.bench.complain(daemon.end())
        super().end()


class Jvms(Hosts):
    """A JVM on each host. They do not begin and end together, so their rates do not add up: only hand-offs are shown."""

    def __init__(self, program, *where):
        super().__init__(*where)
        self.program = program

    def measure(self, hold_us):
        rows = [Row(self.label, "", [target], (), self.program) for target in self.targets]
        with tempfile.NamedTemporaryFile() as released, concurrent.futures.ThreadPoolExecutor(self.count) as pool:
            released.truncate(16)
            runs = [pool.submit(row.measure, 1, "one", JVM_SECONDS, JVM_SECONDS, more=[str(hold_us), released.name])
                    for row in rows]
            medians_us = [run.result()["hand_off_us"] for run in runs]
        return {"hand_off_us": statistics.median(medians_us)}


def held(hold_us):
    return ["--hold", str(hold_us)] if hold_us else []


def case_of(count, way_us, hold_us):
    held_for = f"held {hold_us / 1000:g} ms" if hold_us else "released at once"
    return f"{count} x 1, {way_us / 1000:g} ms each way, {held_for}"


def add(bench, hosts, count, way_us, hold_us):
    """A figure counts if the median of each way's delays was right."""
    case = case_of(count, way_us, hold_us)
    for way in hosts.ways:
        way.delivered()
    figures = measure.attempt(bench, f"ways, {hosts.label}, {case}", lambda: hosts.measure(hold_us))
    if not figures:
        return
    delivered = [way.delivered() for way in hosts.ways]
    add_figures(bench, hosts.label, case, way_us, figures | {f"way_{p}": max(d[p] for d in delivered) for p in ("p50_us", "p99_us")})


def add_figures(bench, label, case, way_us, figures):
    if not counts(way_us, figures["way_p50_us"]):
        bench.results.notes.append(f"ways, {label}, {case}: a round does not count, a way took {figures['way_p50_us']:.0f} us")
        return
    shown = {word: figures[word] for word in ("pairs_s", "hand_off_us", "way_p50_us", "way_p99_us") if word in figures}
    if "hand_off_us" in shown:
        shown["rest_us"] = shown["hand_off_us"] - TAKES[label] * way_us
    bench.results.add("ways", case, label, shown)


def etcd(bench):
    try:
        return bench.serve(services.Etcd)
    except services.Missing as e:
        bench.results.notes.append(f"{targets.ETCD}: left out, {e}")
        return None


def curator(bench):
    try:
        if bench.quick:
            raise services.Missing("it starts too slowly for QUICK")
        return services.curator()
    except services.Missing as e:
        bench.results.notes.append(f"{targets.CURATORS}: left out, {e}")
        return None


def by_netem(bench, count, way_us):
    """A row once more, by the kernel's own delay, in a network of its own; where the kernel has that, and root asks for it."""
    case = f"{case_of(count, way_us, 4 * way_us)}, netem"
    try:
        done = subprocess.run(["unshare", "--net", sys.executable, "-B", os.path.join(services.HERE, "netem.py"), str(count),
                               str(way_us), str(bench.rounds)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=measure.LOAD_PATIENCE)
    except subprocess.TimeoutExpired:
        bench.failed(f"ways, {case}: it did not end")
        return
    for label, figures in map(json.loads, done.stdout.splitlines()):
        add_figures(bench, label, case, way_us, figures)
    complaint = done.stderr.strip()[-400:]
    if done.returncode == LEFT_OUT or done.returncode and os.geteuid():
        bench.results.notes.append(f"ways, {case}: left out, {complaint}")
    elif done.returncode:
        bench.failed(f"ways, {case}: {complaint}")


def ways(bench):
    """All rows in turn, round after round; the JVMs, which start slowly, once, with locks that are held."""
    other, program = etcd(bench), curator(bench)
    for way_us in WAYS_US[:1] if bench.quick else WAYS_US:
        for count in COUNTS[:1] if bench.quick else COUNTS:
            all_hosts = []
            try:
                all_hosts.append(Hosts(targets.RECIPE, bench.zookeeper.port, count, way_us))
                all_hosts.append(Ours(bench, "lockbroker", bench.zookeeper.port, count, way_us))
                if other:
                    all_hosts.append(Hosts(targets.ETCD, other.target.rpartition(":")[2], count, way_us, "http://"))
                for _ in range(bench.rounds):
                    for hold_us in (4 * way_us, 0):
                        for hosts in all_hosts:
                            add(bench, hosts, count, way_us, hold_us)
                if program:
                    all_hosts.append(Jvms(program, targets.CURATORS, bench.zookeeper.port, count, way_us))
                    add(bench, all_hosts[-1], count, way_us, 4 * way_us)
            finally:
                for hosts in all_hosts:
                    hosts.end()
    if not bench.quick:
        by_netem(bench, COUNTS[0], WAYS_US[0])
