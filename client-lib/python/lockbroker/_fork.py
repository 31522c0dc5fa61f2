# SPDX-License-Identifier: Apache-2.0 OR MIT
"""
What a forked child inherits is not its own. It closes its copies of the sockets at once, so that the end of the parent
releases what the parent holds; and what uses them in the child raises NotOwner.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Callable, List

from . import _errors, _request

_wires: "weakref.WeakSet[Any]" = weakref.WeakSet()
_hooks: List[Callable[[], None]] = []
# Whoever makes a socket has it until its wire knows the socket: no child has one that nobody there would close.
making = threading.RLock()


def register(wire: Any) -> None:
    """It has inherited(), which is called in a child."""
    _wires.add(wire)


def in_child(hook: Callable[[], None]) -> None:
    _hooks.append(hook)


def not_owner(what: object) -> _errors.NotOwner:
    return _errors.NotOwner(f"This process, {os.getpid()}, is a forked child and does not own {what}: its parent does.")


def _after_in_child() -> None:
    global making
    making = threading.RLock()
    _request.begin_process()
    for wire in list(_wires):
        wire.inherited()
    _wires.clear()
    for hook in _hooks:
        hook()


# `making` is another one in a child, whose own children find it by its name.
os.register_at_fork(before=lambda: making.acquire(), after_in_parent=lambda: making.release(),
                    after_in_child=_after_in_child)
