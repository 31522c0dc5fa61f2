# SPDX-License-Identifier: Apache-2.0
"""make fleet: many daemons, as of many hosts, and a real ZooKeeper on the loopback interface. See docs/SIZING.md."""

import argparse
import json
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import time
import types

import bench
import costs
import fleet_table
import measure
import services
from services import harness

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "torture"))

import ensemble  # noqa: E402

SAFE = 1  # state of the session page (protocol/session_page.h)
SHORT = 0.4  # of T: an absence that costs no lock
READ_S = 0.2  # in which a host has read what the server had answered when it was killed
BEYOND_S = 2  # more than T: one that costs them all
PAGE = struct.Struct("=IIQQQq")
# Of one server or the sum of all: name -> what mntr calls it. (Each server of an ensemble has all znodes.)
COUNTED = {"in": "zk_packets_received", "out": "zk_packets_sent", "watches": "zk_watch_count"}
KEPT = {"znodes": "zk_znode_count", "ephemerals": "zk_ephemerals_count", "data_bytes": "zk_approximate_data_size"}
COMMANDS = 5  # of each kind, one after the other
SETTLE_S = 2  # what an unlock, or a start, leaves behind is done by then


def settle():
    time.sleep(SETTLE_S)  # nobody is told when a daemon has nothing left to do


def progress(what):
    print(f"fleet: {time.strftime('%H:%M:%S')}: {what}", file=sys.stderr, flush=True)


class Host:
    """A daemon without a keeper, and the clients that have locks or wait there."""

    def __init__(self, number, zookeeper, timeout_ms):
        self.number = number
        self.daemon = harness.Daemon(zookeeper, root="/fleet", host=f"host-{number}", wait=False, daemon__keeper=0,
                                     zookeeper__session_timeout_ms=timeout_ms)
        self.holder = self.waiter = None
        self.daemon.spawn()

    def page(self):
        """State of the session, and until when it is proven, in seconds; (0, 0) while there is no page."""
        try:
            with open(os.path.join(self.daemon.dir, "session"), "rb") as f:
                fields = f.read(PAGE.size)
        except FileNotFoundError:
            return 0, 0
        if len(fields) < PAGE.size or PAGE.unpack(fields)[2] % 2:
            return 0, 0  # it is being written
        return PAGE.unpack(fields)[4], PAGE.unpack(fields)[5] / 1e9

    def safe_since(self, proven_s):
        """Its session is safe by a proof that is younger than that one."""
        state, until_s = self.page()
        return state == SAFE and until_s > proven_s

    def take(self, neighbour):
        """A lock of its own; and another client waits for the neighbour's, once all have theirs."""
        self.holder, self.waiter = self.daemon.client(), self.daemon.client()
        self.holder.send("LOCK", f"own-{self.number}")
        self.neighbour = neighbour

    def wait(self):
        self.waiter.send("LOCK", f"own-{self.neighbour}")

    def told(self):
        """Kinds of pushes that the holder was told since the last time."""
        while not self.holder.quiet(0):
            kind, value = self.holder._value()
            if kind == b">":
                self.holder.pushes.append(value)
        kinds = [push[0] for push in self.holder.pushes]
        self.holder.pushes.clear()
        return kinds

    def let_go(self):
        for client in (self.holder, self.waiter):
            if client:
                client.close()
        self.holder = self.waiter = None


