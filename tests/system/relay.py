#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in the place of an installed lockbrokerd and passes the messages of a hand-over on to a real one, until one
comes at which it does something else: relay.py is copied to that place, with a file of the same name and ".json" beside.

    real     the path of the real program
    at       a message: READY, PARCEL2 (the second parcel, which has everything), ACCEPT or COMMIT
    do       "" go on; "hold" it back for ever; "lie": pass something else on; "cut": end both connections and live on;
             "say stop": pass it on, and STOP;
             "kill old", "stop old", "kill new": a signal to the old process or to the real new one, then go on

The number of the real process stands in the file with ".pid" when the message has come.
"""

import array
import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

VARIABLE = "LOCKBROKERD_HANDOVER"
KINDS = {1: "READY", 2: "REFUSED", 3: "PARCEL", 4: "PART", 5: "ACCEPT", 6: "COMMIT", 7: "STOP"}
STOP = 7
FDS_MAX = 250


def receive(s):
    try:
        data, control, _, _ = s.recvmsg(1 << 17, socket.CMSG_SPACE(FDS_MAX * 4))
    except ConnectionResetError:  # the other end did not read all; what it said is there all the same
        data, control, _, _ = s.recvmsg(1 << 17, socket.CMSG_SPACE(FDS_MAX * 4))
    fds = array.array("i")
    for _, _, body in control:
        fds.frombytes(body[: len(body) - len(body) % fds.itemsize])
    return data, fds


def send(s, data, fds):
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else [])
    for fd in fds:
        os.close(fd)


def main():
    with open(sys.argv[0] + ".json", encoding="ascii") as f:
        plan = json.load(f)
    first = os.getppid()
    old = socket.socket(fileno=int(os.environ[VARIABLE]))
    old.setblocking(True)
    new, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    real = subprocess.Popen([plan["real"], *sys.argv[1:]], pass_fds=[theirs.fileno()],
                            env=os.environ | {VARIABLE: str(theirs.fileno())})
    theirs.close()
    parcels = 0

    def act():
        with open(sys.argv[0] + ".pid", "w", encoding="ascii") as f:
            f.write(str(real.pid))
        what = plan["do"]
        if what == "hold":
            time.sleep(1000)
        elif what == "cut":
            old.close()
            new.close()
            time.sleep(1000)
        elif what == "lie":
            return b"Usage: lockbrokerd [OPTION]..."
        elif what and what != "say stop":
            verb, whom = what.split()
            with contextlib.suppress(ProcessLookupError):  # after COMMIT the old one may be gone
                os.kill(first if whom == "old" else real.pid, signal.SIGKILL if verb == "kill" else signal.SIGSTOP)
            if what == "kill new":
                real.wait()
        return None

    while True:
        for s in select.select([old, new], [], [])[0]:
            try:
                data, fds = receive(s)
            except OSError:
                data = b""
            if not data:
                sys.exit(0)
            kind = KINDS.get(struct.unpack_from("II", data)[1])
            parcels += kind == "PARCEL"
            here = plan["at"] == (f"PARCEL{parcels}" if kind == "PARCEL" else kind)
            header = data[:4]
            if here:
                data = act() or data
            try:
                send(new if s is old else old, data, fds)
                if here and plan["do"] == "say stop":
                    send(new, header + struct.pack("I", STOP), [])
            except OSError:
                if s is new:  # otherwise what the new one has said is still to be passed on
                    sys.exit(0)


if __name__ == "__main__":
    main()
