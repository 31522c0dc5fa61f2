# SPDX-License-Identifier: Apache-2.0
"""How little the daemon asks of ZooKeeper, and how seldom it wakes."""

import re

import pytest

import harness
from mishaps import stopped

pytestmark = pytest.mark.plain_only("it is about numbers of requests, watches or wakes")


def wait_released(zk):
    """Until nobody has a znode for the lock a any more, as the server itself says."""
    harness.wait_until(lambda: not any("/t/a/" in p for paths in zk.sessions().values() for p in paths), "the delete")


def test_a_thousand_clients_are_one_session_and_one_znode_per_lock(own_zk, daemons, clients):
    """Pitfalls 6, 21."""
    zk = own_zk()
    d = daemons(zk)
    many = [clients(d) for _ in range(1000)]
    for i, c in enumerate(many):
        c.send("LOCK", f"lock{i % 10}")
    for i in range(10):
        harness.wait_queued(d, f"lock{i}", 99)
    ((_, paths),) = zk.sessions().items()
    locks = sorted(p.rsplit("/", 1)[0] for p in paths if "/.hosts/" not in p)
    assert locks == [f"/t/lock{i}" for i in range(10)]
    assert len(paths) == 11
    connections = [line for line in zk.ask("cons").splitlines() if "sid=0x" in line]
    assert len(connections) == 1


def test_at_most_two_znodes_of_a_host_at_a_hand_over(own_zk, daemons, clients):
    """Two hosts that want one lock all the time: never more than two znodes each, whenever one looks."""
    zk = own_zk()
    pair = [daemons(zk, locks__handoff_max=2), daemons(zk, locks__handoff_max=2)]
    many = [clients(pair[i % 2]) for i in range(20)]
    for c in many:
        c.send("LOCK", "a")
    served, most = 0, 0
    while served < 400:
        ready, _, _ = harness.select.select(many, [], [], harness.PATIENCE)
        assert ready
        for c in ready:
            assert isinstance(c.reply(), int)
            served += 1
            c.call("UNLOCK", "a")
            c.send("LOCK", "a")
        for paths in zk.sessions().values():
            most = max(most, len([p for p in paths if p.startswith("/t/a/")]))
    assert len(zk.sessions()) == 2
    assert 1 <= most <= 2
    for c in many:
        c.close()


def watches(zk):
    """session id -> paths that it watches, by the server's account."""
    found = {}
    for line in zk.ask("wchc").splitlines():
        if line.startswith("\t"):
            paths.add(line.strip())
        else:
            paths = found.setdefault(line, set())
    return found


@pytest.mark.parametrize("name", ["a", "m/a", "k/a"])
@pytest.mark.parametrize("words", [[], ["SHARED"]])
def test_a_hand_off_between_two_hosts_sends_no_list(own_zk, daemons, clients, name, words):
    """Who waits knows from its list and its watches that it is next, and that its znode stands. Writers wait for each
    other, or a writer and a reader."""
    zk = own_zk()
    conf = {"prefix:m/.flavour": "mutex", "prefix:k/.flavour": "kazoo"}
    hosts = [daemons(zk, **conf), daemons(zk, **conf)]
    pair = [clients(h) for h in hosts]

    def knows_both():
        queue = {p for paths in zk.sessions().values() for p in paths if "/.hosts/" not in p}
        return len(queue) == 2 and any(queue <= paths for paths in watches(zk).values())

    pair[0].call("LOCK", name)
    for i in range(6):
        waits = pair[(i + 1) % 2]
        waits.send("LOCK", name, *words if i % 2 == 0 else [])
        harness.wait_until(knows_both, "it to watch its own znode and the one before")
        pair[i % 2].call("UNLOCK", name)
        assert isinstance(waits.reply(), int)
    assert sum(int(h.info()["successions_total"]) for h in hosts) == 6


