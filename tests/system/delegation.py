# SPDX-License-Identifier: Apache-2.0
"""A client with a page, by which locks are delegated to it: the process's side of protocol/delegation.h."""

import ctypes
import mmap
import os
import socket
import struct
import time

import harness

NONE, FREE, HELD = range(3)
WANTED, LOST = 4, 8
BYTES, SLOTS = 4096, 63
MAGIC = 0x4C42444C
CONF = {"locks__delegation": 1, "locks__linger_ms": 60000}
SESSION = struct.Struct("=IIQQQq16s")  # magic, version, sequence, epoch, state, safe_until, id
SAFE, JEOPARDY, SESSION_LOST, MOVED = 1, 2, 3, 4
SWAP = getattr(ctypes.CDLL("libatomic.so.1"), "__atomic_compare_exchange_8")
SEQ_CST = 5


class Page:
    """Of its slots the words are changed by compare-and-swap only."""

    def __init__(self, fd):
        self.memory = mmap.mmap(fd, BYTES)
        self.at = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        assert struct.unpack_from("=II", self.memory) == (MAGIC, 1)

    def word(self, slot):
        return struct.unpack_from("=Q", self.memory, 64 * slot)[0]

    def terms(self, slot):
        """Token, epoch, grant_min_ns, id of the session page."""
        return struct.unpack_from("=qQq16s", self.memory, 64 * slot + 8)

    def swap(self, slot, before, after):
        expected = ctypes.c_uint64(before)
        return bool(SWAP(ctypes.c_void_p(self.at + 64 * slot), ctypes.byref(expected), ctypes.c_uint64(after), SEQ_CST, SEQ_CST)
                    & 1)

    def used(self, slot):
        (uses,) = struct.unpack_from("=Q", self.memory, 64 * slot + 56)
        struct.pack_into("=qQ", self.memory, 64 * slot + 48, time.clock_gettime_ns(time.CLOCK_BOOTTIME), uses + 1)


class Delegate(harness.Client):
    """A client that asks for a page, and has locks delegated to it. `generations`: slot -> that of its delegation."""

    def __init__(self, path):
        self.passed = []
        self.page, self.generations = None, {}
        super().__init__(path)
        with open(self.hello["session_page"], "rb") as f:
            self.session = mmap.mmap(f.fileno(), 64, prot=mmap.PROT_READ)

    def _fill(self):
        data, fds, _, _ = socket.recv_fds(self.socket, 65536, 4)
        if not data:
            raise harness.Closed
        self.passed += fds
        self.buffer += data

    def ask_page(self):
        assert self.call("DELEGATE") == SLOTS
        (fd,) = self.passed
        self.page = Page(fd)
        os.close(fd)
        self.passed = []

    def lock(self, name, slot, *words):
        """The answer; what came of the slot is_delegated() says."""
        return self.call("LOCK", name, *words, "SLOT", slot)

    def is_delegated(self, slot):
        """After the answer to a LOCK with it."""
        word = self.page.word(slot)
        if word & 0xFFFF != HELD or word >> 16 <= self.generations.get(slot, 0):
            return False
        self.generations[slot] = word >> 16
        return True

    def delegate(self, name, slot, *words):
        """Locks it until it is delegated: with ZooKeeper not before it is known that nobody waits elsewhere. The token."""

        def tried():
            token = self.lock(name, slot, *words)
            assert isinstance(token, int), token
            if self.is_delegated(slot):
                assert self.page.terms(slot)[0] == token
                return token
            assert self.call("UNLOCK", name) == 0
            return None

        return harness.wait_until(tried, f"{name} to be delegated")

    def state(self, slot):
        return self.page.word(slot) & 15

    def swap(self, slot, before, after):
        word = self.generations[slot] << 16
        return self.page.swap(slot, word | before, word | after)

    def stands(self, slot):
        """What it was delegated on is still proven, for as long as it wants."""
        _, epoch, grant_min_ns, page = self.page.terms(slot)
        _, _, _, now_epoch, state, until, now_page = SESSION.unpack(self.session[:SESSION.size])
        return (now_page == page and now_epoch == epoch and state in (SAFE, JEOPARDY)
                and until - time.clock_gettime_ns(time.CLOCK_BOOTTIME) > grant_min_ns)

    def take(self, slot):
        """True: it holds the lock, without a message. Otherwise it is as it was, or what is taken has to be unlocked."""
        if not self.swap(slot, FREE, HELD):
            return False
        self.page.used(slot)
        if self.page.word(slot) & ~WANTED == self.generations[slot] << 16 | HELD and self.stands(slot):
            return True
        assert self.swap(slot, HELD, FREE), "it was wanted meanwhile: a test that does that asks itself"
        return False

    def leave(self, slot):
        """True: the lock is free, without a message. Otherwise UNLOCK is to be asked."""
        return self.stands(slot) and self.swap(slot, HELD, FREE)
