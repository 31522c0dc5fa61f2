# SPDX-License-Identifier: Apache-2.0
"""What a reconnection takes behind a slow link, where a host waits for many locks that many others wait for."""

import os
import sys
import time

import measure
import services
from services import harness

sys.path.append(os.path.join(services.HERE, "..", "torture"))

import network  # noqa: E402
import queues  # noqa: E402

T_MS = 15000
# Locks that are waited for, contenders of each, bytes per second: what is to be listed again fits into T.
CASES = ((300, 300, 1000000), (300, 300, 500000), (1000, 100, 1000000), (100, 300, 300000))
QUICK = ((30, 100, 1000000),)


def reconnections(bench):
    net = network.Network()
    for names, contenders, bytes_s in QUICK if bench.quick else CASES:
        case = f"{names} locks of {contenders}, {bytes_s // 1000} kB/s"
        measure.add(bench, "reconnections", case, "lockbroker", measure.attempt(
            bench, f"reconnection, {case}", lambda: reconnect(bench, net, names, contenders, bytes_s)))


def reconnect(bench, net, names, contenders, bytes_s):
    with queues.crowded(names, contenders) as (server, _):
        far = queues.Far(net, server)
        with measure.serving(bench, far, root="/q", zookeeper__session_timeout_ms=T_MS) as (daemon, clients):
            clients += [daemon.client(), daemon.client()]
            w = queues.Waiting(daemon, *clients, far, names, bytes_s)
            return cut(w, far.link, names * contenders * queues.NAME_BYTES / bytes_s)


def cut(w, link, backlog_s):
    """It comes to rest, or the row has no figure."""
    passed, began = sum(link.passed), time.monotonic()
    link.reset()
    harness.wait_until(lambda: w.more("suspensions") and w.is_proven(), "the session to be proven again")
    proven_s = time.monotonic() - began
    harness.wait_until(lambda: w.is_proven() and w.settled(), "all to be found again", 3 * backlog_s + T_MS / 1000)
    return {"backlog_s": backlog_s, "proven_ms": proven_s * 1000, "found_s": time.monotonic() - began,
            "drops": w.more("drops"), "jeopardies": w.more("jeopardies"), "megabytes": (sum(link.passed) - passed) / 1e6}
