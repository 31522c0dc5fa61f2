#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the rules of the core one by one and asks the simulator to notice.

mutants.py [--cc CC] [--objects DIR] [--jobs N] [--only TEXT] [--write]
mutants.py --list [--jobs N] [FILE ...]
mutants.py ... --seconds S [--seed N] [FILE ...]
mutants.py ... --sample K [--seed N] [FILE ...]

Each mutant is a text of the core replaced by another. It is built with the simulator in a private directory and run
until the first failing seed. A mutant that lives longer than its bound of seeds fails the whole run, and so does one
whose text does not stand in the core any more, or that does not compile.

mutants_seeds.txt has the seed and the mix that ended each mutant when they were recorded: they are tried first, because the
search for them takes most of the time. A change of the simulator makes other worlds of them; then the search finds another
one, and --write records it.

DIR has the objects of the sources as they are (make's, BUILD/obj); without it they are compiled first.

With --seconds, those that change one of the FILEs come first, then the others, in an order of chance that N gives. What
is not decided when the time is over is neither killed nor alive. With --sample, K of them in that order are tried.

With --list the text of each is looked for, and those are compiled that change one of the FILEs; all of them if a table of
mutants is among the FILEs, or if there are none.
"""

import argparse
import concurrent.futures
import functools
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from mutants_table import MUTANTS

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SEEDS = os.path.join(ROOT, "tests", "sim", "mutants_seeds.txt")
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-I.", "-Idaemon", "-w"]
PURE = ["daemon/base/account.c", "daemon/base/charge.c", "daemon/base/flight.c", "daemon/base/glob.c", "daemon/base/heap.c",
        "daemon/base/hold_record.c", "daemon/base/map.c", "daemon/base/rule.c", "daemon/base/sha1.c", "daemon/base/sha256.c",
        "daemon/base/sha_blocks.c"]


def sources():
    core = sorted(glob.glob("daemon/core/**/*.c", recursive=True))
    sim = sorted(f for f in glob.glob("tests/sim/*.c") if not os.path.basename(f).startswith("test_"))
    return core + sim + PURE + sorted(glob.glob("protocol/*.c"))


def object_of(args, where, source):
    if args.objects:
        return os.path.join(args.objects, source[:-2] + ".o")
    return os.path.join(where, source.replace("/", "_")[:-2] + ".o")


def compile_one(cc, source, target, text=None):
    """To the object `target`; None: only to see whether it can be."""
    command = cc.split() + FLAGS + (["-c", "-o", target] if target else ["-fsyntax-only"])
    if text is None:
        return subprocess.run(command + [source], cwd=ROOT, check=True)
    ran = subprocess.run(command + ["-I", os.path.dirname(source), "-x", "c", "-"], cwd=ROOT, input=text.encode(),
                         stderr=subprocess.PIPE, check=False)
    if ran.returncode:
        errors = [line for line in ran.stderr.decode(errors="replace").splitlines() if "error:" in line]
        raise Unfit(f"it does not compile as {source}:\n" + "\n".join(errors))
    return ran


class Unfit(Exception):
    """A mutant that cannot be tried: the table has not gone along with the core."""


@functools.lru_cache(None)
def mutable():
    """The sources that may be mutated, by file."""
    files = glob.glob("daemon/core/**/*.c", root_dir=ROOT, recursive=True) + glob.glob("tests/sim/*.c", root_dir=ROOT) + PURE
    texts = {}
    for file in sorted(files):
        with open(os.path.join(ROOT, file), encoding="utf-8") as f:
            texts[file] = f.read()
    return texts


def place(texts, old, file=""):
    """The one file in which the text stands, and once."""
    found = {name: text.count(old) for name, text in texts.items() if old in text and name.endswith(file)}
    if sum(found.values()) != 1:
        raise Unfit(f"its text stands {sum(found.values())} times, not once ({', '.join(found)}):\n{old}")
    return list(found)[0]


def mutate(changes):
    """The mutated texts by file."""
    texts, touched = mutable().copy(), set()
    for *file, old, new in changes:
        found = place(texts, old, *("/" + name for name in file))
        texts[found] = texts[found].replace(old, new)
        touched.add(found)
    return {file: texts[file] for file in sorted(touched)}


class Result:
    def __init__(self, name, bound):
        self.name, self.bound = name, bound
        self.killed_by, self.mix, self.reason, self.seeds, self.unfit, self.undecided = None, "", "", 0, None, False


def read_seeds():
    """The recorded seeds and mixes by mutant."""
    with open(SEEDS, encoding="utf-8") as f:
        lines = [re.fullmatch(r"(\d+) '(.*?)' (.*)\n", line).groups() for line in f if not line.startswith("#")]
    return {name: (int(seed), mix) for seed, mix, name in lines}


def write_seeds(results):
    """What was found replaces what was recorded; mutants that are no more are forgotten."""
    seeds = read_seeds() | {r.name: (r.killed_by, r.mix) for r in results if r.killed_by is not None}
    with open(SEEDS, "w", encoding="utf-8") as f:
        f.write("# The seed and the mix that ended each mutant, recorded by `make mutants WRITE=1`: mutants.py tries them first.\n")
        f.writelines(f"{seeds[name][0]} '{seeds[name][1]}' {name}\n" for name, *_ in MUTANTS if name in seeds)


def judge(result, output):
    seed = re.search(r"SEED=(\d+) MIX='(.*)'", output)
    if seed:
        result.killed_by, result.mix = int(seed.group(1)), seed.group(2)
        reason = re.search(r"failed at [^\n]*:\n  ([^\n]*)", output)
        result.reason = reason.group(1) if reason else "the core's own checks"
    count = re.search(r"^(\d+) seeds, ", output, re.M)
    result.seeds = int(count.group(1)) if count else 0


def run_seeds(result, command):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    judge(result, ran.stdout.decode(errors="replace"))
    if ran.returncode and result.killed_by is None:
        raise Unfit(f"the simulator ended with {ran.returncode}:\n{ran.stdout.decode()[-2000:]}")


def try_mutant(args, where, base, mutant):
    name, changes, bound, *mix = mutant
    result = Result(name, bound)
    mutated = os.path.join(where, re.sub(r"\W+", "_", name))
    objects, made = list(base), [mutated]
    for number, (file, text) in enumerate(mutate(changes).items()):
        made.append(f"{mutated}{number}.o")
        compile_one(args.cc, file, made[-1], text)
        objects[objects.index(object_of(args, where, file))] = made[-1]
    subprocess.run(args.cc.split() + ["-fno-lto", "-Wl,-S", "-o", mutated] + objects, check=True)
    if name in args.seeds:
        seed, recorded = args.seeds[name]
        run_seeds(result, [mutated, "--mix", recorded, "--first", str(seed), "--seeds", "1"])
    if result.killed_by is None:
        limit = ["--seconds", str(max(0.1, args.until - time.monotonic()))] if args.seconds else []
        run_seeds(result, [mutated] + (["--mix", mix[0]] if mix else []) + ["--seeds", str(bound)] + limit)
    for path in made:
        os.unlink(path)
    return result


def run_mutant(args, where, base, mutant):
    result = Result(mutant[0], mutant[2])
    if args.seconds and time.monotonic() > args.until:
        result.undecided = True
        return result
    try:
        result = try_mutant(args, where, base, mutant)
        result.undecided = args.seconds and result.killed_by is None and result.seeds < result.bound
    except Unfit as e:
        result.unfit = e
    return result


def report(result):
    if result.undecided:
        return
    if result.unfit:
        print(f"  UNFIT    {result.name}: {result.unfit}", flush=True)
    elif result.killed_by is not None:
        print(f"  killed   seed {result.killed_by:<6} {result.name}: {result.reason[:110]}", flush=True)
    else:
        print(f"  SURVIVED {result.seeds} of {result.bound} seeds: {result.name}", flush=True)


def list_one(args, mutant):
    name, changes, bound, *_ = mutant
    try:
        texts = mutate(changes)
        for file, text in texts.items() if args.compile_all or set(texts) & set(args.files) else ():
            compile_one(args.cc, file, None, text)
        return f"{bound:6} {', '.join(texts)}: {name}"
    except Unfit as e:
        return f"UNFIT  {name}: {e}"


def list_all(args, mutants):
    """With their files; fails where a text is not found, or does not compile."""
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        lines = list(pool.map(lambda m: list_one(args, m), mutants))
    print("\n".join(lines))
    return 1 if any(line.startswith("UNFIT") for line in lines) else 0


def in_order(mutants, seed, files):
    """Those of the files first; the others by chance."""
    def near(mutant):
        try:
            return not set(mutate(mutant[1])) & set(files)
        except Unfit:
            return False

    mutants = mutants[:]
    random.Random(seed).shuffle(mutants)
    return sorted(mutants, key=near)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--list", action="store_true", help="their bounds and files; fails where one cannot be made")
    parser.add_argument("--write", action="store_true", help="record the seeds that were found")
    parser.add_argument("--objects", type=os.path.abspath, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    mutants = [m for m in MUTANTS if args.only in m[0]]
    args.seeds = read_seeds()
    if not mutants:
        parser.error(f"no mutant has '{args.only}' in its name")
    args.compile_all = not args.files or any(re.match(r"tests/sim/mutants\w*\.py", file) for file in args.files)
    if args.list:
        return list_all(args, mutants)
    where = tempfile.mkdtemp(prefix="mutants-")
    began = time.monotonic()
    args.until = began + args.seconds
    if args.seconds or args.sample:
        mutants = in_order(mutants, args.seed, args.files)
    if args.sample:
        print(f"{min(args.sample, len(mutants))} of {len(mutants)} mutants, in the order of {args.seed}", flush=True)
        mutants = mutants[:args.sample]
    try:
        os.chdir(ROOT)
        base = [object_of(args, where, s) for s in sources()]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            if not args.objects:
                list(pool.map(lambda s: compile_one(args.cc, s, object_of(args, where, s)), sources()))
            jobs = [pool.submit(run_mutant, args, where, base, m) for m in mutants]
            results = []
            for job in concurrent.futures.as_completed(jobs):
                results.append(job.result())
                report(results[-1])
    finally:
        shutil.rmtree(where)
    if args.write:
        write_seeds(results)
    decided = [r for r in results if not r.undecided]
    killed = sum(1 for r in decided if r.killed_by is not None)
    worst = max((r.killed_by or 0 for r in decided), default=0)
    print(f"{killed} of {len(decided)} mutants killed, the latest by seed {worst}, in {time.monotonic() - began:.0f} s" +
          (f"; {len(results) - len(decided)} were not decided in that time" if args.seconds else ""))
    return 0 if killed == len(decided) else 1


if __name__ == "__main__":
    sys.exit(main())
