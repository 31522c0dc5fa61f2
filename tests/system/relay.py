#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in the place of an installed lockbrokerd and passes the messages of a hand-over on to a real one, until one
comes at which it does something else: relay.py is copied to that place, with a file of the same name and ".json" beside.

    real     the path of the real program
    at       a message: READY, PARCEL2 (the second parcel, which has everything), ACCEPT or COMMIT
    do       "" go on; "hold" it back for ever; "lie": pass something else on; "cut": end both connections and live on;
             "say 15": pass it on, and that a signal of that number came from the process `sender`;
             "kill old", "stop old", "hup old", "kill new", "stop keeper": a signal to the old process, to the real new one
             or to their keeper, then go on

    more     further messages, each with what to do at it

Started without a hand-over it becomes the real program. The number of the real process of a hand-over stands in the file
with ".pid" when the message has come.
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

VARIABLE = "LOCKBROKERD_HANDOVER"
KINDS = {1: "READY", 2: "REFUSED", 3: "PARCEL", 4: "PART", 5: "ACCEPT", 6: "COMMIT", 7: "SIGNAL"}
SIGNAL = 7
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "hup": signal.SIGHUP}
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
    steps = {plan["at"]: plan["do"], **plan["more"]}
    if VARIABLE not in os.environ:  # started by the keeper, as anew
        os.execv(plan["real"], [plan["real"], *sys.argv[1:]])
    first = os.getppid()
    old = socket.socket(fileno=int(os.environ[VARIABLE]))
    old.setblocking(True)
    new, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    real = subprocess.Popen([plan["real"], *sys.argv[1:]], pass_fds=[theirs.fileno()],
                            env=os.environ | {VARIABLE: str(theirs.fileno())})
    theirs.close()
    parcels = 0
    with open(f"/proc/{first}/stat", encoding="ascii") as f:
        keeper = int(f.read().rpartition(")")[2].split()[1])

    def act(what):
        with open(sys.argv[0] + ".pid", "w", encoding="ascii") as f:
            f.write(str(real.pid))
        if what == "hold":
            signal.pause()
        elif what == "cut":
            old.close()
            new.close()
            signal.pause()
        elif what == "lie":
            return b"Usage: lockbrokerd [OPTION]..."
        elif what and not what.startswith("say "):
            verb, whom = what.split()
            with contextlib.suppress(ProcessLookupError):  # after COMMIT the old one may be gone
                os.kill({"old": first, "new": real.pid, "keeper": keeper}[whom], SIGNALS[verb])
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
            do = steps.get(f"PARCEL{parcels}" if kind == "PARCEL" else kind)
            header = data[:4]
            if do is not None:
                data = act(do) or data
            try:
                send(new if s is old else old, data, fds)
                if do and do.startswith("say "):
                    send(new, header + struct.pack("Iii", SIGNAL, int(do[4:]), plan["sender"]), [])
            except OSError:
                if s is new:  # otherwise what the new one has said is still to be passed on
                    sys.exit(0)


if __name__ == "__main__":
    main()
