# SPDX-License-Identifier: Apache-2.0
"""What daemons and ensemble use while they are tortured: memory, descriptors, files, znodes. It may go up and down with the
load; what only ever goes up is a leak, and fails the torture."""

import os
import re
import statistics
import time

WINDOWS = 4        # into which the time after the warm-up is cut
SAMPLES_MIN = 16   # fewer prove nothing
WARM_UP = 1 / 4    # of all samples: caches fill, and free lists find their size
# By how much the last window has to be above the first, besides: a share of it, and so many of its unit.
GROWTH = 0.05
SLACK = {"kB": 256, "descriptors": 4, "files": 2, "bytes": 64 * 1024, "znodes": 20, "watches": 40}


def grows(samples, unit):
    """Whether these figures, in the order of time, grow steadily: from each window to the next, and by more than a little."""
    if len(samples) < SAMPLES_MIN:
        return False
    warm = samples[int(len(samples) * WARM_UP):]
    bounds = [i * len(warm) // WINDOWS for i in range(WINDOWS + 1)]
    middle = [statistics.median(warm[a:b]) for a, b in zip(bounds, bounds[1:])]
    return (all(a < b for a, b in zip(middle, middle[1:]))
            and middle[-1] > middle[0] * (1 + GROWTH) + SLACK[unit])


def memory_kb(pid):
    """What is its own: neither files nor what it shares."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return int(re.search(r"^RssAnon:\s+(\d+) kB$", f.read(), re.M).group(1))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Resources:
    """Looks every so many seconds, when all is well. What grows steadily is in problems(), in sentences."""

    def __init__(self, hosts, zookeeper, every_s, say):
        self.hosts, self.zookeeper, self.every_s, self.say = hosts, zookeeper, every_s, say
        self.next_at = time.monotonic() + every_s
        self.series = {}  # (what, unit) -> figures in the order of time

    def look(self):
        if time.monotonic() < self.next_at:
            return
        self.next_at = time.monotonic() + self.every_s
        try:
            seen = self.now()
        except (OSError, AttributeError):
            return  # somebody has just ended by itself: next time
        for key, value in seen.items():
            self.series.setdefault(key, []).append(value)
        together = {}
        for (what, unit), value in seen.items():
            together.setdefault(what, []).append(f"{value} {unit}")
        self.say("  uses: " + ", ".join(" ".join([what, *values]) for what, values in together.items()))

    def now(self):
        seen = {}
        for h in self.hosts:
            for who, pid in ("worker", h.daemon.pid), ("keeper", h.daemon.process.pid):
                seen[f"{h.name} {who}", "kB"] = memory_kb(pid)
                seen[f"{h.name} {who}", "descriptors"] = descriptors(pid)
            seen[f"{h.name} saved", "bytes"] = os.stat(os.path.join(h.daemon.dir, "saved")).st_size
            seen[f"{h.name} rundir", "files"] = len(os.listdir(h.daemon.dir))
        figures = dict(re.findall(r"^zk_(\w+)\t(\d+)$", self.zookeeper.leader().ask("mntr"), re.M))
        seen["ensemble", "znodes"] = int(figures["znode_count"])
        seen["ensemble", "watches"] = int(figures["watch_count"])
        return seen

    def problems(self):
        return [f"{what}: {unit} grow steadily: {' '.join(map(str, samples))}"
                for (what, unit), samples in self.series.items() if grows(samples, unit)]

    def report(self):
        """A line for each: the first figure after the warm-up, the least, the greatest, and the last one."""
        for (what, unit), samples in self.series.items():
            warm = samples[int(len(samples) * WARM_UP):]
            yield f"{what} {unit}: first {warm[0]}, least {min(warm)}, most {max(warm)}, last {warm[-1]} ({len(samples)} looks)"
