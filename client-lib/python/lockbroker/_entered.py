# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which `with` a lock object is in: it may be shared by threads or tasks, and each of them holds for itself."""

from __future__ import annotations

from typing import Dict, Generic, List, TypeVar

T = TypeVar("T")


class Entered(Generic[T]):
    def __init__(self) -> None:
        self._of: Dict[object, List[T]] = {}

    def push(self, owner: object, held: T) -> None:
        self._of.setdefault(owner, []).append(held)

    def pop(self, owner: object) -> T:
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
