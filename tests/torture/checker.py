# SPDX-License-Identifier: Apache-2.0
"""Reads what the clients of a torture saw (worker.c) and what was done to them (faults.py), and proves that every
promise was kept. Pure: text in, a report out.

What a client may rely on is its proven validity: from the answer of LOCK until it sends UNLOCK, hears of the loss or of
its connection's end, and in any case no longer than the latest answer of VALID says, counted from before it was asked.
"""

import bisect
import collections
import dataclasses

MS = 1_000_000
SECOND = 1000 * MS

TOLD_LATE = 500 * MS     # a busy machine lets a client read late
WAIT_LATE = 3 * SECOND   # and a bounded wait end late
WAIT_MOST_T = 20         # no wait may take longer than so many T, however many faults it meets


@dataclasses.dataclass
class Fault:
    """Something that was done between `begin` and `end` (ns). What it excuses, on `hosts` (empty: on all):
    loses: grants may be lost. must_lose: whoever holds throughout is told of its loss. stopped: the daemon did not run.
    expired: a third party ended the session, so that others may be granted before the daemon can know. closes: the
    connections of clients may end; `kept`: but not those that have held something for a while and are quiet. refuses:
    requests may be refused as unavailable, at once."""

    kind: str
    begin: int
    end: int
    hosts: list = dataclasses.field(default_factory=list)
    loses: bool = False
    must_lose: bool = False
    stopped: bool = False
    expired: bool = False
    closes: bool = False
    kept: bool = False
    refuses: bool = False

    def costs_quiet(self, host, since):
        """Whether a quiet client of that host, which has held its lock since then, may have lost it."""
        return (not self.hosts or host in self.hosts) and self.end >= since and (self.loses or (self.closes and not self.kept))

    def on(self, host, t, after=0):
        return (not self.hosts or host in self.hosts) and self.begin <= t <= self.end + after


@dataclasses.dataclass
class History:
    """One client process. `killed`: from outside."""

    worker: str
    lines: list
    killed: bool = False


@dataclasses.dataclass
class Violation:
    what: str
    lock: str
    at: int
    text: str


class Grant:
    __slots__ = ("lock", "token", "worker", "host", "start", "end", "proven", "told", "over", "void",
                 "ran_out", "confirmed")

    def __init__(self, lock, token, worker, host, start):
        self.lock, self.token, self.worker, self.host, self.start = lock, token, worker, host, start
        self.end = None     # when the client stopped relying on it
        self.proven = 0     # until when it was proven
        self.confirmed = 0  # when VALID was last asked and said that it is
        self.told = None    # when the event of its loss was read
        self.over = None    # how it ended: released, lost, gone, hangup, dead, end
        self.void = False   # on a session that a third party had ended
        self.ran_out = None  # when it has surely run out: VALID said 0 ms, which is less than one

    @property
    def until(self):
        return min(self.end, self.proven)

    def __str__(self):
        return f"{self.lock} {self.token} by {self.worker} on {self.host}"


