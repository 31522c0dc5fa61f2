# SPDX-License-Identifier: Apache-2.0
"""make profile: where the time of a pair goes, in lockbroker and in a null broker beside it. See README.md."""

import collections
import os
import re
import sys

import bench
import costs
import measure
import report
import services
import targets
from measure import Row
from report import number
from services import harness

Load = collections.namedtuple("Load", "case processes names pinned")
LOADS = [Load("1 process, pinned", 1, "own", True), Load("8, one lock", 8, "one", False),
         Load("8, one lock, pinned", 8, "one", True), Load("32, one lock", 32, "one", False),
         Load("32, one lock, pinned", 32, "one", True), Load("32, own locks", 32, "own", False),
         Load("pipelined", 50, "pipelined", False), Load("pipelined, pinned", 50, "pipelined", True)]
BY_CASE = {load.case: load for load in LOADS}
QUICK = ("1 process, pinned", "32, one lock", "pipelined")
COUNTED = ("1 process, pinned", "32, one lock, pinned", "pipelined, pinned")  # instruction by instruction

REDIS = "Redis, SET"
CONFINED = f"{targets.ZOOKEEPER}, its server on one core"
HEADS = {targets.NULL: "null", targets.SILENT: "null, silent", targets.PLAIN: "standalone", targets.ZOOKEEPER: "ZooKeeper",
         targets.LIBRARY: "library", REDIS: "Redis", CONFINED: "its server on one core"}
TOKENS = 1024  # grants on a znode, before the next one takes over
PROGRAMS = ["service", "load", "server"]
WARM_S = 0.15


def base_of(case, row):
    """What a row is compared with."""
    return REDIS if case.startswith("pipelined") else targets.SILENT if row == targets.LIBRARY else targets.NULL


class Pipelined(Row):
    """A service under bench-pipeline. A pair is two requests, of Redis two SETs."""

    def __init__(self, label, kind, service):
        super().__init__(label, kind, [service.target], service.pids)

    def measure(self, processes, names, seconds, warm=0, pinned=False, during=None):
        with measure.beside(self.pids, pinned):
            return {"pairs_s": measure.pipeline(self.targets[0], self.peer, seconds + warm, pinned, during) / 2}


class Confined(Row):
    """The daemon under bench-load, while the ZooKeeper server's threads share one core; all else goes where it likes."""

    def __init__(self, service, server):
        super().__init__(CONFINED, "lockbroker", [service.target], service.pids)
        self.server = server

    def measure(self, *args, **options):
        with measure.beside(self.server, True, {min(os.sched_getaffinity(0))}):
            return super().measure(*args, **options)


class Profile(bench.Bench):
    def __init__(self, options):
        super().__init__(options)
        self.seconds = options.seconds or (0.15 if options.quick else 0.4)
        self.loads = [load for load in LOADS if load.case in QUICK or not self.quick]
        self.pipelined = []

    def start(self):
        self.start_ours()
        self.rows = [row for row in self.rows if row.label in HEADS]
        self.pipelined = [Pipelined(targets.PLAIN, "lock", self.standalone),
                          Pipelined(targets.ZOOKEEPER, "lock", self.broker)]
        try:
            self.pipelined.append(Pipelined(REDIS, "set", self.serve(services.Redis)))
        except services.Missing as e:
            self.leave_out(REDIS, e)
        self.directory = harness.fast_tmp("profile.")

    def leave_out(self, what, why):
        self.results.notes.append(f"{what}: left out, {why}")

    def each(self):
        """Every load with every row."""
        for load in self.loads:
            for row in self.pipelined if load.names == "pipelined" else self.rows:
                yield load, row

    def confined(self):
        row = Confined(self.broker, self.zookeeper.pids)
        return [(load, row) for load in self.loads if load.names == "one" and not load.pinned]

    def put(self, load, row, seconds, warm=0, during=None):
        figures = row.measure(load.processes, load.names, seconds, warm=warm, pinned=load.pinned, during=during)
        if not figures["pairs_s"]:
            raise costs.TooSlow("not a pair in its time")
        return figures

    def programs(self, row):
        return {"service": row.pids} | ({"server": self.zookeeper.pids} if row.label in (targets.ZOOKEEPER, CONFINED) else {})

    def facts(self):
        for tool in ("perf", "strace", "valgrind"):
            try:
                line = services.first_line(services.found(tool), "--version")
                self.versions.append(re.sub(r"( --)? version |(?<=valgrind)-", " ", line))
            except services.Missing:
                pass
        self.versions = list(dict.fromkeys(self.versions))
        return super().facts()


