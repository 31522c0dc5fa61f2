# SPDX-License-Identifier: Apache-2.0
"""What other lock services got wrong (tests/pitfalls.md): that every test named there exists, and those that have no
better place."""

import re
import signal
import subprocess
import sys

import pytest

import harness
import test_cli
from harness import FAST_TICK_MS, ROOMY


def rows():
    """number -> what is named in its row."""
    lines = re.findall(r"^\| (\d+) \|.*$", harness.read_source("tests/pitfalls.md"), re.M)
    found = {}
    for line in harness.read_source("tests/pitfalls.md").splitlines():
        cells = line.split(" | ")
        if re.fullmatch(r"\| \d+", cells[0]):
            found[int(cells[0][2:])] = re.findall(r"`([^`]+)`", cells[3])
    assert len(found) == len(lines)
    return found


def test_every_pitfall_has_tests_that_exist():
    table = rows()
    assert sorted(table) == list(range(1, 26))
    assert not [number for number, names in table.items() if not names]
    assert not [name for names in table.values() for name in names if not harness.names_a_test(name)]


# ---- the command ----


def command(daemon, *argv):
    return harness.spawn([harness.program("lockbroker"), "-S", daemon.socket, "lock", *argv], text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def queued(daemon, name, count):
    with daemon.client() as c:
        harness.wait_until(lambda: len(c.call("QUEUE", name)) == count, f"{count} requests to be queued")


def test_a_cut_off_host_has_ended_its_command_before_another_begins(own_zk, daemons, tmp_path):
    """Pitfall 8: each command writes when it began, and when it was told to end; the clock is the host's."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    alpha, beta = daemons(zk, **ROOMY), daemons(zk, **ROOMY)
    text = f"""
import signal, sys, time
def say(what):
    open({str(tmp_path)!r} + "/" + sys.argv[1] + what, "w").write(repr(time.clock_gettime(time.CLOCK_BOOTTIME)))
def end(*_):
    say(".end")
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
say(".begin")
print("runs", flush=True)
if sys.argv[1] == "first":
    signal.pause()
"""
    first = command(alpha, "a", "--", sys.executable, "-c", text, "first")
    assert first.stdout.readline() == "runs\n"
    second = command(beta, "a", "--", sys.executable, "-c", text, "second")
    queued(beta, "a", 1)
    alpha.signal(signal.SIGSTOP)
    assert second.wait(harness.PATIENCE) == 0
    assert first.wait(harness.PATIENCE) != 0
    ended, began = (float((tmp_path / name).read_text()) for name in ("first.end", "second.begin"))
    assert ended < began


def test_sigterm_and_loss_are_heeded_in_both_modes(daemons):
    """Pitfall 10: by one that waits, and by one whose command runs."""
    for how in ("SIGTERM", "loss"):
        d = daemons()
        runs = command(d, "a", "--", "sh", "-c", "echo runs; exec sleep 60")
        assert runs.stdout.readline() == "runs\n"
        waits = command(d, "a", "--", "echo", "never")
        queued(d, "a", 1)
        if how == "SIGTERM":
            waits.terminate()
            assert waits.wait(harness.PATIENCE) == -signal.SIGTERM
            runs.terminate()
            assert runs.wait(harness.PATIENCE) == 128 + signal.SIGTERM
        else:
            d.kill()
            assert runs.wait(harness.PATIENCE) == test_cli.LOST
            waits.terminate()  # it waits for a broker that comes back
            assert waits.wait(harness.PATIENCE) == -signal.SIGTERM
        assert waits.stdout.read() == ""


# ---- ZooKeeper ----


def test_tries_leave_no_znode(daemons, zk, root, clients, kazoo_client):
    """Pitfall 15: many at once, of a lock that another host holds; and of clients that go before the answer."""
    alpha, beta = daemons(zk, root), daemons(zk, root)
    clients(alpha).call("LOCK", "a")
    many = [clients(beta) for _ in range(50)]
    for _ in range(10):
        for c in many:
            c.send("LOCK", "a", "WAIT", 0)
        assert [c.reply() for c in many] == [None] * 50
    for c in many:
        c.send("LOCK", "a", "WAIT", 0)
        c.close()
    k = kazoo_client(zk)
    harness.wait_until(lambda: len(k.get_children(f"{root}/a")) == 1, "the tries' znodes to go")
    harness.wait_until(lambda: beta.info("locks")["claims"] == "0", "the answer to the last delete")


@pytest.mark.plain_only("it is about numbers of requests, watches or wakes")
def test_a_release_wakes_two_of_those_that_wait_on(own_zk, daemons, clients):
    """Pitfall 22: five hosts wait, the first gets the lock, and the last two do not hear of it. The second, which is next,
    lists. It reads what the holder writes into its znode, and so does the third, which watches that znode, too."""
    zk = own_zk()
    hosts = [daemons(zk, zookeeper__session_timeout_ms=40000, locks__linger_ms=0) for _ in range(6)]
    queue = [clients(h) for h in hosts]
    queue[0].call("LOCK", "a")
    for h, c in zip(hosts[1:], queue[1:]):
        c.send("LOCK", "a")
        harness.wait_until(lambda h=h: state(h) == "waiting", "it to stand in line")

    def reads():
        return [int(h.info("stats")["zk_reads_total"]) for h in hosts]

    def unchanged():
        before, after, _ = harness.over(1.5, reads)
        return after if before == after else None

    before = harness.wait_until(unchanged, "the looks at a grant older than a second, and what they cause, to be over")
    queue[0].call("UNLOCK", "a")
    assert isinstance(queue[1].reply(), int)
    _, after, _ = harness.over(0.5, reads)  # whom a server does not wake does nothing that could be waited for
    woken = [b - a for a, b in zip(before[2:], after[2:])]
    assert woken[0] <= 3 and woken[1] <= 1 and woken[2:] == [0] * 2
    assert after[1] - before[1] <= 4  # none but for what goes on anyway, if it was second in line
    for c in queue[1:]:
        c.close()


def state(daemon):
    with daemon.client() as c:
        return next((lock["state"] for lock in c.call("LOCKS", "a")), "none")


@pytest.mark.plain_only("it is about numbers of requests, watches or wakes")
def test_watches_do_not_pile_up(own_zk, daemons, clients):
    """Pitfall 23: locks that were waited for on both hosts, watched, handed on and let go leave nothing to be watched."""
    zk = own_zk()
    alpha, beta = (daemons(zk, locks__linger_ms=0) for _ in range(2))
    a, b = clients(alpha), clients(beta)

    def watches():
        return int(re.search(r"Total watches:(\d+)", zk.ask("wchs")).group(1))

    def round_of_locks(number):
        names = [f"lock{number}.{i}" for i in range(30)]
        for name in names:
            a.call("LOCK", name)
        assert [b.call("LOCK", name, "WAIT", 5) for name in names] == [None] * 30
        for name in names:
            a.call("UNLOCK", name)
            assert isinstance(b.call("LOCK", name, "WAIT", 20000), int)
            b.call("UNLOCK", name)

    round_of_locks(0)
    round_of_locks(1)
    harness.wait_until(lambda: watches() <= 4, lambda: f"the watches to go: {watches()}")
