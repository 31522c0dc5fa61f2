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
    """The bytes of memory of a group, with pages of files; of them those of processes; and those that the kernel has for
    them, in sockets and in files that are only in memory, too."""
    stat = numbers(f"{group}/memory.stat")
    if "anon" in stat:
        kernel = stat.get("kernel", stat.get("slab", 0))  # since Linux 5.18 it says what is not in slabs, too
        return number(f"{group}/memory.current"), stat["anon"], kernel + stat.get("sock", 0) + stat["shmem"]
    kernel = sum(number(f"{group}/memory.{key}.usage_in_bytes") for key in ("kmem", "kmem.tcp"))
    return number(f"{group}/memory.usage_in_bytes"), stat["rss"], kernel + stat["shmem"]


def enter(path):
    with open(os.path.join(path, "cgroup.procs"), "w") as f:
        f.write(str(os.getpid()))


class Memory:
    """A group of its own where memory is counted, and can be limited; only where memory() says that one can be made."""

    def __init__(self, name):
        self.outer = memory()
        self.path = f"{self.outer}/lockbroker-{name}-{os.getpid()}"
        os.mkdir(self.path)

    @contextlib.contextmanager
    def inside(self):
        """What begins meanwhile belongs to it."""
        enter(self.path)
        try:
            yield
        finally:
            enter(self.outer)

    def limit(self, bytes_max):
        names = ("memory.limit_in_bytes", "memory.max")
        with open(next(p for name in names if os.path.exists(p := f"{self.path}/{name}")), "w") as f:
            f.write(str(bytes_max))

    def used(self):
        """As used() has it."""
        return used(self.path)

    def is_empty(self):
        with open(f"{self.path}/cgroup.procs") as f:
            return not f.read()

    def remove(self):
        """Empty."""
        os.rmdir(self.path)


def of_units():
    """Where cgroups can be made that systemd's journal takes for units: the unified hierarchy, or in a mixed setup its own."""
    found = []
    for line in open("/proc/mounts"):
        _, path, kind, options, *_ = line.split()
        if (kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(","))) and os.access(path, os.W_OK):
            found.append(path)
    return found


def remove(path):
    """With what is in it. True when it is not there any longer: no process is."""
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            return False
    return True
