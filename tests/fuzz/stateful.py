# SPDX-License-Identifier: Apache-2.0
"""A real daemon, best a sanitized one, and clients that ask for anything: all commands of the table, well-formed and not, in
RESP2 and RESP3, over pipelines that are cut anywhere, by connections that hang up, while the process that serves is killed,
hands over, is drained and grants again, and reads changed configurations. Promised is:

  - nobody is told of a grant while another client holds the lock, as far as that one was told, and tokens only grow
  - from the answer to DRAIN until it is taken back, whatever is asked for is not granted, over kills and hand-overs, too
  - each request gets one answer, and a connection that asks as it should stays open (unless the process is killed)
  - no process of the daemon dies, and no sanitizer complains
  - when all have hung up, nothing is left: INFO says 0
  - of memory the daemon uses no more than MemoryMax= of its unit has for what is charged, whatever another user keeps: answers
    and refusals that it does not read, also of connections that have ended, and pages. The control group of the daemon says
    what is used; of a sanitized one only what the kernel uses

With --zookeeper two daemons share their locks through a real server. A seed gives the same clients and the same requests, as
far as the daemon's pace allows. An episode has a daemon of its own.
"""

import argparse
import contextlib
import os
import random
import re
import resource
import select
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system"))

import cgroup  # noqa: E402
import harness  # noqa: E402
import hoarder  # noqa: E402
from shapes import FORCED, NAMES, SLOW, STRANGE, Shapes, commands, without_shape  # noqa: E402

PLAYERS = 10
STEPS = 400
PATIENCE = 90  # sanitized, and beside much else
SESSION_MS = 1000  # for so long what a killed process's clients held stays held
CRASHES = 2  # after three within a minute the locks are lost

ZERO = ("blocked_clients", "locks", "grants", "requests", "claims", "letters", "audit_running")


def why_not_measured():
    """"": it is."""
    if os.geteuid() != 0:
        return "only root can be two users"
    return "" if cgroup.memory() else "no control group of memory can be made here"


class Request:
    def __init__(self, words, strange):
        self.words, self.strange = words, strange
        self.command = words[0]
        self.name = str(words[1]) if len(words) > 1 and not strange else None
        self.names = [str(w) for w in words[2:2 + words[1]]] if self.command in ("MLOCK", "MUNLOCK") and not strange else []
        self.leased = "LEASE" in words or self.command == "RENEW"
        self.alone = "SHARED" not in words

    def may_end(self, name):
        """A grant of that name."""
        return (self.strange or self.command in ("RESET", "QUIT") or name in self.names or
                self.name == name and (self.leased or self.command in ("UNLOCK", "DOWNGRADE", "RESIGN", "CANCEL")))


class Incomplete(Exception):
    pass


