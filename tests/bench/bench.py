# SPDX-License-Identifier: Apache-2.0
"""make bench: lockbroker beside a null broker of our own and the lock services that are installed. See README.md."""

import argparse
import glob
import os
import platform
import re
import resource
import signal
import sys
import time

import measure
import report
import scenarios
import services
import targets
from measure import Row
from services import harness


def machine(load):
    with open("/proc/cpuinfo") as f:
        model = re.search(r"^model name\s*: (.*)", f.read(), re.M)
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 2**20
    return (f"{len(os.sched_getaffinity(0))} x {model.group(1) if model else platform.machine()}, {memory:.0f} GB, "
            f"Linux {platform.release()}, load before {load:.1f}")


class Bench:
    """The services of a run, what is asked of them, and the results."""

    name, parts = "bench", scenarios.ALL

    def __init__(self, options):
        self.quick = options.quick
        self.seconds = options.seconds or (0.15 if options.quick else 0.7)
        self.long_seconds = 1 if options.quick else 10
        self.rounds = options.rounds or (1 if options.quick else 3)
        self.disk = options.disk
        self.under = options.under.split()
        self.results = report.Results()
        self.services, self.rows, self.failures, self.versions = [], [], [], []
        self.redis = None
        self.beside, self.others = vars(options).get("beside"), []
        self.labels = tuple(vars(options).get("rows") or [""])
        self.began = time.monotonic()

    def progress(self, what):
        print(f"{self.name}: {time.monotonic() - self.began:4.0f} s: {what}", file=sys.stderr, flush=True)

    def failed(self, what):
        self.failures.append(what)
        self.progress(f"FAILED: {what}")

    def complain(self, complaint):
        if complaint:
            self.failed(complaint)

    def serve(self, make, *args, **options):
        self.services.append(make(*args, **options))
        if hasattr(self.services[-1], "version"):
            self.versions.append(self.services[-1].version)
        return self.services[-1]

    def peers(self, make, *rows):
        """Rows of a service that may be missing."""
        try:
            service = self.serve(make)
        except services.Missing as e:
            self.results.notes.append(f"{rows[0][0]}: left out, {e}")
            return None
        self.rows += [Row(label, peer, [service.target], service.pids) for label, peer in rows]
        return service

    def programs(self):
        """Peers that bring a load of their own."""
        for label, program, service in ((targets.JVM, services.java_library, self.broker),
                                        (targets.CURATOR, services.curator, self.zookeeper),
                                        ("kazoo, a session each", services.kazoo, self.zookeeper)):
            try:
                if self.quick:
                    raise services.Missing("it starts too slowly for QUICK")
                self.rows.append(Row(label, "", [service.target], service.pids, program(), few=True))
                if program is services.curator:
                    self.versions += [os.path.basename(j)[:-4] for j in glob.glob("/usr/share/java/curator-recipes-*.jar")]
            except services.Missing as e:
                self.results.notes.append(f"{label}: left out, {e}")

    def start_ours(self):
        """Null brokers, the server and the daemons: a row for each of their peers."""
        self.null = self.serve(services.Null, under=self.under)
        silent = self.serve(services.Null, silent=True, under=self.under)
        self.zookeeper = self.serve(services.Zookeeper, self.disk)
        self.standalone = self.serve(services.Lockbroker, under=self.under)
        self.broker = self.serve(services.Lockbroker, self.zookeeper, under=self.under)
        for label, peer, service in ((targets.NULL, "null", self.null), (targets.SILENT, "null-silent", silent),
                                     (targets.PLAIN, "lockbroker", self.standalone),
                                     (targets.ZOOKEEPER, "lockbroker", self.broker),
                                     (targets.LIBRARY, "library", self.standalone),
                                     (f"{targets.LIBRARY}, ZooKeeper", "library", self.broker)):
            self.rows.append(Row(label, peer, [service.target], service.pids))

    def start_delegating(self):
        """Daemons that leave locks with the processes that took them last."""
        self.delegating = None
        if not services.knows("locks__delegation"):
            return
        self.delegating = self.serve(services.Lockbroker, under=self.under, locks__delegation=1)
        beside = self.serve(services.Lockbroker, self.zookeeper, under=self.under, root="/bench-delegated", locks__delegation=1)
        for label, service in ((targets.DELEGATED, self.delegating), (f"{targets.DELEGATED}, ZooKeeper", beside)):
            self.rows.append(Row(label, "library", [service.target], service.pids))

    def start_another(self, build):
        """The daemon of another build, in turn with ours."""
        for label, zookeeper in ((targets.PLAIN, None), (targets.ZOOKEEPER, self.zookeeper)):
            service = self.serve(services.Lockbroker, zookeeper, build=build, root="/bench-another")
            self.others.append((f"{label}: {build}", service))
            self.rows.append(Row(self.others[-1][0], "lockbroker", [service.target], service.pids))

    def start(self):
        self.start_ours()
        self.start_delegating()
        self.eager = self.serve(services.Lockbroker, self.zookeeper, under=self.under, root="/bench-cold", locks__linger_ms=0)
        if self.beside:
            self.start_another(self.beside)
            return
        self.redis = self.peers(services.Redis, (targets.REDIS, "redis"), ("Redis, BLPOP", "blpop"))
        self.peers(services.Memcached, ("memcached, add, polled", "memcached"))
        self.peers(services.Postgres, ("PostgreSQL, advisory lock", "postgres"))
        self.peers(services.Files, (targets.FLOCK, "flock"), (targets.MUTEX, "mutex"))
        for label, peer in ((targets.RECIPE, "recipe"), ("ZooKeeper, all watch all", "herd")):
            self.rows.append(Row(label, peer, [self.zookeeper.target], self.zookeeper.pids))
        self.programs()

    def end(self):
        for service in reversed(self.services):
            self.complain(service.end())
        self.services = []

    def facts(self):
        """The machine, and the versions of what was measured; the first is the machine."""
        return [machine(self.load),
                ", ".join([services.first_line(harness.program("lockbrokerd"), "--version"), *self.versions,
                           f"Python {platform.python_version()}"]),
                f"{time.strftime('%Y-%m-%d %H:%M')}, {self.rounds} rounds of {self.seconds} s, pinned to CPU "
                f"{min(measure.cpus_to_pin())}; ZooKeeper's log {self.disk or 'in memory'}, synced"
                + (f"; daemons and null brokers under {' '.join(self.under)}" if self.under else "")]

    def run(self, only):
        self.load = os.getloadavg()[0]
        self.start()
        self.rows = [row for row in self.rows if row.label.startswith(self.labels)]
        self.progress("all started")
        for scenario in self.parts:
            if not only or scenario.__name__ in only:
                scenario(self)
                self.progress(scenario.__name__)


