# SPDX-License-Identifier: Apache-2.0
"""Programs of Redis ask for a lock again and again. They have places in its queue (docs/REDIS.md)."""

import threading
import time

import pytest
import redis

import harness

class Pollers:
    """So many values on one connection to a host, each asked for ten times a second, until it has had the lock."""

    def __init__(self, daemon, count):
        self.client = redis.Redis(unix_socket_path=daemon.socket)
        self.left = [f"{daemon.host}-{i}" for i in range(count)]
        self.order = []
        self.goes_on = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.goes_on and self.left:
            pipe = self.client.pipeline(transaction=False)
            for value in self.left:
                pipe.set("job", value, nx=True, px=60000)
            for value, got in zip(list(self.left), pipe.execute()):
                if got:
                    self.left.remove(value)
                    self.order.append(value)
                    self.client.delete("job")
            time.sleep(0.1)  # at their pace

    def end(self):
        self.goes_on = False
        self.thread.join()
        self.client.close()


def writes(hosts):
    infos = [host.info() for host in hosts]
    return sum(int(i["zk_writes_total"]) - int(i["heartbeats_total"]) for i in infos)


def count(hosts, name):
    return sum(int(host.info()[name]) for host in hosts)


@pytest.mark.plain_only("requests are counted while time passes")
def test_two_hundred_that_poll_on_two_hosts_cost_two_waits_and_all_get_their_turn(two_hosts):
    with harness.Client(two_hosts[0].socket) as holder, harness.Client(two_hosts[1].socket) as waiter:
        holder.call("LOCK", "job")
        pollers = [Pollers(host, 100) for host in two_hosts]
        try:
            waits = [lambda h=host: int(h.info()["places_total"]) >= 100 for host in two_hosts]
            for all_wait in waits:
                harness.wait_until(all_wait, "a hundred places")
            waiter.send("LOCK", "job")
            before, after, took = harness.over(4, lambda: writes(two_hosts))
            # Where the machine stands still for a second, places end, and are made again.
            assert after - before <= 2 * took + 6
            before, began, granted = writes(two_hosts), time.monotonic(), count(two_hosts, "grants_total")
            holder.call("UNLOCK", "job")
            assert isinstance(waiter.reply(), int)
            waiter.call("UNLOCK", "job")
            harness.wait_until(lambda: not any(p.left for p in pollers), "all of them to have had their turn", 120)
            granted = count(two_hosts, "grants_total") - granted
            # The lock goes to the other host and back at nearly every turn: each time one leaves and queues up again.
            assert granted >= 201
            assert writes(two_hosts) - before <= 2 * (time.monotonic() - began) + 2 * granted + 6
            if count(two_hosts, "places_unused_total") == 0 and count(two_hosts, "places_total") == 200:
                for p in pollers:
                    asked = [int(value.rpartition("-")[2]) for value in p.order]
                    # The first round of a host that knows nothing of the lock takes a second, after which the first notes
                    # are forgotten: some begin again, behind the others.
                    assert sum(a > b for a, b in zip(asked, asked[1:])) <= 1, asked
        finally:
            for p in pollers:
                p.end()
