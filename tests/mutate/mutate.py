#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one place of the product after the other, and looks which test notices.

mutate.py --build BUILD [--number N] [--seed S] [--files 'NAME ...'] [--only TEXT] [--table FILE] [--map WHAT] [--jobs N]

It is for what the simulator does not reach: the daemon's I/O, the keeper, the client library, the commands, and Python. N mutants
are drawn by S from the places of the files (a file, or all below a folder): negated conditions, deleted calls and assignments,
changed constants, as many of each. A mutant has a name, FILE:LINE:COLUMN:OPERATOR; --only runs those that have TEXT in their names.

For each, the unit test programs that execute its line run first, then the system tests that do, the fastest of each file first, up
to the first failure. A failure counts if the test passes on the sources as they are, and fails once more on the mutant. What has
not ended long after its usual time hangs, which counts as well.

The map of what executes which line is made when there is none. --map makes parts of it again: `unit`, `system`, `all`, or files of
system tests. Results stand in BUILD/mutate/results.jsonl, and a campaign that was interrupted goes on with those that are left. A
result is of the text of a function: what changes elsewhere neither makes it old nor draws others.
"""

import argparse
import collections
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import sys
import time

import covmap
import ctext
import pytext
import trees

OPERATORS = ["negate", "delete", "constant"]
EQUIVALENT = os.path.join(trees.HERE, "equivalent.txt")
HANGS = "it hangs"
STARTS_MAX = 5  # of pytest, which fails by itself when its ZooKeeper does not start: that is no mutant's doing
SECONDS_MIN = 100  # no test hangs before: harness.PATIENCE comes first
VERDICTS = ["unit", "system", "nobody", "unexecuted", "equivalent"]
SAID = {"unit": "noticed by unit", "system": "noticed by system", "nobody": "noticed by nobody", "unexecuted": "executed by no test",
        "equivalent": "equivalent"}


class Mutant:
    def __init__(self, file, text, place):
        self.file, self.text, self.place = file, text, place
        self.name = f"{file}:{place.line}:{place.column}:{place.operator}"
        self.before = " ".join(text[place.begin:place.end].split())
        self.after = " ".join(place.after.split()) or "nothing"
        self.line = text.split("\n")[place.line - 1].strip()
        start, stop = text.rfind("\n", 0, place.begin) + 1, (text + "\n").index("\n", place.end)
        self.changed = " ".join((text[start:place.begin] + place.after + text[place.end:stop]).split())
        begin, end = place.body
        self.id = trees.digest("\n".join([os.path.dirname(file), place.function, place.operator, str(place.begin - begin), place.after,
                                          text[begin:end]]))

    def mutated(self):
        """What stands below stays in its line: assertions have its number."""
        gone = self.text.count("\n", self.place.begin, self.place.end) - self.place.after.count("\n")
        after = self.place.after + ("\n" * gone if self.file.endswith(".c") else "")
        return self.text[:self.place.begin] + after + self.text[self.place.end:]

    def key(self):
        """What it is, wherever it stands in its function."""
        return f"{self.file} {self.place.function}", self.place.operator, self.line, self.changed

    def __str__(self):
        return f"{self.name}  {self.place.function}(): {shorten(self.before)} -> {shorten(self.after)}"


def shorten(text, most=70):
    return text if len(text) <= most else text[:most - 3] + "..."


def chosen_files(words):
    files = [name for name in trees.mutable() if not words or any(name == w or name.startswith(w.rstrip("/") + "/") for w in words)]
    if not files:
        sys.exit(f"mutate: none of {' '.join(words)} may be mutated: it has to be one of {' '.join(trees.PATTERNS)}")
    return files


def mutants_of(file):
    text = trees.read(os.path.join(trees.ROOT, file))
    return [Mutant(file, text, place) for place in (pytext if file.endswith(".py") else ctext).places(text)]


def drawn(mutants, seed):
    """All of them, in the order in which the seed draws them: the operators take turns. Of functions with the same name and text in
    one folder, one is drawn."""
    kinds = {operator: [] for operator in OPERATORS}
    for mutant in {m.id: m for m in mutants}.values():
        kinds[re.match("[a-z]+", mutant.place.operator)[0]].append(mutant)
    for of in kinds.values():
        of.sort(key=lambda mutant: trees.digest(f"{seed} {mutant.id}"), reverse=True)
    while any(kinds.values()):
        for of in kinds.values():
            if of:
                yield of.pop()


def equivalents(text):
    """Of the list: what a mutant is -> why nobody can see it."""
    found = {}
    lines = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    for entry in re.split(r"\n\s*\n", lines.strip()):
        words = [line.strip() for line in entry.split("\n") if line.strip()]
        if words and len(words) < 5:
            raise ValueError(f"an entry of five lines was expected:\n{entry}")
        if words:
            found[tuple(words[:4])] = " ".join(words[4:])
    return found


class Campaign:
    def __init__(self, args):
        self.args = args
        self.folder = os.path.join(os.path.abspath(args.build), "mutate")
        self.results_path = os.path.join(self.folder, "results.jsonl")
        self.marked, self.plain, self.mutant = (trees.Tree(n, self.folder, args.jobs) for n in ("marked", "plain", "mutant"))
        self.map = covmap.Map(self.folder)
        self.equivalents = equivalents(trees.read(EQUIVALENT))
        self.results = self.read_results()

    def read_results(self):
        if not os.path.exists(self.results_path):
            return {}
        with open(self.results_path, encoding="utf-8") as f:
            return {r["id"]: r for r in map(json.loads, f)}

    # ---- what has to be there ----

    def make_map(self):
        what = self.args.map.split()
        if not what and os.path.exists(self.map.records):
            self.map.read()
            what = [] if self.map.tests else ["all"]
        elif not what:
            what = ["all"]
        if what:
            self.marked.sync()
            if {"unit", "all"} & set(what):
                self.map.make_unit(self.marked)
            files = [w for w in what if w not in ("unit", "all", "system")]
            if {"system", "all"} & set(what) or files:
                self.map.make_system(self.marked, files or trees.SYSTEM, self.args.jobs)
            self.map.read()
        print(self.map, flush=True)

    def make_trees(self):
        self.plain.sync()
        self.plain.must_make("all", "tests")
        if not os.path.exists(self.mutant.folder):
            shutil.copytree(self.plain.folder, self.mutant.folder, symlinks=True)
        self.mutant.sync()

    # ---- one mutant ----

    def object_differs(self, mutant):
        """Whether it compiles, and to something else than before."""
        target = f"build/obj/{mutant.file[:-2]}.o"
        if self.mutant.make(target):
            return False
        return not trees.same(self.mutant.path(target), self.plain.path(target))

    def unit_failure(self, tree, program):
        ran = tree.run([program], max(SECONDS_MIN, 20 * self.map.seconds[program]))
        failed = re.findall(r"\[  FAILED  \] (?:\w+: )?(\w+)", ran.output)
        if not ran.failed:
            return None
        return HANGS if ran.hung else f"{failed[0]}" if failed else f"it ended with {ran.status}"

    def system_failure(self, tree, tests):
        """The first of the tests that fails, and how; those that have passed before it."""
        patience = {test: int(min(300, max(SECONDS_MIN, 20 * self.map.seconds[test]))) for test in tests}
        for _ in range(STARTS_MAX):
            ran, records = covmap.run_system(tree, covmap.files_of(tests), tests, patience, min(3 * self.args.jobs, 1 + len(tests) // 3))
            if "INTERNALERROR" not in ran.output:
                break
        else:
            sys.exit(f"mutate: pytest fails by itself, not by a test:\n{ran.output[-3000:]}")
        passed = {r["test"] for r in records if r["ok"]}
        failed = [r for r in records if not r["ok"]]
        if failed:
            return failed[0]["test"], HANGS if "still waiting after" in failed[0]["why"] else failed[0]["why"], passed
        if ran.failed and ran.status != 5:
            ended = {r["test"] for r in records}
            left = next((test for test in tests if test not in ended), tests[0])
            return left, HANGS if ran.hung else f"pytest ended with {ran.status}: {ran.output[-800:]}", passed
        return None, "", passed

    def by_unit(self, mutant, programs, result):
        wrong = self.mutant.make(*programs) if programs else ""
        if wrong:
            result["unsteady"].append(f"the unit tests could not be linked: {wrong[-500:]}")
            return False
        for program in programs:
            why = self.unit_failure(self.mutant, program)
            if why and self.counts(result, program, lambda tree, p=program: self.unit_failure(tree, p), why):
                result.update(verdict="unit", test=os.path.basename(program), why=why)
                return True
        return False

    def counts(self, result, test, fails, why):
        """Whether a failure is the mutant's: the same test passes on the sources as they are, and fails once more here."""
        if fails(self.plain):
            result["unsteady"].append(f"{test} fails on the sources as they are")
            return False
        if why != HANGS and not fails(self.mutant):
            result["unsteady"].append(f"{test} failed, and passed when it was run again")
            return False
        return True

    def by_system(self, mutant, tests, result):
        if tests and mutant.file.endswith(".c") and self.mutant.make("all", *self.mutant.words("BENCH_BIN")):
            result.update(verdict="system", test="the build", why="it cannot be linked")
            return True
        left = list(tests)
        while left:
            test, why, passed = self.system_failure(self.mutant, left)
            result["ran"] += len(passed) + bool(test)
            if not test:
                return False
            if self.counts(result, test, lambda tree, t=test: self.system_failure(tree, [t])[0], why):
                result.update(verdict="system", test=test, why=why)
                return True
            left = [t for t in left if t != test and t not in passed]
        return False

    def order(self, tests):
        """The fastest of each file first, then the second of each: what notices a mutant is often a file of its own."""
        by_file = collections.defaultdict(list)
        for test in sorted(tests, key=lambda t: self.map.seconds[t]):
            by_file[test.partition("::")[0]].append(test)
        turns = [(number, self.map.seconds[test], test) for of in by_file.values() for number, test in enumerate(of)]
        return [test for _, _, test in sorted(turns)]

    def judge(self, mutant):
        """None: it does not compile, or is the same machine code."""
        result = {"name": mutant.name, "id": mutant.id, "file": mutant.file, "function": mutant.place.function,
                  "operator": mutant.place.operator, "text": mutant.line, "before": mutant.before, "after": mutant.after,
                  "verdict": "nobody", "test": "", "why": "", "ran": 0, "unsteady": []}
        began = time.monotonic()
        self.mutant.write(mutant.file, mutant.mutated())
        try:
            if mutant.file.endswith(".c") and not self.object_differs(mutant):
                return None
            tests = self.map.executing(mutant.file, mutant.place.line)
            units = sorted((t for t in tests if not t.startswith("tests/")), key=lambda t: self.map.seconds[t])
            systems = self.order(t for t in tests if t.startswith("tests/"))
            result.update(units=len(units), systems=len(systems))
            if not tests:
                result["verdict"] = "unexecuted"
            elif not self.by_unit(mutant, units, result):
                self.by_system(mutant, systems, result)
        finally:
            self.mutant.write(mutant.file, mutant.text)
        result["seconds"] = round(time.monotonic() - began, 1)
        return result

    # ---- all of them ----

    def store(self, result):
        self.results[result["id"]] = result
        with open(self.results_path, "a", encoding="utf-8") as f:
            f.write(json.dumps(result) + "\n")

    def result_of(self, mutant):
        """A new one is said at once. None: it is redrawn."""
        why = self.equivalents.get(mutant.key())
        if why:
            return {"name": mutant.name, "file": mutant.file, "verdict": "equivalent", "test": "", "why": why}
        known = self.results.get(mutant.id)
        if known and not self.args.only:
            return known
        result = self.judge(mutant)
        if result:
            self.store(result)
            print(f"{mutant}\n    {said(result)} ({result['seconds']} s)", flush=True)
        return result

    def run(self):
        os.makedirs(self.folder, exist_ok=True)
        alone = open(os.path.join(self.folder, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"mutate: another campaign runs in {self.folder}: wait for it, or take another BUILD")
        wrong = trees.may_run()
        if wrong:
            sys.exit(wrong)
        files = chosen_files(self.args.files.split())
        self.make_map()
        if not self.args.number and not self.args.only:
            return
        self.make_trees()
        order = drawn((m for file in files for m in mutants_of(file) if self.args.only in m.name), self.args.seed)
        done = []
        try:
            self.judge_all(order, done)
        finally:
            self.write_table(done)

    def judge_all(self, order, done):
        """The first ones of an order, and others for those that are none. The cheapest first, so that an interrupted campaign has
        found as much as it could."""
        number = None if self.args.only else self.args.number
        left = list(itertools.islice(order, number))
        while left:
            for mutant in sorted(left, key=self.cost):
                result = self.result_of(mutant)
                if result:
                    done.append((mutant, result))
            left = list(itertools.islice(order, number - len(done))) if number else []

    def cost(self, mutant):
        """The seconds of its system tests; a unit test notices most of what it executes."""
        tests = self.map.executing(mutant.file, mutant.place.line)
        units = any(not test.startswith("tests/") for test in tests)
        return sum(self.map.seconds[test] for test in tests if test.startswith("tests/")) * (0.2 if units else 1)

    def write_table(self, done):
        text = f"{len(done)} mutants drawn by seed {self.args.seed}; {self.map}.\n\n{table(done)}"
        path = self.args.table or os.path.join(self.folder, "table.md")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.splitext(path)[0] + ".json", "w", encoding="utf-8") as f:
            json.dump([result for _, result in done], f, indent=1)
        print(f"{text}\nmutate: the table is {path}; the details are beside it, as JSON")