class Reader:
    """Goes through one history and makes its grants; what cannot be by itself is a violation at once."""

    def __init__(self, check, history):
        self.check, self.history = check, history
        self.host = "?"
        self.held = {}      # lock -> grant
        self.lost = {}      # lock -> the grant whose loss UNLOCK told; its event may only be read after that
        self.asked = None   # (time, lock, wait in ms) of a LOCK without an answer
        self.parted = False
        self.last = 0

    def wrong(self, what, lock, text):
        self.check.wrong(what, lock, self.last, f"{self.history.worker} on {self.host}: {text}")

    def read(self):
        for line in self.history.lines:
            words = line.split()
            if not line.endswith("\n") or len(words) < 2:
                self.wrong("garbage", "", repr(line))
                continue
            self.last = int(words[1])
            getattr(self, f"on_{words[0]}")(*words[2:])
        if not self.parted and self.history.killed:
            self.finish("dead")
        elif not self.parted:
            lock = self.asked[1] if self.asked else ""
            self.wrong("forgotten", lock, f"did not end; last record: {self.history.lines[-1:]}")
            self.finish("dead")

    def finish(self, how):
        for g in self.held.values():
            self.let_go(g, self.last, how)
        self.held = {}

    @staticmethod
    def let_go(grant, at, how):
        grant.end = min(at, grant.told or at)
        grant.over = how

    def on_start(self, host):
        self.host = host

    def on_connected(self):
        self.check.figures["connections"] += 1

    def on_ask(self, lock, wait_ms):
        self.asked = self.last, lock, int(wait_ms)

    def on_answer(self, lock, result, token):
        asked, _, wait_ms = self.asked
        self.asked = None
        waited = self.last - asked
        self.check.figures[f"lock {result}"] += 1
        if result == "ok":
            self.check.longest = max(self.check.longest, (waited, lock, self.history.worker))
            self.granted(lock, int(token))
        elif result == "lost":
            self.lost_by(lock, "LOCK")
        elif result in ("taken", "unavailable"):
            refused = result == "unavailable" and self.check.hit("refuses", self.host, self.last, SECOND)
            if not refused and (wait_ms < 0 or waited < (wait_ms - 1) * MS):
                self.wrong("gave up early", lock, f"{result} after {waited / MS:.0f} of {wait_ms} ms")
            if wait_ms >= 0:
                self.check.waits.append((self, self.host, lock, asked, self.last, wait_ms))
        elif result not in ("connection", "draining"):
            self.wrong("answer", lock, f"LOCK was answered {result}")
        if result == "ok" and waited > WAIT_MOST_T * self.check.timeout:
            self.wrong("long wait", lock, f"waited {waited / SECOND:.1f} s")

    def granted(self, lock, token):
        if lock in self.held:
            self.wrong("two grants", lock, f"granted {token} beside {self.held[lock]}")
        if token <= 0:
            self.wrong("token", lock, f"the token is {token}")
        g = Grant(lock, token, self.history.worker, self.host, self.last)
        self.held[lock] = g
        self.check.grants.append(g)

    def lost_by(self, lock, command):
        g = self.held.pop(lock, None)
        if not g:
            self.wrong("lost what it had not", lock, f"{command} says LOST of what was not held, or told before")
            return
        self.let_go(g, self.last, "lost")

    def on_valid(self, after, lock, ms):
        g = self.held.get(lock)
        if not g:
            return
        if g.told and int(ms):
            self.wrong("valid after loss", lock, f"VALID says {ms} ms after the loss of {g.token} was told")
        g.ran_out = None if int(ms) else int(after) + MS
        g.confirmed = self.last if int(ms) else g.confirmed
        g.proven = max(g.proven, self.last + int(ms) * MS if int(ms) else 0)

    def on_unlock(self, after, lock, token, result):
        before, self.last = self.last, int(after)
        g = self.held.get(lock)
        self.check.figures[f"unlock {result}"] += 1
        if not g and result != "connection":
            self.wrong("unlock", lock, f"UNLOCK of nothing was answered {result}")
        elif result == "ok":
            del self.held[lock]
            self.let_go(g, before, "released")
            if g.told or g.ran_out is not None and before >= g.ran_out:
                self.wrong("released what was lost", lock, f"UNLOCK is fine although {g.token} was said to be lost")
        elif result == "lost":
            self.lost_by(lock, "UNLOCK")
            g.end = min(g.end, before)
            self.lost[lock] = g
        elif result == "connection":
            g.end = before
        else:
            self.wrong("unlock", lock, f"UNLOCK of {token} was answered {result}")

    def on_event(self, kind, lock, token, ms):
        self.check.figures[f"event {kind}"] += 1
        if kind != "lost":
            return
        g = self.held.get(lock) or self.lost.get(lock)
        if not g or g.token != int(token):
            g = next((x for x in reversed(self.check.grants)
                      if x.worker == self.history.worker and x.lock == lock and x.token == int(token)), None)
            what = "lost twice" if g and g.told else "lost what it had not"
            self.wrong(what, lock, f"told of the loss of {token}")
        elif g.told:
            self.wrong("lost twice", lock, f"told again of the loss of {token}")
        else:
            g.told = self.last

    def on_gone(self):
        self.asked = None
        self.check.figures["connections lost"] += 1
        if not self.check.hit("closes", self.host, self.last, SECOND):
            self.wrong("connection lost for nothing", "", f"no fault explains it; held: {sorted(self.held)}")
        for g in self.held.values():
            self.let_go(g, min(self.last, g.end or self.last), g.over or "gone")
        self.held = {}

    def on_hangup(self):
        self.finish("hangup")

    def on_die(self):
        self.parted = True
        self.finish("dead")

    def on_end(self):
        self.parted = True
        self.finish("end")


