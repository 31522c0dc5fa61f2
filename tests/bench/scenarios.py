# SPDX-License-Identifier: Apache-2.0
"""What is measured, scenario by scenario. Each takes the bench (its services, its rows, its results) and adds figures."""

import concurrent.futures
import os
import statistics
import time

import costs
import crowd
import handovers
import logged
import measure
import neighbours
import seen
import services
import slow
import takeover
import targets
import ways
from measure import Row, add, attempt
from services import harness

# case: processes, names
COLUMNS = {"1 process": (1, "own"), "32, own locks": (32, "own"), "8, one lock": (8, "one"), "32, one lock": (32, "one"),
           "128, one lock": (128, "one")}
PAUSE_US = 3000  # between two cold pairs: what an unlock leaves behind in ZooKeeper is done by then
# case: JVMs, threads of each. They are warm when their compiler is.
JVMS = {"1 thread": (1, 1), "8 threads": (1, 8), "32 threads": (1, 32), "4 JVMs x 8": (4, 8)}
JVM_SECONDS = 3
SESSION_LOCKS = 8000
SETTLE_S = 2  # when a grant is a second old, the daemon begins to watch who else wants its lock


def contend(bench):
    """The main table, and the same pinned to one core: all rows in turn, round by round."""
    for i in range(bench.rounds):
        for pinned in (False, True):
            for case, (processes, names) in COLUMNS.items():
                for row in bench.rows:
                    if (row.few and (pinned or i > 0)) or (bench.quick and pinned and case != "1 process"):
                        continue
                    figures = attempt(bench, f"{row.label}, {case}", lambda: row.measure(
                        processes, names, bench.seconds, pinned=pinned,
                        warm=1 if row.few else None))
                    add(bench, "pinned" if pinned else "free", case, row.label, figures)
        bench.progress(f"round {i + 1} of {bench.rounds}")


def order(bench):
    """Whether who asked first is served first: tickets, not times. And whether who has the lock has it alone, when it
    is held for longer than a moment."""
    for row in bench.rows:
        if row.peer in ("null", "lockbroker", "blpop"):
            add(bench, "order", "32, one lock", row.label, attempt(bench, f"{row.label}, order", lambda: row.measure(
                32, "one", bench.seconds, more=["--order"])))
    for row in bench.rows:
        if not row.few:
            attempt(bench, f"{row.label}, held", lambda: row.measure(8, "one", bench.seconds, more=["--hold", "100"]))


# ---- in memory ----

def bare(bench):
    """What costs less than reading the clock: pairs alone."""
    cores = len(os.sched_getaffinity(0))
    rows = [r for r in bench.rows if r.label.startswith(targets.DELEGATED) or r.peer in ("flock", "mutex", "null-silent")]
    readers = [r for r in bench.rows if r.peer in ("library", "flock")]
    cases = [(case, *COLUMNS[case], rows, ["--bare"]) for case in ("1 process", "32, own locks")]
    cases.append((targets.READERS, 32, "one", readers, ["--bare", "--shared"]))
    for _ in range(bench.rounds):
        for case, processes, names, those, more in cases:
            for row in those:
                figures = attempt(bench, f"{row.label}, bare, {case}", lambda: row.measure(
                    processes, names, bench.seconds, more=more))
                if figures:
                    rate = figures["pairs_s"]
                    add(bench, "bare", case, row.label, {"pairs_s": rate} | (
                        {"pair_ns": 1e9 * min(processes, cores) / rate} if rate else {}))


def taken(bench):
    """How long another process waits for a lock that the one which had it last may keep: beside one that may not."""
    if not bench.delegating:
        return
    program, rounds = harness.program("tests/bench-taken"), str(30 if bench.quick else 300)
    for _ in range(bench.rounds):
        for state in ("free", "held"):
            for pinned in (False, True):
                for label, more in ((targets.LIBRARY, []), (targets.DELEGATED, ["--delegation"])):
                    argv = [program, "--target", bench.delegating.target, "--rounds", rounds, *more]
                    argv += ["--held"] if state == "held" else []
                    with measure.beside(bench.delegating.pids, pinned):
                        figures = attempt(bench, f"{label}, taken, {state}", lambda: measure.run(argv, pinned))
                    add(bench, "taken", state + (", one core" if pinned else ""), label, figures)


# ---- cold and new locks ----

