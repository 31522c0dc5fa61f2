# SPDX-License-Identifier: Apache-2.0
"""kazoo_load.py SERVERS PROCESSES SECONDS WARM own|one: kazoo's Lock, a process and a session each. Prints what
bench-load prints, as far as it applies."""

import json
import multiprocessing
import sys
import time
import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning)

import kazoo.client  # noqa: E402


def work(servers, path, number, barrier, last_holder, warm, seconds, results):
    client = kazoo.client.KazooClient(hosts=servers)
    client.start()
    lock = client.Lock(path)
    waits, hand_offs = [], 0
    barrier.wait()
    begin = time.monotonic() + warm
    asked = time.monotonic()
    while asked < begin + seconds:
        lock.acquire()
        got = time.monotonic()
        counts = begin <= got <= begin + seconds
        hand_offs += counts and last_holder.value != number
        last_holder.value = number
        lock.release()
        if counts:
            waits.append(got - asked)
        asked = time.monotonic()
    results.put((waits, hand_offs))
    client.stop()
    client.close()


def main():
    servers, processes, seconds, warm, names = sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:5]), sys.argv[5]
    fork = multiprocessing.get_context("fork")
    barrier, results, last_holder = fork.Barrier(processes), fork.Queue(), fork.RawValue("i", -1)
    workers = [fork.Process(target=work, daemon=True, args=(
        servers, "/bench-kazoo/" + ("one" if names == "one" else f"own-{i}"), i, barrier, last_holder, warm, seconds,
        results)) for i in range(processes)]
    for w in workers:
        w.start()
    waits, hand_offs = [], 0
    for _ in workers:
        some, passed = results.get(timeout=seconds + warm + 60)
        waits += some
        hand_offs += passed
    for w in workers:
        w.join()
    waits.sort()

    def percentile(part):
        return round(waits[min(len(waits) - 1, int(part * len(waits)))] * 1e6, 2) if waits else 0

    print(json.dumps({"pairs": len(waits), "seconds": seconds, "p50_us": percentile(0.5), "p99_us": percentile(0.99),
                      "p999_us": percentile(0.999), "longest_us": percentile(1),
                      "hand_offs": hand_offs if names == "one" else 0, "overlaps": 0, "by_target": [len(waits)]}))


if __name__ == "__main__":
    main()
