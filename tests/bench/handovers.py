# SPDX-License-Identifier: Apache-2.0
"""For how long nobody is served while one process hands over to the next, with so many clients and locks."""

import threading
import time

import measure
import services
from services import harness

# Clients, locks that they hold.
CASES = ((1000, 10000), (10000, 10000))
TIMES, QUICK_TIMES = 7, 3
ASK_EVERY_S = 0.0005


class Asking(threading.Thread):
    """A client that asks again and again, and how long it has waited for an answer at most."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.client = daemon.client(2)
        self.longest_s = 0
        self.ending = False
        self.start()

    def run(self):
        while not self.ending:
            began = time.monotonic()
            self.client.call("PING")
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            time.sleep(ASK_EVERY_S)  # its pace

    def end(self):
        self.ending = True
        self.join()
        self.client.close()
        return self.longest_s


def fill(daemon, made, clients, locks):
    """With so many clients, which become part of `made`."""
    made += [measure.connect(daemon) for _ in range(clients)]
    for i in range(locks):
        made[i % clients].send("LOCK", f"held-{i}")
    for i in range(locks):
        answer = made[i % clients].reply()
        assert isinstance(answer, int), f"no lock: {answer}"


def hand_over(daemon):
    """What the new process says of the pause, and what a client has noticed of it."""
    asking = Asking(daemon)
    with daemon.client(operator=True) as c:
        reply = c.call("RESTART")
        assert isinstance(reply, dict), f"no hand-over: {reply}"
    longest_s = asking.end()
    daemon.follow()
    return {"paused_ms": reply["paused_us"] / 1000, "unanswered_ms": longest_s * 1000}


def measure_case(bench, label, zookeeper, clients, locks):
    with measure.serving(bench, zookeeper, under=bench.under, root="/b") as (daemon, made):  # a session may have so many short paths
        fill(daemon, made, clients, locks)
        for _ in range(QUICK_TIMES if bench.quick else TIMES):
            bench.results.add("handover", f"{clients} clients, {locks} locks", label, hand_over(daemon))
            harness.wait_until(lambda: zookeeper is None or daemon.info("session")["session_state"] == "safe", "the session")
        assert daemon.info("stats")["losses_total"] == "0" and all(c.quiet(0) for c in made), "a client has noticed more"


def handovers(bench):
    harness.inherit_orphans()
    for clients, locks in CASES[:1] if bench.quick else CASES:
        for label, zookeeper in (("lockbroker, standalone", None), ("lockbroker, ZooKeeper", bench.zookeeper)):
            if clients > services.descriptors():
                bench.results.notes.append(f"hand-overs of {clients} clients: left out, only {services.descriptors()} descriptors")
                continue
            measure.attempt(bench, f"hand-over, {clients} clients, {label}",
                            lambda: measure_case(bench, label, zookeeper, clients, locks))
