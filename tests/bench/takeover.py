# SPDX-License-Identifier: Apache-2.0
"""How long the lock of a holder that died, or stands still, stays away from the next one: from the signal until the critical
section of the next one begins, on one clock. docs/TAKEOVER.md has the table."""

import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import random
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

import measure
import services
from services import harness

BOUND_S = 10  # session timeout or time to live, of each service that has one
TURNS = 5
LIMIT_S = 2.5 * BOUND_S  # a lock that has not passed on by then is kept
QUEUED_S = 0.5  # from the request of the next one until the lock is taken from the holder
AFTERWARDS_S = 3  # for which a holder that goes on is watched
NAMES = itertools.count(1)
AT_A_TIME = 16  # rows that wait for a time

PROCESS, HOST, STOPPED, LONGER = "killed process", "killed host", "stopped process", "nobody killed, work takes longer"
ALIVE = (STOPPED, LONGER)

# ---- processes that fall silent ----

SYS_PIDFD_GETFD = 438
SO_ATTACH_FILTER = 26
BPF_RET = 0x06


def sockets(pid):
    """Duplicates of the TCP sockets of another process."""
    pidfd = os.pidfd_open(pid)
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                continue
            ours = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, int(fd), 0)
            if ours < 0:
                raise services.Missing(f"pidfd_getfd(2): {os.strerror(ctypes.get_errno())}")
            with socket.socket(fileno=ours) as s:
                if s.family in (socket.AF_INET, socket.AF_INET6) and s.type == socket.SOCK_STREAM:
                    yield s
    finally:
        os.close(pidfd)


def deafen(pid):
    """Nothing reaches its TCP sockets any longer, so that the kernel does not acknowledge for it either: as of a host that has
    no power."""
    drop = ctypes.create_string_buffer(struct.pack("HBBI", BPF_RET, 0, 0, 0))
    for s in sockets(pid):
        s.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(drop)))


