# SPDX-License-Identifier: Apache-2.0
"""make lines: what the daemon stores for one warm pair of LOCK and UNLOCK by messages: the distinct lines of 64 bytes, its
stack apart, by the structures that they belong to; and its instructions. See README.md."""

import argparse
import bisect
import collections
import contextlib
import fcntl
import os
import re
import select
import shutil
import struct
import subprocess
import termios
import threading
from unittest import mock

import services
from services import harness

LINE_BYTES = 64
STACK = range(0x1ff0000000, 0x2000000000)  # where valgrind puts the stack of a program on a machine of 64 bits
WARM, PAIRS = 20, 20
PIPE_BYTES = 1 << 20
PATIENCE = 600  # for the start of a daemon that writes a line for each access to memory, on a busy machine
NOBODYS = ("mem.h", "bytes.h", "bytes.c", "queue.h")  # these allocate memory for their callers: the caller is the owner

Mapping = collections.namedtuple("Mapping", "first last offset is_code path")
NOWHERE = Mapping(0, 0, 0, False, "")
Pair = collections.namedtuple("Pair", "instructions stores")  # stores: line -> {(address of the code, address, bytes)}


class Trace:
    """The output of lackey, read from a FIFO. It is discarded unless it is recorded."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "trace")
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR)  # for both, so that no open waits for the other end
        fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.lock, self.chunks, self.ends = threading.Lock(), None, False
        os.set_blocking(self.fd, False)
        self.thread = threading.Thread(target=self.read_all, daemon=True)
        self.thread.start()

    def read_all(self):
        while not self.ends:
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            with self.lock:
                chunk = os.read(self.fd, PIPE_BYTES)
                if self.chunks is not None:
                    self.chunks.append(chunk)

    def is_read(self):
        with self.lock:
            return not struct.unpack("i", fcntl.ioctl(self.fd, termios.FIONREAD, b"\0" * 4))[0]

    def record(self, action):
        with self.lock:
            self.chunks = []
        action()
        with self.lock:
            found, self.chunks = b"".join(self.chunks), None
        return found.decode()

    def end(self):
        self.ends = True
        self.thread.join()
        os.close(self.fd)


class Broker(services.Lockbroker):
    """A broker that records its blocks of memory, and each access to memory in a trace."""

    def __init__(self, zookeeper=None):
        self.aside = harness.fast_tmp("lines.")
        self.trace = Trace(self.aside)
        self.blocks = os.path.join(self.aside, "blocks")
        under = [services.found("valgrind"), "-q", "--tool=lackey", "--trace-mem=yes", f"--log-file={self.trace.path}"]
        # A pair takes so long here that the claim would be idle for too long.
        super().__init__(zookeeper, under=under, locks__linger_ms=60000, zookeeper__session_timeout_ms=40000,
                         env={"LD_PRELOAD": harness.program("tests/bench-blocks.so"), "BENCH_BLOCKS": self.blocks})

    def wait_ready(self):
        with mock.patch.object(harness, "PATIENCE", PATIENCE):
            super().wait_ready()

    def rest(self):
        """Waits until the broker has nothing left to do and its whole trace is read."""
        harness.wait_until(lambda: self.trace.is_read() and self.state() == "S" and self.trace.is_read(), "the daemon to rest")

    def end(self):
        complaint = super().end()
        self.trace.end()
        shutil.rmtree(self.aside)
        return complaint


def pair_of(text):
    """The instructions and the stores that lackey reported during a pair."""
    code, count, stores = 0, 0, collections.defaultdict(set)
    for line in text.splitlines():
        what, _, rest = line.strip().partition(" ")
        if what not in ("I", "S", "M"):
            continue
        address, _, size = rest.strip().partition(",")
        address = int(address, 16)
        if what == "I":
            code = address
            count += 1
        elif address not in STACK:
            for at in range(address // LINE_BYTES, (address + int(size) - 1) // LINE_BYTES + 1):
                stores[at].add((code, address, int(size)))
    return Pair(count, stores)


@contextlib.contextmanager
def warm_pair(daemon, pairs=PAIRS, name="warm"):
    """The pair with the fewest instructions, of a client that waits for both answers and stays connected. Other
    pairs also contain periodic work, for example a heartbeat."""
    with daemon.client(2) as client:
        def pair():
            assert client.call("LOCK", name) > 0 and client.call("UNLOCK", name) == 0
            daemon.rest()

        for _ in range(WARM):
            pair()
        yield min((pair_of(daemon.trace.record(pair)) for _ in range(pairs)), key=lambda pair: pair.instructions)


# ---- whose memory is it? ----

class Places:
    """The addresses of a daemon that still runs."""

    def __init__(self, daemon, codes):
        with open(f"/proc/{daemon.pid}/maps") as f:
            self.maps = [mapping_of(line) for line in f]
        self.program = daemon.program
        self.base = next(m.first - m.offset for m in self.maps if m.path == self.program)
        self.symbols = symbols_of(self.program)
        self.blocks = blocks_of(daemon.blocks)
        self.starts = sorted(self.blocks)
        callers = {word - 1 for _, words in self.blocks.values() for word in words if self.mapped(word).is_code}
        self.named = self.functions({*codes, *callers})

    def mapped(self, address):
        return next((m for m in self.maps if m.first <= address < m.last), NOWHERE)

    def functions(self, codes):
        """Of each of these addresses: (function, file, line), the innermost first, which the compiler may have put into others."""
        found = {code: [(library(self.mapped(code).path), "", "")] for code in codes}
        own = sorted(code for code in codes if self.mapped(code).path == self.program)
        told = subprocess.run(["addr2line", "-a", "-f", "-i", "-e", self.program], capture_output=True, text=True, check=True,
                              input="".join(f"{code - self.base:#x}\n" for code in own)).stdout
        for code, frames in zip(own, re.split(r"^0x[0-9a-f]+\n", told, flags=re.M)[1:]):
            lines = frames.splitlines()
            places = [place.split(" ")[0].rpartition(":") for place in lines[1::2]]
            found[code] = [(function.split(".")[0], os.path.basename(file), number)
                           for function, (file, _, number) in zip(lines[::2], places)]
        return found

    def owner(self, words):
        frames = [frame for word in words if self.mapped(word).is_code for frame in self.named[word - 1]]
        return next((frame for frame in frames if frame[1] not in NOBODYS), frames[-1])

    def whose(self, address):
        """What the address is part of, and at which offset in it."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i >= 0 and address < self.starts[i] + self.blocks[self.starts[i]][0]:
            size, words = self.blocks[self.starts[i]]
            function, file, _ = self.owner(words)
            return f"{file.split('.')[0] or function}: {size} bytes by {function}", address - self.starts[i]
        m = self.mapped(address)
        if m.path == self.program or not m.path and self.mapped(m.first - 1).path == self.program:
            at = address - self.base
            i = bisect.bisect_right(self.symbols, (at, "~")) - 1
            return f"data: {self.symbols[i][1]}", at - self.symbols[i][0]
        return os.path.basename(m.path) or "memory of no name", address - m.first + m.offset