def cpus_of(load):
    return measure.cpus_to_pin() if load.pinned else os.sched_getaffinity(0)


# ---- what is measured ----

def tried(profile, what, action):
    """Its result, or None. Nothing fails by being slow."""
    def patiently():
        try:
            return action()
        except costs.TooSlow as e:
            return profile.leave_out(what, e)
    return measure.attempt(profile, what, patiently)


def account(profile):
    """What the kernel counts of each program: all rows in turn, round by round."""
    for i in range(profile.rounds):
        for load, row in [*profile.each(), *profile.confined()]:
            def look():
                window = costs.Window(profile.programs(row), cpus_of(load), profile.seconds)
                figures = profile.put(load, row, profile.seconds, WARM_S, window)
                return figures | window.figures(figures["pairs_s"])
            measure.add(profile, "account", load.case, row.label, tried(
                profile, f"{row.label}, {load.case}", look))
        profile.progress(f"round {i + 1} of {profile.rounds}")


def samples(profile):
    """Where the cores are."""
    try:
        overhead_s = costs.perf_overhead_s()
    except services.Missing as e:
        profile.leave_out("What the cores do, and turns of the loop", e)
        return
    for load, row in profile.each():
        found = tried(profile, f"samples, {row.label}, {load.case}",
                                  lambda: samples_of(profile, load, row, overhead_s))
        for section, figures in zip(("parts", "symbols", "turns"), found or ()):
            measure.add(profile, section, load.case, row.label, figures)


def samples_of(profile, load, row, overhead_s, once_more=True):
    seconds = profile.seconds * 1.5
    found = costs.Samples(profile.programs(row), cpus_of(load), seconds, profile.directory)
    try:
        pairs_s = profile.put(load, row, found.load_seconds(seconds, overhead_s), during=found)["pairs_s"]
    except costs.TooSlow:
        if not once_more:
            raise
        return samples_of(profile, load, row, overhead_s * 4, once_more=False)
    return found.figures(pairs_s)


def calls(profile):
    """System calls of the service, by name."""
    try:
        services.found("strace")
        costs.Strace(profile.null.pids, profile.directory).finish()  # is it allowed?
    except services.Missing as e:
        profile.leave_out("System calls", e)
        return
    for load, row in profile.each():
        measure.add(profile, "calls", load.case, row.label, tried(
            profile, f"strace, {row.label}, {load.case}", lambda: calls_of(profile, load, row)))


def calls_of(profile, load, row):
    """By the difference of a long load and a short one: those of connecting are the same in both."""
    pairs, counts = 0, collections.Counter()
    for sign, seconds in ((-1, profile.seconds / 8), (1, profile.seconds)):
        strace = costs.Strace(row.pids, profile.directory)
        try:
            pairs += sign * profile.put(load, row, seconds)["pairs_s"] * seconds
            costs.rest(row.pids)
        finally:
            found = strace.finish()
        for name, count in found.items():
            counts[name] += sign * count
    if pairs <= 0:
        raise costs.TooSlow("no more pairs in a longer time")
    return {name: count / pairs for name, count in counts.items()}


def lock_row(label, peer):
    return lambda service: Row(label, peer, [service.target], service.pids)


def pipelined_row(label, kind):
    return lambda service: Pipelined(label, kind, service)