class Player(harness.Client):
    """A connection. `strict`: it asks as it should, and so it is owed an answer to each request."""

    def __init__(self, episode, host, operator):
        rng = episode.rng
        super().__init__(host.daemon.operator_socket if operator else host.daemon.socket, version=2)
        self.socket.setblocking(False)
        self.episode, self.host, self.operator = episode, host, operator
        self.strict = rng.random() < 0.75
        self.outstanding, self.held, self.unsent = [], {}, b""
        self.leased = set()  # names of what it may hold for a time: to enter that again leaves it the time
        self.queued = {}  # name -> whether it has ever asked for what may have ended a grant that it reads of later
        self.half = self.over = self.welcome = False
        self.life = host.life
        self.history = []  # what it asked and was told, as text
        if rng.random() < 0.5:
            self.ask("HELLO", [3])

    def _fill(self):
        raise Incomplete

    # ---- asking ----

    def ask(self, command, words, strange=False):
        rng = self.episode.rng
        request = Request([command, *words], strange)
        request.drained = self.host.drained
        self.outstanding.append(request)
        self.history.append(f"asks {request.words}"[:200])
        self.episode.requests += 1
        self.episode.asked.add(command)
        for name in [name for name in self.held if request.may_end(name)]:
            del self.held[name]
        for name in [name for name in self.queued if request.may_end(name)]:
            self.queued[name] = True
        if "ENQUEUE" in request.words and not strange:
            self.queued[request.name] = request.leased or self.queued.get(request.name, False)
        if request.leased:
            self.leased.add(request.name)
        text = [w if isinstance(w, bytes) else str(w).encode() for w in request.words]
        if rng.random() < 0.2 and all(re.fullmatch(rb"[\w.*,-]+", w) for w in text):
            self.unsent += b" ".join(text) + b"\r\n"
        else:
            self.unsent += harness.encode(*text)

    def ask_something(self):
        rng = self.episode.rng
        table = self.episode.table
        word = rng.choice(list(table))
        if word in SLOW and rng.random() < 0.7 or word in ("RESTART", "RELOAD") and rng.random() < 0.9:
            word = "LOCK"
        elif rng.random() < 0.4:
            word = rng.choice(["LOCK", "LOCK", "UNLOCK", "UNLOCK", "MLOCK", "MUNLOCK", "ENQUEUE", "CAMPAIGN", "RESIGN"])
        words = getattr(self.episode.shapes, word.lower())()
        if self.strict or rng.random() < 0.3:
            self.ask(word, words)
        elif not self.operator:  # it might take a lock by force
            self.ask(*self.mutated(word, words), strange=True)

    def mutated(self, word, words):
        rng = self.episode.rng
        words = [word.lower() if rng.random() < 0.2 else word, *words]
        for _ in range(rng.randrange(1, 4)):
            at, what = rng.randrange(len(words) + 1), rng.randrange(5)
            if what == 0:
                words.insert(at, rng.choice(STRANGE))
            elif what == 1:
                words[at:at + 1] = [rng.choice(STRANGE)]
            elif what == 2 and len(words) > 1:
                del words[at:at + 1]
            elif what == 3:
                words[at:at] = words[at - 1:at] * rng.choice([1, 1, 2, 70])
            else:
                words[at:at + 1] = [rng.choice(NAMES)]
        return words[0], words[1:]

    def send_some(self, all_of_it=False):
        rng = self.episode.rng
        part = self.unsent if all_of_it or rng.random() < 0.6 else self.unsent[:rng.randrange(len(self.unsent) + 1)]
        try:
            sent = self.socket.send(part) if part else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(self.unsent)  # what it was told before its end is still to be read
        self.unsent = self.unsent[sent:]

    def send_junk(self):
        rng = self.episode.rng
        self.strict = False
        self.held.clear()
        alphabet = rng.choice([bytes(range(256)), b"*$:\r\n0123456789-", b"*1\r\n$4PINGLOCK "])
        junk = bytes(rng.choices(alphabet, k=rng.randrange(1, 400)))
        at = rng.randrange(len(self.unsent) + 1)
        self.unsent = self.unsent[:at] + junk + self.unsent[at:]

    def hang_up(self):
        if self.episode.rng.random() < 0.3:
            self.half, self.strict = True, False
            self.held.clear()
            try:
                self.socket.shutdown(1)
            except OSError:
                pass
        else:
            self.end()

    def end(self):
        self.over = True
        self.held.clear()
        self.close()

    # ---- answers ----

    def told_of(self, name):
        """For a message about that name."""
        return "\n  ".join([f"{self.host.daemon.host}, life {self.life} of {self.host.life}:",
                            *[line for line in self.history if repr(name)[1:-1] in line or "HELLO" in line]])

    def read(self):
        """All that there is. False: the connection has ended."""
        try:
            while data := self.socket.recv(1 << 16):
                self.buffer += data
        except BlockingIOError:
            self.take_all()
            return True
        except OSError:
            pass
        self.take_all()
        if self.strict and not self.over:
            self.episode.ended(self)
        self.end()
        return False

    def take_all(self):
        while self.buffer:
            before = self.buffer
            try:
                kind, value = self._value()
            except Incomplete:
                self.buffer = before
                return
            if kind == b">":
                self.pushed(value)
            else:
                self.answered(value)

    def pushed(self, value):
        self.history.append(f"is told {value}"[:200])
        if value[0] == "lost":
            self.held.pop(value[1], None)
        elif value[0] == "granted" and self.strict and not self.queued.get(value[1], True):
            self.episode.granted(self, value[1], value[2], alone=None)

    def answered(self, value):
        self.episode.answers += 1
        if not self.outstanding:
            assert not self.strict, f"an answer without a request: {value!r}"
            return
        request = self.outstanding.pop(0)
        self.history.append(f"{request.words} -> {value}"[:200])
        if request.strange or not self.strict:
            return
        if isinstance(value, harness.Error) and value.code == "LIMIT" and "clients" in value:
            self.strict = False
        if request.command == "QUIT":
            self.strict = False
        elif request.command == "UNLOCK" and value == 0 and not any(r.leased for r in self.outstanding):
            self.leased.discard(request.name)
        elif request.command == "DRAIN" and self is self.host.drainer and not isinstance(value, harness.Error):
            self.host.drain_is_answered()
        if request.command in ("LOCK", "ACQUIRE", "CAMPAIGN", "MLOCK") and isinstance(value, (int, list)):
            assert not request.drained or request.drained != self.host.drained or "REENTER" in request.words, \
                f"the host was drained before this was asked for: {self.history[-6:]}"
        if request.command in ("LOCK", "CAMPAIGN") and isinstance(value, int):
            self.episode.granted(self, request.name, value, request.alone, request.leased)
        elif request.command == "MLOCK" and isinstance(value, list):
            for name, token in zip(request.names, value):
                self.episode.granted(self, name, token, request.alone, request.leased)


