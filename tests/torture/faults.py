# SPDX-License-Identifier: Apache-2.0
"""What is done to the ensemble, the network, the daemons and the clients, one thing after the other; each is healed."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import checker
import ensemble
import harness
import probe

HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile.py")
HOSTILE_USER = 4711
RELAY = os.path.join(harness.HERE, "relay.py")
SETTLE_S = 40       # longer than anything takes to be well again once its cause is gone, T included
QUIET_S = 3         # for so long a connection is quiet before it counts as one that the keeper has
CRASHES_S = 61      # what goes on depends on how many crashes there were within a minute
CRASHES_ANEW = 3    # with this one all that was remembered is dropped
STALL_S = 0.7       # the machine itself stood still, which is nobody's fault here


BY_ITSELF = ("election by itself", "machine stood still", "ensemble stood still")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Host:
    """One lockbrokerd and its links to the servers."""

    def __init__(self, name, network, servers, timeout_ms, tick_ms):
        self.name = name
        self.links = {s: network.link(s.port) for s in servers}
        address = ",".join(f"127.0.0.1:{link.port}" for link in self.links.values())
        zookeeper = types.SimpleNamespace(address=address, tick_ms=tick_ms)
        self.daemon = harness.Daemon(zookeeper, root="/torture", host=name, wait=False, locks__grant_min_ms=300,
                                     locks__delegation=1, zookeeper__session_timeout_ms=timeout_ms,
                                     daemon__socket_mode="0666", limits={"user_share": 75})
        if os.geteuid() == 0:  # for a hostile user
            os.chmod(self.daemon.dir, 0o755)
            os.chmod(os.path.dirname(self.daemon.dir), 0o711)
        # The program stands in two places: who runs from the one hands over to what is in it, be it to the other.
        self.original, *self.places = (os.path.join(self.daemon.dir, name, "lockbrokerd")
                                       for name in ("original", "here", "there"))
        for place in (self.original, *self.places):
            os.mkdir(os.path.dirname(place))
            self.install(place, harness.program("lockbrokerd"))
        self.daemon.program = self.places[0]
        self.crashes = []  # when a worker of this service has crashed

    @staticmethod
    def install(place, program):
        shutil.copy(program, place + ".new")
        os.chmod(place + ".new", 0o755)
        os.rename(place + ".new", place)

    @staticmethod
    def runs_from(pid):
        """None: it has ended."""
        try:
            return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        except OSError:
            return None

    @contextlib.contextmanager
    def relay(self, at, do):
        """Within it a hand-over goes through relay.py. Yields a function: the number of the real process behind it once
        that message has come, or None."""
        old, place, keeper = self.daemon.pid, self.runs_from(self.daemon.pid), self.runs_from(self.daemon.process.pid)
        real = next(p for p in self.places if p != place)
        with open(place + ".json", "w", encoding="ascii") as f:
            json.dump({"real": real, "at": at, "do": do, "more": {}}, f)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place + ".pid")
        self.install(place, RELAY)

        def relayed():
            try:
                with open(place + ".pid", encoding="ascii") as f:
                    return int(f.read() or 0)
            except FileNotFoundError:
                return None

        try:
            yield relayed
        finally:
            # After a hand-over the keeper becomes what stands in its place, and the relay what it is told: not halfway.
            if keeper == place and not harness.runs(old):
                with contextlib.suppress(AssertionError):
                    harness.wait_until(lambda: self.runs_from(self.daemon.process.pid) in (real, None), "the keeper", 2)
            self.install(place, self.original)

    def refusals(self):
        return self.daemon.log().count("no hand-over: ")

    def await_outcome(self, refusals, old):
        """Of a hand-over by that process; `refusals`: so many there were before it. Whoever serves then is the daemon; True:
        a new one."""
        harness.wait_until(lambda: not harness.runs(old) or self.refusals() > refusals,
                           f"the outcome of a hand-over on {self.name}", SETTLE_S)
        if harness.runs(old):
            return False
        self.daemon.follow()
        return True

    def crashed(self):
        """True: not so often that what is kept is dropped."""
        now = time.monotonic()
        self.crashes = [t for t in self.crashes if now - t < CRASHES_S] + [now]
        return len(self.crashes) < CRASHES_ANEW

    def go_on(self, old):
        """The process of that number was killed, or its keeper: another one serves, in a service that starts again if need
        be. (When one has crashed too often within a minute, the keeper ends.)"""
        harness.wait_until(lambda: not harness.runs(old), "the end of the process that served", SETTLE_S)
        harness.wait_until(lambda: self.daemon.process.poll() is not None or self.daemon.answers(), "another one", SETTLE_S)
        if self.daemon.process.poll() is None:
            self.daemon.adopt()
        else:
            self.daemon.kill()  # whoever is left
            self.daemon.start()
            self.crashes = []

    def all_links(self, what, *args):
        for link in self.links.values():
            getattr(link, what)(*args)

    def server(self):
        """The one it is connected to, or None."""
        address = self.daemon.info("zookeeper")["server"]
        return next((s for s, link in self.links.items() if address.endswith(f":{link.port}")), None)

    def session(self):
        return int(self.daemon.info("session")["session_id"], 16)

    def wait_safe(self):
        harness.wait_until(lambda: self.daemon.info("session")["session_state"] == "safe",
                           f"the session of {self.name}", SETTLE_S)

    def wait_granting(self):
        name = f"granting-{self.name}"
        with self.daemon.client() as c:
            harness.wait_until(lambda: isinstance(c.call("LOCK", name, "WAIT", 1000), int), f"a lock of {self.name}", SETTLE_S)


class Arena:
    """All there is to be hurt, and the record of what was done to it."""

    def __init__(self, zookeeper, hosts, crowd, rng, timeout_s, spared=()):
        """The processes of `spared` hosts are never ended."""
        self.zookeeper, self.hosts, self.crowd, self.rng, self.timeout_s = zookeeper, hosts, crowd, rng, timeout_s
        self.mortal = [h for h in hosts if h not in spared]
        self.bearable_s = timeout_s / 2 - 1  # an outage shorter than this costs no lock
        self.faults = []
        self.handed_over = 0  # so many hand-overs succeeded
        self.elected_ns = 0  # until then something was done that costs the ensemble its leader
        self.probe = probe.Probe(zookeeper.servers, now_ns, self._patience_s, self._stood)
        self.watching = True
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.watch.start()

    def _watch(self):
        while self.watching:
            before = now_ns()
            time.sleep(0.05)  # it is measured how much longer than this it takes
            stood = now_ns() - before - 50 * checker.MS
            if stood > STALL_S * checker.SECOND:
                self.faults.append(checker.Fault("machine stood still", before, now_ns() + int(self.timeout_s * 1e9),
                                                 loses=True, stopped=True))

    def _patience_s(self, begin):
        return self.bearable_s if self.elected_ns >= begin else STALL_S

    def _stood(self, begin, end):
        """Whoever lost its connection meanwhile needs another moment to prove its session."""
        self.faults.append(checker.Fault("ensemble stood still", begin, end + checker.SECOND, loses=True))

    def pick(self, count=None):
        """Some of the hosts."""
        return self.rng.sample(self.hosts, count or self.rng.randint(1, len(self.hosts)))

    def pick_mortal(self, count=None):
        return self.rng.sample(self.mortal, count or self.rng.randint(1, len(self.mortal)))

    def stay(self, seconds):
        time.sleep(seconds)  # for so long the fault lasts, or the calm

    def pause(self, least, most):
        self.stay(self.rng.uniform(least, most))

    @contextlib.contextmanager
    def during(self, kind, hosts=(), election=False, **flags):
        """Records what is done within. An election that nobody asked for excuses losses."""
        fault = checker.Fault(kind, now_ns(), 0, [h.name for h in hosts], **flags)
        epoch = self.zookeeper.epoch()
        fault.begin = now_ns()
        if election:
            self.elected_ns = sys.maxsize
        try:
            yield fault
        finally:
            fault.end = now_ns()
            if election:
                self.elected_ns = fault.end
            self.faults.append(fault)
        if not election and self.zookeeper.epoch() != epoch:
            self.faults.append(checker.Fault("election by itself", fault.begin, fault.end, loses=True))

    def settle(self):
        self.zookeeper.wait_whole()
        for h in self.hosts:
            h.wait_safe()

    def calm(self, least, most):
        with self.during("calm"):
            self.settle()
            self.pause(least, most)

    def without(self, server, fault, least, most):
        """Waits while that server is away, and until there is a leader. Longer than is bearable excuses losses."""
        until = time.monotonic() + self.rng.uniform(least, most)
        fault.loses |= self.zookeeper.wait_led(without=server) > self.bearable_s
        self.stay(max(0, until - time.monotonic()))


def away(a, server, kind):
    with a.during(kind, election=True) as fault:
        server.kill()
        a.without(server, fault, 0.2, 1.5)
        server.start()
        a.zookeeper.wait_whole()


def leader_killed(a):
    away(a, a.zookeeper.leader(), "leader killed")


def follower_killed(a):
    leader = a.zookeeper.leader()
    away(a, a.rng.choice([s for s in a.zookeeper.servers if s is not leader]), "follower killed")


def rolling_restart(a):
    with a.during("rolling restart", election=True) as fault:
        leader = a.zookeeper.leader()
        for server in sorted(a.zookeeper.servers, key=lambda s: s is leader):
            server.stop()
            a.without(server, fault, 0, 0)
            server.start()
            a.zookeeper.wait_whole()


def server_stopped(a):
    """The one that a daemon is connected to, while the others live."""
    server = a.rng.choice(a.hosts).server() or a.zookeeper.leader()
    with a.during("server stopped", election=True) as fault:
        server.signal(signal.SIGSTOP)
        try:
            a.without(server, fault, a.timeout_s / 3, a.timeout_s)
        finally:
            server.signal(signal.SIGCONT)
        a.zookeeper.wait_whole()


def follower_cut_off(a):
    """From the leader; it answers reads for a while yet."""
    leader = a.zookeeper.leader()
    follower = next((s for s in (h.server() for h in a.pick()) if s not in (None, leader)), None)
    follower = follower or next(s for s in a.zookeeper.servers if s is not leader)
    link = a.zookeeper.links[follower, leader]
    with a.during("follower cut off"):
        link.hold()
        try:
            a.pause(a.timeout_s / 3, a.timeout_s)
        finally:
            link.release()
        a.zookeeper.wait_whole()


def cut_off(a, kind, seconds, hosts, **flags):
    how = a.rng.choice(["hold", "refuse"])
    with a.during(f"{kind} ({how})", hosts, **flags):
        try:
            for h in hosts:
                h.all_links(how)
            a.stay(seconds)
        finally:
            for h in hosts:
                h.all_links("release")
        for h in hosts:
            h.wait_safe()


def cut_off_shortly(a):
    cut_off(a, "cut off 0.4 T", 0.4 * a.timeout_s, a.pick())


def cut_off_long(a):
    """So long that the servers give the locks to others in the meantime."""
    hosts = a.pick(a.rng.choice([1, 1, len(a.hosts)]))
    cut_off(a, "cut off 1.2 T", a.rng.uniform(1.2, 1.5) * a.timeout_s, hosts, loses=True, must_lose=True)


def slow_network(a):
    hosts = a.pick()
    with a.during("slow network", hosts):
        for h in hosts:
            h.all_links("delay", a.rng.uniform(0.02, 0.12))
        a.pause(1, a.timeout_s / 2)
        for h in hosts:
            h.all_links("release")


def replies_lost(a):
    """Requests pass, what they are answered is lost, then the connection."""
    hosts = a.pick()
    with a.during("replies lost", hosts):
        for _ in range(3):
            for h in hosts:
                h.all_links("deafen")
            a.pause(0.05, a.timeout_s / 12)
            for h in hosts:
                h.all_links("reset")
            a.pause(0.2, 0.8)


def connections_reset(a):
    hosts = a.pick()
    with a.during("connections reset", hosts):
        for _ in range(8):
            for h in hosts:
                h.all_links("reset")
            a.pause(0, 0.3)


def session_ended(a):
    """By a third party."""
    (host,) = a.pick(1)
    session = host.session()
    with a.during("session ended", [host], loses=True, expired=True):
        ensemble.end_session(a.rng.choice(a.zookeeper.servers).port, session)
        harness.wait_until(lambda: host.session() not in (0, session), "another session", SETTLE_S)
        host.wait_safe()


def daemon_stopped(a):
    hosts = a.pick()
    with a.during("daemon stopped", hosts, loses=True, stopped=True):
        for h in hosts:
            h.daemon.signal(signal.SIGSTOP)
        a.pause(1.1 * a.timeout_s, 1.4 * a.timeout_s)
        for h in hosts:
            h.daemon.signal(signal.SIGCONT)
        for h in hosts:
            h.wait_safe()


def daemon_stopped_shortly(a):
    hosts = a.pick()
    with a.during("daemon stopped shortly", hosts, stopped=True):
        for h in hosts:
            h.daemon.signal(signal.SIGSTOP)
        a.pause(0.1, 0.25 * a.timeout_s)
        for h in hosts:
            h.daemon.signal(signal.SIGCONT)


def daemon_killed(a):
    (host,) = a.pick_mortal(1)
    with a.during("daemon killed", [host], closes=True):
        host.daemon.kill()
        a.pause(0, 1)
        host.daemon.start()


def worker_killed(a):
    """The keeper starts another one. Once more while that one begins, now and then."""
    (host,) = a.pick_mortal(1)
    a.calm(QUIET_S, QUIET_S)
    with a.during("worker killed", [host], closes=True, kept=True) as fault:
        for _ in range(a.rng.choice([1, 1, 2])):
            old = host.daemon.pid
            fault.kept &= host.crashed()
            host.daemon.signal(signal.SIGKILL)
            host.go_on(old)
        host.wait_safe()


def keeper_killed(a):
    """Its end is that of the service."""
    (host,) = a.pick_mortal(1)
    with a.during("keeper killed", [host], closes=True):
        old = host.daemon.pid
        host.daemon.process.kill()
        host.go_on(old)
        host.wait_safe()


def keeper_stopped(a):
    """Nobody needs it for as long as nobody dies."""
    (host,) = a.pick(1)
    a.calm(1, 1)
    with a.during("keeper stopped", [host]):
        host.daemon.process.send_signal(signal.SIGSTOP)
        a.pause(0.1, 1.2 * a.timeout_s)
        host.daemon.process.send_signal(signal.SIGCONT)


def daemon_restarted(a):
    """Stopped as it ought to be: its holders are asked, and told at the latest when its patience is over."""
    (host,) = a.pick_mortal(1)
    with a.during("daemon restarted", [host], loses=True, closes=True):
        status = host.daemon.terminate()
        assert status == 0, f"{host.name} ended with {status}"
        host.daemon.start()


def handed_over(a):
    """To a new process, several times; it costs nobody anything."""
    hosts = a.pick_mortal()
    a.calm(1, 1)  # what went before excuses nothing now
    with a.during("hand-over", hosts):
        for _ in range(3):
            before, old = [h.refusals() for h in hosts], [h.daemon.pid for h in hosts]
            for h in hosts:
                h.daemon.signal(signal.SIGUSR2)
            for h, refusals, pid in zip(hosts, before, old):
                a.handed_over += h.await_outcome(refusals, pid)
            a.pause(0, 0.3)


# At which message of a hand-over (relay.py) whom something is done to, and whether connections may end by it: when the
# new process ends at ACCEPT, the old one may see that before it commits.
KILLS = [("PARCEL1", "old", True), ("READY", "old", True), ("PARCEL2", "old", True), ("ACCEPT", "old", True),
         ("COMMIT", "old", False), ("PARCEL1", "new", False), ("READY", "new", False), ("PARCEL2", "new", False),
         ("ACCEPT", "new", True), ("COMMIT", "new", True),
         *((at, "keeper", True) for at in ("PARCEL1", "READY", "PARCEL2", "ACCEPT", "COMMIT"))]
STOPS = [("PARCEL1", "new"), ("PARCEL1", "old"), ("READY", "old"), ("PARCEL2", "old"), ("ACCEPT", "old"), ("COMMIT", "old"),
         ("READY", "new"), ("PARCEL2", "new"), ("ACCEPT", "new"), ("COMMIT", "new"),
         *((at, "keeper") for at in ("PARCEL1", "READY", "PARCEL2", "ACCEPT", "COMMIT"))]


def killed_in_hand_over(a):
    (host,) = a.pick_mortal(1)
    at, whom, closes = a.rng.choice(KILLS)
    refusals, old = host.refusals(), host.daemon.pid
    a.calm(QUIET_S, QUIET_S)
    with a.during(f"{whom} process killed at {at}", [host], closes=closes, kept=whom != "keeper") as fault:
        with host.relay(at, f"kill {whom}") as relayed:
            host.daemon.signal(signal.SIGUSR2)
            harness.wait_until(relayed, "that message", SETTLE_S)
            harness.wait_until(lambda: not harness.runs(old) or host.refusals() > refusals, "the outcome", SETTLE_S)
        if not harness.runs(old):
            if closes:
                fault.kept &= host.crashed()
                harness.wait_until(lambda: not harness.runs(relayed()), "the end of the new process", SETTLE_S)
            host.go_on(old)
            a.handed_over += not closes
        host.wait_safe()


def stopped_in_hand_over(a):
    (host,) = a.pick_mortal(1)
    at, whom = a.rng.choice(STOPS)
    long = a.rng.choice([True, False])
    refusals, old = host.refusals(), host.daemon.pid
    a.calm(1, 1)
    with a.during(f"{whom} process stopped at {at}{' for long' if long else ''}", [host], loses=long, stopped=True):
        with host.relay(at, f"stop {whom}") as relayed:
            host.daemon.signal(signal.SIGUSR2)
            new = harness.wait_until(relayed, "that message", SETTLE_S)
            a.pause(*(x * a.timeout_s for x in ((1.1, 1.4) if long else (0.01, 0.2))))
            for pid in (old, new, host.daemon.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            a.handed_over += host.await_outcome(refusals, old)
        host.wait_safe()


def clients_killed(a):
    with a.during("clients killed"):
        for _ in range(4):
            a.crowd.kill(3)
            a.pause(0, 0.5)


def ensemble_restored(a):
    """From an older copy, which takes so long that all locks are lost before. (What a faster one takes away is as if
    somebody had deleted it by hand.) The operator raises the epochs, as lockbrokerd(8) says: before the servers start, or
    after the hosts have noticed. From then on locks are granted, and tokens go on growing."""
    epoch = a.zookeeper.epoch()
    late = a.rng.choice([True, False])
    a.calm(QUIET_S, QUIET_S)  # the copy is older than the last heartbeat of each host
    with a.during(f"ensemble restored{', epochs late' if late else ''}", election=True, loses=True, must_lose=True,
                  refuses=True):
        a.zookeeper.kill()
        a.zookeeper.restore()
        a.pause(1.2 * a.timeout_s, 1.5 * a.timeout_s)
        if late:
            a.zookeeper.start()
            a.zookeeper.wait_whole()
            a.pause(0.5, a.timeout_s / 2)
            a.zookeeper.kill()
        a.zookeeper.raise_epochs(epoch + 2)
        a.zookeeper.start()
        a.settle()
        for h in a.hosts:
            h.wait_granting()
    a.zookeeper.back_up()


def hostile_readers(a):
    """Of another user, two on each host. Nobody else loses anything by them."""
    hosts = a.pick()
    with a.during("hostile readers", hosts):
        running = [harness.spawn(["setpriv", f"--reuid={HOSTILE_USER}", f"--regid={HOSTILE_USER}", "--clear-groups",
                                  sys.executable, "-B", HOSTILE, h.daemon.socket, str(a.rng.randrange(1 << 31))],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for h in hosts for _ in range(2)]
        a.pause(1, a.timeout_s)
        said = [p.communicate(timeout=SETTLE_S)[0] for p in running]
    assert all("never_read" in text for text in said), said


ALL = [leader_killed, follower_killed, rolling_restart, server_stopped, follower_cut_off, cut_off_shortly, cut_off_long,
       slow_network, replies_lost, connections_reset, session_ended, daemon_stopped, daemon_stopped_shortly,
       daemon_killed, worker_killed, keeper_killed, keeper_stopped, daemon_restarted, handed_over, killed_in_hand_over,
       stopped_in_hand_over, clients_killed, ensemble_restored]
if os.geteuid() == 0:  # only root can be another user
    ALL.append(hostile_readers)
# What the test has time for, in this order; together some 40 s with T = 4 s.
SHORT = [clients_killed, handed_over, killed_in_hand_over, replies_lost, cut_off_shortly, leader_killed, server_stopped,
         cut_off_long, session_ended, worker_killed, daemon_killed]
