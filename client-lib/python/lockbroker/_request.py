# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What is asked for, in the words of PROTOCOL.md."""

from __future__ import annotations

import dataclasses
import itertools
import math
import numbers
import secrets
import threading
from typing import Any, Iterable, List, Optional, Tuple, Union

from ._socket_path import socket_path

PATIENCE_S = 10.0
_MS_MAX = 31_536_000_000  # a year, as the broker has it
NAMES_MAX = 64
_NAMES_SHOWN = 4
_DATA_BYTES_MAX = 512
_COMMANDS = {"lock": ("LOCK", "UNLOCK"), "locks": ("MLOCK", "MUNLOCK"), "semaphore": ("ACQUIRE", "RELEASE"),
             "election": ("CAMPAIGN", "RESIGN")}

Words = List[Union[str, int]]


def number(value: float, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} is a number of seconds, not {type(value).__name__}")


def milliseconds(seconds: float, what: str, least: int) -> int:
    """Rounded up, and at most a year. Raises ValueError, unless it is a number of seconds from 0 on, or beyond it, and
    TypeError if it is no number."""
    number(seconds, what)
    if math.isnan(seconds) or seconds < 0 or (seconds == 0 and least > 0):
        raise ValueError(f"{what} is a number of seconds{', above 0' if least else ' from 0 on'}, not {seconds!r}")
    return max(least, min(_MS_MAX, math.ceil(min(seconds * 1000, _MS_MAX))))


@dataclasses.dataclass(frozen=True)
class Request:
    """A lock, several of them, one of several, permits of a semaphore, or the leadership of an election."""

    kind: str  # "lock", "locks", "any", "semaphore", "election"
    names: Tuple[str, ...]  # one, but for "locks" and "any"
    path: str
    wait: Optional[float] = None
    lease: Optional[float] = None
    shared: bool = False
    data: Optional[str] = None
    limit: int = 0
    count: int = 0
    patience: float = PATIENCE_S
    group: Optional[str] = None

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("no name: say which locks")
        for name in self.names:
            if not isinstance(name, str):
                raise TypeError(f"a name is a str, not {type(name).__name__}")
        if self.wait is not None:
            milliseconds(self.wait, "wait", 0)
        if self.lease is not None:
            milliseconds(self.lease, "lease", 1)
        number(self.patience, "patience")
        if self.data is not None and not 0 < len(self.data.encode()) <= _DATA_BYTES_MAX:
            raise ValueError(f"data is a text of 1 to {_DATA_BYTES_MAX} bytes, not of {len(self.data.encode())}")
        if not self.patience > 0:
            raise ValueError(f"patience is a number of seconds, above 0, not {self.patience!r}")
        if self.kind == "any" and (len(self.names) > NAMES_MAX or len(set(self.names)) < len(self.names)):
            raise ValueError(f"one of 1 to {NAMES_MAX} different names can be taken, not of {len(self.names)}: {self}")

    @property
    def name(self) -> str:
        return ", ".join(self.names)

    def is_of_same(self, other: Request) -> bool:
        """Of the same group, and about a lock of the other one."""
        locks = ("lock", "locks")
        return (self.path, self.group) == (other.path, other.group) and self.group is not None and self.kind in locks \
            and other.kind in locks and not set(self.names).isdisjoint(other.names)

    @property
    def lease_ms(self) -> int:
        return milliseconds(self.lease, "lease", 1) if self.lease is not None else 0

    def one(self, name: str) -> Request:
        """The same for one of the names."""
        return dataclasses.replace(self, kind="lock", names=(name,))

    def acquire(self, left: Optional[float]) -> Words:
        """With what is left of the time to wait, in seconds; None: it waits for ever."""
        words = self._begin(_COMMANDS[self.kind][0])
        if self.kind == "semaphore":
            words += ["LIMIT", self.limit]
        if self.count:
            words += ["COUNT", self.count]
        if self.shared:
            words += ["SHARED"]
        if left is not None:
            words += ["WAIT", milliseconds(max(left, 0), "wait", 0)]
        if self.lease_ms:
            words += ["LEASE", self.lease_ms]
        if self.data is not None:
            words += ["DATA", self.data]
        return words

    def enqueue(self, left: Optional[float]) -> Words:
        """The same, but the answer does not wait for the grant."""
        return ["ENQUEUE", *self.acquire(left)[1:]]

    def release(self) -> Words:
        """All of it. It needs no token: the connection holds nothing else."""
        words = self._begin(_COMMANDS[self.kind][1])
        return words + ["COUNT", self.count] if self.count else words

    def _begin(self, command: str) -> Words:
        """Where there can be several names, their number comes first."""
        words: Words = [command, len(self.names)] if self.kind == "locks" else [command]
        return words + list(self.names)

    def __str__(self) -> str:
        shown = ", ".join(self.names[:_NAMES_SHOWN])
        if len(self.names) > _NAMES_SHOWN:
            shown += f" and {len(self.names) - _NAMES_SHOWN} more"
        return f"the {'locks' if self.kind == 'any' else self.kind} {shown}"


# Locks of one thread, or task, are one lock group: the broker then sees that a wait of one is a wait of all, and
# refuses what would be a deadlock. The number in front is that of the process, also where two namespaces share pids.
_process = secrets.token_hex(8)
_numbers = itertools.count(1)
_of_thread = threading.local()


def begin_process() -> None:
    """In a forked child."""
    global _process, _of_thread
    _process = secrets.token_hex(8)
    _of_thread = threading.local()


def new_group() -> str:
    return f"py-{_process}-{next(_numbers)}"


def group_of_thread() -> str:
    if not hasattr(_of_thread, "group"):
        _of_thread.group = new_group()
    group: str = _of_thread.group
    return group


def request(kind: str, names: Iterable[str], socket: Optional[str], **options: Any) -> Request:
    given = {key: value for key, value in options.items() if value is not None}
    return Request(kind, tuple(names), socket_path(socket), **given)
