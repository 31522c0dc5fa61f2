# SPDX-License-Identifier: Apache-2.0
"""lb_lock_any(): one of several locks."""

import re

import pytest

import harness
from library import token_of
from test_library import lose_unseen


def got(answer):
    """The index, and the token."""
    match = re.fullmatch(r"OK (\d+) (\d+)", answer)
    assert match, answer
    return int(match[1]), int(match[2])


def wait_queued(daemon, *names):
    for name in names:
        harness.wait_queued(daemon, name, 1)


def assert_nothing_is_left(c, *names):
    for name in names:
        assert c.call("QUEUE", name) == []


def test_the_only_one_that_is_free_is_taken_at_once(broker, programs, clients):
    c = clients(broker)
    p = programs(broker.socket).open()
    for free in range(3):
        names = [name for i, name in enumerate("abc") if i != free]
        c.call("MLOCK", 2, *names, "WAIT", harness.PATIENCE * 1000)
        index, token = got(p.do("lock_any 0 3 a b c wait 0"))
        assert (index, token) == (free, c.call("HOLDERS", "abc"[free])[0]["token"])
        assert_nothing_is_left(c, *"abc")
        assert p.do(f"unlock 0 {'abc'[free]}") == "OK 0"
        c.call("MUNLOCK", 2, *names)


def test_the_first_grant_wins_and_nothing_is_left_of_the_others(broker, programs, clients):
    c = clients(broker)
    p = programs(broker.socket).open()
    for index, name in enumerate("abc"):
        c.call("MLOCK", 3, *"abc", "WAIT", harness.PATIENCE * 1000)
        p.tell("lock_any 0 3 a b c")
        wait_queued(broker, *"abc")
        c.call("UNLOCK", name)
        assert got(p.hear()) == (index, c.call("HOLDERS", name)[0]["token"])
        assert_nothing_is_left(c, *"abc")
        assert p.do("event 0 0").startswith("NONE ")
        c.call("MUNLOCK", 2, *(other for other in "abc" if other != name))
        assert [len(c.call("HOLDERS", other)) for other in "abc"] == [int(other == name) for other in "abc"]
        assert p.do(f"unlock 0 {name}") == "OK 0"


def test_surplus_grants_are_released_unseen(broker, programs, clients):
    """All become free at the same time: with one message."""
    c = clients(broker)
    p = programs(broker.socket).open()
    for _ in range(20):
        c.call("MLOCK", 4, *"abcd", "WAIT", harness.PATIENCE * 1000)
        p.tell("lock_any 0 4 a b c d")
        wait_queued(broker, *"abcd")
        c.call("MUNLOCK", 4, *"abcd")
        index, _ = got(p.hear())
        held = "abcd"[index]
        assert p.do("event 0 0").startswith("NONE ")
        assert p.do(f"unlock 0 {held}") == "OK 0"
        for name in "abcd":
            assert p.do(f"unlock 0 {name}").startswith("NOTHELD ")


def test_what_is_not_had_in_time_leaves_nothing(broker, programs, clients):
    c = clients(broker)
    c.call("MLOCK", 2, *"ab", "WAIT", harness.PATIENCE * 1000)
    p = programs(broker.socket).open()
    for wait in 0, 50:
        assert p.do(f"lock_any 0 2 a b wait {wait}") == "TAKEN Each of the 2 locks is held by somebody else."
        assert_nothing_is_left(c, *"ab")
        assert p.do("event 0 0").startswith("NONE ")


