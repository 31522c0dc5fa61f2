# SPDX-License-Identifier: Apache-2.0
"""The aims of the project, at the limit of what a broker on a socket can do: each as measured in this run."""

from report import number

NULL, SILENT, LIBRARY = "null broker", "null broker, unlock not answered", "lockbroker, by its library"
DELEGATED, FLOCK, MUTEX = "lockbroker, delegated", "flock(2)", "robust mutex in memory"
REDIS = "Redis, SET NX, polled"
PLAIN, ZOOKEEPER, RECIPE = "lockbroker, standalone", "lockbroker, ZooKeeper", "ZooKeeper recipe in C"
RELAY = "the recipe behind a socket"
ETCD, CURATORS = "etcd's lock service", "Curator, a JVM for each host"
PAGE = "the page in Chromium"
LOGGED, NOT_LOGGED = f"{PLAIN}, holds logged", f"{PLAIN}, holds not logged"
THOUSAND, ONE_DELEGATED = "1000 locks, 2 pairs a second each", "1 process, delegated"
JVM, CURATOR = "lockbroker, threads of one JVM", "Curator, threads of one JVM"
READERS = "32 readers, one lock"
ONE_LOCK = ("8, one lock", "32, one lock", "128, one lock")
HOLD_US = 1000
HOLD = ("--hold", str(HOLD_US))


def held(hosts):
    """The case of so many hosts with one process behind each, which holds the lock for a while."""
    return f"{hosts} x 1, held {HOLD_US // 1000} ms"


