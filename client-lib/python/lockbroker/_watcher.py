# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
One thread for all that hold something and want to be told of its loss. It reads what the broker sends, and looks at each
proof before it can run out. It starts when `held.lost` or `held.revoked` is asked for first. It keeps nothing alive:
what the program has dropped is closed and released.
"""

from __future__ import annotations

import select
import socket
import threading
import time
import weakref
from typing import TYPE_CHECKING, Dict, List

from . import _fork, _ready
from ._page import FOREVER

if TYPE_CHECKING:
    from ._wire import Wire

# A suspended machine counts no time of a wait, but all of a proof.
_SLEEP_MAX_S = 60.0


class Watcher:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wires: Dict[int, "weakref.ref[Wire]"] = {}
        self._poke, self._poked = socket.socketpair()
        self._poke.setblocking(False)
        self._poked.setblocking(False)
        self._epoll = _ready.epoll()
        self._epoll.register(self._poked, select.POLLIN)
        self._wakes_at = 0.0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="lockbroker", daemon=True)
        self._thread.start()

    def watch(self, wire: Wire) -> None:
        delay = wire.tick()
        with self._lock:
            self._wires[wire.fd] = weakref.ref(wire)
            self.unmute(wire)
            if time.monotonic() + delay < self._wakes_at:
                self._wakes_at = 0.0
                self._wake()

    def forget(self, wire: Wire) -> None:
        """Before its socket is closed."""
        with self._lock:
            self._wires.pop(wire.fd, None)
        self.mute(wire)

    def mute(self, wire: Wire) -> None:
        """Somebody else reads from it."""
        try:
            self._epoll.unregister(wire.fd)
        except (OSError, ValueError):
            pass

    def unmute(self, wire: Wire) -> None:
        try:
            self._epoll.register(wire.fd, select.POLLIN)
        except (OSError, ValueError):
            pass

    def end_in_child(self) -> None:
        """The thread is not there; a greenlet is, and must not find closed what it waits for. It ends when it is woken."""
        self._ended = True
        if hasattr(select, "epoll"):
            self._close()

    def _close(self) -> None:
        self._epoll.close()
        self._poke.close()
        self._poked.close()

    def _wake(self) -> None:
        try:
            self._poke.send(b"\0")
        except BlockingIOError:
            pass

    def _run(self) -> None:
        while not self._ended:
            self._turn(self._sleep())
        self._close()

    def _sleep(self) -> List[int]:
        """The descriptors that have something."""
        delay = _SLEEP_MAX_S
        with self._lock:
            self._wakes_at = time.monotonic() + delay
            refs = list(self._wires.values())
        for ref in refs:
            delay = min(delay, _tick(ref))
        with self._lock:
            if self._wakes_at == 0.0:
                return []
            self._wakes_at = time.monotonic() + delay
        _ready.wait(self._epoll.fileno(), select.POLLIN, delay)
        if self._ended:  # what is to be read is the parent's
            return []
        return [fd for fd, _ in self._epoll.poll(0)]

    def _turn(self, readable: List[int]) -> None:
        for fd in readable:
            if fd == self._poked.fileno():
                self._poked.recv(4096)
            else:
                self._pump(fd)

    def _pump(self, fd: int) -> None:
        with self._lock:
            ref = self._wires.get(fd)
        wire = ref() if ref else None
        if wire:
            wire.pump()
            if wire.grant.ended:
                self.forget(wire)


def _tick(ref: weakref.ref[Wire]) -> float:
    wire = ref()
    return wire.tick() if wire else _SLEEP_MAX_S


def seconds(ns: int) -> float:
    return _SLEEP_MAX_S if ns == FOREVER else min(_SLEEP_MAX_S, ns / 1e9)


_only: List[Watcher] = []
_making = threading.Lock()


def watcher() -> Watcher:
    with _making:
        if not _only:
            _only.append(Watcher())
        return _only[0]


def _begin_in_child() -> None:
    global _making
    _making = threading.Lock()
    while _only:
        _only.pop().end_in_child()


_fork.in_child(_begin_in_child)