def text(bench):
    r = bench.results
    columns = list(scenarios.COLUMNS)
    parts = [*bench.facts(), ""]
    for section, title in (("free", "Processes where the kernel puts them"),
                           ("pinned", "Processes and service on one core")):
        if r.rows(section):
            some = [c for c in columns if r.get(section, c, targets.NULL, "pairs_s") is not None]
            parts += [title, "", report.main_table(r, section, some, targets.NULL), "",
                      report.wait_table(r, section, some), "",
                      report.ratio_table(r, section, some, targets.ZOOKEEPER), "",
                      report.cost_table(r, section, some), ""]
    for section, title in (("bare", "In memory, times not taken"), ("taken", "Until another process has the lock"),
                           ("order", "Overtaken at most, by tickets"), ("cold", "Cold and new locks, 1 process"),
                           ("requests", "What ZooKeeper does for a pair"), ("jvms", "Threads of one JVM, one lock"), ("hosts", "Hosts x waiters of each"),
                           ("ways", "Hosts some way from the servers, a process on each"),
                           ("pipelined", "Pipelined, -P 16 -c 50"), ("held", "Locks held"), ("idle", "Idle clients"),
                           ("pages", "Clients that hold a lock"),
                           ("waiters", "Waiters for one lock"),
                           ("crowd", "Bytes of a host's turn for a lock that many wait for"),
                           ("reconnections", "Reconnection with so many waited-for locks of so many contenders each"),
                           ("handover", "Hand-over to a new process"),
                           ("takeover", "From the end of a holder until the next one works"),
                           ("neighbours", "What 50 processes of one account cost another one, beside a spin"),
                           ("seen", "The page in a browser"),
                           ("logged", "Holds in the log, on one core")):
        if r.rows(section):
            parts += [title, "", report.section_table(r, section, SHOWN[section]), ""]
    lines = targets.tell(r, judges=not bench.quick)
    parts += ["Targets", "", report.table(["", "aim", "measured", ""], lines), ""]
    parts += [f"Note: {n}" for n in r.notes] + [f"FAILED: {f}" for f in bench.failures]
    return "\n".join(parts)


