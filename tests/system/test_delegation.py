# SPDX-License-Identifier: Apache-2.0
"""Locks that stay with the process that took them last (protocol/delegation.h), by a client that has a page: each way in
which one is taken back, while its process or the daemon lives, stands still, or ends."""

import os
import re
import signal
import time

import pytest

import delegation
import fakekeeper
import harness
from delegation import CONF, FREE, HELD, LOST, NONE, WANTED, Delegate
from mishaps import stopped
from saved import Saved, inode, kill, processes, wait_kept  # noqa: F401 (processes is a fixture)

OPERATORS = True  # see clients of conftest.py

PAGE = 1 << 62  # keeper.h: with the id of a connection

# It has the lock delegated, says so, and then what becomes of each word that it is sent.
PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
import delegation
c = delegation.Delegate(sys.argv[2])
c.ask_page()
c.delegate(sys.argv[3], 1, *sys.argv[4:])
print("delegated", flush=True)
for line in sys.stdin:
    print(getattr(c, line.strip())(1), flush=True)
"""


@pytest.fixture(params=["standalone", "zookeeper"])
def daemon(request, daemons, root):
    if request.param == "standalone":
        return daemons(**CONF)
    return daemons(request.getfixturevalue("zk"), root, **CONF)


@pytest.fixture(params=["standalone", "zookeeper"])
def kept(request, launch, root):
    """The same, with a keeper of the test's own."""
    zk = () if request.param == "standalone" else (request.getfixturevalue("zk"), root)
    return launch(fakekeeper.Kept(*zk, wait=False, **CONF))


@pytest.fixture
def delegates():
    def ready(client):
        client.ask_page()
        return client

    yield from harness.each_ends(lambda daemon: Delegate(daemon.socket), Delegate.close, ready)


def says(process, word):
    process.stdin.write(word.encode() + b"\n")
    process.stdin.flush()
    return process.stdout.readline().decode().strip()


def is_held(daemon, clients, name):
    c = clients(daemon)
    held = c.call("LOCK", name, "WAIT", 0) is None
    assert held or c.call("UNLOCK", name) == 0
    return held


# ---- it begins ----

def test_the_configuration_turns_it_off(daemons, clients):
    assert clients(daemons()).hello["delegation"] == delegation.SLOTS
    c = clients(daemons(locks__delegation=0))
    assert c.hello["delegation"] == 0
    assert c.call("DELEGATE").code == "DENIED"


def test_who_speaks_resp2_or_has_a_page_gets_none(daemons, clients, delegates):
    d = daemons(**CONF)
    assert clients(d, 2).call("DELEGATE").code == "ERR"
    c = delegates(d)
    assert c.hello["delegation"] == delegation.SLOTS
    assert c.call("DELEGATE").code == "ERR" and not c.passed


def test_the_descriptor_goes_with_the_reply_and_with_no_other_byte(daemons):
    """Also of many requests that are answered together."""
    c = Delegate(daemons(**CONF).socket)
    c.send_raw(harness.encode("PING") * 50 + harness.encode("DELEGATE") + harness.encode("PING"))
    got, passed = b"", []
    while not got.endswith(b"+PONG\r\n") or b":" not in got:
        data, fds, _, _ = delegation.socket.recv_fds(c.socket, 1, 4)
        assert not fds or data == b":", f"with {data} behind {got}"
        got += data
        passed += fds
    assert got == b"+PONG\r\n" * 50 + b":63\r\n+PONG\r\n"
    (fd,) = passed
    delegation.Page(fd)
    os.close(fd)
    c.close()


def test_it_is_taken_again_without_a_message(daemon, delegates):
    """The daemon stands still."""
    c = delegates(daemon)
    token = c.delegate("a", 1)
    with stopped(daemon):
        for _ in range(3):
            assert c.leave(1) and c.take(1)
        assert c.state(1) == HELD and c.page.terms(1)[0] == token
    assert c.call("UNLOCK", "a") == 0
    assert c.state(1) == NONE


