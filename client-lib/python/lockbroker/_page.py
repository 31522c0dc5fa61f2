# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
The session page of PROTOCOL.md: what the broker has proven, in memory that it shares. Reading it makes no system call,
and it stays true while the broker hangs.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
import weakref
from typing import NamedTuple, Optional

_LAYOUT = struct.Struct("=IIQQQq16s")
_BYTES = 64
_MAGIC, _VERSION = 0x4C425350, 1
_TRIES = 1000

SAFE, JEOPARDY, MOVED = 1, 2, 4
FOREVER = 2**63 - 1


def clock() -> int:
    """Nanoseconds, suspend included: the clock of the page, and of leases."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class View(NamedTuple):
    epoch: int
    state: int
    safe_until: int

    @property
    def moved(self) -> bool:
        """The broker was killed, and has another page. This one counts until its safe_until, and is never written again."""
        return self.state == MOVED

    @property
    def proven(self) -> bool:
        return self.state in (SAFE, JEOPARDY, MOVED)


class Page:
    """One mapped page. It is shared by all connections of the process to that broker."""

    def __init__(self, memory: mmap.mmap, seen: View) -> None:
        self._memory = memory
        self._seen = seen

    def read(self) -> View:
        """What it says, or said last: a writer that is stopped or killed while it writes leaves it unreadable."""
        seen = _read(self._memory)
        if seen:
            self._seen = seen
        return self._seen


def _read(memory: mmap.mmap) -> Optional[View]:
    for _ in range(_TRIES):
        # Two copies that are the same, so that it does not matter in which order a copy reads the words.
        copy = memory[:_BYTES]
        if copy != memory[:_BYTES]:
            continue
        magic, version, sequence, epoch, state, safe_until, _ = _LAYOUT.unpack_from(copy)
        if (magic, version) != (_MAGIC, _VERSION) or state > MOVED:
            return None
        if sequence % 2 == 0:
            return View(epoch, state, safe_until)
    return None


_pages: "weakref.WeakValueDictionary[str, Page]" = weakref.WeakValueDictionary()


def find(path: str, id_text: str) -> Optional[Page]:
    """
    The page of that id, or None: there is none, or what stands at the path is another broker's, as it may be in another
    mount namespace. Then the broker has to be asked.
    """
    page = _pages.get(id_text)
    if page or not path or not id_text:
        return page
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        if os.fstat(fd).st_size != _BYTES:
            return None
        memory = mmap.mmap(fd, _BYTES, mmap.MAP_SHARED, mmap.PROT_READ)
    except OSError:
        return None
    finally:
        os.close(fd)
    seen = _read(memory)
    if seen is None or memory[40:56].hex() != id_text:
        return None
    return _pages.setdefault(id_text, Page(memory, seen))
