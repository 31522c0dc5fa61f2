# SPDX-License-Identifier: Apache-2.0
"""liblockbroker: every kind of lock, and of waiting for one."""

import re
import signal
import time

import harness
from library import token_of
from mishaps import stopped


def test_permits_of_a_semaphore(broker, programs):
    p = programs(broker.socket).open(2)
    assert p.do("acquire 0 s 3 2 20000") == "OK 2"
    assert p.do("acquire 1 s 3 2 0").startswith("TAKEN ")
    assert p.do("acquire 1 s 3 1 -1") == "OK 1"
    assert p.do("acquire 1 s 4 1 0").startswith("MISMATCH ")
    assert p.do("acquire 0 s 3 2 0").startswith("DEADLOCK ")
    assert token_of(p.do("valid 0 s")) > 0
    assert p.do("release 0 s 3").startswith("NOTHELD ")
    assert p.do("release 0 s 1") == "OK 0"
    assert token_of(p.do("valid 0 s")) > 0
    assert p.do("release 0 s 1") == "OK 0"
    assert p.do("valid 0 s") == "OK 0"
    assert p.do("acquire 1 s 3 2 20000") == "OK 3"


def test_permits_with_a_lease(broker, programs):
    p = programs(broker.socket).open(2)
    assert p.do("acquire_leased 0 s 2 2 0 60000") == "OK 2"
    assert 0 < token_of(p.do("valid 0 s")) <= 60000
    assert p.do("renew 0 s 300") == "OK 0"
    assert p.do("acquire_leased 1 s 2 1 20000 60000") == "OK 1"  # waits for the end of that lease
    assert p.do("valid 0 s") == "OK 0"
    assert p.do("release 0 s 1").startswith("LOST ")
    assert p.do("acquire_leased 0 s 2 1 0 60000") == "OK 1"
    assert [p.do(f"release {i} s 1") for i in (0, 1)] == ["OK 0", "OK 0"]


def test_shared_and_downgrade(broker, programs):
    p = programs(broker.socket).open(3)
    first = token_of(p.do("shared 0 a 20000"))
    assert token_of(p.do("shared 1 a -1")) == first
    assert p.do("try 2 a").startswith("TAKEN ")
    for verb in ("lock 0 a", "try 0 a", "timeout 1 a 100"):
        assert p.do(verb).startswith("DEADLOCK ")
    assert token_of(p.do("valid 0 a")) > 0
    assert [p.do(f"unlock {i} a") for i in (0, 1)] == ["OK 0", "OK 0"]
    writer = token_of(p.do("timeout 2 a 20000"))
    assert writer > first
    assert p.do("shared 0 a 0").startswith("TAKEN ")
    assert p.do("downgrade 2 a") == "OK 0"
    assert token_of(p.do("shared 0 a 20000")) > writer
    assert token_of(p.do("shared 2 a 0")) == writer
    assert p.do("downgrade 1 a").startswith("NOTHELD ")


def test_leases(broker, programs, clients):
    c = clients(broker)
    p = programs(broker.socket).open()
    token = token_of(p.do("lock_with 0 a lease 60000 data hello"))
    assert c.call("HOLDERS", "a")[0]["data"] == "hello"
    assert 0 < token_of(p.do("valid 0 a")) <= 60000
    assert p.do("renew 0 a 700") == "OK 0"
    assert token_of(p.do("valid 0 a")) <= 700
    assert p.do("event 0 20000") == f"LOST a {token} 0 lease"
    assert p.do("valid 0 a") == "OK 0"
    assert p.do("unlock 0 a").startswith("LOST ")
    assert p.do("renew 0 a 1000").startswith("NOTHELD ")
    assert p.do("renew 0 a 0").startswith("REFUSED ")
    assert p.do("lock_with 0 a data " + "x" * 513).startswith("REFUSED ")
    # None is later than any: from the second call on it has no end.
    token = token_of(p.do("lock_with 0 a lease 5000 wait 20000"))
    assert p.do("lock 0 a") == f"OK {token}"
    assert token_of(p.do("valid 0 a")) > 5000


def left_at_least(lease_ms, began):
    """Of a lease that began no sooner, at the time of an answer that has come."""
    return lease_ms - (time.monotonic() - began) * 1000 - 50


def test_a_lease_that_had_to_be_waited_for_counts_from_its_grant(broker, programs, clients):
    c = clients(broker)
    c.call("LOCK", "a")
    p = programs(broker.socket).open()
    p.tell("lock_with 0 a lease 3000")
    harness.wait_queued(broker, "a", 1)
    assert clients(broker).call("LOCK", "a", "WAIT", 500) is None  # half a second more
    began = time.monotonic()
    c.call("UNLOCK", "a")
    token_of(p.hear())
    left = token_of(p.do("valid 0 a"))
    assert left_at_least(3000, began) <= left <= 3000