def pages(client):
    """As METRICS has them: used, and the total."""
    return tuple(int(re.search(rf'^lockbroker_pool_{what}{{pool="pages"}} (\d+)$', client.call("METRICS"), re.M).group(1))
                 for what in ("used", "limit"))


def test_a_page_takes_no_place_of_a_connection(daemons, delegates):
    """Each of as many clients as there may be has one, and a lock by it."""
    d = daemons(limits={"clients": 4})
    four = [delegates(d) for _ in range(4)]
    for number, c in enumerate(four):
        c.delegate(f"lock {number}", 1)
        assert c.leave(1) and c.take(1)
    assert pages(four[0]) == (4, 4)
    with d.client(2) as fifth:
        answer = fifth.reply()
    assert answer.code == "LIMIT"


def test_a_reload_changes_the_number_of_pages_with_that_of_connections(daemons, clients, delegates, conf):
    conf.write_text("[limits]\nclients = 4\n")
    d = daemons(argv=["-c", str(conf)])
    c, operator = delegates(d), clients(d)
    conf.write_text("[limits]\nclients = 2\n")
    assert "limits.clients = 2" in operator.call("RELOAD") and pages(operator) == (1, 2)
    conf.write_text("[limits]\nclients = 3\n")
    assert "limits.clients = 3" in operator.call("RELOAD") and pages(operator) == (1, 3)
    assert c.delegate("a", 1)


# ---- it is taken back ----

def test_a_free_one_is_taken_back_at_once(daemon, clients, delegates):
    c, other = delegates(daemon), clients(daemon)
    token = c.delegate("a", 1)
    assert c.leave(1)
    assert other.call("LOCK", "a", "WAIT", 0) > token
    assert not c.take(1) and c.state(1) == NONE
    assert c.call("LOCK", "a", "WAIT", 0) is None


def test_a_held_one_is_waited_for(daemon, clients, delegates):
    c, other = delegates(daemon), clients(daemon)
    token = c.delegate("a", 1)
    other.send("LOCK", "a")
    harness.wait_until(lambda: c.state(1) == HELD | WANTED, "it to be wanted")
    assert not c.leave(1) and other.quiet()
    assert c.call("UNLOCK", "a") == 0
    assert other.reply() > token
    assert c.state(1) == NONE and not c.take(1)


def test_looking_takes_nothing_back(daemon, clients, delegates):
    """Meanwhile its client takes and releases it by the word."""
    c, other = delegates(daemon), clients(daemon)
    token = c.delegate("a", 1)
    for _ in range(3):
        assert other.call("WHY", "a")["delegated"] == 0
        assert [h["token"] for h in other.call("HOLDERS", "a")] == [token]
        assert c.call("VALID", "a") > 0 and other.call("EXISTS", "a") == 1
        assert c.leave(1)
        why = other.call("WHY", "a")
        assert why["delegated"] == c.hello["id"] and "delegated" in why["why"] and why["holders"] == []
        assert other.call("HOLDERS", "a") == [] and other.call("QUEUE", "a") == []
        assert c.call("VALID", "a") == 0 and other.call("EXISTS", "a") == 0
        (row,) = other.call("LOCKS", "a")
        assert (row["holders"], row["delegated"]) == (0, c.hello["id"])
        if not c.take(1):
            token = c.delegate("a", 1)  # it was idle for too long


def read_by_both(daemon, delegates):
    """Two clients that hold the lock shared, each by a delegation."""
    made = [delegates(daemon), delegates(daemon)]
    for c in made:
        c.delegate("a", 1, "SHARED")
    return made