def instructions(profile):
    """Of the service, counted one by one."""
    try:
        services.found("valgrind")
    except services.Missing as e:
        profile.leave_out("Instructions", e)
        return
    for make, options, rows in (
            (services.Null, {}, [lock_row(targets.NULL, "null")]),
            (services.Null, {"silent": True}, [lock_row(targets.SILENT, "null-silent")]),
            (services.Lockbroker, {}, [lock_row(targets.PLAIN, "lockbroker"), lock_row(targets.LIBRARY, "library"),
                                       pipelined_row(targets.PLAIN, "lock")]),
            (services.Lockbroker, {"zookeeper": profile.zookeeper, "root": "/bench-counted"},
             [lock_row(targets.ZOOKEEPER, "lockbroker"), pipelined_row(targets.ZOOKEEPER, "lock")]),
            (services.Redis, {}, [pipelined_row(REDIS, "set")])):
        tried(profile, "callgrind", lambda: count_all(profile, make, options, rows))


def count_all(profile, make, options, rows):
    directory = harness.tempfile.mkdtemp(prefix="callgrind.", dir=profile.directory)
    try:
        service = make(under=costs.callgrind(directory), **options)
    except services.Missing as e:
        profile.leave_out(f"Instructions of {make.__name__}", e)
        return
    try:
        for row in (of(service) for of in rows):
            for load in profile.loads:
                if load.case in COUNTED and (load.names == "pipelined") == isinstance(row, Pipelined):
                    count(profile, load, row, directory)
    finally:
        profile.complain(service.end())


def count(profile, load, row, directory):
    """One load makes everything warm, and what it cost is thrown away."""
    profile.put(load, row, profile.seconds / 2)
    costs.dump(directory, row.pids[0])
    pairs = profile.put(load, row, profile.seconds * 2)["pairs_s"] * profile.seconds * 2
    path = costs.dump(directory, row.pids[0])
    for section, inclusive in (("self", False), ("inclusive", True)):
        total, found = costs.instructions(path, inclusive)
        measure.add(profile, "instructions", load.case, row.label, {"all": total / pairs})
        # What has been running all the time has no end, so callgrind knows no part of it; and it is no news.
        measure.add(profile, section, load.case, row.label, {n: i / pairs for n, i in found.items() if i < 0.98 * total})


def load_instructions(profile):
    """Of the load, in all of its process: by the difference of a long load and a short one."""
    try:
        services.found("valgrind")
    except services.Missing as e:
        profile.leave_out("Instructions of the load", e)
        return
    load = BY_CASE[COUNTED[0]]
    for row in profile.rows:
        measure.add(profile, "load instructions", load.case, row.label, tried(
            profile, f"callgrind of the load, {row.label}", lambda: {"all": count_load(profile, load, row)}))


def count_load(profile, load, row):
    pairs, counted = 0, 0
    for sign, seconds in ((-1, profile.seconds / 2), (1, profile.seconds * 2)):
        directory = harness.tempfile.mkdtemp(prefix="callgrind.", dir=profile.directory)
        with measure.beside(row.pids, load.pinned):
            figures = measure.run([*costs.callgrind(directory, "%p"), *row.argv(load.processes, load.names, seconds, 0, [])],
                                  load.pinned)
        pairs += sign * figures["pairs"]
        counted += sign * sum(costs.instructions(path, False)[0] for path in costs.dumps(directory))
    if pairs <= 0:
        raise costs.TooSlow("no more pairs in a longer time")
    return counted / pairs


def warm_up(profile):
    """Whatever the first of a name costs, in all of them; and a ZooKeeper server is steady after some load."""
    for _ in range(1 if profile.quick else 3):
        for load, row in profile.each():
            tried(profile, f"warming up, {row.label}", lambda: profile.put(load, row, 0.05))


PARTS = [warm_up, account, samples, calls, instructions, load_instructions]
Profile.name, Profile.parts = "profile", PARTS


# ---- how it is told ----

def lines_of(profile, section):
    """(case, row) of what was measured, in the order of the loads."""
    found = dict.fromkeys((case, row) for s, case, row, _ in profile.results.figures if s == section)
    return sorted(found, key=lambda found: list(BY_CASE).index(found[0]))


