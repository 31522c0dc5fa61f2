# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A socket that is connected, or a sentence why not."""

from __future__ import annotations

import errno
import grp
import os
import socket
import stat
from typing import Optional

from . import _errors
from ._grant import Absent, Ended
from ._socket_path import remedy


def _may_not(path: str) -> _errors.Denied:
    what = f"This user may not use lockbrokerd at {path}: "
    try:
        found = os.stat(path)
    except OSError:
        return _errors.Denied(what + "a directory of the path cannot be searched. See its mode, or daemon.socket in "
                              "lockbroker.conf.")
    if not found.st_mode & stat.S_IWGRP or found.st_gid == 0:
        return _errors.Denied(what + f"the mode of the socket is {found.st_mode & 0o777:04o}, its group the number "
                              f"{found.st_gid}. Set daemon.socket_mode or daemon.socket_group in lockbroker.conf to admit "
                              "more users.")
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    return _errors.Denied(what + f"only the group {group} may. Become a member (usermod -aG {group} USER, then log in "
                          "again).")


def connect(path: str) -> Optional[socket.socket]:
    """
    Never blocks; None: the queue of the listening socket is full, try again in a moment. Raises Ended if nobody listens
    there now, Absent if there is no socket, Denied, NoBroker.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.connect(path)
        return made
    except BlockingIOError:
        made.close()
        return None
    except OSError as e:
        made.close()
        why = os.strerror(e.errno) if e.errno else str(e)
        if e.errno in (errno.ENOENT, errno.ECONNREFUSED):
            kind = Absent if e.errno == errno.ENOENT else Ended
            raise kind(f"No lockbrokerd is serving {path}: {why}. {remedy(path)}") from e
        if e.errno in (errno.EACCES, errno.EPERM):
            raise _may_not(path) from e
        raise _errors.NoBroker(f"Cannot connect to lockbrokerd at {path}: {why}.") from e
    except BaseException:
        made.close()
        raise


SILENT = "The lockbrokerd at {} did not answer in time."
RECEIVE_BYTES = 65536