def cold(bench):
    """The first lock of a name costs the network: how much, against the least that it could."""
    pause = ["--pause", str(PAUSE_US)]
    rows = [("null broker", "null", bench.null, "own"), ("one create in ZooKeeper", "create", bench.zookeeper, "own"),
            ("ZooKeeper recipe in C", "recipe", bench.zookeeper, "own"),
            ("lockbroker, cold lock", "lockbroker", bench.eager, "own"),
            ("lockbroker, new name", "lockbroker", bench.eager, "new")]
    for _ in range(bench.rounds):
        for label, peer, service, names in rows:
            row = Row(label, peer, [service.target], service.pids)
            add(bench, "cold", "1 process", label, attempt(bench, label, lambda: row.measure(
                1, names, bench.seconds * 2, more=pause)))


def requests(bench):
    """What a pair costs ZooKeeper: packets, transactions, syncs of its log, CPU."""
    zookeeper = bench.zookeeper
    cases = [("warm", "lockbroker", "lockbroker", bench.broker, 1, ()),
             ("warm, 8 on one", "lockbroker", "lockbroker", bench.broker, 8, ("--names", "one")),
             ("cold", "lockbroker", "lockbroker", bench.eager, 1, ("--pause", str(PAUSE_US))),
             ("new name", "lockbroker", "lockbroker", bench.eager, 1, ("--pause", str(PAUSE_US), "--names", "new")),
             ("recipe", "ZooKeeper recipe in C", "recipe", zookeeper, 1, ()),
             ("idle", "lockbroker", "null", bench.null, 1, ("--pause", str(PAUSE_US)))]
    for case, label, peer, service, processes, more in cases:
        row = Row(label, peer, [service.target], service.pids)
        seconds = bench.long_seconds / 2
        before, zxid, cpu = zookeeper.counters(), zookeeper.zxid(), measure.cpu_seconds(zookeeper.pids)
        figures = attempt(bench, f"requests, {case}", lambda: row.measure(processes, "own", seconds, warm=0, more=more))
        time.sleep(0.2)  # what the last unlock left to be done
        after = zookeeper.counters()
        if not figures:
            continue
        pairs = max(1, figures["pairs"])
        sums = {"packets": after["zk_packets_received"] - before["zk_packets_received"],
                "transactions": zookeeper.zxid() - zxid,
                "fsyncs": after["zk_cnt_fsynctime"] - before["zk_cnt_fsynctime"],
                "zookeeper_cpu_us": (measure.cpu_seconds(zookeeper.pids) - cpu) * 1e6}
        figures |= sums | {f"{k}_per_pair": v / pairs for k, v in sums.items()} | {"seconds": seconds}
        add(bench, "requests", case, label, figures)


# ---- hosts ----

def jvms(bench):
    """Threads of one JVM on one lock, and four JVMs, by the Java library and by Curator: what the queue of the JVM costs beside
    one thread, and what it spares the network."""
    try:
        if bench.quick:
            raise services.Missing("they start too slowly for QUICK")
        peers = [(targets.JVM, "lockbroker", bench.broker), (targets.CURATOR, "curator", bench.zookeeper)]
        rows = [Row(label, "", [service.target], service.pids, services.jvm(peer)) for label, peer, service in peers]
    except services.Missing as e:
        bench.results.notes.append(f"JVMs: left out, {e}")
        return
    for _ in range(bench.rounds):
        for case, (count, threads) in JVMS.items():
            for row in rows:
                add(bench, "jvms", case, row.label, attempt(bench, f"{row.label}, {case}", lambda: several(row, count, threads)))