def listing(profile, section, columns, wanted=lambda case: True, rows=HEADS):
    """A line for each case and row; columns: head -> digits, and what is shown, of (case, row)."""
    lines, last = [], None
    for case, row in lines_of(profile, section):
        if not wanted(case) or row not in rows:
            continue
        lines.append([case if case != last else "", HEADS[row], *[
            number(value(case, row), digits) for digits, value in columns.values()]])
        last = case
    return report.table(["", "", *columns], lines, left=2)


def matrix(profile, section, case, names, digits, word):
    """A line for each name, a column for each row of the case."""
    rows = [row for c, row in lines_of(profile, section) if c == case]
    lines = [[name, *[number(profile.results.get(section, case, row, key) or 0, digits) for row in rows]]
             for key, name in names.items()]
    return report.table([word, *[HEADS[row] for row in rows]], lines)


def account_tables(profile):
    def of(metric, section="account"):
        return lambda case, row: profile.results.get(section, case, row, metric)

    def spread(case, row):
        value = profile.results.spread("account", case, row, "pairs_s")
        return value and value * 100

    def to_base(case, row):
        return report.ratio(profile.results, "account", case, row, base_of(case, row))

    def mean_us(case, row):
        pairs_s = profile.results.get("account", case, row, "pairs_s")
        return pairs_s and BY_CASE[case].processes * 1e6 / pairs_s

    def tail(case, row):
        p99 = profile.results.get("account", case, row, "p99_us")
        return p99 and p99 / mean_us(case, row)

    def server(case, row):
        found = [of(f"server_{word}_us")(case, row) for word in ("user", "system")]
        return sum(found) if None not in found else None

    def tail_to_base(case, row):
        return report.ratio(profile.results, "account", case, row, base_of(case, row), "p99_us")

    times = {"pairs/s": (0, of("pairs_s")), "± %": (0, spread), "of base": (2, to_base), "us a pair": (2, of("elapsed_us")),
            "service: user": (2, of("service_user_us")), "system": (2, of("service_system_us")),
            "load: user": (2, of("load_user_us")), "system ": (2, of("load_system_us")), "server": (2, server),
            "others": (2, of("others_us")), "idle": (2, of("idle_us"))}
    waits = {"runs %": (0, of("runs")), "queued %": (0, of("queued")), "sleeps %": (0, of("sleeps")),
            "waits": (2, of("service_waits")), "preempted": (2, of("service_preempted")), "turns": (2, of("turns", "turns")),
            "load: waits": (2, of("load_waits")), "preempted ": (2, of("load_preempted")),
            "queued us": (1, of("load_queued_us"))}
    tails = {"mean us": (0, mean_us), "median": (0, of("p50_us")), "99 %": (0, of("p99_us")), "99 % / mean": (2, tail),
             "99 % of base's": (2, tail_to_base)}
    return [listing(profile, "account", columns) for columns in (times, waits)] + [
        listing(profile, "account", tails, lambda case: BY_CASE[case].names != "pipelined")]


def changes_table(profile):
    """What the change of znode costs who hands a lock on: by the server's time, and by what is left when it has less of
    the cores. Standalone has none."""
    def of(metric, times=1):
        def value(case, row):
            found = profile.results.get("account", case, row, metric)
            return found and found * times
        return value

    def sums(case, row):
        found = [of(f"server_{word}_us", TOKENS)(case, row) for word in ("user", "system")]
        return sum(found) if None not in found else None

    def to_null(metric):
        return lambda case, row: report.ratio(profile.results, "account", case, row, targets.NULL, metric)

    def rate(case, row):
        found = of("pairs_s")(case, row)
        return found and found / TOKENS if row in (targets.ZOOKEEPER, CONFINED) else None

    columns = {"of null": (2, to_null("pairs_s")), "99 %: us": (0, of("p99_us")), "of null's": (2, to_null("p99_us")),
               "changes/s": (0, rate), "server: us a change": (0, sums), "wake-ups": (0, of("server_waits", TOKENS))}
    rows = (targets.NULL, targets.PLAIN, targets.ZOOKEEPER, CONFINED)
    return listing(profile, "account", columns, lambda case: BY_CASE[case].names == "one" and not BY_CASE[case].pinned, rows)


