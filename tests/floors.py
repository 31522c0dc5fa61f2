#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The floors of the daemon and of the client library: a file calls and includes what is on its own floor or below.

floors.py OBJECTS

OBJECTS is where the objects of all sources are. A floor is a folder; FLOORS lists them from the ground up. Calls are
read from the symbols of the objects, includes from the sources. A call or include that goes up is an error, and so is a
circle: files that call each other, directly or through others.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
CORE = ["port", "znode", "session", "claim", "lock", "kind", "client", "hosts", "command"]
FLOORS = (
    ["protocol", "daemon/base"]
    + [f"daemon/core/{floor}" for floor in CORE]
    + ["daemon/core"]
    + [f"daemon/io/{floor}" for floor in ("base", "conf", "files", "zookeeper", "socket", "handover")]
    + ["daemon/io", "daemon/keeper", "daemon"]
)
CLIENT = ["protocol", "client-lib", "client-lib/cli"]


def rank(file, floors):
    folder = os.path.dirname(file)
    return floors.index(folder) if folder in floors else None


def sources():
    found = []
    for top in ("protocol", "daemon", "client-lib"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            found += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files if f.endswith((".c", ".h"))]
    return sorted(f for f in found if "/examples/" not in f)


def includes(files):
    for file in files:
        with open(os.path.join(ROOT, file), encoding="utf-8") as f:
            for name in re.findall(r'^#\s*include "([^"]+)"', f.read(), re.M):
                for base in (os.path.dirname(file), ".", "daemon"):
                    target = os.path.normpath(os.path.join(base, name))
                    if os.path.exists(os.path.join(ROOT, target)):
                        yield file, target, "includes"
                        break


def calls(files, objects, tops):
    """Pairs of files by the symbols of their objects: a symbol is looked for among the sources of the same program."""
    mine = [f for f in files if f.endswith(".c") and f.startswith(tops)]
    paths = {f: os.path.join(objects, f[:-2] + ".o") for f in mine}
    paths = {f: p for f, p in paths.items() if os.path.exists(p)}
    defined, wanted = {}, {}
    for file, path in paths.items():
        for line in subprocess.run(["nm", "-g", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
            kind, symbol = line.split()[-2:]
            if kind == "U":
                wanted.setdefault(file, set()).add(symbol)
            else:
                defined[symbol] = file
    for file, symbols in sorted(wanted.items()):
        for target in sorted({defined[s] for s in symbols if s in defined} - {file}):
            yield file, target, "calls"


def circles(pairs):
    """Strongly connected sets of more than one file (Tarjan)."""
    below = {}
    for a, b in pairs:
        below.setdefault(a, set()).add(b)
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(below.get(v, ())):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(below):
        if v not in index:
            visit(v)
    return found


def main():
    objects = sys.argv[1]
    files = sources()
    up, pairs = set(), set()
    for tops, floors in ((("protocol", "daemon"), FLOORS), (("protocol", "client-lib"), CLIENT)):
        of_program = [f for f in files if f.startswith(tops)]
        found = list(calls(files, objects, tops)) + list(includes(of_program))
        for file, target, how in found:
            a, b = rank(file, floors), rank(target, floors)
            if a is None or b is None:
                continue
            if b > a:
                up.add(f"{file} {how} {target}")
            if how == "calls":
                pairs.add((file, target))
    rings = circles(pairs)
    for line in sorted(up):
        print(f"floors: upward: {line}")
    for ring in rings:
        print(f"floors: a circle of calls: {' '.join(ring)}")
    print(f"floors: {len(up)} upward, {len(rings)} circles")
    return 1 if up or rings else 0


if __name__ == "__main__":
    sys.exit(main())