@pytest.mark.parametrize("name", ["a", "m/a", "k/a"])
def test_in_a_queue_of_hosts_no_hand_off_waits_for_a_list(own_zk, daemons, clients, name):
    """Each watches the two nearest before it. When the one before its predecessor goes, it is second if there were only two;
    if not, it learns by a list that it is, while its predecessor has the lock."""
    zk = own_zk()
    conf = {"prefix:m/.flavour": "mutex", "prefix:k/.flavour": "kazoo"}
    hosts = [daemons(zk, **conf) for _ in range(6)]
    crowd = [clients(h) for h in hosts]

    def queue():
        znodes = {p for paths in zk.sessions().values() for p in paths if "/.hosts/" not in p}
        return sorted(znodes, key=lambda path: path[-10:])

    def is_watched(waiting, *others):
        return any({waiting, *others} <= paths for paths in watches(zk).values())

    def reads(host):
        return int(host.info()["zk_reads_total"])

    crowd[0].call("LOCK", name)
    for i in range(1, 6):
        crowd[i].send("LOCK", name)
        harness.wait_until(lambda: len(queue()) == i + 1, "its znode")
        harness.wait_until(lambda: is_watched(*queue()[i:], *queue()[max(0, i - 2):i]), "it to watch itself and those before")
        harness.wait_until(lambda: hosts[i].info()["operations"] == "0", "all answers")
    for i in range(5):
        third = hosts[min(i + 2, 5)]
        before = reads(third)
        crowd[i].call("UNLOCK", name)
        assert isinstance(crowd[i + 1].reply(), int)
        if i in (1, 2, 3):
            harness.wait_until(lambda: reads(third) > before, "the list of who is second now")
            harness.wait_until(lambda: third.info()["operations"] == "0", "its answer")
    assert [int(h.info()["successions_total"]) for h in hosts] == [0, 1, 1, 1, 1, 1]


def test_an_uncontended_pair_costs_one_create_and_one_delete(own_zk, daemons, clients):
    """Counted by the server: every write is one zxid. The heartbeat of T/6 is kept out by a long T."""
    zk = own_zk()
    d = daemons(zk, locks__linger_ms=0, zookeeper__session_timeout_ms=40000)
    c = clients(d)

    def pair():
        c.call("LOCK", "a")
        c.call("UNLOCK", "a")
        wait_released(zk)

    pair()  # the directory is known from here on
    before, stats = zk.zxid(), d.info()
    for _ in range(10):
        pair()
    assert zk.zxid() - before in (20, 21, 22)  # a heartbeat may fall in between
    beats = int(d.info()["heartbeats_total"]) - int(stats["heartbeats_total"])
    assert zk.zxid() - before == 20 + beats
    reads = int(d.info()["zk_reads_total"]) - int(stats["zk_reads_total"])
    assert reads <= 10, "one list in the same breath, no more"


def requests(d):
    """What the daemon has asked of ZooKeeper, without heartbeats."""
    info = d.info()
    return int(info["zk_writes_total"]) + int(info["zk_reads_total"]) - int(info["heartbeats_total"])


def settled(d):
    """The same, once all is answered."""
    harness.wait_until(lambda: d.info()["operations"] == "0", "the answers of ZooKeeper")
    return requests(d)


def test_a_warm_lock_costs_a_create_a_list_and_a_delete_in_1024_grants(own_zk, daemons, clients):
    """Counted by the daemon. Whatever it asks is answered before 64 further grants are made (locks.handoff_max): as long
    as it does not know that nobody waits elsewhere, it goes back then."""
    d = daemons(own_zk(), locks__linger_ms=60000)
    c = clients(d)

    def pairs(count):
        for i in range(count):
            assert isinstance(c.call("LOCK", "a"), int)
            assert c.call("UNLOCK", "a") == 0
            if i % 32 == 31:
                settled(d)

    pairs(1120)
    before = requests(d)
    pairs(4 * 1024)
    assert requests(d) - before == 3 * 4