class Host:
    """A daemon, and what is done to it."""

    def __init__(self, rng, zookeeper, root):
        timing = {} if zookeeper else {"zookeeper__session_timeout_ms": SESSION_MS, "zookeeper__tick_ms": SESSION_MS // 5}
        self.rng = rng
        self.life = self.handovers = self.reloads = self.drains = 0
        self.drained = 0  # number of the drain that is known to be in force
        self.drain, self.drainer, self.steps_drained = "off", None, 0  # "off", "asked", "on", "ending"
        self.daemon = harness.Daemon(zookeeper, root, wait=False, locks__linger_ms=rng.choice([0, 50, 1000]), **timing,
                                     **hoarder.CONF)
        self.hoarder = hoarder.Hoarder(rng, self.daemon)
        self.memory = hoarder.Measured(self.daemon) if not why_not_measured() else None
        self.conf = os.path.join(self.daemon.dir, "conf")
        self.configure()
        self.daemon.argv = ["-c", self.conf]

    def start(self):
        with self.memory.group.inside() if self.memory else contextlib.nullcontext():
            self.daemon.spawn()
        self.daemon.wait_ready()
        if self.memory:
            hoarder.let_in(self.daemon)
            self.memory.begin()

    def end(self):
        """What is wrong with its end."""
        self.hoarder.let_go()
        complaint = self.daemon.end()
        if self.memory:
            self.memory.end()
        return complaint

    def configure(self):
        """Not always so that it can be used, but for the first time."""
        rng = self.rng
        lines = ["[limits]", f"locks = {rng.choice([4, 8, 100])}", f"requests_per_client = {rng.choice([2, 100])}",
                 f"requests_per_lock = {rng.choice([2, 100])}",
                 "[locks]", f"handoff_max = {rng.choice([0, 5])}", f"deadlock_detection = {rng.choice([0, 1])}",
                 f"delegation = {rng.choice([0, 1, 1])}",
                 "[access]", *rng.sample(["rule = deny * lock4 lock", "rule = deny 1000 * look", "rule = allow root * revoke",
                                          "rule = deny unit:web.service * acquire",
                                          *(["rule = nonsense"] if self.daemon.process else [])], rng.randrange(3))]
        with open(self.conf + ".new", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        os.rename(self.conf + ".new", self.conf)

    def crash(self):
        if self.life == CRASHES:
            return
        self.life += 1
        old = self.daemon.pid
        os.kill(old, signal.SIGKILL)
        self.daemon.await_another(old)
        self.hoarder.let_go()  # who was charged for that has died with the process

    def hand_over(self):
        self.handovers += 1
        self.daemon.process.send_signal(signal.SIGUSR2)

    def reload(self):
        self.reloads += 1
        self.configure()
        self.daemon.process.send_signal(signal.SIGHUP)

    def drain_is_answered(self):
        if self.drain == "asked":
            self.drain, self.drained = "on", self.drains
        else:
            self.drain = "off"

    def serves(self):
        """Again, after that."""
        harness.wait_until(self.daemon.answers, "the daemon to serve", PATIENCE)
        self.daemon.adopt()

    def release(self):
        """What is held without a time, until this process ends: also under a name that only a garbled request had."""
        with self.daemon.client() as c:
            for row in c.call("LOCKS", "*"):
                c.call("DEL", row["name"])

    def kept(self):
        """Connections that have ended, as sentences."""
        with self.daemon.client(operator=True) as c:
            return [row["kept"] for row in c.call("ACCOUNTS") if row["of"] == "connections" and row["kept"]]

    def is_left(self):
        """What INFO says is there, though nobody is."""
        info = self.daemon.info()
        left = {key: info[key] for key in ZERO if info.get(key, "0") != "0"}
        left |= {"connected_clients": info["connected_clients"]} if info["connected_clients"] != "1" else {}
        return left | {"kept": self.kept()} if self.kept() else left

    def measure(self):
        if self.memory:
            self.memory.wait_fit()

    def hoard_at_last(self):
        if self.memory:
            self.hoarder.act_at_last()
            self.memory.wait_fit()
        self.hoarder.let_go(but_small=True)


class Episode:
    def __init__(self, seed, table, zookeeper):
        self.rng = random.Random(seed)
        self.table, self.shapes = table, Shapes(self.rng)
        self.players = []
        self.asked, self.requests, self.answers = set(), 0, 0
        self.highest = {}  # token of a lock that was held alone, and by whom
        self.hosts = [Host(self.rng, zookeeper, f"/{seed}") for _ in range(2 if zookeeper else 1)]

    def done(self):
        """What was done to the daemons."""
        return {"crashes": sum(h.life for h in self.hosts), "handovers": sum(h.handovers for h in self.hosts),
                "reloads": sum(h.reloads for h in self.hosts), "drains": sum(h.drains for h in self.hosts),
                "requests": self.requests, "answers": self.answers, "kept": sum(h.hoarder.kept for h in self.hosts)}

    # ---- what is promised ----

    def holders_but(self, player, name):
        """Those who may have learnt by now that they hold it no longer are asked."""
        for other in [p for p in self.players if p is not player and name in p.held]:
            other.read()
        return [p for p in self.players if p is not player and name in p.held]

    def granted(self, player, name, token, alone, leased=False):
        if name in FORCED or leased or name in player.leased or any(r.may_end(name) for r in player.outstanding):
            return
        others = self.holders_but(player, name)
        if alone or any(other.held[name][0] for other in others):
            assert not others, f"{name} with token {token} is granted to two: {player.told_of(name)}\nand " + \
                "\nand ".join(f"{other.held[name]}: {other.told_of(name)}" for other in others)
        highest, holder = self.highest.get(name, (0, None))
        if alone and (token, player) != (highest, holder):  # it enters again what was not known to be still held
            assert token > highest, f"{name}: token {token} after {highest}; {player.told_of(name)}"
            self.highest[name] = token, player
        if alone is not None:
            player.held[name] = (alone or player.held.get(name, (False,))[0], token)

    def ended(self, player):
        """One that did nothing wrong."""
        assert player.life < player.host.life, f"the daemon has hung up on {player.history[-6:]}; outstanding: " \
                                        f"{[r.words for r in player.outstanding]}"

    # ---- what happens ----

    def ask_drainer(self, host, drain):
        """An operator of its own, who is asked again if it ends without an answer."""
        host.drain, host.drained = drain, 0
        host.drainer = Player(self, host, operator=True)
        host.drainer.strict = True
        self.players.append(host.drainer)
        host.drainer.ask("DRAIN", [] if drain == "asked" else ["OFF"])
        host.drainer.send_some(all_of_it=True)

    def steer_drain(self, host):
        if host.drain in ("asked", "ending") and host.drainer.over:
            self.ask_drainer(host, host.drain)
        elif host.drain == "on":
            host.steps_drained -= 1
            if host.steps_drained == 0:
                self.ask_drainer(host, "ending")

    def connect(self):
        player = Player(self, self.rng.choice(self.hosts), self.rng.random() < 0.15)
        self.players.append(player)

    def look(self, milliseconds):
        poll = select.poll()
        alive = {p.fileno(): p for p in self.players if not p.over}
        for fd in alive:
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(milliseconds):
            if not alive[fd].over:
                alive[fd].read()
        self.players = [p for p in self.players if not p.over]

    def step(self):
        rng = self.rng
        for host in self.hosts:
            self.steer_drain(host)
        if not self.players or len(self.players) < PLAYERS and rng.random() < 0.3:
            self.connect()
        player = rng.choice(self.players)
        what = rng.random()
        if what < 0.02 and player is not player.host.drainer:
            player.hang_up()
        elif what < 0.03 and not player.strict:
            player.send_junk()
        elif what < 0.033:
            rng.choice(self.hosts).crash()
        elif what < 0.045:
            rng.choice(self.hosts).hand_over()
        elif what < 0.06:
            rng.choice(self.hosts).reload()
        elif what < 0.07:
            host = rng.choice(self.hosts)
            if host.drain == "off":
                host.drains += 1
                host.steps_drained = rng.randrange(5, 40)
                self.ask_drainer(host, "asked")
        elif what < 0.1:
            host = rng.choice([host for host in self.hosts if host.memory] or [None])
            if host:
                host.hoarder.act()
        elif what < 0.105:
            rng.choice(self.hosts).measure()
        elif not player.half and not player.over:
            for _ in range(rng.randrange(5)):
                player.ask_something()
            player.send_some()
        self.look(rng.choice([0, 0, 1, 5]))

    def settle(self):
        """Everybody who is owed answers gets them."""
        end = time.monotonic() + PATIENCE
        for p in self.players:
            p.ask("PING", ["end"])
        waits = self.players
        while waits:
            for p in waits:
                p.send_some(all_of_it=True)
            self.look(50)
            waits = [p for p in self.players if p.strict and not p.half and p.outstanding]
            assert time.monotonic() < end, \
                f"no answer to {[([r.words for r in p.outstanding], p.history[-6:]) for p in waits]}"

    def clear(self):
        for p in self.players:
            p.end()
        self.players = []
        for h in self.hosts:
            h.hoard_at_last()
            h.release()

        def left():
            return [what for what in (h.is_left() for h in self.hosts) if what]

        harness.wait_until(lambda: not left(), lambda: f"what is left when all have hung up to go: {left()}", PATIENCE)
        for h in self.hosts:
            h.measure()
            h.hoarder.let_go()
            h.measure()

    def run(self):
        wrong = None
        try:
            for host in self.hosts:
                host.start()
            for _ in range(STEPS):
                self.step()
            for host in self.hosts:
                host.serves()
            self.settle()
            self.clear()
        except Exception as e:  # pylint: disable=broad-except
            wrong = f"{type(e).__name__}: {e}"
        finally:
            for p in self.players:
                p.end()
            logs = [host.daemon.log()[-6000:] for host in self.hosts]
            complaints = list(filter(None, [host.end() for host in self.hosts]))
        if complaints or wrong:
            raise AssertionError("\n".join(filter(None, [wrong, *(complaints or logs)])))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=60, help="no episode begins after that")
    arguments.add_argument("--seed", type=int, default=int(time.time()), help="of the first episode; the next one has the next")
    arguments.add_argument("--episodes", type=int, default=1 << 30)
    arguments.add_argument("--zookeeper", action="store_true", help="two daemons and a server")
    chosen = arguments.parse_args()
    table = commands()
    assert table and not without_shape(), f"commands without a shape: {without_shape()}"
    _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    sweeper = harness.begin_run()
    zookeeper = harness.Zookeeper() if chosen.zookeeper else None
    begun, asked, done, seed = time.monotonic(), set(), 0, chosen.seed
    totals = dict.fromkeys(("requests", "answers", "crashes", "handovers", "reloads", "drains", "kept"), 0)
    while done < chosen.episodes and (done == 0 or time.monotonic() < begun + chosen.seconds):
        episode = Episode(seed + done, table, zookeeper)
        try:
            episode.run()
        except AssertionError as e:
            print(f"stateful: failed with seed {seed + done}: {e}\n"
                  f"again: LOCKBROKER_BUILD={harness.build_dir()} {sys.executable} {sys.argv[0]} --episodes 1 --seed {seed + done}"
                  + " --zookeeper" * chosen.zookeeper)
            sys.exit(1)
        asked |= episode.asked & set(table)
        for key, count in episode.done().items():
            totals[key] += count
        done += 1
    if zookeeper:
        zookeeper.end()
    sweeper.stdin.close()
    print(f"stateful, seed {seed}: {done} episodes, {len(asked)} of {len(table)} commands, "
          + ", ".join(f"{count} {key}" for key, count in totals.items())
          + (f"; memory was not measured: {why_not_measured()}" if why_not_measured() else ""))


if __name__ == "__main__":
    main()
