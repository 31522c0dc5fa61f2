#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hand-offs between hosts that are some way from the server, by the kernel's own delay (netem) instead of a process for each way:
run by ways.py in a network of its own, `unshare --net netem.py HOSTS WAY_US ROUNDS`. Prints a line of JSON for each round of each
row."""

import fcntl
import json
import socket
import statistics
import struct
import subprocess
import sys
import time

import services
import targets
import ways
from measure import Row
from services import harness

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
ECHOES = 200
WARM_S = 5  # of a server


def begin(way_us):
    """All that passes the loopback interface takes that long: every packet between a host and the server, each way."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    done = subprocess.run([services.found("tc"), "qdisc", "add", "dev", "lo", "root", "netem", "delay", f"{way_us}us"],
                          capture_output=True, text=True)
    if done.returncode:
        raise services.Missing(f"tc: {done.stderr.strip()}")


def delivered_us():
    """Half of what a byte takes there and back: median and 99 %."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as near, \
            listener.accept()[0] as far:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        took = []
        for _ in range(ECHOES):
            began = time.monotonic_ns()
            near.sendall(b"x")
            far.sendall(far.recv(1))
            near.recv(1)
            took.append((time.monotonic_ns() - began) / 2000)
    return statistics.median(took), statistics.quantiles(took, n=100)[98]


def measure(count, way_us, rounds):
    """A round of each row after the other."""
    server = services.Zookeeper()
    daemons = []
    try:
        daemons = [services.Lockbroker(server, root="/bench-netem") for _ in range(count)]
        rows = [Row(targets.RECIPE, "recipe", [server.target]), Row("lockbroker", "lockbroker", [d.target for d in daemons])]
        rows[0].measure(count, "one", WARM_S)
        for _ in range(rounds):
            for row in rows:
                p50_us, p99_us = delivered_us()
                figures = row.measure(count, "one", ways.SECONDS, more=ways.held(4 * way_us))
                yield row.label, figures | {"way_p50_us": p50_us, "way_p99_us": p99_us}
    finally:
        complaints = [complaint for complaint in (daemon.end() for daemon in daemons) if complaint]
        server.end()
        assert not complaints, complaints


def main(count, way_us, rounds):
    sweeper = harness.begin_run()
    try:
        begin(way_us)
    except services.Missing as e:
        print(e, file=sys.stderr)
        sys.exit(ways.LEFT_OUT)
    for each in measure(count, way_us, rounds):
        print(json.dumps(each), flush=True)
    sweeper.stdin.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