def mapping_of(line):
    at, rights, offset, _, _, *path = line.split()
    first, last = (int(word, 16) for word in at.split("-"))
    return Mapping(first, last, int(offset, 16), bool(path) and "x" in rights, " ".join(path))


def library(path):
    return os.path.basename(path).split(".so")[0] or "?"


def blocks_of(path):
    """block -> (its size, words of the stack: addresses in who asked for it, and most often in who called that)"""
    found = {}
    with open(path, "rb") as f:
        count = struct.unpack("10Q", f.read(80))[1]
        for block, size, *callers in struct.iter_unpack("10Q", f.read(80 * count)):
            found[block] = (size, callers)
    return {block: entry for block, entry in found.items() if entry[0]}


def symbols_of(program):
    told = subprocess.run(["nm", "-n", program], capture_output=True, text=True, check=True).stdout
    return [(int(at, 16), name) for at, _, name in (line.split() for line in told.splitlines() if len(line.split()) == 3)]


def listing(daemon, pair):
    """Whose -> {(line of it, its first byte) -> what is stored there, by whom}"""
    places = Places(daemon, {code for stores in pair.stores.values() for code, _, _ in stores})
    found = collections.defaultdict(lambda: collections.defaultdict(set))
    for line, stores in pair.stores.items():
        for code, address, size in stores:
            whose, offset = places.whose(max(address, line * LINE_BYTES))
            function, file, number = places.named[code][0]
            found[whose][line, offset - (max(address, line * LINE_BYTES) - line * LINE_BYTES)].add(
                (offset, size, function, f"{file}:{number}" if file else ""))
    return found


def print_pair(label, daemon, pair, each_store):
    found = listing(daemon, pair)
    print(f"{label}: {len(pair.stores)} lines, {pair.instructions} instructions")
    for whose in sorted(found, key=lambda whose: -len(found[whose])):
        print(f"  {len(found[whose]):3}  {whose}")
        for (_, first), stores in sorted(found[whose].items(), key=lambda entry: entry[0]) if each_store else ():
            print(f"         {first:+}")
            for offset, size, function, place in sorted(stores):
                print(f"           +{offset} ({size})  {function} {place}")


# ---- the runs ----

@contextlib.contextmanager
def standalone():
    daemon = Broker()
    try:
        yield daemon
    finally:
        daemon.end()


@contextlib.contextmanager
def with_zookeeper():
    server = services.Zookeeper()
    try:
        daemon = Broker(server)
        try:
            yield daemon
        finally:
            daemon.end()
    finally:
        server.end()


RUNS = {"standalone": standalone, "ZooKeeper": with_zookeeper}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", default=harness.build_dir())
    options.add_argument("--only", action="append", choices=RUNS)
    options.add_argument("--stores", action="store_true", help="each store of each line")
    asked = options.parse_args()
    sweeper = harness.begin_run()
    os.environ["LOCKBROKER_BUILD"] = os.path.abspath(asked.build)
    for label in asked.only or RUNS:
        with RUNS[label]() as daemon, warm_pair(daemon) as pair:
            print_pair(label, daemon, pair, asked.stores)
    sweeper.stdin.close()


if __name__ == "__main__":
    main()