def group(leader):
    """The processes of a group, as its leader started them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            if f.read().rpartition(")")[2].split()[2] == str(leader):
                found.append(int(pid))
    return found


class Holder:
    """A process, with those that it has started, that takes a lock and works: holder.py says what it prints."""

    def __init__(self, argv):
        self.complaints = tempfile.TemporaryFile()
        self.process = harness.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
                                     process_group=0)
        self.pid = self.process.pid
        self.buffer = b""

    def line(self, end):
        """The next one as words; None after the instant `end`."""
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                self.complaints.seek(0)
                raise measure.Failed(self.complaints.read().decode(errors="replace").strip()[-400:] or "a holder ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode().split()

    def says(self, word, patience=harness.PATIENCE):
        """The time that it prints with that word, in ns, or 0; None when it does not say that for so long."""
        end = time.monotonic() + patience
        while (line := self.line(end)) and line[0] != word:
            pass
        return line and int(line[1] if len(line) > 1 else 0)

    def ask(self):
        """Has it ask for the lock."""
        os.write(self.process.stdin.fileno(), b"\n")

    def works_after(self, ns, seconds):
        """Whether it does a step of its work at a later instant than that, within so many seconds."""
        try:
            while (at := self.says("works", seconds)) is not None:
                if at > ns:
                    return True
        except measure.Failed:
            pass  # it has noticed that the lock is not its own, and has ended
        return False

    def signal(self, number):
        os.killpg(self.pid, number)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.complaints):
            file.close()


def strike(case, holder, daemons):
    """What happens to the holder, and to the processes of its host. Returns the instant, in ns."""
    at = time.monotonic_ns()
    if case == PROCESS:
        holder.signal(signal.SIGKILL)
    elif case == STOPPED:
        holder.signal(signal.SIGSTOP)
    elif case == HOST:
        # The kernel of this machine would close the connections of killed processes; that of a dead host does not.
        for pid in [*group(holder.pid), *daemons]:
            deafen(pid)
            os.kill(pid, signal.SIGSTOP)
    return at


def turn(case, argv, next_argv, daemons=(), limit_s=LIMIT_S, bound_s=BOUND_S):
    """What came of it: takeover_ms, or kept_s, for how long the next one was watched as it waited; and where the holder lives,
    how many work in the end."""
    both = []
    try:
        for words in (argv, next_argv):
            both.append(Holder(words))
        for each in both:
            each.says("ready")
        holder, follower = both
        holder.ask()
        took = holder.says("took")
        follower.ask()
        follower.says("waits")
        time.sleep(QUEUED_S + random.uniform(0, bound_s / 3))  # heartbeats come three times within the session timeout
        struck = strike(case, holder, daemons)
        begins = follower.says("took", limit_s)
        if case == LONGER:
            struck = took
        if begins and begins < struck:
            raise measure.Failed("the next one did not wait until then")
        if case == STOPPED:
            holder.signal(signal.SIGCONT)
        figures = {"takeover_ms": (begins - struck) / 1e6} if begins else {"kept_s": limit_s}
        if case in ALIVE:
            figures["holders"] = bool(begins) + holder.works_after(begins or time.monotonic_ns(), AFTERWARDS_S)
        return figures
    finally:
        for each in both:
            each.end()


# ---- who is measured ----

class Peer:
    """A row: what starts a holder, given a target, a name and BOUND_S; its cases; and those where the next one is there at
    once."""

    def __init__(self, label, argv, target, cases=(PROCESS, HOST, STOPPED), at_once=()):
        self.label, self.argv, self.target = label, argv, target
        self.cases, self.at_once = cases, at_once

    @contextlib.contextmanager
    def ends(self, _):
        """Where the holder asks, where the next one asks, and the service's own processes on the holder's host."""
        yield self.target, self.target, []


class Ours(Peer):
    """Two daemons, as on two hosts, or one that both use; new ones for each turn, as one of them may have died."""

    def __init__(self, label, argv, zookeeper, hosts, *more):
        super().__init__(label, argv, None, *more)
        self.zookeeper, self.hosts = zookeeper, hosts

    @contextlib.contextmanager
    def ends(self, bench):
        daemons = []
        try:
            for _ in range(self.hosts):
                daemons.append(harness.Daemon(self.zookeeper, root="/bench-takeover-ours",
                                              zookeeper__session_timeout_ms=BOUND_S * 1000))
            yield daemons[0].socket, daemons[-1].socket, [daemons[0].process.pid, daemons[0].pid]
        finally:
            for daemon in daemons:
                if set(harness.thread_states(daemon.pid)) == {"T"}:
                    daemon.kill()
                bench.complain(daemon.end())


def python(peer):
    return ["/usr/bin/python3", "-B", os.path.join(services.HERE, "holder.py"), peer]


def module(name, package):
    if subprocess.run(["/usr/bin/python3", "-c", f"import {name}"], capture_output=True).returncode:
        raise services.Missing(f"{package} is not installed")


def curator():
    compiler = services.found("javac")
    if not os.path.exists(services.JVM_JARS.split(":")[0]):
        raise services.Missing("libcurator-recipes-java is not installed")
    classes = harness.once("holder", lambda folder: subprocess.run(
        [compiler, "-cp", services.JVM_JARS, "-d", folder, os.path.join(services.HERE, "Holder.java")], check=True))
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m", "-XX:-UsePerfData", "-cp",
            f"{services.JVM_JARS}:{classes}", "Holder"]


def laravel():
    program = services.found("php")
    if not os.path.isdir("/usr/share/php/Illuminate/Redis"):
        raise services.Missing("php-illuminate-redis is not installed")
    return [program, os.path.join(services.HERE, "holder.php")]


def ours(bench):
    yield Ours("lockbroker, one host", python("lockbroker"), None, 1, (PROCESS, STOPPED), (PROCESS,))
    yield Ours(f"lockbroker, two hosts, session of {BOUND_S} s", python("lockbroker"), bench.zookeeper, 2,
               (PROCESS, HOST, STOPPED), (PROCESS,))
    yield Ours(f"lockbroker, lease of {BOUND_S} s", python("lockbroker-lease"), bench.zookeeper, 2, (STOPPED, LONGER))
    yield Ours(f"lockbroker, lease of {BOUND_S} s, check() before each step", python("lockbroker-checks"), bench.zookeeper,
               2, (STOPPED, LONGER))


def of_zookeeper(bench):
    yield Peer(f"Curator, session of {BOUND_S} s", curator(), bench.zookeeper.target)


def of_kazoo(bench):
    module("kazoo", "python3-kazoo")
    yield Peer(f"kazoo, session of {BOUND_S} s", python("kazoo"), bench.zookeeper.target)


def of_etcd(bench):
    yield Peer(f"etcdctl lock --ttl={BOUND_S}", python("etcdctl"), bench.serve(services.Etcd).target)


def of_redis(bench):
    module("redis", "python3-redis")
    target = bench.serve(services.Redis).target
    yield Peer(f"redis-py, Lock(timeout={BOUND_S})", python("redis"), target, (PROCESS, HOST, STOPPED, LONGER))
    yield Peer("redis-py, Lock(timeout=None)", python("redis-for-ever"), target, (PROCESS,))
    yield Peer(f"Laravel, lock(name, {BOUND_S})", laravel(), target, (PROCESS, HOST, STOPPED, LONGER))


def of_postgres(bench):
    module("psycopg2", "python3-psycopg2")
    yield Peer(f"PostgreSQL, advisory lock, keepalives of {BOUND_S} s", python("postgres"),
               str(bench.serve(services.Postgres, BOUND_S).port), at_once=(PROCESS,))


def of_files(bench):
    yield Peer("flock(2)", python("flock"), bench.serve(services.Files).target, (PROCESS, STOPPED), (PROCESS,))


def peers(bench):
    for make in (ours, of_zookeeper, of_kazoo, of_etcd, of_redis, of_postgres, of_files):
        try:
            yield from make(bench)
        except services.Missing as e:
            bench.results.notes.append(f"takeover, {make.__name__}: left out, {e}")


# ---- the scenario ----

def measure_case(bench, peer, case):
    """All turns of a row, one after the other."""
    found = []
    for _ in range(TURNS):
        name = f"takeover-{next(NAMES)}"  # the one before may be held by a session, or by a time to live
        try:
            with peer.ends(bench) as (target, next_target, daemons):
                found.append(turn(case, [*peer.argv, target, name, str(BOUND_S)],
                                  [*peer.argv, next_target, name, str(BOUND_S)], daemons))
        except services.Missing as e:
            bench.results.notes.append(f"takeover, {peer.label}, {case}: left out, {e}")
            return
        except (measure.Failed, OSError, AssertionError, RuntimeError, harness.Closed) as e:
            bench.failed(f"takeover, {peer.label}, {case}: {e}")
            return
        if "kept_s" in found[-1]:
            break  # the others would be no different, and take as long
    for figures in found:
        bench.results.add("takeover", case, peer.label, figures)
    passed = [figures["takeover_ms"] for figures in found if "takeover_ms" in figures]
    if passed:
        bench.results.add("takeover", case, peer.label, {"takeover_most_ms": max(passed), "turns": len(passed)})


def takeover(bench):
    """The rows where the next one comes at once are measured one by one; those that wait for a time, beside each other."""
    if bench.quick:
        bench.results.notes.append("takeover: left out, it takes too long for QUICK")
        return
    rows = list(peers(bench))
    measured = [(peer, case) for case in (PROCESS, HOST, STOPPED, LONGER) for peer in rows if case in peer.cases]
    for peer, case in measured:
        if case in peer.at_once:
            measure_case(bench, peer, case)
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for done in [pool.submit(measure_case, bench, peer, case) for peer, case in measured if case not in peer.at_once]:
            done.result()
