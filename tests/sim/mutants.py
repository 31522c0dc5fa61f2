#!/usr/bin/python3
"""Breaks the rules of the core one by one and asks the simulator to notice.

mutants.py [--cc CC] [--seconds N] [--jobs N] [--only TEXT] [--list]

Each mutant is a text of the core replaced by another. It is built with the simulator in a private directory and run
until the first failing seed. A mutant that lives longer than its bound of seeds fails the whole run. With --seconds
the bounds shrink so that all of them get a share of that time; a mutant that outlives its share is only reported.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from mutants_table import MUTANTS

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-I.", "-Idaemon", "-w"]
BUILDING = 0.4  # seconds for one mutant, roughly
PURE = ["daemon/base/map.c", "daemon/base/heap.c"]


def sources():
    core = sorted(glob.glob("daemon/core/*.c"))
    sim = sorted(f for f in glob.glob("tests/sim/*.c") if not os.path.basename(f).startswith("test_"))
    return core + sim + sorted(glob.glob("tests/anything/*.c")) + PURE + sorted(glob.glob("protocol/*.c"))


# The programs that look for mutants, by the name of the mix that asks for it.
ANYTHING = "anything"
FAKEZK = ["tests/sim/sched.c"] + sorted(glob.glob(os.path.join(ROOT, "tests/sim/fakezk_*.c")))


def parts_of(program, where, objects):
    """Of all objects those that the program is linked from."""
    fakezk = {object_of(where, os.path.relpath(f, ROOT) if os.path.isabs(f) else f) for f in FAKEZK}

    def fits(o):
        name = os.path.basename(o)
        if program == ANYTHING:
            return o in fakezk or not name.startswith("tests_sim_")
        return not name.startswith("tests_anything_")

    return [o for o in objects if fits(o)]


def object_of(where, source):
    return os.path.join(where, source.replace("/", "_")[:-2] + ".o")


def compile_one(cc, source, target, text=None):
    command = cc.split() + FLAGS + ["-c", "-o", target]
    if text is None:
        return subprocess.run(command + [source], cwd=ROOT, check=True)
    ran = subprocess.run(command + ["-I", os.path.dirname(source), "-x", "c", "-"], cwd=ROOT, input=text.encode(), check=False)
    if ran.returncode:
        raise SystemExit(f"a mutant of {source} does not compile: {target}")
    return ran


def mutate(name, changes):
    """The mutated texts by file. Each old text must stand in its file exactly once."""
    texts = {}
    for file, old, new in changes:
        if file not in texts:
            with open(os.path.join(ROOT, file), encoding="utf-8") as f:
                texts[file] = f.read()
        found = texts[file].count(old)
        if found != 1:
            raise SystemExit(f"mutant '{name}': its text stands {found} times in {file}, not once:\n{old}")
        texts[file] = texts[file].replace(old, new)
    return texts


class Budget:
    """Wall time for all mutants: what the quick ones leave is shared by the others."""

    def __init__(self, seconds, jobs, mutants):
        self.end, self.jobs, self.left = time.monotonic() + seconds, jobs, mutants
        self.lock, self.limited = threading.Lock(), seconds > 0

    def share(self):
        with self.lock:
            share = (self.end - time.monotonic()) * self.jobs / self.left
            self.left -= 1
        return max(0.15, share - BUILDING)


class Result:
    def __init__(self, name, bound):
        self.name, self.bound = name, bound
        self.killed_by, self.reason, self.seeds, self.seconds = None, "", 0, 0.0


def judge(result, output):
    seed = re.search(r"(?:SEED=|anything --seed )(\d+)", output)
    if seed:
        result.killed_by = int(seed.group(1))
        reason = re.search(r"failed at [^\n]*:\n  ([^\n]*)", output)
        result.reason = reason.group(1) if reason else "the core's own checks"
    count = re.search(r"^(\d+) seeds, ", output, re.M)
    result.seeds = int(count.group(1)) if count else 0


def run_mutant(args, where, base, mutant, budget):
    name, changes, bound, *mix = mutant
    result = Result(name, bound)
    share = budget.share() if budget.limited else 0
    mutated = os.path.join(where, re.sub(r"\W+", "_", name))
    began = time.monotonic()
    program = ANYTHING if mix[:1] == [ANYTHING] else "sim"
    objects, made = parts_of(program, where, base), [mutated]
    for number, (file, text) in enumerate(mutate(name, changes).items()):
        made.append(f"{mutated}{number}.o")
        compile_one(args.cc, file, made[-1], text)
        objects[objects.index(object_of(where, file))] = made[-1]
    subprocess.run(args.cc.split() + ["-o", mutated] + objects, check=True)
    command = [mutated, "--seeds", str(bound)] + (["--mix", mix[0]] if mix and program == "sim" else [])
    if share:
        command += ["--seconds", f"{share:.2f}"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    judge(result, ran.stdout.decode(errors="replace"))
    if ran.returncode and result.killed_by is None:
        raise SystemExit(f"mutant '{name}': the simulator ended with {ran.returncode}:\n{ran.stdout.decode()[-2000:]}")
    result.seconds = time.monotonic() - began
    for path in made:
        os.unlink(path)
    return result


def report(result, limited):
    if result.killed_by is not None:
        print(f"  killed   seed {result.killed_by:<6} {result.name}: {result.reason[:110]}", flush=True)
        return True
    full = result.seeds >= result.bound
    word = "SURVIVED" if full else "not yet "
    print(f"  {word} after {result.seeds} of {result.bound} seeds: {result.name}", flush=True)
    return not full and limited


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--seconds", type=float, default=0, help="wall time for all of them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    mutants = [m for m in MUTANTS if args.only in m[0]]
    for name, changes, bound, *_ in mutants:
        texts = mutate(name, changes)
        if args.list:
            print(f"{bound:6} {', '.join(texts)}: {name}")
    if args.list:
        return 0
    where = tempfile.mkdtemp(prefix="mutants-")
    began = time.monotonic()
    try:
        os.chdir(ROOT)
        base = [object_of(where, s) for s in sources()]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(lambda s: compile_one(args.cc, s, object_of(where, s)), sources()))
            subprocess.run(args.cc.split() + ["-o", os.path.join(where, "plain")] +
                           parts_of("sim", where, base), check=True)
            budget = Budget(args.seconds - (time.monotonic() - began) if args.seconds else 0, args.jobs, len(mutants))
            if budget.limited:
                mutants.sort(key=lambda m: m[2])
            jobs = [pool.submit(run_mutant, args, where, base, m, budget) for m in mutants]
            results = []
            for job in jobs:
                results.append((job.result(), report(job.result(), budget.limited)))
    finally:
        shutil.rmtree(where)
    killed = sum(1 for r, _ in results if r.killed_by is not None)
    worst = max((r.killed_by or 0 for r, _ in results), default=0)
    print(f"{killed} of {len(results)} mutants killed, the latest by seed {worst}, in {time.monotonic() - began:.0f} s")
    return 0 if all(fine for _, fine in results) else 1


if __name__ == "__main__":
    sys.exit(main())
