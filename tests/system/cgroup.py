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


def numbers(path):
    """The lines of such a file that are a word and a number."""
    with open(path) as f:
        return {word: int(number) for word, number in (line.split() for line in f if len(line.split()) == 2)}


def number(*paths):
    """Of the first of these files that is there; 0: none is."""
    path = next(filter(os.path.exists, paths), None)
    with open(path or os.devnull) as f:
        return int(f.read() or 0)


def used(group):
    """The bytes of memory of a group, with pages of files; and those without: of processes, of the kernel, of sockets, and
    of files that are only in memory."""
    stat = numbers(f"{group}/memory.stat")
    if "anon" in stat:
        return number(f"{group}/memory.current"), sum(stat.get(key, 0) for key in ("anon", "slab", "sock", "shmem"))
    return number(f"{group}/memory.usage_in_bytes"), stat["rss"] + stat["shmem"] + sum(
        number(f"{group}/memory.{key}.usage_in_bytes") for key in ("kmem", "kmem.tcp"))


def enter(path):
    with open(os.path.join(path, "cgroup.procs"), "w") as f:
        f.write(str(os.getpid()))
