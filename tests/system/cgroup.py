# SPDX-License-Identifier: Apache-2.0
"""Control groups, which are units to the daemon."""

import contextlib
import os


def hierarchy():
    """Where a cgroup can be made that the daemon takes for a unit; None: nowhere."""
    own = dict(line.rstrip("\n").split(":", 2)[1:] for line in open("/proc/self/cgroup"))
    for line in open("/proc/mounts"):
        _, path, kind, options, *_ = line.split()
        named = kind == "cgroup" and "name=systemd" in options.split(",") and own.get("") in (None, "/")
        if (named or (kind == "cgroup2" and "name=systemd" not in own)) and os.access(path, os.W_OK):
            return path
    return None


def memory():
    """The group of this process where memory is counted, if one can be made in it; None: it cannot."""
    own = dict(line.rstrip("\n").split(":", 2)[1:] for line in open("/proc/self/cgroup"))
    for line in open("/proc/mounts"):
        _, path, kind, options, *_ = line.split()
        if kind == "cgroup" and "memory" in options.split(","):
            path += own["memory"]
        elif kind == "cgroup2" and own.get("", "/") == "/" and os.path.exists(f"{path}/memory.stat"):
            with contextlib.suppress(OSError), open(f"{path}/cgroup.subtree_control", "w") as f:
                f.write("+memory")
        else:
            continue
        if os.access(path, os.W_OK):
            return path
    return None


def enter(path):
    with open(os.path.join(path, "cgroup.procs"), "w") as f:
        f.write(str(os.getpid()))