def test_a_name_that_is_refused_withdraws_the_others(daemons, zk, root, programs, clients):
    """That a name is a semaphore's is known only once its turn comes, on this host or another one."""
    d = daemons(zk, root)
    c = clients(d)
    c.call("MLOCK", 2, *"ab", "WAIT", harness.PATIENCE * 1000)
    c.call("ACQUIRE", "s", "LIMIT", 1)
    p = programs(d.socket).open()
    assert p.do("lock_any 0 3 a b s").startswith("MISMATCH ")
    assert p.do("lock_any 0 2 a .").startswith("BADNAME ")
    assert p.do("lock_any 0 2 a a").startswith("REFUSED The name is given twice: a")
    assert p.do("enqueue 0 b") == "OK 0"
    assert p.do("lock_any 0 2 a b").startswith("REFUSED ")
    assert len(c.call("QUEUE", "b")) == 1, "what waited before waits on"
    assert p.do("cancel 0 b") == "OK 0"
    assert_nothing_is_left(c, *"ab")
    assert p.do("event 0 0").startswith("NONE ")


def test_other_events_are_kept_in_their_order(daemons, zk, root, programs, clients, kazoo_client):
    d, k = daemons(zk, root), kazoo_client(zk)
    c = clients(d)
    p = programs(d.socket).open()
    first = token_of(p.do("lock 0 x"))
    second = token_of(p.do("lock 0 y"))
    c.call("MLOCK", 2, *"ab", "WAIT", harness.PATIENCE * 1000)
    p.tell("lock_any 0 2 a b")
    wait_queued(d, *"ab")
    lose_unseen(d, k, root, "x")
    lose_unseen(d, k, root, "y")
    c.call("UNLOCK", "b")
    assert got(p.hear())[0] == 1
    for name, token in ("x", first), ("y", second):
        assert re.fullmatch(rf"LOST {name} {token} 0 .*", p.do("event 0 0"))
    assert p.do("event 0 0").startswith("NONE ")


def test_a_lease_of_one_that_was_waited_for_begins_with_the_grant(standalone, programs, clients):
    """By the library's count, too, which began when the request was sent: it restarts the lease."""
    c = clients(standalone)
    c.call("MLOCK", 2, *"ab")
    p = programs(standalone.socket).open()
    p.do("command 0 CLIENT SETNAME waits")
    p.tell(f"lock_any 0 2 a b lease {harness.PATIENCE * 1000}")
    wait_queued(standalone, *"ab")
    c.call("UNLOCK", "a")
    assert got(p.hear())[0] == 0
    (line,) = [line for line in c.call("CLIENT", "LIST").splitlines() if "name=waits" in line]
    assert " cmd=renew " in line
    assert 0 < token_of(p.do("valid 0 a")) <= harness.PATIENCE * 1000


def test_it_goes_on_waiting_on_the_next_connection(standalone, programs, clients):
    with standalone.client() as c:
        c.call("MLOCK", 2, *"ab")
        p = programs(standalone.socket).open()
        p.tell("lock_any 0 2 a b")
        wait_queued(standalone, *"ab")
        standalone.kill()
    standalone.start()
    index, token = got(p.hear())
    c = clients(standalone)
    assert c.call("HOLDERS", "ab"[index])[0]["token"] == token
    assert_nothing_is_left(c, *"ab")
    assert c.call("HOLDERS", "ba"[index]) == []
    assert p.do("event 0 0").startswith("NONE ")


def test_what_the_handle_holds_already_counts_as_free(broker, programs, clients):
    c = clients(broker)
    p = programs(broker.socket).open()
    token = token_of(p.do("lock 0 a"))
    c.call("LOCK", "b", "WAIT", harness.PATIENCE * 1000)
    assert got(p.do("lock_any 0 2 a b")) == (0, token)
    assert p.do("unlock 0 a") == "OK 0"
    assert len(c.call("HOLDERS", "a")) == 1, "one level is left"


@pytest.mark.parametrize("n", [0, 65])
def test_from_1_to_64_names(standalone, programs, n):
    p = programs(standalone.socket).open()
    names = " ".join(f"n{i}" for i in range(n))
    assert p.do(f"lock_any 0 {n} {names}").startswith(f"REFUSED One of 1 to 64 locks can be taken, not of {n}.")
