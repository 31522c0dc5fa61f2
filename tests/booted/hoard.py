# SPDX-License-Identifier: Apache-2.0
"""Processes of one user that keep what they can of the memory of a service, which has no more than its unit says."""

import contextlib
import os
import re

import cgroup

HOARDERS = 6
# Each tries to keep so many of each kind. All answers together would be more than MemoryMax= has room for, if nobody was
# refused: 31 KB each in the kernel.
PAGES, ANSWERS = 3000, 16000
FILES = PAGES + ANSWERS + 100
HOARD = """
import array, socket, sys
kept = []


def connect(request):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(sys.argv[1])
    s.sendall(request)
    return s


def keep_page():
    with connect(b"HELLO 3\\r\\nDELEGATE\\r\\n") as s:
        text, passed = b"", array.array("i")
        while not passed and b"LIMIT" not in text and b"-" not in text:
            part, beside, _, _ = s.recvmsg(65536, 64)
            if not part:
                break
            text += part
            for _, _, data in beside:
                passed.frombytes(data)
    kept.extend(passed)
    return passed


def keep_answer():
    s = connect(b"ECHO " + b"x" * 31000 + b"\\r\\n")
    s.shutdown(socket.SHUT_WR)
    kept.append(s)
    return s.recv(1, socket.MSG_PEEK) == b"$"


for keep, most in zip((keep_page, keep_answer), map(int, sys.argv[2:])):
    count = refused = 0
    while count < most and refused < 20:
        try:
            got = keep()
        except OSError:
            got = False
        count, refused = (count + 1, 0) if got else (count, refused + 1)
    print(count, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def memory_limited(machine, inside):
    """Those processes of the service are in a group that has the unit's MemoryMax=: where systemd has the memory of no unit
    limited, as in this container with cgroup v1, it is this group that does it. Their numbers are those inside."""
    bytes_max, before = int(machine.show("MemoryMax")), cgroup.memory()
    group = f"{before}/lockbroker-booted-memory-{os.getpid()}"
    mine = [int(path) for path in os.listdir("/proc") if path.isdigit() and of_machine(machine, path) in inside]
    assert len(mine) == len(inside)
    os.mkdir(group)
    try:
        limit = next(p for n in ("memory.limit_in_bytes", "memory.max") if os.path.exists(p := f"{group}/{n}"))
        for path, words in ((limit, [bytes_max]), (f"{group}/cgroup.procs", mine)):
            for word in words:
                with open(path, "w") as f:
                    f.write(str(word))
        yield
    finally:
        for pid in open(f"{group}/cgroup.procs").read().split():
            with open(f"{before}/cgroup.procs", "w") as f:
                f.write(pid)
        os.rmdir(group)


def of_machine(machine, pid):
    """The number that a process of the host has inside; None: it is not there."""
    try:
        if os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{machine.leader}/ns/pid"):
            return int(re.search(r"^NSpid:.*\t(\d+)$", open(f"/proc/{pid}/status").read(), re.M).group(1))
    except OSError:
        pass
    return None
