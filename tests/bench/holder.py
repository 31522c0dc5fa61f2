# SPDX-License-Identifier: Apache-2.0
"""holder.py PEER TARGET NAME SECONDS: takes the lock NAME of that peer, and works until it is killed. SECONDS is the session
timeout or the time to live, where the peer has one. It asks for the lock when it has read a line. Prints, with
CLOCK_MONOTONIC in ns:

ready      it has connected
waits      it asks for the lock
took NS    its critical section begins
works NS   it has done a step of its work
"""

import fcntl
import os
import subprocess
import sys
import time
import warnings

STEP_S = 0.02


def say(word, *more):
    print(word, *more, flush=True)


def ready():
    say("ready")
    sys.stdin.readline()
    say("waits")


# Each returns what has the lock: it is released with its last reference.

def lockbroker(socket, name, lease=None):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client-lib", "python"))
    import lockbroker as library

    ready()
    return library.lock(name, socket=socket, lease=lease).acquire()


def redis(socket, name, timeout):
    import redis as library

    lock = library.Redis(unix_socket_path=socket).lock(name, timeout=timeout)
    ready()
    lock.acquire()
    return lock


def kazoo(servers, name, timeout):
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    import kazoo.client

    client = kazoo.client.KazooClient(hosts=servers, timeout=timeout)
    client.start(timeout=60)
    lock = client.Lock(f"/bench-takeover/{name}")
    ready()
    lock.acquire()
    return lock


def postgres(port, name):
    import psycopg2

    connection = psycopg2.connect(host="127.0.0.1", port=port, user="bench", dbname="postgres")
    connection.autocommit = True
    ready()
    connection.cursor().execute("SELECT pg_advisory_lock(hashtext(%s))", (name,))
    return connection


def etcdctl(endpoint, name, ttl):
    """The command prints its key when it has the lock, and holds the lock until it ends."""
    ready()
    command = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "etcdctl", f"--endpoints={endpoint}", "lock",
                                f"--ttl={ttl}", name], stdout=subprocess.PIPE, env=os.environ | {"ETCDCTL_API": "3"})
    if not command.stdout.readline():
        sys.exit("etcdctl ended without the lock")
    return command


def flock(directory, name):
    file = open(os.path.join(directory, name), "w")
    ready()
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def nothing():
    """Is no lock, and is found out."""
    ready()


PEERS = {
    "lockbroker": lambda target, name, seconds: lockbroker(target, name),
    "lockbroker-lease": lockbroker,
    "lockbroker-checks": lockbroker,
    "redis": redis,
    "redis-for-ever": lambda target, name, seconds: redis(target, name, None),
    "kazoo": kazoo,
    "postgres": lambda target, name, seconds: postgres(target, name),
    "etcdctl": etcdctl,
    "flock": lambda target, name, seconds: flock(target, name),
    "none": lambda target, name, seconds: nothing(),
}


def main():
    peer, target, name, seconds = sys.argv[1:]
    held = PEERS[peer](target, name, int(seconds))
    say("took", time.monotonic_ns())
    while True:
        if peer == "lockbroker-checks":
            held.check()
        say("works", time.monotonic_ns())
        time.sleep(STEP_S)  # a step of its work


if __name__ == "__main__":
    main()