def several(row, count, threads):
    """So many JVMs at once: their pairs, and the waits of the one that waited longest."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        runs = [pool.submit(row.measure, threads, "one", JVM_SECONDS, warm=JVM_SECONDS) for _ in range(count)]
    figures = [run.result() for run in runs]
    return {"pairs_s": sum(f["pairs_s"] for f in figures)} | {w: max(f[w] for f in figures) for w in ("p50_us", "p99_us")}


def hosts(bench):
    """Daemons that contend for one lock, with as many local waiters behind each; beside it the recipe, a session for
    each host, as it is and behind a socket. With one behind each also on one core, the server too: there nothing is done
    at the same time; and with locks that are held for a while, so that the next host has learnt its place before."""
    recipes = [Row(label, peer, [bench.zookeeper.target], bench.zookeeper.pids)
               for label, peer in ((targets.RECIPE, "recipe"), (targets.RELAY, "relay"))]
    for count in (2, 4, 8):
        daemons = []
        try:
            for _ in range(count):
                daemons.append(services.Lockbroker(bench.zookeeper, root=f"/bench-hosts{count}"))
            row = Row("lockbroker", "lockbroker", [d.target for d in daemons], [p for d in daemons for p in d.pids])
            for case, pinned, more in ((f"{count} x 1", False, ()), (targets.held(count), False, targets.HOLD),
                                       *([(f"{count} x 1, one core", True, ())] if count == 4 else [])):
                for _ in range(bench.rounds):  # in turn: what is compared differs by less than the machine's mood
                    for each, programs in (*((recipe, {}) for recipe in recipes), (row, {"service": row.pids})):
                        with measure.beside(bench.zookeeper.pids, pinned):
                            add_shares(bench, case, each, cross(bench, each, programs, count,
                                                                bench.long_seconds / 2 / bench.rounds, pinned, more))
            add_shares(bench, f"{count} x 8", row, attempt(bench, f"hosts, {count}", lambda: row.measure(
                count * 8, "one", bench.long_seconds)))
        finally:
            for daemon in daemons:
                bench.complain(daemon.end())


def cross(bench, row, programs, count, seconds, pinned, more):
    """Every hand-off crosses hosts: who uses the cores meanwhile."""
    cpus = measure.cpus_to_pin() if pinned else os.sched_getaffinity(0)
    programs = programs | {"server": bench.zookeeper.pids}

    def look():
        window = costs.Window(programs, cpus, seconds / 2)
        figures = row.measure(count, "one", seconds, pinned=pinned, more=more, during=window)
        return figures | window.figures(figures["pairs_s"])

    figures = attempt(bench, f"hosts, {count}, {row.label}", look)
    if figures:
        for program in (*programs, "load"):
            figures[f"{program}_us"] = figures[f"{program}_user_us"] + figures[f"{program}_system_us"]
    return figures


def add_shares(bench, case, row, figures):
    if not figures:
        return
    fair = figures["pairs"] / len(figures["by_target"])
    if len(figures["by_target"]) > 1:
        figures |= {"share_least": min(figures["by_target"]) / fair, "share_most": max(figures["by_target"]) / fair}
    add(bench, "hosts", case, row.label, figures)


# ---- pipelined ----

def pipelined(bench):
    """Redis-benchmark's shape, -P 16 -c 50: requests per second, a LOCK and its UNLOCK being two."""
    cases = [("lockbroker, standalone", bench.standalone, ("ping", "lock")),
             ("lockbroker, ZooKeeper", bench.broker, ("ping", "lock")),
             *[(label, service, ("lock",)) for label, service in bench.others]]
    if bench.redis:
        cases.append(("Redis", bench.redis, ("ping", "set")))
    for _ in range(bench.rounds):
        for label, service, kinds in cases:
            for kind in kinds:
                value = attempt(bench, f"pipelined, {label}", lambda: measure.pipeline(
                    service.target, kind, bench.seconds))
                add(bench, "pipelined", kind, label, value and {"requests_s": value})
        if bench.redis:
            for kind, test in (("ping", "ping_mbulk"), ("set", "set")):
                value = attempt(bench, "redis-benchmark", lambda: measure.redis_benchmark(
                    bench.redis.target, test, int(1500000 * bench.seconds)))
                add(bench, "pipelined", kind, "Redis, by redis-benchmark", value and {"requests_s": value})


# ---- growth ----

def pair_cost(bench, service, times=5):
    """Pairs per second of one process, and the median of a wait, while whatever else goes on."""
    row = Row("", "lockbroker", [service.target], service.pids)
    found = [row.measure(1, "own", bench.seconds / 2, pinned=True) for _ in range(times)]
    return {m: statistics.median(f[m] for f in found) for m in ("pairs_s", "p50_us", "p99_us")}


def held(bench):
    """Locks that are held, and what one more costs."""
    for label, service, sizes in (("lockbroker, standalone", bench.standalone, (10, 100, 1000, 10000)),
                                  ("lockbroker, ZooKeeper", bench.broker, (10, 100, 1000, SESSION_LOCKS))):
        for size in sizes if not bench.quick else sizes[::3]:
            attempt(bench, f"{size} locks held", lambda: hold(bench, label, service, size))


def hold(bench, label, service, size):
    clients = [service.client(2) for _ in range(min(size, 100))]
    before = measure.memory_bytes(service.pids[0])
    try:
        for i in range(size):
            clients[i % len(clients)].send("LOCK", f"held-{i}")
        for i in range(size):
            answer = clients[i % len(clients)].reply()
            assert isinstance(answer, int), f"no lock: {answer}"
        grown = measure.memory_bytes(service.pids[0]) - before
        time.sleep(SETTLE_S)  # the daemon's look is told to nobody
        add(bench, "held", str(size), label, pair_cost(bench, service) | {"bytes_per_lock": grown / size})
    finally:
        for client in clients:
            client.close()
    harness.wait_until(lambda: {"grants": "0", "claims": "0"}.items() <= service.info("locks").items(),
                       "the locks to go")