def test_readers_keep_it_until_one_writes(daemon, clients, delegates):
    readers, other = read_by_both(daemon, delegates), clients(daemon)
    for c in readers:
        assert c.leave(1) and c.take(1)
    assert isinstance(other.call("LOCK", "a", "SHARED"), int)
    assert other.call("UNLOCK", "a") == 0
    assert all(c.leave(1) for c in readers)
    assert isinstance(other.call("LOCK", "a"), int)
    assert all(c.state(1) == NONE and not c.take(1) for c in readers)


def test_a_writer_waits_for_the_readers_inside(daemon, clients, delegates):
    (one, two), writer = read_by_both(daemon, delegates), clients(daemon)
    assert one.leave(1)
    writer.send("LOCK", "a")
    harness.wait_until(lambda: two.state(1) == HELD | WANTED, "it to be wanted")
    assert one.state(1) == NONE and not one.take(1)
    one.send("LOCK", "a", "SHARED", "SLOT", 1)
    assert not two.leave(1) and writer.quiet()
    assert two.call("UNLOCK", "a") == 0
    assert isinstance(writer.reply(), int) and one.quiet()
    assert writer.call("UNLOCK", "a") == 0
    assert isinstance(one.reply(), int)


def test_a_reader_that_ends_or_stands_still(daemon, clients, processes):  # noqa: F811
    inside, outside = (processes(PROCESS, daemon.socket, "a", "SHARED") for _ in range(2))
    assert says(outside, "leave") == "True"
    for p in inside, outside:
        p.send_signal(signal.SIGSTOP)
    other = clients(daemon)
    assert other.call("LOCK", "a", "WAIT", 50) is None
    kill(inside)
    assert isinstance(other.call("LOCK", "a"), int)
    outside.send_signal(signal.SIGCONT)
    assert says(outside, "take") == "False"


def test_another_host_gets_it(zk, root, daemons, clients, delegates):
    """Free: at once. Held: when it is unlocked."""
    alpha, beta = daemons(zk, root, **CONF), daemons(zk, root, **CONF)
    c, other = delegates(alpha), clients(beta)
    for held in False, True:
        token = c.delegate("a", 1)
        assert c.leave(1)
        if held and not c.take(1):
            continue  # it was idle for too long
        other.send("LOCK", "a")
        if held:
            harness.wait_until(lambda: c.state(1) == HELD | WANTED, "it to be wanted")
            assert other.quiet()
            assert c.call("UNLOCK", "a") == 0
        assert other.reply() > token
        assert not c.take(1)
        assert other.call("UNLOCK", "a") == 0


def test_by_force_it_is_lost(daemon, clients, delegates):
    c, operator = delegates(daemon), clients(daemon)
    token = c.delegate("a", 1)
    assert operator.call("FORCEUNLOCK", "a") == 1
    assert c.state(1) == HELD | LOST | WANTED and not c.leave(1)
    assert operator.call("LOCK", "a", "WAIT", 0) > token
    assert c.push()[:2] == ["lost", "a"]
    assert c.call("UNLOCK", "a").code == "LOST"
    assert c.state(1) == NONE


def test_by_force_a_free_one_ends_and_nobody_is_told(daemon, clients, delegates):
    c, operator = delegates(daemon), clients(daemon)
    c.delegate("a", 1)
    assert c.leave(1)
    assert operator.call("FORCEUNLOCK", "a") == 0
    assert not c.take(1) and c.state(1) == NONE
    assert isinstance(c.call("LOCK", "a"), int) and c.quiet()


def test_a_holder_is_asked_to_give_it_back(daemon, clients, delegates):
    c, operator = delegates(daemon), clients(daemon)
    c.delegate("a", 1)
    operator.call("REVOKE", "a")
    assert c.push()[:2] == ["revoke", "a"]
    assert not c.leave(1) and c.call("UNLOCK", "a") == 0
    c.delegate("a", 1)
    assert c.leave(1)
    operator.call("REVOKE", "a")
    assert not c.take(1) and c.quiet()


