# SPDX-License-Identifier: Apache-2.0
"""Control groups, which are units to the daemon."""

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
