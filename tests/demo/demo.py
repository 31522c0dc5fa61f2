# SPDX-License-Identifier: Apache-2.0
"""make demo: what lockbroker is for, seen working, in half a minute.

Two daemons stand for two hosts; they share nothing but a private ZooKeeper server. Sixteen processes, eight on each
host, add one to a number in a file, fifty times each, under one lock. Everything is started here and ended here; the
exit status is 0 only if all that was promised held. With --standalone: one host, no ZooKeeper.
"""

import argparse
import collections
import contextlib
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import harness  # noqa: E402

WORKERS, ROUNDS, LOCK = 16, 50, "demo/counter"


class Demo:
    def __init__(self, standalone):
        self.standalone = standalone
        self.sweeper = harness.begin_run()
        self.dir = harness.fast_tmp("demo.")
        self.zookeeper = None
        self.daemons = []
        self.failures = 0

    # ---- telling ----

    def title(self, text):
        print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")

    def say(self, text):
        print(f"   {text}", flush=True)

    def check(self, held, text):
        self.failures += not held
        print(f"   {'ok    ' if held else 'FAILED'} {text}", flush=True)

    # ---- what it is made of ----

    def start(self):
        self.title("Starting")
        if self.standalone:
            self.daemons = [harness.Daemon(host="this-host")]
            self.say("one lockbrokerd, standalone: no ZooKeeper, locks for this host only")
        else:
            self.zookeeper = harness.Zookeeper()
            self.say(f"a private ZooKeeper server on {self.zookeeper.address}")
            self.daemons = [harness.Daemon(self.zookeeper, root="/demo", host=h) for h in ("alpha", "beta")]
            self.say("two lockbrokerd, as if on two hosts: alpha and beta")
        spread = "" if self.standalone else f", {WORKERS // len(self.daemons)} on each host,"
        self.say(f"{WORKERS} worker processes{spread} will add 1 to a number in a file, {ROUNDS} times each: "
                 f"{WORKERS * ROUNDS} in all")
        self.worker = os.path.join(self.dir, "counter")
        subprocess.run([os.environ.get("CC", "cc"), *harness.sanitizer_options(), f"-I{harness.SOURCE}/client-lib",
                        os.path.join(harness.SOURCE, "client-lib/examples/counter.c"),
                        harness.program("liblockbroker.a"), "-o", self.worker], check=True)

    def end(self):
        for d in self.daemons:
            complaint = d.end()
            if complaint:
                self.check(False, complaint)
        if self.zookeeper:
            self.zookeeper.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def count(self, lock):
        """All workers at once; returns the number they came to and what they wrote, in the order of writing."""
        path, log_path = os.path.join(self.dir, "number"), os.path.join(self.dir, "log")
        with open(path, "w") as f:
            f.write("0\n")
        hosts = {}
        with open(log_path, "w") as log:
            for i in range(WORKERS):
                d = self.daemons[i % len(self.daemons)]
                p = harness.spawn([self.worker, path, str(ROUNDS), *([LOCK] if lock else [])], stdout=log,
                                  env=os.environ | {"LOCKBROKER_SOCKET": d.socket})
                hosts[p] = d.host
            for p in hosts if lock else ():
                while p.poll() is None:
                    self.look()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        p.wait(0.02)  # between two looks
        self.check(all(p.wait() == 0 for p in hosts), "all workers ended well")
        with open(log_path) as f:
            written = [tuple(map(int, line.split())) for line in f]
        host_of = {p.pid: host for p, host in hosts.items()}
        with open(path) as f:
            return int(f.read() or 0), [(host_of[pid], pid, token, number) for pid, token, number in written]

    def look(self):
        """How much the ZooKeeper server has of us at this moment."""
        if self.zookeeper:
            paths = self.zookeeper.sessions()
            mine = [p for found in paths.values() for p in found if "counter" in p]
            self.most_sessions = max(self.most_sessions, len(paths))
            self.most_znodes = max(self.most_znodes, len(mine))

    # ---- acts ----

    def without(self):
        self.title("Without a lock")
        number, _ = self.count(lock=False)
        lost = WORKERS * ROUNDS - number
        self.check(lost > 0, f"they came to {number}, not {WORKERS * ROUNDS}: {lost} updates lost")

    def with_lock(self):
        self.title(f"With the lock {LOCK}")
        self.most_sessions = self.most_znodes = 0
        began = time.monotonic()
        number, written = self.count(lock=True)
        took = time.monotonic() - began
        self.check(number == WORKERS * ROUNDS, f"they came to {number} in {took:.1f} s: nothing lost")
        self.check(all(a[2] < b[2] or (a[2] == b[2] and a[1] == b[1]) for a, b in zip(written, written[1:])),
                   "the fencing token grew with every grant to another process, "
                   f"from {written[0][2]} to {written[-1][2]}")
        self.hand_overs(written)
        if self.zookeeper:
            self.check(self.most_sessions == 2,
                       f"ZooKeeper saw {self.most_sessions} sessions, not {WORKERS}: one per host")
            self.check(1 <= self.most_znodes <= 4, f"and never more than {self.most_znodes} znodes for the lock: "
                       "at most two per host, however many wait there")

    def hand_overs(self, written):
        kinds = collections.Counter(
            "kept" if a[1] == b[1] else "inside" if a[0] == b[0] else "between" for a, b in zip(written, written[1:]))
        per_host = collections.Counter(host for host, *_ in written)
        self.check(kinds["inside"] > 0, f"{kinds['inside']} times it went from process to process inside a host, "
                   "without a word to ZooKeeper" if self.zookeeper else
                   f"{kinds['inside']} times it went from process to process")
        if self.zookeeper:
            self.check(kinds["between"] > 0, f"{kinds['between']} times it went from host to host ("
                       + ", ".join(f"{host} had it {n} times" for host, n in sorted(per_host.items())) + ")")

    def pull_the_plug(self):
        self.title("Pulling the plug")
        first, last = self.daemons[0], self.daemons[-1]
        holder = harness.spawn([harness.program("lockbroker"), "-S", first.socket, "lock", LOCK, "--",
                                "sh", "-c", "echo $$; exec sleep 60"], stdout=subprocess.PIPE, text=True)
        child = int(holder.stdout.readline())
        self.say(f"on {first.host}: lockbroker lock {LOCK} -- sleep 60    (pid {child})")
        with last.client() as waiter:
            waiter.send("LOCK", LOCK)
            with last.client() as c:
                harness.wait_until(lambda: len(c.call("QUEUE", LOCK)) == 1, "the waiter to be queued")
            self.check(waiter.quiet(0.3), f"on {last.host}: another process asks for it and waits")
            began = time.monotonic()
            os.kill(child, 9)
            token = waiter.reply()
            took = (time.monotonic() - began) * 1000
            self.check(isinstance(token, int) and took < 5000,
                       f"kill -9 {child}: the waiter has the lock {took:.1f} ms later")
        holder.wait()

    def run(self):
        self.start()
        self.without()
        self.with_lock()
        self.pull_the_plug()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=harness.build_dir())
    parser.add_argument("--standalone", action="store_true")
    options = parser.parse_args()
    os.environ["LOCKBROKER_BUILD"] = options.build
    demo = Demo(options.standalone)
    try:
        demo.run()
    finally:
        demo.end()
    print("\nAll of it held." if not demo.failures else f"\n{demo.failures} of it did NOT hold.")
    return 1 if demo.failures else 0


if __name__ == "__main__":
    sys.exit(main())