def test_a_reload_that_turns_it_off_takes_all_back(daemons, conf, clients, delegates):
    conf.write_text("[locks]\ndelegation = 1\n")
    d = daemons(argv=["-c", str(conf)])
    c, operator = delegates(d), clients(d)
    for slot, name in (1, "a"), (2, "b"):
        c.delegate(name, slot)
    assert c.leave(1)
    conf.write_text("[locks]\ndelegation = 0\n")
    assert "locks.delegation = 0" in operator.call("RELOAD")
    harness.wait_until(lambda: c.state(1) == NONE and c.state(2) == HELD | WANTED, "all to be taken back")
    assert not c.take(1) and not c.leave(2)
    assert c.call("UNLOCK", "b") == 0
    assert isinstance(c.lock("a", 1), int) and not c.is_delegated(1)
    assert operator.call("DELEGATE").code == "DENIED" and clients(d).hello["delegation"] == 0


# ---- its process ends, or stands still ----

@pytest.mark.parametrize("word", ["", "leave"], ids=["held", "free"])
def test_the_end_of_its_process_frees_it(daemon, clients, processes, word):  # noqa: F811
    p = processes(PROCESS, daemon.socket, "a")
    assert not word or says(p, word) == "True"
    other = clients(daemon)
    other.send("LOCK", "a")
    kill(p)
    assert isinstance(other.reply(), int)


def test_a_free_one_is_taken_back_from_a_process_that_stands_still(daemon, clients, processes):  # noqa: F811
    p = processes(PROCESS, daemon.socket, "a")
    assert says(p, "leave") == "True"
    p.send_signal(signal.SIGSTOP)
    assert isinstance(clients(daemon).call("LOCK", "a", "WAIT", 0), int)
    p.send_signal(signal.SIGCONT)
    assert says(p, "take") == "False"


def test_a_process_that_stands_still_holds_what_it_holds(daemon, clients, processes):  # noqa: F811
    p = processes(PROCESS, daemon.socket, "a")
    p.send_signal(signal.SIGSTOP)
    other = clients(daemon)
    assert other.call("LOCK", "a", "WAIT", 50) is None
    p.send_signal(signal.SIGCONT)
    assert says(p, "leave") == "False"
    assert other.call("LOCK", "a", "WAIT", 50) is None
    kill(p)
    assert isinstance(other.call("LOCK", "a"), int)


# ---- the daemon ends, or hands over ----

def wait_page_kept(daemon, client):
    harness.wait_until(lambda: any(conn[8] == inode(client) and PAGE | conn[7] in daemon.kept
                                   for conn in Saved(daemon).conns().values()), "the page to be kept")
    wait_kept(Saved(daemon), client)


def test_a_crash_leaves_what_is_held_and_frees_what_is_free(kept, clients, delegates):
    c = delegates(kept)
    held, free = c.delegate("held", 1), c.delegate("free", 2)
    wait_page_kept(kept, c)
    assert c.leave(2)
    kept.crash()
    assert not c.take(1) and not c.take(2), "of another daemon's session page nothing is proven"
    assert is_held(kept, clients, "held")
    other = clients(kept)
    assert other.call("LOCK", "free") > free
    assert c.state(1) == HELD | WANTED and c.state(2) == NONE
    assert c.call("VALID", "held", "TOKEN", held) > 0
    assert c.call("UNLOCK", "held") == 0 and c.state(1) == NONE
    assert isinstance(other.call("LOCK", "held"), int)
    assert other.call("UNLOCK", "free") == 0
    # The page is still the connection's, and the session page another one.
    c.delegate("free", 2)
    assert c.state(2) == HELD


def test_what_is_taken_while_no_daemon_lives_is_held(kept, clients, delegates):
    """Nobody has told the process yet, and its proof stands."""
    c = delegates(kept)
    c.delegate("a", 1)
    wait_page_kept(kept, c)
    assert c.leave(1)
    entered = []
    kept.crash(change=lambda: entered.append(c.take(1)))
    assert is_held(kept, clients, "a") or not entered[0]
    if entered[0]:
        assert not c.leave(1) and c.call("UNLOCK", "a") == 0
    assert isinstance(clients(kept).call("LOCK", "a"), int)