def test_validity_knows_the_lease_while_the_daemon_hangs(broker, programs):
    p = programs(broker.socket).open()
    token_of(p.do("lock_with 0 a lease 1000"))
    granted = time.monotonic()

    def has_run_out():
        passed_ms = (time.monotonic() - granted) * 1000
        left = token_of(p.do("valid 0 a"))
        assert left <= max(0, 1000 - passed_ms) + 1, "no more than is left of it"
        return left == 0

    with stopped(broker):
        harness.wait_until(has_run_out, "the lease to run out")


def test_queued_waits(broker, programs, clients):
    c = clients(broker)
    for name in "abc":
        c.call("LOCK", name)
    p = programs(broker.socket).open()
    assert p.do("enqueue 0 a") == "OK 0"
    assert p.do("enqueue 0 a").startswith("REFUSED ")
    assert p.do("enqueue 0 b wait 50") == "OK 0"
    assert p.do("enqueue 0 c lease 60000") == "OK 0"
    assert p.do("event 0 20000") == "TIMEOUT b 0 0 "
    assert p.do("cancel 0 a") == "OK 0"
    assert p.do("cancel 0 a").startswith("NONE ")
    assert p.do("valid 0 c") == "OK 0"
    c.call("RESET")
    answer = p.do("event 0 20000")
    assert re.fullmatch(r"GRANTED c \d+ 0 ", answer)
    assert 0 < token_of(p.do("valid 0 c")) <= 60000
    assert p.do("enqueue 0 c") == "OK 0"
    assert p.do("event 0 20000") == answer
    assert token_of(p.do("valid 0 c")) > 0
    assert p.do("unlock 0 c") == "OK 0" and p.do("unlock 0 c") == "OK 0"
    assert p.do("valid 0 c") == "OK 0"
    assert p.do("enqueue 0 ..").startswith("BADNAME ")


def tokens_of(answer):
    assert re.fullmatch(r"OK( \d+)+", answer), answer
    return [int(word) for word in answer.split()[1:]]


def test_several_at_once(broker, programs, clients):
    c = clients(broker)
    p = programs(broker.socket).open()
    assert tokens_of(p.do("lock_all 0 3 c a b")) == [c.call("HOLDERS", name)[0]["token"] for name in "cab"]
    assert all(token_of(p.do(f"valid 0 {name}")) > 0 for name in "abc")
    # They are locks like any others, with a level more for what was held.
    b = token_of(p.do("lock 0 b"))
    assert tokens_of(p.do("lock_all 0 2 d b wait 20000"))[1] == b
    assert p.do("unlock_all 0 3 a x b").startswith("NOTHELD ") and p.do("error 0").endswith(" x")
    assert p.do("unlock_all 0 3 d b c") == "OK 0"
    assert [token_of(p.do(f"valid 0 {name}")) > 0 for name in "abcd"] == [True, True, False, False]
    assert [p.do(f"unlock 0 {name}") for name in "abb"] == ["OK 0"] * 3
    assert c.call("MLOCK", 4, *"abcd", "WAIT", 20000)
    assert p.do("lock_all 0 2 x a wait 50").startswith("TAKEN ")
    assert p.do("valid 0 x") == "OK 0" and c.call("HOLDERS", "x") == []


def test_several_at_once_that_cannot_be(standalone, programs, clients):
    p = programs(standalone.socket).open(2)
    p.do("enqueue 1 q"), p.do("event 1 20000")
    for words, result in (("0", "REFUSED"), ("65 " + " ".join(map(str, range(65))), "REFUSED"), ("2 a a", "REFUSED"),
                          ("2 a ..", "BADNAME"), ("2 a " + "x" * 513, "BADNAME"), ("2 a b data x", "REFUSED"),
                          ("2 a b lease -1", "REFUSED")):
        assert p.do(f"lock_all 0 {words}").startswith(result + " "), words
    assert p.do("enqueue 0 q") == "OK 0" and p.do("lock_all 0 2 p q").startswith("REFUSED ")
    assert p.do("shared 0 s 0").startswith("OK ") and p.do("lock_all 0 2 r s").startswith("DEADLOCK ")
    assert len(tokens_of(p.do("lock_all 0 64 " + " ".join(map(str, range(64)))))) == 64
    assert [lock["name"] for lock in clients(standalone).call("LOCKS", "[a-z]")] == ["q", "s"], "no part was left"
    assert p.do("unlock_all 0 64 " + " ".join(map(str, range(64)))) == "OK 0"
    standalone.kill()
    assert p.do("lock_all 0 2 a b").startswith("CONNECTION ") and p.do("unlock_all 0 1 a").startswith("CONNECTION ")


