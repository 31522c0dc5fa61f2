# SPDX-License-Identifier: Apache-2.0
"""Which test executes which line: BUILD/mutate/marks.jsonl has a record for each unit test program and each system test.

A C program marks addresses (mark.c). The addresses of one basic block are those from its mark's call to the next call, and
readelf and addr2line say which lines these are. A line of Python is marked itself.
"""

import array
import base64
import bisect
import json
import os
import re
import shutil
import subprocess
import tempfile
import zlib

import pytext
import trees

HEAD_BYTES = 4096  # as in mark.c
CALL = re.compile(r"^ *([0-9a-f]+):.*\bcall.*<__sanitizer_cov_trace_pc>$")
ROW = re.compile(r"^(\S+\.c) +\d+ +0x([0-9a-f]+)\b", re.M)


def collect(folder, images):
    """What the files of a folder of marks say. An image that was not seen before is kept, to be read later."""
    found, python = {}, {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        head, marks = data[:HEAD_BYTES], data[HEAD_BYTES:]
        if name.endswith(".py"):
            python[name] = [m.start() for m in re.finditer(b"\1", data)]
            continue
        addresses = array.array("I", (m.start() for m in re.finditer(b"\1", marks)))
        if addresses:
            found[name] = base64.b64encode(zlib.compress(addresses.tobytes())).decode()
            keep(head.rstrip(b"\0").decode(errors="replace"), os.path.join(images, name))
    return {"images": found, "python": python}


def keep(image, target):
    """A path of a program that was removed while it ran is another one's, or nobody's."""
    if os.path.exists(target) or not os.path.exists(image):
        return
    noted = subprocess.run(["readelf", "-n", image], capture_output=True, text=True, check=False).stdout
    if os.path.basename(target) in noted:
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(target), delete=False) as f, open(image, "rb") as source:
            shutil.copyfileobj(source, f)
        os.replace(f.name, target)


def decode(image, names):
    """mark's address -> the lines of its block, as (file, line), of the files `names`; kept beside the image."""
    kept = image + ".json"
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as f:
            return {int(mark): lines for mark, lines in json.load(f).items()}
    calls, marks = [], []
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", image], capture_output=True, text=True, check=True).stdout.split("\n")
    for number, line in enumerate(listing):
        call = CALL.match(line)
        after = call and next((m for m in map(re.compile(r" *([0-9a-f]+):").match, listing[number + 1:number + 6]) if m), None)
        if after:
            calls.append(int(call[1], 16))
            marks.append(int(after[1], 16))
    bases = {os.path.basename(name) for name in names}
    rows = subprocess.run(["readelf", "-wL", image], capture_output=True, text=True, check=False).stdout
    addresses = sorted({int(m[2], 16) for m in ROW.finditer(rows) if m[1] in bases} if calls else ())
    told = subprocess.run(["addr2line", "-e", image], input="".join(f"{a:#x}\n" for a in addresses), capture_output=True, text=True,
                          check=True).stdout.split("\n")
    blocks = {mark: set() for mark in marks}
    for address, where in zip(addresses, told):
        place = re.match(r"(?:.*?/marked/|\./)?((?:daemon|client-lib)/\S+):(\d+)", where)
        at = bisect.bisect_right(calls, address) - 1
        if place and place[1] in names and at >= 0:
            blocks[marks[at]].add((place[1], int(place[2])))
    with open(kept, "w", encoding="utf-8") as f:
        json.dump({mark: sorted(lines) for mark, lines in blocks.items()}, f)
    return blocks