class Check:
    """`timeout`: T in ns. After run(): violations, grants, figures."""

    def __init__(self, histories, faults, timeout):
        self.histories, self.faults, self.timeout = histories, faults, timeout
        self.violations, self.grants, self.waits = [], [], []
        self.figures = collections.Counter()
        self.longest = (0, "", "")
        self.latest_told = 0

    def wrong(self, what, lock, at, text):
        self.violations.append(Violation(what, lock, at, text))

    def run(self):
        for history in self.histories:
            Reader(self, history).read()
        for g in self.grants:
            if g.end is None:
                g.end = g.start
        self.expire()
        by_lock = collections.defaultdict(list)
        for g in self.grants:
            by_lock[g.lock].append(g)
        for lock, grants in by_lock.items():
            grants.sort(key=lambda g: g.start)
            self.check_overlap(lock, [g for g in grants if g.until > g.start])
            self.check_tokens(lock, grants)
            self.check_told(lock, grants)
        self.check_waits()
        self.violations.sort(key=lambda v: v.at)
        return self

    def hit(self, flag, host, t, after=0):
        return any(getattr(f, flag) and f.on(host, t, after) for f in self.faults)

    def expire(self):
        """
        What a third party ended was proven no longer than that; what was granted until the daemon knew, never. A client
        may read such a grant a little later: VALID has then never said that it is proven. The fault ends some time after
        the daemon has its next session: what was granted meanwhile and is proven after that belongs to the next one.
        """
        for f in self.faults:
            if f.stopped:
                self.void_unproven(f)
            if not f.expired:
                continue
            for g in self.grants:
                if g.host not in f.hosts or (g.start >= f.begin and g.confirmed > f.end):
                    continue
                if f.begin <= g.start <= f.end + (0 if g.proven else SECOND):
                    g.void = True
                if g.start <= f.end:
                    g.proven = min(g.proven, f.begin) if g.end > f.begin else g.proven

    def void_unproven(self, fault):
        """A daemon may be stopped after it has granted a lock, and say so only when it goes on: then VALID says 0."""
        for g in self.grants:
            if g.host in fault.hosts and not g.proven and fault.begin <= g.start <= fault.end + SECOND:
                g.void = True

    def check_overlap(self, lock, grants):
        """`grants` in the order of their beginnings."""
        latest = None
        for g in grants:
            if latest and g.start < latest.until:
                self.wrong("two holders", lock, g.start,
                           f"{g} was granted {(latest.until - g.start) / MS:.3f} ms before the end of {latest}")
            if not latest or g.until > latest.until:
                latest = g

    def check_tokens(self, lock, grants):
        """Who has released it and has it again by a delegation has the same token: nobody else can have had it meanwhile."""
        seen, last, before = {}, None, None
        for g in grants:
            again = before and (before.token, before.worker, before.over) == (g.token, g.worker, "released")
            before = g
            if g.token in seen and not again:
                self.wrong("token repeats", lock, g.start, f"{g}, and before {seen[g.token]}")
            seen[g.token] = g
            if g.void:
                continue
            if last and g.token < last.token:
                self.wrong("token shrinks", lock, g.start, f"{g} after {last}")
            last = g
        tokens = sorted(seen)
        self.figures["hand-offs"] += sum(a >> 10 == b >> 10 for a, b in zip(tokens, tokens[1:]))

    def check_told(self, lock, grants):
        starts = [g.start for g in grants]
        for g in grants:
            if g.over == "lost" and not g.told:
                self.wrong("loss not told", lock, g.end, f"no event came for {g}")
            if g.told:
                self.check_loss(lock, g, grants, starts)
            for f in self.faults:
                since = g.end - f.begin
                if f.must_lose and f.on(g.host, g.end) and g.start < f.begin and not g.told and g.over == "released" \
                        and since > self.timeout * 4 // 5:
                    self.wrong("kept through an outage", lock, g.end, f"{g}, {since / SECOND:.1f} s into {f.kind}")

    def check_loss(self, lock, g, grants, starts):
        self.figures["losses"] += 1
        excused = self.hit("stopped", g.host, g.told, SECOND) or self.hit("expired", g.host, g.told, SECOND)
        if g.over in ("released", "hangup"):
            pass  # a violation of its own, or a client that hung up with its loss in hand
        # The library tells of the loss when the connection ends.
        if not self.hit("loses", g.host, g.told, SECOND) and not self.hit("closes", g.host, g.told, SECOND):
            self.wrong("lost for nothing", lock, g.told, f"{g}: no fault explains the loss")
        if excused:
            return
        if g.proven:
            self.latest_told = max(self.latest_told, g.told - g.proven)
        if g.proven and g.told > g.proven + TOLD_LATE:
            self.wrong("told late", lock, g.told, f"{g}: {(g.told - g.proven) / MS:.0f} ms after the proof had run out")
        i = bisect.bisect_left(starts, g.told)
        for other in grants[:i][-20:]:
            if other.token > g.token and other.host != g.host and not other.void:
                self.wrong("told too late", lock, g.told, f"{g}: {other} was granted before")

    def check_waits(self):
        for reader, host, lock, asked, answered, wait_ms in self.waits:
            late = answered - asked - wait_ms * MS - self.timeout // 6
            if late > WAIT_LATE and not any(f.stopped and (not f.hosts or host in f.hosts) and f.begin < answered and
                                            asked < f.end for f in self.faults):
                self.wrong("waited too long", lock, answered,
                           f"{reader.history.worker} on {host}: WAIT {wait_ms} took {(answered - asked) / MS:.0f} ms")

    def around(self, violation, before=2 * SECOND, after=SECOND // 2, most=60):
        """What everybody noted of that lock around the violation."""
        found = []
        for history in self.histories:
            for line in history.lines:
                words = line.split()
                if len(words) < 2 or not -before <= int(words[1]) - violation.at <= after:
                    continue
                if violation.lock in words or words[0] in ("gone", "die", "hangup", "event"):
                    found.append((int(words[1]), history.worker, line.strip()))
        for f in self.faults:
            if f.begin <= violation.at + after and f.end >= violation.at - before:
                until = f"until {(f.end - violation.at) / MS:+.3f} ms"
                found.append((f.begin, "fault", f"{f.kind} {' '.join(f.hosts)} {until}"))
        found.sort()
        cut = max(0, bisect.bisect_left(found, (violation.at,)) - most * 3 // 4)
        return [f"{(t - violation.at) / MS:+12.3f} ms  {who:12} {text}" for t, who, text in found[cut:cut + most]]