class Targets:
    """With `judges` every aim is judged; without, as after one short round, those alone that are counts and not times."""

    def __init__(self, results, judges=True):
        self.results = results
        self.judges = judges
        self.lines = []

    def get(self, *key):
        return self.results.get(*key)

    def count(self, what, value, aim, digits=2):
        self.tell(what, value, aim, False, digits, judged=True)

    def tell(self, what, value, aim, at_least=True, digits=2, judged=False):
        if value is None:
            self.lines.append([what, f"{'>=' if at_least else '<='} {number(aim, digits)}", "-", "not measured"])
            return
        met = value >= aim if at_least else value <= aim
        verdict = ("met" if met else "NOT MET") if judged or self.judges else "not judged"
        self.lines.append([what, f"{'>=' if at_least else '<='} {number(aim, digits)}", number(value, digits), verdict])

    def ratio(self, section, case, row, base, metric="pairs_s"):
        a, b = self.get(section, case, row, metric), self.get(section, case, base, metric)
        return a / b if a is not None and b else None

    def sockets(self):
        for row in (PLAIN, ZOOKEEPER):
            self.tell(f"1: one process, pinned, {row} / null", self.ratio("pinned", "1 process", row, NULL), 0.9)
        self.tell("1: the same by the library, unlock deferred / null without unlock replies",
                  self.ratio("pinned", "1 process", LIBRARY, SILENT), 0.9)
        for case in ONE_LOCK:
            self.tell(f"2: {case}, ZooKeeper / null", self.ratio("free", case, ZOOKEEPER, NULL), 0.9)
            self.tell(f"2: {case}, ZooKeeper / recipe", self.ratio("free", case, ZOOKEEPER, RECIPE), 20, digits=1)
            for metric, word in (("p99_us", "p99"), ("p999_us", "p999")):
                self.tell(f"2: {case}, {word} / null's", self.ratio("free", case, ZOOKEEPER, NULL, metric), 1.2, False)
        for row in (PLAIN, ZOOKEEPER):
            self.count(f"2: overtaken at most, {row}: no more often than null's + 32",
                       self.get("order", "32, one lock", row, "overtaken"),
                       (self.get("order", "32, one lock", NULL, "overtaken") or 0) + 32, 0)
        self.tell("3: 32 processes, own locks, ZooKeeper / null", self.ratio("free", "32, own locks", ZOOKEEPER, NULL), 0.9)
        self.tell("3: the same / Redis", self.ratio("free", "32, own locks", ZOOKEEPER, REDIS), 1)

    def pipelined(self):
        ping, lock = (self.get("pipelined", k, PLAIN, "requests_s") for k in ("ping", "lock"))
        for row in ("Redis", "Redis, by redis-benchmark"):
            ours, sets = (self.get("pipelined", k, row, "requests_s") for k in ("ping", "set"))
            self.tell(f"4: PING -P 16 -c 50 / {row}'s", ping / ours if ping and ours else None, 1)
            self.tell(f"4: LOCK and UNLOCK, pairs / {row}'s SETs", lock / 2 / sets if lock and sets else None, 0.5)

    def network(self):
        def median(row):
            return self.get("cold", "1 process", row, "p50_us")

        create, null, cold, new = map(median, ("one create in ZooKeeper", NULL, "lockbroker, cold lock",
                                               "lockbroker, new name"))
        if create and null:
            self.tell("5: cold acquire / (one create + one socket round trip)", cold and cold / (create + null), 1.15,
                      False)
            self.tell("5: new name / cold acquire, in round trips more (creates)",
                      new and cold and (new - cold) / create, 2, False)
        for count in (2, 4, 8):
            for word, case in (("", f"{count} x 1"), (f", held {HOLD_US // 1000} ms", held(count))):
                self.tell(f"6: {count} hosts{word}: median of a hand-off / recipe's",
                          self.ratio("hosts", case, "lockbroker", RECIPE, "hand_off_us"), 0.9 if count == 2 else 1, False)
        for way_ms, aim in ((1, 0.54), (0.2, 0.6)):
            for count in (2, 4, 8):
                case = f"{count} x 1, {way_ms:g} ms each way, held {4 * way_ms:g} ms"
                self.tell(f"6: {case}: median of a hand-off / recipe's",
                          self.ratio("ways", case, "lockbroker", RECIPE, "hand_off_us"), aim, False)
        a, b = self.get("hosts", "4 x 8", "lockbroker", "pairs_s"), self.get("hosts", "4 x 1", RECIPE, "pairs_s")
        self.tell("6: 4 hosts, 8 waiters each / recipe", a / b if a and b else None, 10, digits=1)
        for count in (2, 4, 8):
            least, most = (self.get("hosts", f"{count} x 8", "lockbroker", f"share_{w}") for w in ("least", "most"))
            self.tell(f"6: {count} hosts, 8 waiters each: farthest from a fair share",
                      max(1 - least, most - 1) if least is not None else None, 0.2, False)

    def growth(self):
        self.count("7: bytes for an idle client, of 10,000", self.get("idle", "10000", PLAIN, "bytes_per_client"), 1536, 0)
        self.tell("7: wake-ups a second, 10,000 idle clients", self.get("idle", "10000", PLAIN, "wake_ups_s"), 0, False, 1)
        few, many = (self.get("held", n, ZOOKEEPER, "p50_us") for n in ("10", "8000"))
        self.tell("7: median wait of another with 8,000 locks held / with 10", many / few if few and many else None, 1.2,
                  False)

    def servers(self):
        pairs, seconds = (self.get("requests", "warm", "lockbroker", m) for m in ("pairs", "seconds"))
        packets = self.get("requests", "warm", "lockbroker", "packets")
        idle = self.get("requests", "idle", "lockbroker", "packets")
        if pairs and packets is not None and idle is not None:
            # All brokers of the run send heartbeats; the claim changes once in 1,024 grants.
            self.tell("8: packets per 1,024 warm pairs, heartbeats off", (packets - idle) * 1024 / pairs, 3.3, False, 1)
        packets = self.get("requests", "cold", "lockbroker", "packets")
        pairs = self.get("requests", "cold", "lockbroker", "pairs")
        if pairs and packets is not None and idle is not None:
            self.tell("8: packets per cold pair, heartbeats off", (packets - idle) / pairs, 3.05, False)

    def pauses(self):
        for row in (PLAIN, ZOOKEEPER):
            self.tell(f"9: ms nobody is served during a hand-over, 1,000 clients, 10,000 locks, {row}",
                      self.get("handover", "1000 clients, 10000 locks", row, "paused_ms"), 50, False, 1)


    def delegated(self):
        for case in ("1 process", "32, own locks"):
            self.tell(f"10: {case}, delegated / flock(2)", self.ratio("bare", case, DELEGATED, FLOCK), 1.5)
        pairs = self.get("bare", "1 process", DELEGATED, "pairs_s")
        self.tell("10: us a delegated pair, one process", pairs and 1e6 / pairs, 0.3, False)
        self.tell("10: 32 readers of one lock, where it may be delegated / where not",
                  self.ratio("bare", READERS, DELEGATED, LIBRARY), 100)
        taken, asked = (self.get("taken", "free, one core", row, "p50_us") for row in (DELEGATED, LIBRARY))
        self.tell("10: us that taking a free one back adds to another's lock, one core",
                  taken - asked if taken and asked else None, 2, False)
        for case in ONE_LOCK:
            self.tell(f"10: {case}, where locks may be delegated / where not",
                      self.ratio("free", case, DELEGATED, LIBRARY), 0.98)
        paged, plain = (self.get("pages", "1000", row, "bytes_per_client") for row in (DELEGATED, PLAIN))
        self.count("10: bytes of a page of delegations in which one lock is delegated",
                   paged - plain if paged and plain else None, 4096 + 64, 0)

    def java(self):
        self.tell("11: 32 threads of one JVM on one lock, the Java library / Curator", self.ratio("jvms", "32 threads", JVM, CURATOR),
                  20, digits=1)
        threads, one = (self.get("jvms", case, JVM, "pairs_s") for case in ("32 threads", "1 thread"))
        self.tell("11: the same / one thread: what the queue of the JVM costs", threads / one if threads and one else None, 1)

    def logged(self):
        for case in ("1 process", "32 processes", THOUSAND):
            self.tell(f"13: the daemon's CPU for a warm pair, holds logged / not, {case}", self.get("logged", case, LOGGED, "of_off"),
                      1.03, False, 3)
        self.tell("13: us of the daemon's CPU for a delegated pair, holds logged", self.get("logged", ONE_DELEGATED, LOGGED, "cpu_us"),
                  0.001, False, 4)

    def seen(self):
        case = "10000 locks"
        self.tell(f"12: ms until the page shows a lock that is waited for, at most, {case}",
                  self.get("seen", case, PAGE, "appears_most_ms"), 2000, False, 0)
        self.tell(f"12: ms a frame while the page is scrolled, 99 %, {case}", self.get("seen", case, PAGE, "frame_p99_ms"), 50, False, 0)


def tell(results, judges=True):
    """Lines of what, aim, measured, met or not."""
    t = Targets(results, judges)
    for part in (t.sockets, t.pipelined, t.network, t.growth, t.servers, t.pauses, t.delegated, t.java, t.seen, t.logged):
        part()
    return t.lines