def test_several_shared_and_with_leases(broker, programs):
    p = programs(broker.socket).open(2)
    assert tokens_of(p.do("lock_all 0 2 a b shared 1")) == tokens_of(p.do("lock_all 1 2 a b shared 1 wait 20000"))
    p.do("unlock_all 0 2 a b"), p.do("unlock_all 1 2 a b")
    a, b = tokens_of(p.do("lock_all 0 2 a b lease 60000"))
    assert all(0 < token_of(p.do(f"valid 0 {name}")) <= 60000 for name in "ab")
    assert p.do("renew 0 a 700") == "OK 0"
    assert p.do("event 0 20000") == f"LOST a {a} 0 lease"
    assert p.do("unlock_all 0 2 a b").startswith("LOST ") and p.do("error 0").endswith(" a")
    assert p.do("unlock_all 0 2 a b").startswith("NOTHELD ")
    assert token_of(p.do("valid 0 b")) > 700 and p.do("unlock 0 b") == "OK 0"


def test_leases_of_several_that_had_to_be_waited_for_count_from_their_grant(broker, programs, clients):
    c = clients(broker)
    c.call("LOCK", "b")
    p = programs(broker.socket).open()
    p.tell("lock_all 0 2 a b lease 3000")
    harness.wait_queued(broker, "b", 1)
    assert clients(broker).call("LOCK", "b", "WAIT", 500) is None  # half a second more
    began = time.monotonic()
    c.call("UNLOCK", "b")
    tokens_of(p.hear())
    left = [token_of(p.do(f"valid 0 {name}")) for name in "ab"]
    assert left_at_least(3000, began) <= min(left) and max(left) <= 3000


def test_elections(broker, programs):
    p = programs(broker.socket).open(3)
    assert p.do("leader 2 e").startswith("NONE ")
    assert p.do("observe 2 e") == "OK 0" and p.do("event 2 20000") == "LEADER e 0 0 "
    first = token_of(p.do("campaign 0 e one -1"))
    assert p.do("leader 2 e") == "'one'"
    assert p.do("event 2 20000") == f"LEADER e {first} 0 {broker.host} one"
    assert p.do("campaign 0 e again -1").startswith("REFUSED ")
    assert p.do("campaign 1 e two 0").startswith("TAKEN ")
    assert token_of(p.do("valid 0 e")) > 0
    assert p.do("campaign_enqueue 1 e two -1") == "OK 0" and p.do("resign 1 e") == "OK 0"
    assert p.do("campaign_enqueue 1 e two -1") == "OK 0" and p.do("resign 0 e") == "OK 0"
    granted = p.do("event 1 20000").split()
    assert granted[:2] == ["GRANTED", "e"] and int(granted[2]) > first
    assert p.do("event 2 20000") == f"LEADER e {granted[2]} 0 {broker.host} two"
    assert token_of(p.do("valid 1 e")) > 0 and p.do("valid 0 e") == "OK 0"
    assert p.do("unobserve 2 e") == "OK 0" and p.do("unobserve 2 e").startswith("NONE ")
    assert p.do("resign 0 e").startswith("NOTHELD ") and p.do("lock 0 e").startswith("MISMATCH ")
    assert p.do("observe 2 ..").startswith("BADNAME ")


def test_the_lock_that_closes_a_circle_is_refused(broker, programs, clients):
    c = clients(broker)
    c.call("LOCK", "b")
    p = programs(broker.socket).open()
    assert p.do("lock_all 0 2 a c").startswith("OK ")
    c.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    answer = p.do("timeout 0 b 20000")
    assert answer.startswith('DEADLOCK this client waits for "b" held by ') and 'which waits for "a" held by' in answer
    assert p.do("lock_all 0 2 a b").startswith("DEADLOCK ") and token_of(p.do("valid 0 a")) > 0
    assert p.do("unlock_all 0 2 a c") == "OK 0"
    assert isinstance(c.reply(), int)


def test_questions(broker, programs, clients):
    c = clients(broker)
    token = c.call("LOCK", "a")
    p = programs(broker.socket).open()
    assert "'why':'held on this host, pid " in p.do("command 0 WHY a")
    assert f"'token':{token} " in p.do("command 0 HOLDERS a")
    assert p.do("enqueue 0 a") == "OK 0" and "'position':1 " in p.do("command 0 QUEUE a")
    assert p.do("command 0 HOSTS").startswith("[")


def test_a_queued_wait_that_fails(standalone, programs):
    p = programs(standalone.socket).open(2)
    p.do("lock 0 a"), p.do("enqueue 1 a")
    standalone.signal(signal.SIGTERM)
    assert p.do("event 1 10000") == "FAILED a 0 0 the daemon is stopping"
    assert p.do("unlock 0 a") == "OK 0"
    assert standalone.process.wait(harness.PATIENCE) == 0