class Fleet:
    name = "fleet"

    def __init__(self, options):
        self.count, self.locks, self.seconds = options.hosts, options.locks, options.seconds
        self.timeout_ms = options.timeout_ms
        self.ensemble_too = not options.one_server
        self.figures = {}
        self.failures = []
        self.hosts, self.servers = [], []
        self.load = os.getloadavg()[0]
        harness.inherit_orphans()  # a daemon without a keeper hands over to a child of its own

    # ---- what is looked at ----

    def pids(self):
        return [host.daemon.pid for host in self.hosts]

    def counters(self):
        """Of the servers, and when: packets and watches are sums, znodes those of one."""
        at = time.monotonic()
        found = [services.Zookeeper.counters(server) for server in self.servers]
        sums = {name: sum(each.get(key, 0) for each in found) for name, key in COUNTED.items()}
        return sums | {"at": at} | {name: found[0].get(key, 0) for name, key in KEPT.items()}

    def look(self):
        """Of now; the log of transactions is that of one server."""
        return self.counters() | log_of(self.servers[0]) | {"daemons": costs.usage(self.pids())["ran"],
                                  "servers": measure.cpu_seconds([server.process.pid for server in self.servers])}

    def packets(self, before, after):
        """Of each host from one look to the next, without the heartbeats, which are 8 in each T."""
        heartbeats = (after["at"] - before["at"]) * 8000 / self.timeout_ms
        return {way: (after[way] - before[way]) / self.count - heartbeats for way in ("in", "out")}

    def add(self, section, **figures):
        self.figures.setdefault(section, {}).update(figures)
        progress(f"{section}: " + ", ".join(f"{k} {v:,.6g}" for k, v in figures.items()))

    def await_safe(self, proven=None):
        """Until each host's session is safe by a younger proof than that. How long it took."""
        began = time.monotonic()
        waiting = list(self.hosts)

        def look():  # at one that is not safe, and no further: all hosts need the cores now
            while waiting and waiting[-1].safe_since(proven[waiting[-1]] if proven else 0):
                waiting.pop()
            return not waiting

        harness.wait_until(look, lambda: f"{len(waiting)} sessions to be safe", patience=600)
        return time.monotonic() - began

    # ---- what happens ----

    def start(self, section, zookeeper):
        began = time.monotonic()
        for number in range(self.count):
            self.hosts.append(Host(number, zookeeper, self.timeout_ms))
        spawned = time.monotonic() - began
        self.await_safe()
        self.add(section, spawned_s=spawned, all_safe_s=time.monotonic() - began)
        for host in self.hosts:
            host.daemon.wait_ready()

    def idle(self, section):
        settle()
        before, after, _ = harness.over(max(self.seconds / 2, self.timeout_ms / 1000), self.look)  # several heartbeats
        took = after["at"] - before["at"]
        each = took * self.count
        self.add(section, **{f"idle_{way}_s": (after[way] - before[way]) / each for way in ("in", "out")},
                 idle_daemon_us_s=(after["daemons"] - before["daemons"]) * 1e6 / each,
                 idle_server_us_s=(after["servers"] - before["servers"]) * 1e6 / each,
                 **{f"idle_{name}_s": (after[name] - before[name]) / each for name in ("transactions", "log_bytes")},
                 **{name: after[name] for name in (*KEPT, "watches")})

    def memory(self, section, empty_bytes=None):
        """By how much the heap has grown is told where it was looked at before there were hosts."""
        self.add(section, pss_bytes=statistics.mean(map(pss_bytes, self.pids())),
                 rundir_bytes=statistics.mean(folder_bytes(host.daemon.dir) for host in self.hosts),
                 server_bytes=statistics.mean(measure.memory_bytes(server.process.pid) for server in self.servers))
        used = heap_bytes(self.servers[0]) if empty_bytes else None
        if used:
            self.add(section, heap_bytes=used - empty_bytes)

    def hand_on(self, section):
        """A client of each host asks for one of the locks, again and again, and gives it back at once."""
        argv = [harness.program("tests/bench-fleet"), str(self.locks), str(min(5, self.seconds / 4)), str(self.seconds),
                *[host.daemon.socket for host in self.hosts]]
        with harness.spawn(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as load:
            begun = load.stdout.readline()
            before = self.look()
            line = load.stdout.readline()
            after = self.look()
        if begun.strip() != "begin" or load.returncode:
            self.failures.append(f"hand-offs: {'two holders of a lock' if line else 'the load failed'}: {line[:200]}")
            return
        found = json.loads(line)
        each = max(1, found["hand_offs"])
        fair = max(1, found["pairs"]) / self.count
        self.add(section, hand_offs_s=found["hand_offs"] / self.seconds, pairs_s=found["pairs"] / self.seconds,
                 **{f"hand_off_{way}": (after[way] - before[way]) / each for way in ("in", "out")},
                 hand_off_daemon_us=(after["daemons"] - before["daemons"]) * 1e6 / each,
                 hand_off_server_us=(after["servers"] - before["servers"]) * 1e6 / each,
                 **{f"hand_off_{name}": (after[name] - before[name]) / each for name in ("transactions", "log_bytes")},
                 grants_least=min(found["by_target"]), grants_most=max(found["by_target"]), grants_fair=fair,
                 wait_p50_ms=found["p50_us"] / 1e3, wait_p99_ms=found["p99_us"] / 1e3, hand_off_us=found["hand_off_us"],
                 queued_znodes=after["znodes"])

    def hold(self):
        """Each host has a lock, and each has a client that waits for its neighbour's."""
        for host in self.hosts:
            host.take((host.number + 1) % self.count)
        for host in self.hosts:
            answer = host.holder.reply()
            assert isinstance(answer, int), f"no lock: {answer}"
        for host in self.hosts:
            host.wait()
        for host in self.hosts:
            harness.wait_queued(host.daemon, f"own-{host.neighbour}", 1)

    def let_go(self):
        for host in self.hosts:
            host.let_go()

    def crowd(self):
        """One lock that all other hosts wait for: what its queue costs, and what `who` takes."""
        before = self.counters()
        clients = [host.daemon.client() for host in self.hosts]
        clients[0].call("LOCK", "crowd")
        for client in clients[1:]:
            client.send("LOCK", "crowd")
        zookeeper = self.servers[0]
        harness.wait_until(lambda: services.Zookeeper.counters(zookeeper)["zk_ephemerals_count"] >=
                           before["ephemerals"] + self.count, "all to wait")
        settle()
        after = self.counters()
        self.add("questions", **self.command("who", "crowd"),
                 **{f"waiter_{way}": count for way, count in self.packets(before, after).items()},
                 **{f"waiter_{name}": (after[name] - before[name]) / self.count for name in ("znodes", "watches")})
        for client in clients:
            client.close()

    def command(self, word, *more):
        """How long it takes, the median of some times, and how many packets the servers get for it."""
        def run():
            began = time.monotonic()
            subprocess.run([harness.program("lockbroker"), "-S", self.hosts[-1].daemon.socket, word, *more], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=600)
            return time.monotonic() - began

        before = self.counters()
        took = [run() for _ in range(COMMANDS)]
        packets = self.packets(before, self.counters())["in"] * self.count / COMMANDS
        return {f"{word}_s": statistics.median(took), f"{word}_in": packets}

    def ask(self):
        self.add("questions", **self.command("hosts"), **self.command("ls", "--all"))

    def outcome(self):
        """What holders were told: locks lost, and hosts that were warned."""
        told = [host.told() for host in self.hosts]
        return {"lost": sum(kinds.count("lost") for kinds in told), "warned": sum("jeopardy" in kinds for kinds in told)}

    def absence(self, seconds):
        """The server is killed, and begins to start that much later: when it was killed, when it served, and each host's last
        proof before that."""
        server = self.servers[0]
        server.kill()
        killed = time.monotonic()
        time.sleep(READ_S)
        proven = {host: host.page()[1] for host in self.hosts}
        time.sleep(max(0, seconds - READ_S))  # for so long the server is away
        server.start()
        return killed, time.monotonic(), proven

    def start_seconds(self):
        """What a start of the server takes while all hosts ask for it."""
        killed, served, proven = self.absence(0)
        self.await_safe(proven)
        return served - killed - READ_S

    def away(self, section, seconds):
        """As long as said, or as a start takes, if that is longer; each host has a lock then, or had."""
        killed, served, proven = self.absence(seconds)
        server = self.servers[0]
        kept = {"snapshot_bytes": snapshot_bytes(server), "snapshot_znodes": self.counters()["znodes"]}
        self.await_safe(proven)
        self.add(section, away_s=served - killed, all_safe_s=time.monotonic() - served, **kept)
        self.add(section, **self.outcome())
        if self.figures[section]["lost"]:
            self.again(section)

    def again(self, section):
        """All ask for their locks again: how long until each host has a lock."""
        began = time.monotonic()
        self.let_go()
        self.hold()
        self.add(section, all_locked_s=time.monotonic() - began)

    def restart_daemons(self, section):
        """One after the other hands over to a new process, with all that it has."""
        before = self.counters()
        paused = []
        began = time.monotonic()
        for host in self.hosts:
            one = time.monotonic()
            host.daemon.hand_over()
            paused.append(time.monotonic() - one)
        took = time.monotonic() - began
        self.await_safe()
        after = self.counters()
        self.add(section, took_s=took, each_ms=statistics.median(paused) * 1000,
                 **{f"each_{way}": count for way, count in self.packets(before, after).items()}, **self.outcome())

    def restart_servers(self, section, servers):
        """Followers first, the leader last, as it is done by hand."""
        began = time.monotonic()
        leaders = []
        for server in sorted(servers.servers, key=lambda each: each.mode() == "leader"):
            server.stop()
            leaders.append(servers.wait_led(without=server))
            server.start()
            servers.wait_whole()
        self.await_safe()
        self.add(section, took_s=time.monotonic() - began, longest_without_leader_s=max(leaders), **self.outcome())

    def end_hosts(self):
        self.let_go()
        for host in self.hosts:
            if host.daemon.process and host.daemon.process.poll() is None:
                host.daemon.signal(signal.SIGTERM)
        for host in self.hosts:
            complaint = host.daemon.end()
            if complaint:
                self.failures.append(complaint)
        self.hosts = []

    # ---- all of it ----

    def with_one_server(self):
        server = services.Zookeeper()
        self.servers = [server]
        progress(f"{server.version} serves")
        empty_bytes = heap_bytes(server)
        self.start("start", server)
        self.idle("idle")
        self.memory("idle", empty_bytes)
        self.hand_on("hand-offs")
        self.crowd()
        start_s = self.start_seconds()
        self.hold()
        self.ask()
        self.away("away for 0.4 T", SHORT * self.timeout_ms / 1000 - start_s)
        self.restart_daemons("restart of all daemons")
        self.away("away for longer than T", self.timeout_ms / 1000 + BEYOND_S)
        self.end_hosts()
        server.end()

    def with_three_servers(self):
        direct = types.SimpleNamespace(link=lambda port, **_: types.SimpleNamespace(port=port))
        servers = ensemble.Ensemble(direct, 2000, container_check_ms=60000)
        self.servers = servers.servers
        try:
            progress("three servers serve")
            self.start("three servers", servers)
            self.idle("three servers")
            self.memory("three servers")
            self.hand_on("three servers")
            self.hold()
            self.restart_servers("restart of three servers", servers)
            self.end_hosts()
        finally:
            self.end_hosts()
            servers.end()
            self.servers = []

    def run(self, _):
        self.with_one_server()
        if self.ensemble_too:
            self.with_three_servers()

    def end(self):
        self.end_hosts()
        for server in self.servers:
            server.end()


def pss_bytes(pid):
    """Memory of the process, with its part of what it shares with others."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return 1024 * int(re.search(r"^Pss: +(\d+) kB", f.read(), re.M)[1])


def folder_bytes(folder):
    return sum(os.stat(os.path.join(folder, name)).st_blocks * 512 for name in os.listdir(folder))


def heap_bytes(server):
    """Of all objects in use, where a JDK is installed; otherwise None."""
    try:
        told = subprocess.run(["jcmd", str(server.process.pid), "GC.class_histogram"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return None
    found = re.search(r"^Total +\d+ +(\d+)", told, re.M)
    return int(found[1]) if found else None


def log_of(server):
    """Its transactions, and bytes of its log without what is only allocated."""
    folder = f"{server.dir}/data/version-2"
    written = 0
    for name in os.listdir(folder):
        if name.startswith("log."):
            with open(os.path.join(folder, name), "rb") as f:
                written += len(f.read().rstrip(b"\0"))
    return {"transactions": server.zxid() & 0xffffffff, "log_bytes": written}


def snapshot_bytes(server):
    """Of the newest snapshot: the server wrote one when it began to serve the last time."""
    folder = f"{server.dir}/data/version-2"
    newest = max((name for name in os.listdir(folder) if name.startswith("snapshot.")), key=lambda n: int(n[9:], 16))
    return os.path.getsize(os.path.join(folder, newest))


def write(fleet, directory):
    os.makedirs(directory, exist_ok=True)
    found = {"hosts": fleet.count, "locks": fleet.locks, "seconds": fleet.seconds, "timeout_ms": fleet.timeout_ms,
             "machine": bench.machine(fleet.load), "at": time.strftime("%Y-%m-%d %H:%M"),
             "version": services.first_line(harness.program("lockbrokerd"), "--version"),
             "failures": fleet.failures, "figures": fleet.figures}
    path = os.path.join(directory, f"{fleet.count}.json")
    with open(path, "w") as f:
        json.dump(found, f, indent=1)
    print(fleet_table.both(directory))
    print("".join(f"FAILED: {failure}\n" for failure in fleet.failures) + f"\nResults: {os.path.relpath(path)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=harness.build_dir())
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--locks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20, help="of the load (20)")
    parser.add_argument("--timeout-ms", type=int, default=15000, help="T, the session timeout (15000)")
    parser.add_argument("--one-server", action="store_true", help="without the ensemble of three")
    parser.add_argument("--results", metavar="DIR", help="where they are written, instead of BUILD/fleet")
    options = parser.parse_args()
    options.results = options.results or os.path.join(os.path.abspath(options.build), "fleet")
    options.only = None
    return bench.conduct(Fleet, options, write)


if __name__ == "__main__":
    sys.exit(main())
