# SPDX-License-Identifier: Apache-2.0 OR MIT
"""RESP3, as far as lockbrokerd speaks it: requests out of words, and values out of bytes as they come. No I/O."""

from __future__ import annotations

import re
from typing import Any, List, NamedTuple, Tuple, Union

from ._errors import ProtocolError

LINE_BYTES_MAX = 64 * 1024
REPLY_BYTES_MAX = 16 * 1024 * 1024
ITEMS_MAX = 1024 * 1024
DEPTH_MAX = 16

_NUMBER = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")
_MORE = object()


class ErrorReply(NamedTuple):
    """`-CODE sentence`, without the dash."""

    text: str


class Push(List[Any]):
    """What the broker sends without being asked."""


def encode(*words: Union[str, int]) -> bytes:
    """A request. Texts are UTF-8; bytes that are none may stand in a text as os.fsdecode() has them."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = str(word).encode("utf-8", "surrogateescape")
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Parser:
    """feed() takes any pieces of the stream; what it returns does not depend on where they end."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._open: List[Tuple[bytes, int, List[Any]]] = []  # kind, number of items, those that are whole
        self._items = 0

    def feed(self, data: bytes) -> List[Any]:
        """The values that are whole now: text, int, None, list, dict, Push or ErrorReply. Raises ProtocolError."""
        self._buffer += data
        whole: List[Any] = []
        while True:
            value = self._next()
            if value is _MORE:
                break
            whole.append(value)
            del self._buffer[:self._at]
            self._at = self._items = 0
        if len(self._buffer) > REPLY_BYTES_MAX:
            raise ProtocolError(f"a reply is longer than {REPLY_BYTES_MAX} bytes")
        return whole

    def _next(self) -> Any:
        while True:
            value = self._element()
            if value is _MORE:
                return _MORE
            if value is None and self._opened:
                continue
            while self._open:
                kind, count, items = self._open[-1]
                items.append(value)
                if len(items) < count:
                    break
                self._open.pop()
                value = self._close(kind, items)
            else:
                return value

    def _element(self) -> Any:
        """A scalar or an empty aggregate; None and _opened, if an aggregate begins; or _MORE, and nothing is used."""
        self._opened = False
        end = self._buffer.find(b"\r\n", self._at, self._at + LINE_BYTES_MAX + 2)
        if end < 0:
            if len(self._buffer) - self._at > LINE_BYTES_MAX:
                raise ProtocolError(f"a line is longer than {LINE_BYTES_MAX} bytes")
            return _MORE
        kind, rest = bytes(self._buffer[self._at:self._at + 1]), bytes(self._buffer[self._at + 1:end])
        if kind == b"$" and rest != b"-1":
            return self._bulk(end + 2, self._count(rest))
        self._at = end + 2
        if kind in (b"$", b"*") and rest == b"-1" or kind == b"_" and not rest:
            return None
        if kind == b":":
            return self._number(rest)
        if kind == b"+":
            return rest.decode("utf-8", "surrogateescape")
        if kind == b"-":
            return ErrorReply(rest.decode("utf-8", "surrogateescape"))
        if kind in (b"*", b"%", b">"):
            return self._begin(kind, self._count(rest))
        raise ProtocolError(f"{(kind + rest)[:40]!r} is no RESP of lockbrokerd")

    def _bulk(self, begin: int, count: int) -> Any:
        if count > REPLY_BYTES_MAX:
            raise ProtocolError(f"a text is longer than {REPLY_BYTES_MAX} bytes")
        if len(self._buffer) < begin + count + 2:
            return _MORE
        if self._buffer[begin + count:begin + count + 2] != b"\r\n":
            raise ProtocolError("a text is longer than announced")
        self._at = begin + count + 2
        return self._buffer[begin:begin + count].decode("utf-8", "surrogateescape")

    def _begin(self, kind: bytes, count: int) -> Any:
        count *= 2 if kind == b"%" else 1
        self._items += count
        if self._items > ITEMS_MAX:
            raise ProtocolError(f"a reply has more than {ITEMS_MAX} items")
        if len(self._open) >= DEPTH_MAX:
            raise ProtocolError(f"a reply is nested deeper than {DEPTH_MAX}")
        if count == 0:
            return self._close(kind, [])
        self._open.append((kind, count, []))
        self._opened = True
        return None

    @staticmethod
    def _close(kind: bytes, items: List[Any]) -> Any:
        if kind == b">":
            return Push(items)
        if kind == b"*":
            return items
        keys = items[0::2]
        if not all(isinstance(key, (str, int)) for key in keys):
            raise ProtocolError("the key of a map is no text")
        return dict(zip(keys, items[1::2]))

    @staticmethod
    def _number(text: bytes) -> int:
        if not _NUMBER.match(text) or not -2**63 <= int(text) < 2**63:
            raise ProtocolError(f"{text[:40]!r} is no number")
        return int(text)

    def _count(self, text: bytes) -> int:
        count = self._number(text)
        if count < 0:
            raise ProtocolError(f"{text[:40]!r} is no length")
        return count