class Map:
    """The records of these sources. `tests` are their names, `seconds` how long they took."""

    def __init__(self, folder):
        self.folder, self.sources = folder, trees.sources_digest()
        self.images, self.records = os.path.join(folder, "images"), os.path.join(folder, "marks.jsonl")
        self.tests, self.seconds, self.skipped = [], {}, set()
        self.lines = {}  # file -> line -> the tests that execute it, as bits
        os.makedirs(self.images, exist_ok=True)

    def __str__(self):
        units = sum(not test.startswith("tests/") for test in self.tests)
        return f"the map has {units} unit test programs and {len(self.tests) - units} system tests"

    def read(self):
        latest = {}
        if os.path.exists(self.records):
            with open(self.records, encoding="utf-8") as f:
                for record in map(json.loads, f):
                    if record.get("sources") == self.sources:
                        latest[record["test"]] = record
        self.tests = sorted(latest)
        self.seconds = {test: latest[test]["seconds"] for test in self.tests}
        names = {n for n in trees.mutable() if n.endswith(".c")}
        self.lines, executed = {}, {}
        modules = {os.path.basename(n): n for n in trees.mutable() if n.endswith(".py")}
        for name in modules.values():
            for line in pytext.lines(trees.read(os.path.join(trees.ROOT, name))):
                self.add(name, line, 0)
        for number, test in enumerate(self.tests):
            for image, packed in latest[test]["images"].items():
                marks = executed.setdefault(image, {})
                for mark in array.array("I", zlib.decompress(base64.b64decode(packed))):
                    marks[mark] = marks.get(mark, 0) | 1 << number
            for module, lines in latest[test]["python"].items():
                for line in lines:
                    self.add(modules[module], line, 1 << number)
        for image, marks in executed.items():
            if os.path.exists(os.path.join(self.images, image)):
                for mark, lines in decode(os.path.join(self.images, image), names).items():
                    for name, line in lines:
                        self.add(name, line, marks.get(mark, 0))

    def add(self, name, line, bits):
        lines = self.lines.setdefault(name, {})
        lines[line] = lines.get(line, 0) | bits

    def executing(self, name, line):
        """The tests that execute a line: what has no instructions of its own is a part of the one before it."""
        lines = self.lines.get(name, {})
        before = [n for n in lines if n <= line]
        bits = lines[max(before)] if before else 0
        return [test for number, test in enumerate(self.tests) if bits >> number & 1]

    # ---- making it ----

    def make_unit(self, tree):
        tree.must_make("tests")
        for program in tree.words("UNIT_BIN"):
            folder = tempfile.mkdtemp(dir=self.marks_folder())
            os.chmod(folder, 0o1777)
            ran = tree.run([program], 900, LOCKBROKER_MARKS=folder)
            record = {"test": program, "ok": not ran.failed, "seconds": round(ran.seconds, 3), "sources": self.sources}
            with open(self.records, "a", encoding="utf-8") as f:
                f.write(json.dumps(record | collect(folder, self.images)) + "\n")
            shutil.rmtree(folder)
            print(f"map: {'ok  ' if record['ok'] else 'FAIL'} {program} ({ran.seconds:.1f} s)", flush=True)

    def marks_folder(self):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else self.folder
        folder = os.path.join(base, "lockbroker-marks")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o1777)
        return folder

    def make_system(self, tree, what, jobs):
        """Of the files or folders named: what was recorded of their tests before is replaced."""
        tree.must_make("all", "tests")
        more = {"marks": self.marks_folder(), "images": self.images, "sources": self.sources, "record": self.records}
        ran, records = run_system(tree, what, None, {}, 3 * jobs, **more)
        failed = [record["test"] for record in records if not record["ok"]]
        print(f"map: {len(records)} system tests in {ran.seconds:.0f} s", flush=True)
        if failed:
            # What failed because the machine was busy has not executed all that it executes.
            _, again = run_system(tree, files_of(failed), failed, {}, 1, first=False, **more)
            still = [record["test"] for record in again if not record["ok"]]
            print(f"map: {len(failed)} failed and were run again; with marks, these fail: {', '.join(still) or 'none'}", flush=True)


def files_of(tests):
    return sorted({test.partition("::")[0] for test in tests})


def run_system(tree, what, tests, patience, jobs, first=True, record=None, **more):
    """Runs system tests of the files `what`: all, or `tests` in that order, up to the first failure unless all have to be run.
    Returns how pytest ended, and the record of each test that has ended."""
    folder = os.path.dirname(tree.folder)
    record = record or os.path.join(folder, f"{tree.name}.records")
    begun = os.path.getsize(record) if os.path.exists(record) and more else 0
    if not begun:
        open(record, "w", encoding="utf-8").close()
    plan = {"tests": tests, "patience": patience, "record": record, "marks": None, "images": None, "sources": None} | more
    path = os.path.join(folder, f"{tree.name}.plan")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(plan, f)
    start = f"import sys; sys.path.insert(0, {trees.HERE!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    argv = ["/usr/bin/python3", "-B", "-c", start, "-q", "-p", "no:cacheprovider", "-p", "mutate_plugin", "--tb=short", "--rootdir=.",
            *(["-x"] if tests and first else []), *(["-n", str(jobs)] if jobs > 1 else []), *what]
    ran = tree.run(argv, max([300, *patience.values()]) + 120, record, LOCKBROKER_MUTATE_PLAN=path)
    with open(record, encoding="utf-8") as f:
        f.seek(begun)
        lines = [json.loads(line) for line in f if line.endswith("\n")]
    return ran, [line for line in lines if "test" in line]