def parts_table(profile, case):
    """Each program's code by what it is, in the order of what it takes."""
    order = [*PROGRAMS, "others", "idle"]
    shown = sorted(most(profile, "parts", case, least=0.005), key=lambda k: (order.index(k.split(":")[0]), "kernel" in k))
    return matrix(profile, "parts", case, {k: k for k in shown}, 2, "core us a pair")


def most(profile, section, case, count=None, prefix="", rows=None, least=0):
    """The names with the largest figures, of any row, or of those."""
    found = collections.Counter()
    for (s, c, row, key), values in profile.results.figures.items():
        if (s, c) == (section, case) and key.startswith(prefix) and (not rows or row in rows) and values[0] >= least:
            found[key] = max(found[key], values[0])
    return [key for key, _ in found.most_common(count)]


def symbol_tables(profile, case):
    for program in ("service", "load"):
        names = most(profile, "symbols", case, 12, f"{program}: ")
        if names:
            yield matrix(profile, "symbols", case, {n: n.split(": ", 1)[1] for n in names}, 3, f"{program}: core us a pair")


def calls_table(profile, case):
    names = most(profile, "calls", case, least=0.03)
    return matrix(profile, "calls", case, {n: n for n in names}, 2, "system calls a pair")


def functions_table(profile, case, row):
    """The functions that take most themselves, and those that do with what they call, side by side."""
    columns = [[(n, number(profile.results.get(section, case, row, n)))
                for n in most(profile, section, case, 15, rows=[row])] for section in ("self", "inclusive")]
    return "\n".join(f"{a:<34}{n:>7}   {b:<34}{m:>9}" for (a, n), (b, m) in [
        ((HEADS[row], "itself"), ("", "and below")), *zip(*columns)])


def split(profile, case, row):
    """Core microseconds of a pair: the service's own code with its libraries, its kernel, the load, the server, the
    rest. All are the kernel's accounts, but for what part of all time is own code: samples tell that better than ticks."""
    def us(*metrics):
        return sum(profile.results.get("account", case, row, m) or 0 for m in metrics)

    def part(*names):
        return sum(profile.results.get("parts", case, row, name) or 0 for name in names)

    service, own = us("service_user_us", "service_system_us"), us("service_user_us")
    everything = part(*[f"{program}: all" for program in PROGRAMS], "others", "idle")
    if everything:
        whole = us("elapsed_us") * len(cpus_of(BY_CASE[case]))
        own = (part("service: all") - part("service: kernel")) / everything * whole
    return {"own": own, "kernel": service - own, "load": us("load_user_us", "load_system_us"),
            "server": 0 if BY_CASE[case].pinned else us("server_user_us", "server_system_us"),
            "rest": us("others_us", "idle_us")}


AIMS = {("1 process, pinned", targets.PLAIN): 0.9, ("1 process, pinned", targets.ZOOKEEPER): 0.9,
        ("1 process, pinned", targets.LIBRARY): 0.9, ("8, one lock", targets.ZOOKEEPER): 0.9,
        ("32, one lock", targets.ZOOKEEPER): 0.9, ("32, own locks", targets.ZOOKEEPER): 0.9,
        ("pipelined", targets.PLAIN): 1.0}


def verdict(now, same, none, aim):
    return ("-" if aim is None else "met" if now >= aim else "own code: base's would do" if same >= aim else
            "own code: none would do" if none >= aim else "more than own code")


def limits_table(profile):
    lines, last = [], None
    for case, row in lines_of(profile, "account"):
        base, aim = base_of(case, row), AIMS.get((case, row))
        now = report.ratio(profile.results, "account", case, row, base)
        if row in (base, targets.SILENT) or now is None:
            continue
        ours, theirs = split(profile, case, row), split(profile, case, base)
        elapsed = profile.results.get("account", case, row, "elapsed_us")
        same, none = (now * elapsed / (elapsed - saved) for saved in (ours["own"] - theirs["own"], ours["own"]))
        more = [f"{ours[part] - theirs[part]:+.2f}" for part in ours]
        lines.append([case if case != last else "", HEADS[row], number(now, 2), *more, number(ours["own"], 2),
                      number(same, 2), number(none, 2), number(aim, 1), verdict(now, same, none, aim)])
        last = case
    return report.table(["", "", "of base", "more: own code", "kernel", "load", "server", "others, idle", "own code",
                         "with base's", "with none", "aim", "what keeps it"], lines, left=2)


