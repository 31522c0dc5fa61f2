# SPDX-License-Identifier: Apache-2.0
"""What /proc, strace, perf and callgrind tell of a load while it runs. All per pair, in microseconds of a core's time
where it is time."""

import collections
import glob
import os
import re
import resource
import signal
import subprocess
import time

import measure
import services
from services import harness

LEAD_S = 0.1  # after its start, all processes of a load are at work
FREQUENCY = 4000  # samples a second on each core
# What perf notes of itself besides would only take time.
PERF = ["perf", "record", "-q", "-g", "-B", "-N", "--no-bpf-event", "-e", "cpu-clock", "-F", str(FREQUENCY)]
TURNS = "syscalls:sys_enter_epoll_wait"


def quiet(argv, **options):
    """What a tool printed, or why there is nothing to print."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=measure.LOAD_PATIENCE, **options)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise services.Missing(str(e)) from None
    if done.returncode:
        raise services.Missing(f"{argv[0]}: {' '.join((done.stderr or done.stdout).split())[-200:]}")
    return done.stdout


class TooSlow(measure.Failed):
    """A load that did not get far enough to tell anything."""


# ---- what the kernel counts ----

def forked(pid):
    """Its children, and theirs."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        children = [int(child) for child in f.read().split()]
    return children + [p for child in children for p in forked(child)]


def workers(load):
    """The processes that a load has forked; itself, where it does without."""
    return forked(load) or [load]


