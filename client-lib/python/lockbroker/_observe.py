# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Who leads an election, now and with each change, over as many connections as that takes."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

from . import _errors
from ._grant import Ended, Listening
from ._request import Request
from ._scripts import Retries, Script, begin, check, soon

_FIELDS = {"leader": 5, "unobserved": 4}


class Leader(NamedTuple):
    """Who leads: its host, its data, and its fencing token."""

    host: str
    data: str
    token: int


def leader_of(reply: Any) -> Optional[Leader]:
    if not reply:
        return None
    if not isinstance(reply, dict) or not reply.keys() >= set(Leader._fields):
        raise _errors.ProtocolError("the broker's answer to LEADER is no leader")
    return Leader(*(reply[field] for field in Leader._fields))


class _Observation(Listening):
    """It observes, and holds nothing. Of events that nobody has taken yet it keeps the latest."""

    def _heed(self, event: List[Any]) -> None:
        if event and _FIELDS.get(str(event[0])) == len(event) and event[1] == self.request.name:
            self.news.give(event)


class Observer:
    """What one who observes was told, and on which connection the rest will come."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._connection: Optional[_Observation] = None
        self._told: Any = self

    def next(self) -> Script:
        """Returns the next leader who was not told yet, or None: nobody leads."""
        retries = Retries(self._request)
        while True:
            try:
                leader = yield from self._leader()
            except Ended as e:
                self._connection = None
                pause = retries.pause(e)
                if pause is None:
                    raise
                yield "sleep", pause
                continue
            if leader != self._told:
                self._told = leader
                return leader

    def _leader(self) -> Script:
        if self._connection is None:
            connection = _Observation(self._request)
            answer = yield from begin(connection, ["OBSERVE", self._request.name])
            check((yield "wait", answer, soon(self._request)))
            self._connection = connection
        yield "wait", self._connection.news, None
        event = check(self._connection.take())
        if event[0] == "unobserved":
            raise _errors.of_reply(f"{event[2]} {event[3]}")
        return Leader(event[3], event[4], event[2]) if event[2] else None