def reason(why):
    """The line of a failure that says most: pytest's first one of the error, or the last."""
    lines = why.strip().splitlines()
    return next((line[1:].strip() for line in lines if line.startswith("E  ")), lines[-1].strip())


def said(result):
    test = f" {result['test']}" if result["test"] else ""
    why = f": {shorten(reason(result['why']))}" if result["why"].strip() else ""
    tried = f" of {result.get('units', 0)} unit test programs and {result.get('systems', 0)} system tests" if result["verdict"] == "nobody" else ""
    return SAID[result["verdict"]] + test + why + tried + "".join(f"\n    unsteady: {shorten(u, 200)}" for u in result.get("unsteady", ()))


def table(done):
    """As Markdown: a row for each folder, then what nobody notices."""
    counts = collections.defaultdict(collections.Counter)
    for mutant, result in done:
        counts[os.path.dirname(mutant.file)][result["verdict"]] += 1
    lines = ["| folder | mutants | by unit | by system | by nobody | executed by no test | equivalent | noticed |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    total = sum(counts.values(), collections.Counter())
    for folder, of in [*sorted(counts.items()), ("all", total)]:
        judged = sum(of.values()) - of["equivalent"]
        share = f"{100 * (of['unit'] + of['system']) / judged:.0f} %" if judged else "-"
        lines.append(f"| {folder} | {sum(of.values())} | " + " | ".join(str(of[v]) for v in VERDICTS) + f" | {share} |")
    left = [(m, r) for m, r in done if r["verdict"] in ("nobody", "unexecuted")]
    if left:
        lines += ["", "Not noticed:", ""]
        lines += [f"* `{m}`: {said(r)}".replace("\n", "; ") for m, r in left]
    return "\n".join(lines) + "\n"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--table", default="")
    parser.add_argument("--map", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    Campaign(parser.parse_args()).run()


if __name__ == "__main__":
    main()
