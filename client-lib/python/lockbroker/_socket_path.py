# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which socket is meant: a path, "user" (the broker of this user alone) or "@NAME" (lockbrokerd@NAME.service)."""

from __future__ import annotations

import os
import stat
from typing import Optional

from . import _errors

SOCKET_DEFAULT = "/run/lockbroker/lockbroker.sock"
_USER = "user"


def _runtime_directory() -> str:
    return os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"


def _is_own(directory: str) -> bool:
    """Nobody else can put a socket there."""
    try:
        found = os.stat(directory)
    except (OSError, ValueError):
        return False
    return (os.path.isabs(directory) and stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _users(directory: str) -> str:
    return f"{directory}/lockbroker/lockbroker.sock"


def socket_path(name: Optional[str]) -> str:
    """
    None or "": what LOCKBROKER_SOCKET names, or the system's. The user's broker is never used unless somebody has asked
    for it: its locks exclude nobody else. Raises NoBroker if the user's runtime directory is not known, or somebody else
    may write to it.
    """
    chosen = os.fsdecode(name or os.environ.get("LOCKBROKER_SOCKET") or SOCKET_DEFAULT)
    if chosen == _USER:
        directory = _runtime_directory()
        if _is_own(directory):
            return _users(directory)
        said = "= " if os.environ.get("XDG_RUNTIME_DIR") else "is not set, and "
        raise _errors.NoBroker(f"The broker of this user cannot be found: XDG_RUNTIME_DIR {said}{directory} is not a "
                               f"directory that only this user ({os.geteuid()}) may write to. Log in as this user, or set "
                               "XDG_RUNTIME_DIR.")
    if chosen.startswith("@") and len(chosen) > 1 and "/" not in chosen:
        return f"/run/lockbroker{chosen}/lockbroker.sock"
    return chosen


def remedy(path: str) -> str:
    """A sentence: what to do if nobody listens there."""
    if path == _users(_runtime_directory()):
        return "Start it by `systemctl --user enable --now lockbrokerd.socket`."
    own = "; socket=\"user\" or `lockbroker --user` uses one of your own" if path == SOCKET_DEFAULT else ""
    return f"Start it, or set LOCKBROKER_SOCKET to the socket that it serves{own}."
