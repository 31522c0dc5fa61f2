# SPDX-License-Identifier: Apache-2.0
"""A resource that a lock protects: a file with a number and the largest token that it has seen. It refuses smaller tokens, so
that what is read and then written is right also if a holder is late. As a program it adds 1, under $LOCKBROKER_TOKEN, and says so.

tests/system/go/race.go does the same."""

import fcntl
import os
import signal
import sys
import time


class Fenced:
    def __init__(self, path, begin=False):
        self.path = str(path)
        if begin:
            with open(self.path, "w", encoding="ascii") as f:
                f.write("0 0\n")

    def _visit(self, change):
        with open(self.path, "r+", encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            number, token = map(int, f.read(100).split())
            result, changed = change(number, token)
            if changed:
                f.seek(0)
                f.write("{:20d} {:20d}\n".format(*changed))
                f.flush()
        return result

    def read(self, own):
        """The number, or None: the token is not larger than all before it."""
        return self._visit(lambda number, token: (number, (number, own)) if own > token else (None, None))

    def write(self, own, number):
        """Whether it was written."""
        return self._visit(lambda _, token: (True, (number, own)) if own == token else (False, None))

    def add(self, own, pause_s=0.001):
        number = self.read(own)
        time.sleep(pause_s)  # another one could come in between
        return number is not None and self.write(own, number + 1)

    def number(self):
        return self._visit(lambda number, _: (number, None))


if __name__ == "__main__":
    # A command that loses its lock ends the program: what it has added has to be said.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    print("added" if Fenced(sys.argv[1]).add(int(os.environ["LOCKBROKER_TOKEN"])) else "refused")