# metric: head, digits
SHOWN = {
    "bare": {"pairs_s": ("pairs/s", 0), "pair_ns": ("ns of a core a pair", 0)},
    "taken": {"p50_us": ("us: median", 1), "p99_us": ("99 %", 1)},
    "order": {"overtaken": ("times", 0), "pairs_s": ("pairs/s", 0)},
    "cold": {"p50_us": ("us: median", 0), "p99_us": ("99 %", 0)},
    "requests": {"packets_per_pair": ("packets", 3), "transactions_per_pair": ("transactions", 3),
                 "fsyncs_per_pair": ("fsyncs", 3), "zookeeper_cpu_us": ("CPU us in all", 0),
                 "zookeeper_cpu_us_per_pair": ("a pair", 1), "cpu_us": ("the service's", 1), "pairs_s": ("pairs/s", 0)},
    "jvms": {"pairs_s": ("pairs/s", 0), "p50_us": ("us: median", 0), "p99_us": ("99 %", 0)},
    "hosts": {"pairs_s": ("pairs/s", 0), "hand_offs_s": ("hand-offs/s", 0), "hand_off_us": ("us each", 0),
              "share_least": ("least share", 2), "share_most": ("most", 2), "p50_us": ("us: median", 0),
              "p99_us": ("99 %", 0), "longest_us": ("longest", 0), "server_us": ("core us a pair: server", 0),
              "service_us": ("daemons", 0), "load_us": ("load", 0), "idle_us": ("idle", 0),
              "service_waits": ("daemons' wake-ups", 1), "load_waits": ("the load's", 1)},
    "ways": {"hand_off_us": ("us a hand-off", 0), "rest_us": ("beyond its ways", 0), "pairs_s": ("pairs/s", 0),
             "way_p50_us": ("us a way: median", 0), "way_p99_us": ("99 %", 0)},
    "pipelined": {"requests_s": ("requests/s", 0)},
    "held": {"pairs_s": ("pairs/s", 0), "p50_us": ("us: median", 1), "bytes_per_lock": ("bytes a lock", 0)},
    "idle": {"pairs_s": ("pairs/s", 0), "p50_us": ("us: median", 1), "bytes_per_client": ("bytes a client", 0),
             "wake_ups_s": ("wake-ups/s", 1)},
    "pages": {"bytes_per_client": ("bytes a client", 0)},
    "waiters": {"pairs_s": ("pairs/s of another", 0), "p50_us": ("us: median", 1), "hand_off_us": ("us a hand-off", 2),
                "bytes_per_waiter": ("bytes a waiter", 0)},
    "crowd": {"join_bytes": ("bytes: to join", 0), "next_bytes": ("to be second", 0), "hand_off_bytes": ("the hand-off", 0),
              "release_bytes": ("the release", 0)},
    "reconnections": {"backlog_s": ("s to list all", 2), "proven_ms": ("ms until proven", 0), "found_s": ("s until all found", 2),
                      "drops": ("drops", 0), "jeopardies": ("jeopardies", 0), "megabytes": ("MB", 2)},
    "neighbours": {"p50_us": ("us: median", 0), "p99_us": ("99 %", 0), "of_p50": ("of the spin's: median", 2),
                   "of_p99": ("99 %", 2), "refused": ("refused", 0), "lost": ("lost", 0), "back_s": ("s until memory is back", 1)},
    "seen": {"appears_ms": ("ms until a lock appears: median", 0), "appears_most_ms": ("at most", 0),
             "frame_ms": ("ms a frame: median", 0), "frame_p99_ms": ("99 %", 0)},
    "logged": {"pairs_s": ("pairs/s", 0), "cpu_us": ("us of the daemon's CPU a pair", 4), "of_off": ("of the pair that is not logged", 3)},
    "takeover": {"takeover_ms": ("ms: median", 1), "takeover_most_ms": ("at most", 1), "turns": ("turns", 0),
                 "kept_s": ("kept for more than s", 0), "holders": ("holders at work then", 0)},
    "handover": {"paused_ms": ("ms paused", 1), "unanswered_ms": ("ms without an answer", 1)},
}


