# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What the locks of threads and those of asyncio have in common: which `with` an object is in. It may be shared by threads or
tasks, and each of them holds for itself.
"""

from __future__ import annotations

from typing import Dict, Generic, List, TypeVar

from ._request import Request

T = TypeVar("T")


class Entered(Generic[T]):
    def __init__(self, what: Request) -> None:
        self._request = what
        self._of: Dict[object, List[T]] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__module__.replace('._sync', '')}.{self._request.kind} {self._request.name!r}>"

    def _push(self, owner: object, held: T) -> None:
        self._of.setdefault(owner, []).append(held)

    def _pop(self, owner: object) -> T:
        """The latest of that owner. Another one may leave what only one has entered, as an exit stack does."""
        if owner not in self._of and len(self._of) == 1:
            owner = next(iter(self._of))
        stack = self._of.get(owner)
        if not stack:
            raise RuntimeError("this thread or task has not entered that lock")
        held = stack.pop()
        if not stack:
            del self._of[owner]
        return held