def text(profile):
    r, parts = profile.results, [*profile.facts(), ""]
    sections = {key[0] for key in r.figures}

    def tell(title, *tables):
        parts.extend([title, "", *[line for t in tables for line in (t, "")]])
    if "account" in sections:
        for title, table in zip(("time", "wait", "tails"), account_tables(profile)):
            tell(TOLD[title], table)
        tell(TOLD["changes"], changes_table(profile))
    for load in profile.loads:
        if any((s, c) == ("parts", load.case) for s, c, _, _ in r.figures):
            tell(f"{load.case}: {TOLD['parts']}", parts_table(profile, load.case), *symbol_tables(profile, load.case))
        if any((s, c) == ("calls", load.case) for s, c, _, _ in r.figures):
            tell(f"{load.case}: {TOLD['calls']}", calls_table(profile, load.case))
    for load in profile.loads:
        rows = [row for case, row in lines_of(profile, "self") if case == load.case]
        if rows:
            whole = matrix(profile, "instructions", load.case, {"all": "all"}, 0, "")
            tell(f"{load.case}: {TOLD['instructions']}", whole, *[functions_table(profile, load.case, row) for row in rows])
    for case in dict.fromkeys(case for case, _ in lines_of(profile, "load instructions")):
        tell(f"{case}: {TOLD['load instructions']}", matrix(profile, "load instructions", case, {"all": "all"}, 0, ""))
    if "account" in sections:
        tell(TOLD["limits"], limits_table(profile))
    return "\n".join(parts + [f"Note: {n}" for n in r.notes] + [f"FAILED: {f}" for f in profile.failures])


TOLD = {
    "time": "Where the time of a pair goes, us of all cores together (/proc, medians); a pinned load has one core. Base: the\n"
            "null broker; of the library the silent one; pipelined, where a pair is two requests, Redis's SETs.",
    "wait": "Who waits for whom: the service's time; its and the load's switches a pair, waiting (for nothing, too) and\n"
            "preempted; turns of its loop a pair (epoll_wait, by perf); how long the load waits for a core (/proc).",
    "tails": "How long a process is at a pair, and waits in it: the mean is processes / rate (Little), whoever is slow, so\n"
             "that the 99th percentile is to the base's as the rates are, but for its shape.",
    "changes": "One lock, where the kernel puts processes: what the change of znode, once in 1,024 grants, takes of the ZooKeeper\n"
               "server (/proc), and what is left of that where its threads have one of the cores and no other.",
    "parts": "what the cores do (perf, cpu-clock, 4,000 samples a second; the load is slower meanwhile)",
    "calls": "system calls of the service (strace, which slows it)",
    "instructions": "instructions of the service (callgrind)",
    "load instructions": "instructions of the load (callgrind)",
    "limits": "What keeps a row from its aim: how many core us a pair takes more than base's, and how fast it would be with\n"
              "as little own code (libraries included) as base has, and with none, if nothing else took longer then.",
}


def write(profile, directory):
    os.makedirs(directory, exist_ok=True)
    told = text(profile)
    with open(os.path.join(directory, "profile.txt"), "w") as f:
        f.write(told + "\n")
    profile.results.write_csv(os.path.join(directory, "profile.csv"), profile.facts())
    print(told)
    print(f"\nResults: {os.path.relpath(directory)}/profile.txt, .csv")


def options():
    return bench.options_of(__doc__, PARTS, "fewer loads, one short round, in half a minute", 0.4)


def main():
    return bench.conduct(Profile, options().parse_args(), write)


if __name__ == "__main__":
    sys.exit(main())