def idle(bench):
    """Clients that are connected and do nothing: memory, wake-ups, and what a pair of another one costs."""
    for size in (1000, 10000):
        if size > services.descriptors():
            bench.results.notes.append(f"{size} idle clients: left out, only {services.descriptors()} descriptors")
            continue
        attempt(bench, f"{size} idle clients", lambda: stay(bench, size))


def stay(bench, size):
    with measure.serving(bench) as (daemon, clients):
        before = measure.memory_bytes(daemon.pids[0])
        for _ in range(size):
            clients.append(measure.connect(daemon))
        daemon.info("server")
        grown = measure.memory_bytes(daemon.pids[0]) - before
        costs.rest(daemon.pids)
        first, last, _ = harness.over(bench.long_seconds / 4, lambda: measure.wake_ups(daemon.pids[0]))
        woken = last - first
        add(bench, "idle", str(size), "lockbroker, standalone", pair_cost(bench, daemon) | {
            "bytes_per_client": grown / size, "wake_ups_s": woken / (bench.long_seconds / 4)})


PAGES = 1000


def pages(bench):
    """Memory of a client that holds a lock: with a page of delegations, and without."""
    if services.knows("locks__delegation"):
        for label, paged in ((targets.PLAIN, False), (targets.DELEGATED, True)):
            attempt(bench, f"{PAGES} holders, {label}", lambda: page(bench, label, paged))


def page(bench, label, paged):
    slot = ("SLOT", 1) if paged else ()
    with measure.serving(bench, locks__delegation=1) as (daemon, clients):
        before = measure.memory_bytes(daemon.pids[0])
        for i in range(PAGES):
            clients.append(measure.connect(daemon, 3))
            if paged:
                answer = clients[i].call("DELEGATE")
                assert isinstance(answer, int), f"no page: {i} {answer}"
            clients[i].call("LOCK", f"own-{i}", *slot)
        grown = measure.memory_bytes(daemon.pids[0]) - before
        assert int(daemon.info("locks")["delegations"]) == paged * PAGES
        add(bench, "pages", str(PAGES), label, {"bytes_per_client": grown / PAGES})


def waiters(bench):
    """Clients that wait for one lock: memory, what a pair of another lock costs, and a hand-off when they all go."""
    for size in (10, 100, 1000, 10000) if not bench.quick else (10, 1000):
        if size > services.descriptors():
            bench.results.notes.append(f"{size} waiters: left out, only {services.descriptors()} descriptors")
            continue
        attempt(bench, f"{size} waiters", lambda: wait(bench, size))


def wait(bench, size):
    with measure.serving(bench) as (daemon, clients):
        holder = daemon.client(2)
        clients.append(holder)
        holder.call("LOCK", "w")
        for _ in range(size):
            clients.append(measure.connect(daemon))
            clients[-1].call("PING")
        before = measure.memory_bytes(daemon.pids[0])
        for client in clients[1:]:
            client.send_raw(harness.encode("LOCK", "w") + harness.encode("UNLOCK", "w"))
        harness.wait_until(lambda: daemon.info("locks")["requests"] == str(size), "the waiters", 60)
        grown = measure.memory_bytes(daemon.pids[0]) - before
        figures = pair_cost(bench, daemon) | {"bytes_per_waiter": grown / size}
        began = time.monotonic()
        holder.send("UNLOCK", "w")
        assert clients[-1].reply() > 0 and clients[-1].reply() == 0
        figures["hand_off_us"] = (time.monotonic() - began) * 1e6 / size
        add(bench, "waiters", str(size), "lockbroker, standalone", figures)


def warm_up(bench):
    """A ZooKeeper server is steady after half a minute of load."""
    row = Row("", "recipe", [bench.zookeeper.target], bench.zookeeper.pids)
    attempt(bench, "warming up", lambda: row.measure(8, "own", 1 if bench.quick else 30))


ALL = [warm_up, contend, bare, taken, order, cold, requests, jvms, hosts, ways.ways, pipelined, held, idle, pages, waiters,
       crowd.crowd, slow.reconnections, handovers.handovers, takeover.takeover, neighbours.neighbours, seen.seen,
       logged.logged]