def write(bench, directory):
    os.makedirs(directory, exist_ok=True)
    told = text(bench)
    with open(os.path.join(directory, "results.txt"), "w") as f:
        f.write(told + "\n")
    bench.results.write_csv(os.path.join(directory, "results.csv"), bench.facts())
    report.write_svg(bench.results, os.path.join(directory, "results.svg"), "free",
                     {c: names == "one" for c, (_, names) in scenarios.COLUMNS.items()}, bench.facts())
    with open(os.path.join(directory, "results.md"), "w") as f:
        f.write(report.markdown(bench.results, "free", list(scenarios.COLUMNS), targets.NULL, bench.facts(),
                                "make bench" + (" QUICK=1" if bench.quick else "")))
    print(told)
    print(f"\nResults: {os.path.relpath(directory)}/results.txt, .csv, .svg, .md")


def conduct(kind, options, tell):
    """A run of that kind, and its results; its exit status."""
    os.environ["LOCKBROKER_BUILD"] = os.path.abspath(options.build)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sweeper = harness.begin_run()
    os.chmod(os.environ["LOCKBROKER_RUN"], 0o711)  # PostgreSQL is somebody else
    run = kind(options)
    try:
        run.run(options.only)
        tell(run, options.results or os.path.join(harness.build_dir(), "bench"))
    finally:
        run.end()
        sweeper.stdin.close()
    return 1 if run.failures else 0


def options_of(description, parts, quick, seconds):
    """Those of this program and of profile.py."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--build", default=harness.build_dir())
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--seconds", type=float, help=f"of each load ({seconds})")
    parser.add_argument("--rounds", type=int, help="whose medians are shown (3)")
    parser.add_argument("--disk", metavar="DIR", help="where ZooKeeper keeps its log, instead of in memory")
    parser.add_argument("--under", metavar="WORDS", default="", help="what starts daemons and null brokers: 'chrt -b 0'")
    parser.add_argument("--only", action="append", choices=[part.__name__ for part in parts], help="those parts")
    parser.add_argument("--results", metavar="DIR", help="where they are written, instead of BUILD/bench")
    return parser


def options():
    parser = options_of(__doc__, scenarios.ALL, "one short round, in less than three minutes", 0.7)
    parser.add_argument("--beside", metavar="BUILD", help="that build's daemon in turn with ours, and no other service")
    parser.add_argument("--rows", action="append", metavar="LABEL", help="only rows whose label begins so")
    return parser


def main():
    return conduct(Bench, options().parse_args(), write)


if __name__ == "__main__":
    sys.exit(main())