def test_a_hand_off_between_hosts_costs_five_requests(own_zk, daemons, clients):
    """A create, a list, a read of the predecessor and one of the own znode, a delete: as many as the recipe needs. One list
    for each is allowed: who waits may come when its predecessor has just gone."""
    zk = own_zk()
    pair = [daemons(zk), daemons(zk)]
    holder, waiter = map(clients, pair)
    holder.call("LOCK", "a")

    def hand_over():
        nonlocal pair, holder, waiter
        before = settled(pair[1])
        waiter.send("LOCK", "a")
        harness.wait_until(lambda: requests(pair[1]) >= before + 4, "create, list and two gets")
        assert holder.call("UNLOCK", "a") == 0
        assert isinstance(waiter.reply(), int)
        pair, holder, waiter = pair[::-1], waiter, holder

    hand_over()
    hand_over()
    before = sum(map(requests, pair))
    for _ in range(10):
        hand_over()
    harness.wait_until(lambda: sum(map(requests, pair)) >= before + 50, "the last delete")
    assert sum(map(requests, pair)) <= before + 60


def test_an_uncontended_lock_is_one_round_trip(own_zk, daemons, clients):
    """With the server stopped after the request is on its way nothing further is needed from the client side: the
    create and the list leave together. Seen as one packet exchange: both are received before any answer."""
    zk = own_zk()
    d = daemons(zk, locks__linger_ms=0)
    c = clients(d)
    c.call("LOCK", "a")
    c.call("UNLOCK", "a")
    harness.wait_until(lambda: int(d.info()["zk_writes_total"]) > 0, "the first pair")

    def sent():
        info = d.info()
        return int(info["zk_writes_total"]) - int(info["heartbeats_total"]), int(info["zk_reads_total"])

    wait_released(zk)
    writes, reads = sent()
    with stopped(zk):
        c.send("LOCK", "a")
        harness.wait_until(lambda: sent() == (writes + 1, reads + 1), "create and list to be sent together")
    assert isinstance(c.reply(), int)
    assert sent() == (writes + 1, reads + 1)


def test_unlock_waits_for_nothing(own_zk, daemons, clients):
    zk = own_zk()
    d = daemons(zk, locks__linger_ms=0)
    c = clients(d)
    c.call("LOCK", "a")
    with stopped(zk):
        assert c.call("UNLOCK", "a") == 0


def cpu_ticks(pids):
    used = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        used += int(fields[11]) + int(fields[12])
    return used


def switches(pids):
    """How often they slept and woke."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as f:
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M).group(1))
    return total


def test_waiting_uses_no_cpu(own_zk, daemons, clients):
    zk = own_zk()
    # T/6 is longer than the measurement: no heartbeat falls into it, or one at most.
    pair = [daemons(zk, zookeeper__session_timeout_ms=40000) for _ in range(2)]
    holder = clients(pair[0])
    holder.call("LOCK", "a")
    waiting = [harness.spawn([harness.program("lockbroker"), "-S", d.socket, "lock", "a", "--", "true"])
               for d in pair for _ in range(10)]
    for d in pair:
        for _ in range(50):
            clients(d).send("LOCK", "a")
        harness.wait_queued(d, "a", 60)
    daemon_pids, waiting_pids = [d.pid for d in pair], [p.pid for p in waiting]

    def look():
        return [count(pids) for count in (cpu_ticks, switches) for pids in (daemon_pids, waiting_pids)]

    used = []

    def rest():
        before, after, _ = harness.over(3, look)
        used.append([b - a for a, b in zip(before, after)])
        of_daemons, of_waiting, daemons_woke, waiting_woke = used[-1]
        return of_daemons <= 1 and daemons_woke <= 20 and of_waiting == waiting_woke == 0

    # At first a grant older than a second is looked at. A waiting command asks after 5 s, and then ever more rarely, why it is not granted: between those looks nobody wakes.
    harness.wait_until(rest, lambda: f"three seconds in which nobody does anything: {used}")
    for p in waiting:
        p.kill()
        p.wait()