@pytest.mark.parametrize("page, removed", [(True, True), (True, False), (False, True)], ids=["waits", "ended", "no page"])
def test_after_a_kill_of_all_a_start_waits_if_it_cannot_end_what_is_believed(daemons, clients, delegates, tmp_path, page,
                                                                             removed):
    """For a second a process takes its delegated locks without a look at its connection."""
    d = daemons(daemon__statedir=str(tmp_path))
    if page:
        delegates(d).delegate("a", 1)
    assert clients(d).call("LOCK", "b") > 0
    assert os.path.exists(tmp_path / "life") == page
    d.kill()
    for name in os.listdir(d.dir) if removed else []:
        if name not in ("log", "notify"):
            os.unlink(os.path.join(d.dir, name))
    begun = time.monotonic()
    d.start()
    assert clients(d).call("LOCK", "a") > 0
    waits = page and removed
    assert d.log().count("nothing is granted for a second") == waits
    assert not waits or time.monotonic() - begun >= 1
    assert d.terminate() == 0 and not os.path.exists(tmp_path / "life")


def test_a_connection_whose_page_is_lost_does_not_go_on(kept, clients, delegates):
    """Who is inside nobody could tell: so it counts as inside for as long as it may believe it."""
    c = delegates(kept)
    c.delegate("a", 1)
    wait_page_kept(kept, c)
    kept.crash(back=[(number, fd) for number, fd in kept.kept.items() if not number & PAGE])
    assert c.ended()
    assert is_held(kept, clients, "a")


def test_a_page_that_is_none_is_not_used(kept, clients, delegates, tmp_path):
    c = delegates(kept)
    c.delegate("a", 1)
    wait_page_kept(kept, c)
    with open(tmp_path / "none", "wb+") as f:
        f.truncate(delegation.BYTES)
        kept.crash(back=[(number, os.dup(f.fileno()) if number & PAGE and not number & fakekeeper.ROLE else fd)
                         for number, fd in kept.kept.items()])
    assert c.ended()
    assert is_held(kept, clients, "a")


def test_a_hand_over_takes_all_back_and_the_page_goes_on(daemon, clients, delegates):
    harness.inherit_orphans()
    c, operator = delegates(daemon), clients(daemon)
    free, held = c.delegate("free", 1), c.delegate("held", 2)
    assert c.leave(1)
    daemon.hand_over(operator)
    other = clients(daemon)
    assert other.call("LOCK", "free", "WAIT", 0) > free
    assert is_held(daemon, clients, "held")
    assert c.state(1) == NONE and c.state(2) == HELD | WANTED
    assert c.call("UNLOCK", "held") == 0
    assert c.delegate("held", 2) > held


def test_with_the_session_all_are_lost(own_zk, daemons, clients, delegates):
    """Whoever takes a free one by its word looks at the page, which says so before another host can be granted it."""
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    d = daemons(zk, **harness.FAST, **CONF)
    c = delegates(d)
    c.delegate("free", 1)
    c.delegate("held", 2)
    assert c.leave(1)
    with stopped(zk):
        assert c.loss()[:2] == ["lost", "held"]
        counted = d.info()
        assert (counted["delegations"], counted["delegation_pages"]) == ("0", "1")
        lost, idle = (int(counted[f"delegations_{why}_total"]) for why in ("lost", "idle"))
        assert lost >= 1 and lost + idle == 2, "the free one may not have been used for too long before"
        assert not c.take(1) and not c.leave(2) and not c.stands(2)
        assert c.state(2) & (HELD | LOST) == HELD | LOST
        assert c.call("UNLOCK", "held").code == "LOST"
        assert c.state(2) == NONE
    assert c.delegate("held", 2)
