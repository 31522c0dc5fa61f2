# SPDX-License-Identifier: Apache-2.0
"""What the attack of one account costs another one, beside what processes that only use the processor cost it."""

import contextlib
import json
import os
import subprocess
import time

import measure
import services
from services import cgroup, harness

# "spin" never asks the daemon for anything.
SPIN = "spin"
ATTACKS = [SPIN, "idle", "unfinished", "unread", "held", "names", "observers", "locks", "queue", "clients", "deadlock"]
# Two users; one user, who may use all, and is refused what it has used up itself; root in two units; two users, each with a
# daemon of its own, so that nothing but the kernel is shared: with limits.user_share.
SHARES = {"users": 75, "app": 100, "units": 75, "apart": 75}
BACK_S = 60
# What the unit's CPUWeight=1000 is worth where the kernel has a group for each session.
WEIGHT = "-10"


@contextlib.contextmanager
def daemon_apart(who):
    """The environment of the program: for two daemons, the bystander's."""
    if who != "apart":
        yield {}
        return
    daemon = serve(SHARES[who])
    try:
        yield {"NEIGHBOURS_APART": daemon.socket}
    finally:
        daemon.end()


@contextlib.contextmanager
def units(who):
    """The environment of the program: for units, two cgroups that the daemon takes for units."""
    if who != "units":
        yield os.environ
        return
    made = {f"NEIGHBOURS_{name}": os.path.join(cgroup.hierarchy(), f"neighbours-{name.lower()}-{os.getpid()}.service")
            for name in ("ATTACKER", "BYSTANDER")}
    for path in made.values():
        os.mkdir(path)
    try:
        yield os.environ | made
    finally:
        for path in made.values():
            harness.wait_until(lambda: not open(f"{path}/cgroup.procs").read(), "the processes of the unit to end")
            os.rmdir(path)


def attack(socket, what, who="users", processes=50, connections=8900, seconds=5, more=()):
    """What bench-neighbours tells of it."""
    whose = "users" if who == "apart" else who
    with units(who) as environment, daemon_apart(who) as apart:
        done = subprocess.run([harness.program("tests/bench-neighbours"), socket, what, str(processes), str(connections),
                               str(seconds), whose, *more], capture_output=True, text=True, timeout=10 * harness.PATIENCE,
                              env=environment | apart)
    if done.returncode:
        raise measure.Failed(f"{what}: {done.stderr}")
    return json.loads(done.stdout)


def serve(share):
    """A standalone daemon for all users, with the weight for the processor that its unit gives it."""
    daemon = services.Lockbroker(daemon__socket_mode="0666", user_share=share)
    for directory in (os.environ["LOCKBROKER_RUN"], os.path.dirname(daemon.socket)):
        os.chmod(directory, os.stat(directory).st_mode | 0o011)
    with contextlib.suppress(OSError), open(f"/proc/{daemon.pids[0]}/autogroup", "w") as f:
        f.write(WEIGHT)
    return daemon


def back_s(pid, before):
    """Seconds until it uses at most a fifth more memory than before; None: it does not within BACK_S."""
    begun = time.monotonic()
    while time.monotonic() < begun + BACK_S:
        if measure.memory_bytes(pid) <= 1.2 * before:
            return time.monotonic() - begun
        time.sleep(0.2)  # memory that is given back tells nobody
    return None


def measure_one(bench, who, what, spin):
    daemon = serve(SHARES[who])
    try:
        attack(daemon.socket, SPIN, who, 1, 1, 0.2)  # what a first client leaves behind
        before = measure.memory_bytes(daemon.pids[0])
        found = attack(daemon.socket, what, who, connections=1000 if bench.quick else 8900, seconds=bench.long_seconds / 2)
        back = None if bench.quick else back_s(daemon.pids[0], before)
    finally:
        bench.complain(daemon.end())
    if (found["refused"] and who != "app") or found["lost"]:
        bench.failed(f"{what}, {who}: the bystander was refused {found['refused']} requests and lost {found['lost']} locks")
    spin = spin or found
    figures = {name: found[name] for name in ("p50_us", "p99_us", "refused", "lost", "attackers_refused")}
    figures |= {"of_p50": found["p50_us"] / spin["p50_us"], "of_p99": found["p99_us"] / spin["p99_us"], "back_s": back}
    bench.results.add("neighbours", what, who, figures)
    return spin


def neighbours(bench):
    """Each attack with 50 processes and 8,900 connections (QUICK: 1,000, and two users only); ratios are to the spin of its round."""
    if os.geteuid() != 0:
        bench.results.notes.append("neighbours: left out, only root can be several users")
        return
    for who in list(SHARES)[:1] if bench.quick else SHARES:
        if who == "units" and not cgroup.hierarchy():
            bench.results.notes.append("neighbours in two units: left out, no cgroup can be made")
            continue
        for _ in range(bench.rounds):
            spin = None
            for what in ATTACKS:
                spin = measure.attempt(bench, f"{what}, {who}", lambda: measure_one(bench, who, what, spin)) or spin