def must_run(load):
    """Still: what was seen is of a load at work."""
    if os.waitid(os.P_PID, load, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        raise TooSlow("the load has ended before it was looked at")


def usage(pids):
    """CPU time, time in the queue for a core, and switches, of all threads there are."""
    sums = collections.Counter()
    for pid in pids:
        for task in glob.glob(f"/proc/{pid}/task/*"):
            try:
                with open(f"{task}/schedstat") as f:
                    ran_ns, queued_ns, _ = map(int, f.read().split())
                with open(f"{task}/stat") as f:
                    user, system = map(int, f.read().rsplit(")", 1)[1].split()[11:13])
                with open(f"{task}/status") as f:
                    switches = dict(re.findall(r"^(\w+)_ctxt_switches:\s+(\d+)", f.read(), re.M))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            sums.update(ran=ran_ns / 1e9, queued=queued_ns / 1e9, user=user, system=system,
                        waits=int(switches["voluntary"]), preempted=int(switches["nonvoluntary"]))
    return sums


def lead(seconds=LEAD_S):
    time.sleep(seconds)  # a load tells nobody when all its processes are at work


def rest(pids):
    """Once nothing is left for them to do."""
    def nothing():
        before, after, _ = harness.over(0.02, lambda: usage(pids)["ran"])
        return before == after
    harness.wait_until(nothing, "the service to have nothing to do")


def idle_seconds(cpus):
    with open("/proc/stat") as f:
        lines = (line.split() for line in f)
        return sum(int(w[4]) + int(w[5]) for w in lines if w[0] in {f"cpu{n}" for n in cpus}) / measure.TICKS


def ended_cpu_seconds():
    """(user, system) of all processes that we started, and that have ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN)[:2]


class Window:
    """A look at the programs at two instants of a load. `pids`: program -> processes; the load's are found."""

    def __init__(self, pids, cpus, seconds):
        self.pids, self.cpus, self.seconds = pids, cpus, seconds
        self.looks = []
        self.ended = ended_cpu_seconds()

    def __call__(self, load):
        lead()
        programs = self.pids | {"load": workers(load)}
        *self.looks, _ = harness.over(self.seconds, lambda: (time.monotonic(), idle_seconds(self.cpus),
                                                             {p: usage(programs[p]) for p in programs}))
        must_run(load)

    def figures(self, pairs_s):
        """Once the load has ended."""
        (began, idle, first), (ended, idle_end, last) = self.looks
        took = ended - began
        pairs, cores = pairs_s * took, len(self.cpus)
        found = {"elapsed_us": 1e6 / pairs_s, "idle_us": (idle_end - idle) * 1e6 / pairs}
        rest = cores * took - (idle_end - idle)
        for program, now in last.items():
            grown = collections.Counter(now)
            grown.subtract(first[program])
            if grown["ran"] < 0:
                raise TooSlow("some of its processes had ended when they were looked at")
            if program != "server" or cores > 1:  # which is not pinned with the others
                rest -= grown["ran"]
            user, system = grown["user"], grown["system"]
            if program == "load":  # of many processes none has had a tick, but in the end they are counted finer
                user, system = (now - then for now, then in zip(ended_cpu_seconds(), self.ended))
            user /= max(1e-9, user + system)
            found |= {f"{program}_user_us": grown["ran"] * user * 1e6 / pairs,
                      f"{program}_system_us": grown["ran"] * (1 - user) * 1e6 / pairs,
                      f"{program}_queued_us": grown["queued"] * 1e6 / pairs,
                      f"{program}_waits": grown["waits"] / pairs, f"{program}_preempted": grown["preempted"] / pairs}
            if program == "service":
                found |= {"runs": grown["ran"] / took * 100, "queued": grown["queued"] / took * 100,
                          "sleeps": (1 - (grown["ran"] + grown["queued"]) / took) * 100}
        return found | {"others_us": rest * 1e6 / pairs}


# ---- strace ----

class Strace:
    """Counts the system calls of processes from its beginning to finish(). It slows them down, so that where several
    clients are served in one turn these are more than without it."""

    def __init__(self, pids, directory):
        self.path = os.path.join(directory, "strace")
        self.process = harness.spawn(["strace", "-q", "-f", "-c", "-U", "calls,name", "-o", self.path,
                                      *[w for pid in pids for w in ("-p", str(pid))]], stderr=subprocess.PIPE, text=True)
        try:
            harness.wait_until(lambda: self.process.poll() is not None or all(map(self.traced, pids)), "strace")
            if self.process.poll() is not None:
                raise services.Missing(f"strace: {' '.join(self.process.stderr.read().split())[-200:]}")
        except BaseException:
            self.end()
            raise

    @staticmethod
    def traced(pid):
        with open(f"/proc/{pid}/status") as f:
            return not re.search(r"^TracerPid:\s+0$", f.read(), re.M)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate()

    def finish(self):
        """name -> calls"""
        self.end()
        with open(self.path) as f:
            return {name: int(calls) for calls, name in re.findall(r"^\s*(\d+) (\w+)$", f.read(), re.M) if name != "total"}


# ---- perf ----

def perf_overhead_s():
    """How much longer than it looks perf takes. Missing where it is not there, or not allowed."""
    services.found("perf")
    began = time.monotonic()
    quiet([*PERF, "-a", "-o", "/dev/null", "true"])
    quiet(["perf", "stat", "-x", ",", "-e", TURNS, "true"])
    return time.monotonic() - began


LIBRARY = re.compile(r"(libc|libevent|libzookeeper)(?![a-z])")
SYSTEM_CALL = re.compile(r"__(?:x64|arm64|se|do)_sys_(\w+)")
WAKING = re.compile(r"wake|sock_def_readable|write_space")


def kernel_part(frames):
    """What the kernel was at: symbols from the innermost to the outermost."""
    names = [name for name, _ in frames]
    if any(n == "exit_to_user_mode_loop" for n in names):
        return "preempted" if "schedule" in names or "__schedule" in names else "entry and exit"
    if "schedule" in names or "__schedule" in names:
        return "goes to sleep, wakes up"
    if any(map(WAKING.search, names)):
        return "wakes others up"
    calls = [found.group(1) for found in map(SYSTEM_CALL.match, names) if found]
    if calls:
        return calls[-1]
    return "interrupts" if any("interrupt" in n or "sysvec" in n for n in names) else "entry and exit"


def part_of(frames):
    """Whose code the innermost frame is, and, in the kernel, what for."""
    if not frames:
        return "own code"
    path = frames[0][1]
    if path.startswith("[") and path not in ("[vdso]", "[unknown]"):
        return f"kernel: {kernel_part(frames)}"
    name = os.path.basename(path)
    library = LIBRARY.match(name)
    if library or path == "[vdso]":
        return library.group(1) if library else "libc"
    return "other libraries" if ".so" in name else "own code"


class Samples:
    """Where the cores are, FREQUENCY times a second, and then, for a third of that time, how often the service looks for
    events."""

    def __init__(self, pids, cpus, seconds, directory):
        self.pids, self.cpus, self.seconds = pids, cpus, seconds
        self.data, self.counts = (os.path.join(directory, n) for n in ("perf.data", "perf.stat"))
        self.program = {}  # by process

    @staticmethod
    def load_seconds(seconds, overhead_s):
        """How long a load has to run for all this."""
        return LEAD_S + seconds * 4 / 3 + overhead_s * 1.5 + 0.3

    def __call__(self, load):
        lead()
        programs = self.pids | {"load": [load, *workers(load)]}
        self.program = {0: "idle"} | {pid: program for program, pids in programs.items() for pid in pids}
        quiet([*PERF, "-C", ",".join(map(str, self.cpus)), "-o", self.data,
               "sleep", str(self.seconds)])
        quiet(["perf", "stat", "-x", ",", "-e", TURNS, "-p", ",".join(map(str, self.pids["service"])), "-o", self.counts,
               "sleep", str(self.seconds / 3)])
        must_run(load)

    def each(self):
        """Of each sample: its program, and its frames, innermost first, as (symbol, object)."""
        for block in quiet(["perf", "script", "-i", self.data, "-F", "comm,pid,ip,sym,dso"]).split("\n\n"):
            head, *lines = block.strip("\n").split("\n")
            if head:
                frames = (re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", line) for line in lines)
                yield self.program.get(int(head.split()[-1]), "others"), [f.groups() for f in frames if f]

    def figures(self, pairs_s):
        """Microseconds by program and part, the same by program and symbol, and turns."""
        parts, symbols, total = collections.Counter(), collections.Counter(), 0
        for program, frames in self.each():
            total += 1
            if program in ("idle", "others"):
                parts[program] += 1
                continue
            part = part_of(frames)
            parts.update([f"{program}: all", f"{program}: {part}"])
            if part.startswith("kernel"):
                parts[f"{program}: kernel"] += 1
            if frames:
                symbols[f"{program}: {symbol_name(*frames[0])}"] += 1
        each_us = len(self.cpus) * 1e6 / pairs_s / total
        with open(self.counts) as f:
            turns = sum(map(int, re.findall(rf"^(\d+),[^,]*,{TURNS}", f.read(), re.M)))
        return ({key: n * each_us for key, n in parts.items()}, {key: n * each_us for key, n in symbols.items()},
                {"turns": turns / (self.seconds / 3) / pairs_s})


def symbol_name(symbol, path):
    name = os.path.basename(path).split(".so")[0].strip("[]").replace("kernel.kallsyms", "kernel")
    return f"{symbol.split('.')[0] if symbol != '[unknown]' else '?'} ({name})"


# ---- callgrind ----

def callgrind(directory, name="one"):
    """The words to run a program under."""
    return ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={directory}/callgrind.{name}"]


def dumps(directory):
    return glob.glob(f"{directory}/callgrind.*")


def dump(directory, pid):
    """Writes what was counted since the last time, and begins anew; the file's name."""
    before = set(dumps(directory))
    quiet(["callgrind_control", "--dump", str(pid)])
    return harness.wait_until(lambda: next(iter(set(dumps(directory)) - before), None), "callgrind")


def function_name(place):
    """Of file:function [object]: the function; where it has no name, its address and the object."""
    place, _, path = place.partition(" [")
    name = place.rpartition(":")[2]
    return f"{int(name, 16):#x} ({os.path.basename(path).split('.so')[0]})" if name.startswith("0x") else name


def instructions(path, inclusive):
    """All of them, and by function. The same function may stand there more than once: by how its file was named."""
    told = quiet(["callgrind_annotate", "--auto=no", "--threshold=100", f"--inclusive={'yes' if inclusive else 'no'}", path])
    total, found = 0, {}
    for count, place in re.findall(r"^ *([\d,]+) \([ \d.]+%\) +(.*)$", told, re.M):
        count, name = int(count.replace(",", "")), function_name(place)
        if place == "PROGRAM TOTALS":
            total = count
        else:
            found[name] = max(found.get(name, 0), count) if inclusive else found.get(name, 0) + count
    return total, found
