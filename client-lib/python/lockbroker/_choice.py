# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A connection that asks for several locks, and holds the one that it gets."""

from __future__ import annotations

from typing import Any, Dict, List

from . import _errors
from ._grant import Listening
from ._request import Request

_FIELDS = {"granted": 3, "timeout": 2, "failed": 4}


class Choice(Listening):
    """
    While it chooses, the request is for one of the names; once it holds one, for that one.

    What became of each name that was queued for is in `outcomes`: its token; None, if the time was over; or an exception.
    `news` is given whenever one is added.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.outcomes: Dict[str, Any] = {}

    def chosen(self, name: str) -> None:
        """From now on it is about this one. It may have been lost by now."""
        self.request = self.request.one(name)

    def _heed(self, event: List[Any]) -> None:
        kind, name = [*event, None, None][:2]
        if self.request.kind != "any" or len(event) != _FIELDS.get(str(kind)) or name not in self.request.names:
            super()._heed(event)
        else:
            self.outcomes[name] = (event[2] if kind == "granted" else None if kind == "timeout"
                                   else _errors.of_reply(f"{event[2]} {event[3]}"))
            self.news.give(None)
