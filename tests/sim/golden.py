#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The oracle of changes that shall change nothing: the traces of fixed seeds, in every mix, as hashes.

golden.py SIM [--write]

A trace shows each event that a broker took and each effect it had, in order. Compares the hashes of what SIM traces with
those in golden.txt beside this file and names each seed whose trace differs; --write records them instead.
"""

import concurrent.futures
import hashlib
import os
import subprocess
import sys

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.txt")
ANY_MIX, OF_A_MIX = range(1, 51), range(1, 4)
# Seeds that once showed a bug: they have to pass, too.
KEPT = [("late", 23521), ("snapshots, permits", 182), ("delegations, readers, calm", 3983316547020)]


def runs(sim):
    mixes = subprocess.run([sim, "--mixes"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return [("", seed) for seed in ANY_MIX] + [(mix, seed) for mix in mixes for seed in OF_A_MIX] + KEPT


def traced(sim, mix, seed):
    command = [sim, "--seed", str(seed), "--trace"] + (["--mix", mix] if mix else [])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        digest = hashlib.sha256()
        while text := process.stdout.read(1 << 20):
            digest.update(text)
    if process.returncode:
        return f"fails with status {process.returncode}"
    return digest.hexdigest()


def main():
    sim, write = sys.argv[1], "--write" in sys.argv[2:]
    todo = runs(sim)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda run: traced(sim, *run), todo))
    lines = [f"{digest} {seed} {mix}".rstrip() for (mix, seed), digest in zip(todo, found)]
    if write:
        with open(RECORD, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        return 0
    with open(RECORD, encoding="utf-8") as f:
        recorded = f.read().splitlines()
    differing = [line.split(" ", 1)[1] for line in lines if line not in recorded]
    gone = len(recorded) - (len(lines) - len(differing))
    for what in differing:
        print(f"golden: the trace of seed {what} is not the one recorded")
    if gone > len(differing):
        print(f"golden: {gone - len(differing)} recorded traces are no longer made")
    if differing or gone:
        print("golden: if that is meant, `make golden WRITE=1` records them; say in the commit why they changed")
        return 1
    print(f"golden: {len(lines)} traces as recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
