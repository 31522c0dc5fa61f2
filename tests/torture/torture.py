# SPDX-License-Identifier: Apache-2.0
"""make torture: dozens of client processes lock and unlock through several lockbrokerd on a real ensemble of three
servers, while one fault follows the other. Every client appends what it saw to a history; afterwards a checker proves
that every promise was kept. The exit status is 0 only then; else the histories and logs are kept."""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "system")]

import kazoo.client  # noqa: E402

import checker  # noqa: E402
import ensemble  # noqa: E402
import faults  # noqa: E402
import harness  # noqa: E402
import network  # noqa: E402
import quiet  # noqa: E402
import resources  # noqa: E402

TICK_MS = 500
END_S = 60  # for those who wait still, once all is well

# Kinds of clients: how many on each host, how many locks they share, how long they hold one.
CROWD = [("hot", 8, 6, 20), ("warm", 2, 3, 400), ("long", 4, 5, 8000)]
QUIET = 3  # on each host, see quiet.py


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Crowd:
    """The client processes. One that is gone is replaced until stop()."""

    def __init__(self, directory, rng):
        self.dir, self.rng = directory, rng
        self.program = os.path.join(directory, "worker")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-g", "-D_GNU_SOURCE", *harness.sanitizer_options(),
                        f"-I{harness.SOURCE}", os.path.join(HERE, "worker.c"), harness.program("liblockbroker.a"),
                        "-o", self.program], check=True)
        self.running = {}  # name -> (process, what it was started with)
        self.killed = set()
        self.hosts = {}
        self.problems = []
        self.lock = threading.Lock()
        self.stopping = False
        self.keeper = None

    def path(self, name):
        return os.path.join(self.dir, f"{name}.history")

    def _start(self, host, kind, names, hold_ms):
        name = f"{kind}{len(self.hosts)}"
        self.hosts[name] = host.name
        with open(os.path.join(self.dir, "clients.log"), "a") as log:
            p = harness.spawn([self.program, host.daemon.socket, self.path(name), host.name,
                               str(self.rng.randrange(1 << 31)), kind, str(names), str(hold_ms)],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running[name] = p, (host, kind, names, hold_ms)

    def start(self, hosts):
        for host in hosts:
            for kind, count, names, hold_ms in CROWD:
                for _ in range(count):
                    self._start(host, kind, names, hold_ms)
        self.keeper = threading.Thread(target=self._keep, daemon=True)
        self.keeper.start()

    def _keep(self):
        """Lives as long as any client: they die with the thread that started them."""
        while self.running:
            with self.lock:
                for name, (p, how) in list(self.running.items()):
                    if p.poll() is None:
                        continue
                    del self.running[name]
                    unbegun = p.returncode == -signal.SIGTERM and not os.path.exists(self.path(name))
                    if p.returncode not in (0, -signal.SIGKILL) and not unbegun:
                        self.problems.append(f"client {name} ended with {p.returncode}")
                    if not self.stopping:
                        self._start(*how)
            time.sleep(0.05)  # a pace: of many processes, one that ends may be started again a little later

    def kill(self, count):
        with self.lock:
            for name in self.rng.sample(sorted(self.running), count):
                self.killed.add(name)
                self.running[name][0].kill()

    def stop(self):
        """Those who wait go on until they are served; returns the names of those who never were."""
        with self.lock:
            self.stopping = True
            for p, _ in self.running.values():
                p.terminate()
        self.keeper.join(END_S)  # it ends when none is left
        with self.lock:
            left = sorted(self.running)
            for p, _ in self.running.values():
                p.kill()
        self.keeper.join()
        return left

    def histories(self):
        for name in self.hosts:
            if not os.path.exists(self.path(name)):
                continue  # killed before its first record
            with open(self.path(name)) as f:
                yield checker.History(name, f.readlines(), name in self.killed)


class Torture:
    def __init__(self, args):
        self.args = args
        self.rng = random.Random(args.seed)
        self.sweeper = None if "LOCKBROKER_RUN" in os.environ else harness.begin_run()
        self.dir = harness.fast_tmp("torture.")
        self.problems = []
        self.zookeeper = None
        self.hosts = []
        self.crowd = None
        self.quiet = None
        self.resources = None
        self.arena = None

    def start(self):
        net = network.Network()
        harness.inherit_orphans()  # processes that daemons hand over to
        self.zookeeper = ensemble.Ensemble(net, TICK_MS)
        self.crowd = Crowd(self.dir, self.rng)
        for n in range(self.args.hosts):
            host = faults.Host(f"host{n + 1}", net, self.zookeeper.servers, self.args.timeout * 1000, TICK_MS)
            self.hosts.append(host)
            host.daemon.start()
        self.arena = faults.Arena(self.zookeeper, self.hosts, self.crowd, self.rng, self.args.timeout,
                                  self.hosts[:1] if self.args.spare else [])
        self.crowd.start(self.hosts)
        self.quiet = quiet.Quiet(self.hosts, QUIET, faults.now_ns)
        self.resources = resources.Resources(self.hosts, self.zookeeper, self.args.every, say)
        say(f"{len(self.hosts)} daemons, {len(self.crowd.running)} clients, T = {self.args.timeout} s, "
            f"seed {self.args.seed}")

    def schedule(self):
        """All faults in a new order each time around."""
        if self.args.fault:
            while True:
                yield from (f for f in faults.ALL if f.__name__ in self.args.fault)
        while not self.args.short:
            yield from self.rng.sample(faults.ALL, len(faults.ALL))
        yield from faults.SHORT

    def hurt(self):
        end = time.monotonic() + self.args.minutes * 60
        self.arena.calm(1, 1)
        self.zookeeper.back_up()
        self.quiet.begin()
        for fault in self.schedule():
            if time.monotonic() > end:
                return
            fault(self.arena)
            done = next(f for f in reversed(self.arena.faults) if f.kind not in faults.BY_ITSELF)
            say(f"  {done.kind:26} {' '.join(done.hosts):18} {(done.end - done.begin) / checker.SECOND:6.1f} s"
                f"{'   may cost locks' if done.loses else ''}")
            self.arena.calm(0, 0.2 if self.args.short else 1.5)
            self.quiet.look(self.arena.faults)
            self.resources.look()

    # ---- what is left at the end ----

    def look_for(self, condition, what, patience):
        try:
            return harness.wait_until(condition, what, patience)
        except AssertionError as e:
            self.problems.append(str(e))
            return None

    def idle(self, host):
        info = host.daemon.info()
        busy = {k: info[k] for k in ("requests", "grants", "claims", "locks", "operations") if info[k] != "0"}
        return busy or None

    def check_idle(self):
        for host in self.hosts:
            if not self.look_for(lambda h=host: not self.idle(h), f"{host.name} to be idle", 15):
                with host.daemon.client() as c:
                    self.problems.append(f"{host.name} is left with {self.idle(host)}: {c.call('LOCKS')[:5]}")

    def check_znodes(self):
        client = kazoo.client.KazooClient(hosts=self.zookeeper.leader().address)
        client.start(timeout=harness.PATIENCE)
        try:
            def orphans():
                client.sync("/torture")
                locks = [c for c in client.get_children("/torture") if not c.startswith(".")]
                return [f"{lock}/{child}" for lock in locks for child in self.children(client, f"/torture/{lock}")]

            if not self.look_for(lambda: not orphans(), "all znodes to go", 5):
                self.problems.append(f"znodes left: {orphans()[:10]}")
        finally:
            client.stop()
            client.close()

    @staticmethod
    def children(client, path):
        try:
            return client.get_children(path)
        except kazoo.exceptions.NoNodeError:
            return []

    def check_sessions(self):
        patience = self.args.timeout + 10
        if not self.look_for(lambda: not self.sessions(), "all sessions to go", patience):
            self.problems.append(f"sessions left: {self.sessions()}")

    def sessions(self):
        text = self.zookeeper.leader().ask("dump")
        return [line.strip() for line in text.splitlines() if line.startswith("\t0x") or line.startswith("0x")]

    def finish(self):
        say("no more faults; all clients are to end")
        with self.arena.during("the end", loses=False):
            self.arena.settle()
            self.quiet.look(self.arena.faults)
            self.quiet.end()
            left = self.crowd.stop()
        if left:
            self.problems.append(f"still waiting {END_S} s after the last fault: {' '.join(left)}")
        self.check_idle()
        self.arena.probe.end()
        self.check_znodes()
        for host in self.hosts:
            complaint = self.end_daemon(host)
            if complaint:
                self.problems.append(f"{host.name}: {complaint}")
        self.check_sessions()

    def end_daemon(self, host):
        """Its log is wanted after its directory is gone."""
        if os.path.exists(host.daemon.log_path):
            shutil.copy(host.daemon.log_path, os.path.join(self.dir, f"{host.name}.log"))
        return host.daemon.end()

    # ---- judging ----

    def judge(self):
        if not self.crowd or not self.arena:
            return
        self.arena.watching = False
        self.problems += self.crowd.problems + (self.quiet.problems if self.quiet else [])
        self.problems += self.resources.problems() if self.resources else []
        with open(os.path.join(self.dir, "faults.json"), "w") as f:
            json.dump([vars(x) for x in self.arena.faults], f, indent=1)
        check = checker.Check(list(self.crowd.histories()), self.arena.faults, self.args.timeout * checker.SECOND).run()
        self.figures(check)
        kinds = collections.Counter(v.what for v in check.violations)
        for v in check.violations[:3]:
            print(f"\nVIOLATION: {v.what}: {v.text}")
            print("\n".join(f"    {line}" for line in check.around(v)))
        for v in check.violations[3:40]:
            print(f"VIOLATION: {v.what}: {v.text}")
        if kinds:
            self.problems.append("violations: " + ", ".join(f"{n} x {what}" for what, n in kinds.items()))

    def figures(self, check):
        done = collections.Counter(f.kind for f in self.arena.faults if f.kind not in ("calm", "the end"))
        waited, lock, worker = check.longest
        late = check.latest_told / checker.MS
        f = check.figures
        print(f"\nclients        {len(self.crowd.hosts)}, {len(self.crowd.killed)} of them killed from outside\n"
              f"grants         {len(check.grants)}, {f['hand-offs']} of them hand-offs\n"
              f"answers        " + ", ".join(f"{n} {k}" for k, n in sorted(f.items()) if k.startswith("lock ")) + "\n"
              f"losses         {f['losses']}, read at most {late:.0f} ms after the proof's end\n"
              f"longest wait   {waited / checker.SECOND:.1f} s ({lock}, {worker})\n"
              f"hand-overs     {self.arena.handed_over}\n"
              f"faults         {sum(done.values())}")
        for kind, n in sorted(done.items()):
            print(f"    {n:4} {kind}")
        print("\n".join(["used, the first quarter of the looks left out:", *self.resources.report()]))

    def keep(self):
        """Everything needed to understand what went wrong."""
        target = os.path.join(harness.build_dir(), f"torture-{self.args.seed}")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.dir, target)
        for host in self.hosts:
            if os.path.exists(host.daemon.log_path):
                shutil.copy(host.daemon.log_path, os.path.join(target, f"{host.name}.log"))
        for server in self.zookeeper.servers if self.zookeeper else []:
            shutil.copy(os.path.join(server.dir, "log"), os.path.join(target, f"zookeeper{server.number}.log"))
        return target

    def run(self):
        try:
            self.start()
            self.hurt()
            self.finish()
        except Exception as e:  # whatever it is, the histories are judged
            traceback.print_exc(file=sys.stdout)
            self.problems.append(f"{type(e).__name__}: {e}")
            if self.crowd and self.crowd.keeper:
                self.crowd.stop()
        self.judge()
        if self.problems:
            print("\nFAILED:\n" + "\n".join(f"  {p}" for p in self.problems))
            print(f"histories and logs: {self.keep()}")
        else:
            print("\nevery promise was kept")
        for host in self.hosts:
            self.end_daemon(host)
        if self.zookeeper:
            self.zookeeper.end()
        shutil.rmtree(self.dir, ignore_errors=True)
        return 1 if self.problems else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of the order of faults")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=6, help="T, in seconds")
    parser.add_argument("--every", type=float, default=60, help="seconds between two looks at memory, descriptors and znodes")
    parser.add_argument("--spare", action="store_true",
                        help="the first daemon's process is never replaced, so that what it does not give back adds up")
    parser.add_argument("--short", action="store_true", help="a fixed list of faults, once")
    parser.add_argument("--fault", action="append", choices=[f.__name__ for f in faults.ALL], help="only this one")
    sys.exit(Torture(parser.parse_args()).run())


if __name__ == "__main__":
    main()
