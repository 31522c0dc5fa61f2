# SPDX-License-Identifier: Apache-2.0
"""Clients that hold a lock through one fault after the other, and neither ask nor are told anything meanwhile. What is
done to the daemons costs them nothing, unless the fault says that it may."""

import harness


class Holder:
    """One such client."""

    def __init__(self, host, lock, now_ns):
        self.host, self.lock, self.now_ns = host, lock, now_ns
        self.client = self.token = None
        self.since = 0  # it has held the lock without an end

    def begin(self):
        self.end()
        self.client = self.host.daemon.client(2)
        self.token = self.client.call("LOCK", self.lock)
        assert isinstance(self.token, int), f"{self.lock} cannot be had: {self.token}"
        self.since = self.now_ns()

    def end(self):
        if self.client:
            self.client.close()
        self.client = None

    def lost(self):
        """How, or None."""
        try:
            if not self.client.quiet(0):
                return f"has read {self.client.reply()!r}"
            left = self.client.call("VALID", self.lock, "TOKEN", self.token)
        except (harness.Closed, OSError):
            return "was disconnected"
        return None if isinstance(left, int) and left > 0 else f"has lost it: {left!r}"

    def excused(self, faults):
        return any(f.costs_quiet(self.host.name, self.since) for f in faults)


class Quiet:
    """All of them. What is wrong, in sentences, is in `problems`."""

    def __init__(self, hosts, count, now_ns):
        self.holders = [Holder(h, f"quiet-{h.name}-{i}", now_ns) for h in hosts for i in range(count)]
        self.problems = []

    def begin(self):
        for h in self.holders:
            h.begin()

    def look(self, faults):
        """When all is well again after these: who has lost its lock begins again."""
        for h in self.holders:
            how = h.lost()
            if not how:
                continue
            if not h.excused(faults):
                done = [f"{f.kind} {' '.join(f.hosts)}" for f in faults if f.end >= h.since and f.kind != "calm"]
                self.problems.append(f"the quiet holder of {h.lock} {how}, after: {', '.join(done) or 'nothing'}")
            h.begin()

    def end(self):
        for h in self.holders:
            h.end()
