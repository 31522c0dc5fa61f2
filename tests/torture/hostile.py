# SPDX-License-Identifier: Apache-2.0
"""A client that means ill: it asks for what it never reads, closes the half through which it sends, leaves requests
unfinished, and keeps the descriptors of connections and pages. It does so until its input ends; what it keeps has a bound.

usage: hostile.py SOCKET SEED"""

import array
import collections
import contextlib
import os
import random
import select
import socket
import struct
import sys

KEPT = 200       # connections and descriptors of pages
PAUSE_S = 0.002  # it is to be in nobody's way by the time that it takes
SHORT_S = 2      # a daemon that is stopped does not answer
ECHO = b"*2\r\n$4\r\nECHO\r\n$31500\r\n" + b"x" * 31500 + b"\r\n"
DESCRIPTORS = socket.CMSG_SPACE(16 * struct.calcsize("i"))


def never_read(s, rng):
    """As much as goes in."""
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(rng.randint(1, 100)):
            s.send(ECHO)


def half_close(s, rng):
    s.sendall(ECHO * rng.randint(1, 3))
    s.shutdown(socket.SHUT_WR)


def half_close_in_a_queue(s, rng):
    s.sendall(b"LOCK hostile WAIT %d\r\n" % rng.randint(0, 20000))
    s.shutdown(socket.SHUT_WR)


def leave_unfinished(s, rng):
    s.sendall(ECHO[:rng.randrange(1, len(ECHO))])


def keep_the_page(s, rng):
    """Its descriptors, while the connection ends."""
    s.sendall(b"HELLO 3\r\nDELEGATE\r\n")
    taken, text = array.array("i"), b""
    while not taken and b"\n-" not in text:
        more, extra, _, _ = s.recvmsg(65536, DESCRIPTORS)
        if not more:
            break
        text += more
        for _, _, data in extra:
            taken.frombytes(data[:len(data) - len(data) % taken.itemsize])
    s.close()
    return taken


WAYS = [never_read, half_close, half_close_in_a_queue, leave_unfinished, keep_the_page]


def main():
    path, rng = sys.argv[1], random.Random(int(sys.argv[2]))
    kept, done = collections.deque(), collections.Counter()
    while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        way = rng.choice(WAYS)
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(SHORT_S)
        with contextlib.suppress(OSError):
            s.connect(path)
            done[way.__name__] += 1
            kept.append((s, way(s, rng) or []))
        if len(kept) > KEPT:
            s, descriptors = kept.popleft()
            s.close()
            for fd in descriptors:
                os.close(fd)
    print(dict(done))


if __name__ == "__main__":
    main()
