# SPDX-License-Identifier: Apache-2.0
"""What a daemon may be asked, word by word, for stateful.py."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

import harness  # noqa: E402

PLAIN = [f"lock{i}" for i in range(5)] + ["k\xe4se", "a b", "x" * 200]
FORCED = ["forced0", "forced1"]  # operators may take these, so nothing is promised of them
ELECTIONS = ["leader0", "leader1"]
SEMAPHORES = ["permits2", "permits3"]  # with that limit
NAMES = PLAIN + FORCED + ELECTIONS + SEMAPHORES
LONG = 60000
STRANGE = [b"", b"\xff\xfe", b"-1", b"0", b"99999999999999999999", b"9223372036854775807", b"NaN", b"*", b"WAIT", b"a/../b",
           b"\r\n", b"x" * 3000, b"LEASE", b"SHARED", b"\0"]


def commands():
    """Word -> (least, greatest number of words), of the table that the daemon dispatches by."""
    rows = re.findall(r"^\tX\((\w+), (-?\d+), (-?\d+),", harness.read_source("protocol/commands.h"), re.M)
    return {word: (int(least), int(most)) for word, least, most in rows}


SET_SCRIPT = "return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2])"
# Those of redis-py and of redlock of npm, and their words behind the value.
SCRIPTS = [("c3f8721cbb97f72bc19e972846bd7aaf91901658", []), ("a4e8783852e6b949f9ef3a97212805108459a890", [100, 0]),
           ("1cac51482acf5858da00f6d685d68f886cd6b6b2", [100]), ("e5a322e2634ef59a516e8ea150cb085afafee684", [100]),
           ("0f0f23b9048b36752b5be114f357ba083449f908", []), ("ce46f80993d5dac20dd066eb301a4e37994bdbed", [100]),
           ("78d2ca48a6dc9ef6892059792a3a0c5237733d64", []), ("eb0c00d98f6f33b4262419a509002884540f30be", [1, 100]),
           ("5a22d7e8431313862816d4416b5e46dd70fc340d", [100]), ("9470c810040e272ee6c579d8d4331aaf6332a7b1", []),
           ("66e1084c2d842a7e8c271925aae90219fac4e129", []), ("d1d9789e7d4b671cc4c2cf7db73923bbf08cd836", [1, 100, 0])]


class Shapes:
    """Requests as PROTOCOL.md has them: a method for each command, which returns the words behind it."""

    def __init__(self, rng):
        self.rng = rng

    def some(self, *lists):
        """Each of these options or not, in any order."""
        chosen = [option for option in lists if self.rng.random() < 0.4]
        self.rng.shuffle(chosen)
        return [word for option in chosen for word in option]

    def name(self):
        return self.rng.choice(NAMES if self.rng.random() < 0.3 else PLAIN)

    def wait(self):
        return ["WAIT", self.rng.choice([0, 0, 1, 20, 200])]

    def lease(self):
        return ["LEASE", self.rng.choice([1, 30, 5000])]

    def enqueue(self):
        return [self.name(), *self.wait(), *self.some(["SHARED"], ["DATA", "text"], ["REENTER"]),
                *(self.lease() if self.rng.random() < 0.2 else [])]

    def lock(self):
        return [*self.enqueue(), *self.some(["SLOT", self.rng.randrange(1, 64)])]

    def unlock(self):
        return [self.name(), *self.some(["LAZY"])]

    def value(self):
        return self.rng.choice(["v0", "v1", "v2"])

    def set(self):
        words = [[self.rng.choice(["NX", "NX", "XX"])], self.rng.choice([["PX", 30], ["PX", 1000], ["EX", 1]])]
        self.rng.shuffle(words)
        if self.rng.random() < 0.3:
            return [self.name(), self.value(), "NX"]
        if self.rng.random() < 0.2:
            value = self.value()
            return [self.name(), value, "IFEQ", self.rng.choice([value, self.value()]), "PX", 1000]
        return [self.name(), self.value(), *words[0], *words[1]]

    def setnx(self):
        return [self.name(), self.value()]

    def get(self):
        return [self.name()]

    ttl = pttl = get

    def exists(self):
        return self.names()[1:]

    unlink = exists

    def expire(self):
        return [self.name(), 1]

    def pexpire(self):
        return [self.name(), self.rng.choice([30, 1000])]

    def token(self):
        return [self.name(), self.value()]

    delifeq = token

    def delex(self):
        return [self.name(), self.rng.choice(["IFEQ", "IFEQ", "IFNE"]), self.value()]

    def evalsha(self):
        hash_, words = self.rng.choice(SCRIPTS)
        return [hash_, 1, self.name(), self.value(), *words]

    def eval(self):
        return [SET_SCRIPT, 1, self.name(), self.value(), 100]

    def script(self):
        return self.rng.choice([["LOAD", SET_SCRIPT], ["EXISTS", SCRIPTS[0][0], "x"]])

    def names(self):
        found = self.rng.sample(PLAIN + FORCED, self.rng.randrange(1, 5))
        return [len(found), *found]

    def mlock(self):
        return [*self.names(), *self.wait(), *self.some(["SHARED"], ["REENTER"])]

    def munlock(self):
        return self.names()

    def only_name(self):
        return [self.name()]

    downgrade = cancel = resign = leader = observe = unobserve = queue = why = only_name

    def renew(self):
        return [self.name(), self.rng.choice([1, 100, 5000])]

    def acquire(self):
        name = self.rng.choice(SEMAPHORES)
        return [name, "LIMIT", name[-1], *self.wait(), *self.some(["COUNT", self.rng.choice([1, 2])], self.lease())]

    def release(self):
        return [self.rng.choice(SEMAPHORES), *self.some(["COUNT", 1])]

    def limit(self):
        return [self.rng.choice(SEMAPHORES)]

    def valid(self):
        return [self.name(), *self.some(["TOKEN", self.rng.randrange(1, 1000)])]

    def campaign(self):
        return [self.rng.choice(ELECTIONS), "DATA", "me", *self.wait(), *self.some(["ENQUEUE"])]

    def holders(self):
        return [self.name(), *self.some(["KNOWN"])]

    def revoke(self):
        return [self.name(), *self.some(["please"])]

    def forceunlock(self):
        return [self.rng.choice(FORCED)]

    def nothing(self):
        return []

    hosts = audit = restart = reload = metrics = reset = quit = delegate = nothing

    def pattern(self):
        """Now and then one of nearly as many bytes as a request may have: a class, or elements without end."""
        long = ["*[" + "b" * LONG + "]", "*[^" + "x" * LONG + "]", "*?" * (LONG // 2), "*[x]" * (LONG // 4)]
        return self.rng.choice(long if self.rng.random() < 0.2 else ["*", "lock*"])

    def locks(self):
        everywhere = ["ALL", *self.some(["AFTER", self.name()], ["COUNT", self.rng.choice([1, 2, 100])])]
        order = ["ORDER", self.rng.choice(["wait", "waiters", "grants", "name"]), *self.some(["COUNT", self.rng.choice([1, 2, 100])])]
        return self.rng.choice([[self.pattern(), *everywhere], [self.pattern(), *order], self.some([self.pattern()])])

    def accounts(self):
        return []

    def drain(self):
        """Whether it is; the episode begins drains and ends them."""
        return ["STATE"]

    def log(self):
        return self.some([self.rng.choice([1, 100])])

    def events(self):
        return self.wait()

    def config(self):
        return ["GET", *self.rng.choice([["limits.*"], ["*"], ["*e*[a-m]?*_ms"], ["locks.linger_ms", "no.such", "*.*"],
                                         ["prefix:*"], ["[^a]*", "\\*"], ["access.*"]])]

    def access(self):
        return [self.rng.choice([0, 1000]), self.name(), *self.some(["GROUPS", "0,1000"], ["UNIT", "web.service"])]

    def hello(self):
        return self.rng.choice([[], [2], [3], [3, "SETNAME", "me"]])

    def ping(self):
        return self.some(["hello"])

    def echo(self):
        return ["hello"]

    def select(self):
        return [0]

    def info(self):
        return self.some(["stats"], ["locks"])

    def client(self):
        return self.rng.choice([["ID"], ["LIST"], ["GETNAME"], ["SETNAME", "me"], ["SETINFO", "OWNER", "group"],
                                ["UNBLOCK", self.rng.randrange(1, 40)], ["NO-EVICT", "ON"]])

    def command(self):
        return self.rng.choice([[], ["COUNT"], ["DOCS", "lock"], ["INFO", "lock", "nonsense"]])


setattr(Shapes, "del", Shapes.exists)  # the word is Python's own

SLOW = {"AUDIT", "METRICS", "COMMAND", "QUIT", "RESET", "HELLO"}  # now and then


def without_shape():
    """Commands that this would never ask for."""
    return [word for word in commands() if not hasattr(Shapes, word.lower())]
