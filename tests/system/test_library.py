# SPDX-License-Identifier: Apache-2.0
"""liblockbroker: a small C program does what the tests tell it, linked with the library as others would link it."""

import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

import harness
import pages
from fakebroker import HELLO
from harness import FAST, FAST_TICK_MS
from library import compile_with_library, token_of
from mishaps import kill_and_start, stopped

OPERATORS = True  # see clients of conftest.py


def test_lock_unlock_try_valid(broker, programs):
    p = programs(broker.socket).open(2)
    first = token_of(p.do("lock 0 orders/42"))
    assert first > 0
    assert token_of(p.do("lock 0 orders/42")) == first
    assert p.do("try 1 orders/42").startswith("TAKEN ")
    assert p.do("timeout 1 orders/42 50").startswith("TAKEN ")
    assert token_of(p.do("valid 0 orders/42")) > 0
    assert p.do("valid 1 orders/42") == "OK 0"
    assert p.do("unlock 1 orders/42").startswith("NOTHELD ")
    assert p.do("unlock 0 orders/42") == "OK 0"
    assert p.do("try 1 orders/42").startswith("TAKEN ")
    assert p.do("unlock 0 orders/42") == "OK 0"
    assert token_of(p.do("timeout 1 orders/42 20000")) > first
    assert p.do("close 1") == "OK"
    assert token_of(p.do("timeout 0 orders/42 99999999999999")) > first


def test_errors_are_sentences(standalone, programs):
    p = programs(standalone.socket).open()
    assert re.fullmatch(r"[A-Z].+\.", p.do("error 0"))
    for line, word in (("lock 0 ..", "BADNAME"), (f"lock 0 {'x' * 600}", "BADNAME"), ("unlock 0 a", "NOTHELD"),
                       ("command 0 NONSENSE", "REFUSED"), ("command 0", "REFUSED")):
        answer = p.do(line)
        assert answer.startswith(word + " "), answer
        assert " " in answer.split(" ", 1)[1]
        assert p.do("error 0") == answer.split(" ", 1)[1]


@pytest.mark.parametrize("first", range(3))
def test_a_sentence_that_is_cut_ends_with_a_whole_character(standalone, programs, clients, first):
    """hear() decodes it."""
    p = programs(standalone.socket).open()
    name = first * "x" + 170 * "€"
    clients(standalone).call("LOCK", name)
    assert p.do(f"try 0 {name}").startswith(f"TAKEN The lock {name[:160]}")
    assert p.do("lock 0 a").startswith("OK ")
    assert p.do(f"acquire 0 {name} 1 1 0").startswith("MISMATCH ")


@pytest.mark.parametrize("line, word", [
    ("campaign 0 e LONG 0", "REFUSED"), ("campaign_enqueue 0 e LONG 0", "REFUSED"), ("lock_with 0 b data LONG", "REFUSED"),
    ("enqueue 0 b data LONG", "REFUSED"), ("lock_any 0 1 b data LONG", "REFUSED"), ("lock 0 LONG", "BADNAME"),
    ("campaign 0 LONG x 0", "BADNAME"), ("unlock 0 LONG", "BADNAME"), ("release 0 LONG 1", "BADNAME"),
    ("renew 0 LONG 1", "BADNAME"), ("leader 0 LONG", "BADNAME"), ("observe 0 LONG", "BADNAME"), ("cancel 0 LONG", "BADNAME"),
    ("lock_all 0 2 b LONG", "BADNAME"), ("unlock_all 0 2 a LONG", "BADNAME"),
])
def test_a_text_of_any_length_costs_nothing_that_is_held(standalone, programs, line, word):
    """The daemon ends a connection that sends it a request without end."""
    p = programs(standalone.socket).open()
    p.do("lock 0 a")
    assert p.do(line.replace("LONG", 100_000 * "x")).startswith(word + " ")
    assert p.do("command 0 PING") == "'PONG'"
    assert p.do("unlock 0 a") == "OK 0"


def test_no_daemon(programs, tmp_path):
    p = programs(str(tmp_path / "none"))
    answer = p.do("open 0")
    assert answer.startswith("CONNECTION ") and str(tmp_path / "none") in answer
    assert p.do("fd 0") == "-1"
    for line in ("lock 0 a", "try 0 a", "unlock 0 a", "valid 0 a", "event 0 0", "command 0 PING"):
        assert p.do(line) == answer
        assert p.do("command 0").startswith("REFUSED ")
    assert p.do("close 0") == "OK"
    assert p.do("open 0 " + "x" * 200).startswith("CONNECTION ")


def test_commands_and_replies(standalone, programs):
    p = programs(standalone.socket).open()
    assert p.do("command 0 PING") == "'PONG'"
    assert p.do("command 0 ECHO hello") == "'hello'"
    assert p.do("command 0 CLIENT GETNAME") == "nil"
    assert p.do("command 0 HOLDERS a") == "[]"
    token = token_of(p.do("lock 0 a"))
    assert f"'token':{token} " in p.do("command 0 HOLDERS a")
    assert "'name':'a'" in p.do("command 0 LOCKS")
    assert p.do("command 0 UNLOCK a") == "0"


def test_signals_interrupt_nothing(broker, programs, clients):
    c = clients(broker)
    c.call("LOCK", "a")
    p = programs(broker.socket)
    assert p.do("interrupt") == "OK"
    assert p.do("open 0") == "OK 0"
    assert p.do("timeout 0 a 200").startswith("TAKEN ")
    p.tell("lock 0 a")
    harness.wait_until(lambda: len(c.call("QUEUE", "a")) == 1, "the request to be queued")
    c.call("UNLOCK", "a")
    token_of(p.hear())
    assert p.do("unlock 0 a") == "OK 0"


@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_signals_do_not_make_an_open_wait_for_ever(programs, tmp_path):
    path = str(tmp_path / "s")
    waiting = []
    with socket.create_server(path, family=socket.AF_UNIX, backlog=0):
        try:
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(path)
        except BlockingIOError:
            pass
        p = programs(path)
        assert p.do("interrupt") == "OK"
        assert p.do("open 0") == f"CONNECTION The lockbrokerd at {path} does not accept connections."
        for s in waiting:
            s.close()


def test_who_waits_sleeps_once(standalone, programs, clients):
    """A request that is read does not wake its sender: only the answer does."""
    def status(key):
        with open(f"/proc/{p.process.pid}/status") as f:
            return re.search(rf"^{key}:\s+(\S+)", f.read(), re.M).group(1)

    def slept():
        harness.wait_until(lambda: status("State") == "S", "it to wait")
        return int(status("voluntary_ctxt_switches"))

    c = clients(standalone)
    p = programs(standalone.socket).open()
    counts = []
    for _ in range(15):
        c.call("LOCK", "a")
        before = slept()
        p.tell("lock 0 a")
        harness.wait_queued(standalone, "a", 1)
        counts.append(slept() - before)
        c.call("UNLOCK", "a")
        token_of(p.hear())
        assert p.do("unlock 0 a") == "OK 0"
    assert sorted(counts)[len(counts) // 2] == 1, counts


def test_a_hung_daemon_does_not_hang_a_timed_call(standalone, programs):
    p = programs(standalone.socket).open(2)
    p.do("patience 0 200")
    p.do("patience 1 200")
    with stopped(standalone):
        began = time.monotonic()
        assert p.do("timeout 0 a 300").startswith("CONNECTION ")
        assert 0.499 <= time.monotonic() - began < harness.PATIENCE  # the library counts whole milliseconds
        assert p.do("timeout 1 a 0").startswith("CONNECTION ")
        assert p.do("fd 0") == "-1"


def test_the_proof_runs_out_also_while_the_daemon_hangs(own_zk, daemons, programs):
    d = daemons(own_zk(tick_ms=FAST_TICK_MS), **FAST)
    p = programs(d.socket).open()
    token_of(p.do("lock 0 a"))
    assert 0 < int(p.do("valid 0 a").split()[1]) <= 2000
    assert p.do("valid 0 b") == "OK 0"
    with stopped(d):
        began = time.monotonic()

        def has_run_out():
            asked = time.monotonic()
            left = p.do("valid 0 a")
            assert left == "OK 0" or asked - began <= 2.1
            return left == "OK 0"

        harness.wait_until(has_run_out, "the proof to run out")
    assert p.do("event 0 10000").startswith(("JEOPARDY", "LOST a"))
    # Awake again, the session may be proven anew; the grant stays void.
    harness.wait_until(lambda: d.info("session")["session_state"] == "safe", "a session")
    assert p.do("valid 0 a") == "OK 0"


def test_without_the_page_the_daemon_is_asked(standalone, programs):
    os.unlink(os.path.join(standalone.dir, "session"))
    p = programs(standalone.socket).open()
    token_of(p.do("lock 0 a"))
    assert int(p.do("valid 0 a").split()[1]) > 0
    p.do("unlock 0 a")
    assert p.do("valid 0 a") == "OK 0"


def test_the_page_of_another_daemon_is_not_believed(daemons, programs):
    """Its path leads elsewhere, as in another mount namespace."""
    mine, other = daemons(), daemons()
    os.replace(f"{mine.dir}/session", f"{mine.dir}/hidden")
    os.symlink(f"{other.dir}/session", f"{mine.dir}/session")
    a = programs(mine.socket).open()
    token_of(a.do("lock 0 x"))
    assert token_of(a.do("valid 0 x")) > 0
    a.do("patience 0 300")
    with stopped(mine):
        answer = a.do("valid 0 x")
    assert answer.startswith("CONNECTION"), "it must be asked, for nothing else knows"


def test_a_handle_leaves_nothing_behind(standalone, tmp_path):
    """Neither memory nor descriptors nor mappings, whatever it kept when it was closed."""
    program = compile_with_library(os.path.join(harness.HERE, "leak_test.c"), tmp_path / "leak",
                                   harness.program("liblockbroker.a"))
    done = subprocess.run([program, standalone.operator_socket], capture_output=True, text=True, timeout=harness.PATIENCE,
                          env=os.environ | {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"})
    assert (done.stdout, done.stderr) == ("0 bytes, 0 descriptors, 0 mappings\n", "")


def test_options_of_another_size(standalone, programs):
    """Those of a newer program count as far as they are known; what is not set does not matter, what is set does."""
    p = programs(standalone.socket).open()
    token_of(p.do("grown 0 a 0"))
    assert p.do("grown 0 b 1").startswith("REFUSED An option is set that liblockbroker 0.")
    for size in (0, 8, -1, 1 << 20):
        assert p.do(f"lock_with 0 b size {size}").startswith("REFUSED The size of struct lb_options is not set")
        assert p.do(f"enqueue 0 b size {size}").startswith("REFUSED The size")
        assert p.do(f"lock_all 0 1 b size {size}").startswith("REFUSED The size")
    assert p.do("command 0 HOLDERS b") == "[]"


def test_a_daemon_that_ends_is_an_error_not_a_signal(standalone, programs):
    p = programs(standalone.socket).open()
    p.do("patience 0 100")
    token = token_of(p.do("lock 0 a"))
    standalone.kill()
    assert p.do("unlock 0 a") == "LOST The lock was lost by the time the connection to lockbrokerd ended: a"
    assert p.do("event 0 0") == f"LOST a {token} 0 connection"
    assert p.do("event 0 0") == p.do("valid 0 a") == "CONNECTION The connection to lockbrokerd is closed: the daemon has ended, or has closed it."
    assert p.do(f"lock 0 {'x' * 600}").startswith("BADNAME ")
    assert p.do("lock 0 a").startswith("CONNECTION No lockbrokerd is serving ")


def test_events(own_zk, daemons, programs):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **FAST)
    p = programs(d.socket).open()
    token = token_of(p.do("lock 0 a"))
    assert p.do("event 0 0").startswith("NONE ")
    with stopped(zk):
        answer = p.do("event 0 10000")
        assert re.fullmatch(r"JEOPARDY  0 \d+ ", answer) and int(answer.split()[2]) > 0
        # The loss arrives while another call waits, and is kept.
        assert p.do("timeout 0 b 2500").startswith("UNAVAILABLE ")
        assert p.do("event 0 -1") == f"LOST a {token} 0 session"
        assert p.do("event 0 0").startswith("NONE ")
        assert p.do("valid 0 a") == "OK 0"
    assert p.do("unlock 0 a").startswith("LOST ")
    assert p.do("unlock 0 a").startswith("NOTHELD ")
    token_of(p.do("timeout 0 a 20000"))


def test_a_lock_is_asked_for_and_taken(standalone, programs, clients):
    p = programs(standalone.socket).open()
    token = token_of(p.do("lock 0 a"))
    operator = clients(standalone)
    assert operator.call("REVOKE", "a", "please") == 1
    assert p.do("event 0 10000") == f"REVOKE a {token} 0 please"
    assert operator.call("FORCEUNLOCK", "a") == 1
    assert p.do("event 0 10000") == f"LOST a {token} 0 forced"
    assert p.do("valid 0 a") == "OK 0" and p.do("unlock 0 a").startswith("LOST ")


def test_a_stopping_daemon_asks_for_its_locks(standalone, programs):
    p = programs(standalone.socket).open()
    token = token_of(p.do("lock 0 a"))
    standalone.signal(signal.SIGTERM)
    assert p.do("event 0 10000") == f"REVOKE a {token} 0 stopping"
    assert p.do("lock 0 b").startswith("DRAINING ")
    assert p.do("unlock 0 a") == "OK 0"
    assert standalone.process.wait(harness.PATIENCE) == 0


def test_unlock_does_not_wait(standalone, programs, clients):
    p = programs(standalone.socket).open()
    for _ in range(20):
        token_of(p.do("lock 0 a"))
    with stopped(standalone):
        for _ in range(16):
            assert p.do("unlock 0 a") == "OK 0"
        assert int(p.do("valid 0 a").split()[1]) > 0
    for _ in range(3):
        assert p.do("unlock 0 a") == "OK 0"
    c = clients(standalone)
    assert c.call("LOCK", "a", "WAIT", "0") is None
    assert p.do("unlock 0 a") == "OK 0"
    assert p.do("valid 0 a") == "OK 0"
    assert c.call("LOCK", "a") > 0
    assert p.do("unlock 0 a").startswith("NOTHELD ")


def test_unlocks_that_are_not_answered_are_bounded(standalone, programs):
    p = programs(standalone.socket).open()
    for _ in range(17):
        token_of(p.do("lock 0 a"))
    p.do("patience 0 200")
    with stopped(standalone):
        for _ in range(16):
            assert p.do("unlock 0 a") == "OK 0"
        assert p.do("unlock 0 a").startswith("CONNECTION ")


def test_unlock_waits_when_told_so(standalone, programs):
    p = programs(standalone.socket).open()
    p.do("deferred 0 0")
    token_of(p.do("lock 0 a"))
    p.do("patience 0 200")
    with stopped(standalone):
        assert p.do("unlock 0 a").startswith("CONNECTION ")


def test_answers_to_unlocks_are_taken_by_whatever_comes_next(broker, programs, clients):
    p = programs(broker.socket).open()
    c = clients(broker)
    for following, expected in (("command 0 ECHO b", "'b'"), ("event 0 50", "NONE No event arrived within 50 ms."),
                                ("valid 0 a", "OK 0"), ("unlock 0 a", "NOTHELD "), ("try 0 b", "OK 0"),
                                ("lock 0 ..", "BADNAME "), ("close 0", "OK")):
        token_of(p.do("lock 0 a"))
        assert p.do("unlock 0 a") == "OK 0"
        assert p.do(following).startswith(expected), following
    assert c.call("LOCK", "a") > 0


def test_a_child_that_closes_its_copy_changes_nothing(broker, programs, clients):
    p, c = programs(broker.socket).open(), clients(broker)
    token_of(p.do("lock 0 a"))
    token_of(p.do("lock 0 b"))
    assert p.do("unlock 0 b") == "OK 0"  # its answer is still to come
    assert p.do("fork 0") == "OK"
    assert int(p.do("valid 0 a").split()[1]) > 0
    assert c.call("LOCK", "a", "WAIT", 0) is None and c.call("LOCK", "b") > 0
    assert p.do("unlock 0 a") == "OK 0" and p.do("fork 0") == "OK" and p.do("command 0 PING") == "'PONG'"
    assert c.call("LOCK", "a") > 0


def test_who_closes_before_his_unlock_is_read_has_unlocked(broker, programs, clients):
    p, c = programs(broker.socket), clients(broker)
    for end in "close 0", "fork 0":
        p.do("open 0")
        token_of(p.do("lock 0 a"))
        token_of(p.do("lock 0 b"))
        with stopped(broker):
            assert p.do("unlock 0 a") == "OK 0"
            assert p.do(end) == "OK"
        assert c.call("LOCK", "a") > 0 and c.call("UNLOCK", "a") == 0
        assert (c.call("LOCK", "b", "WAIT", 0) is None) == (end == "fork 0")
        if end == "close 0":
            assert c.call("UNLOCK", "b") == 0
    assert p.do("close 0") == "OK"
    assert c.call("LOCK", "b") > 0


@pytest.mark.parametrize("of_zookeeper", [False, True], ids=["standalone", "zookeeper"])
def test_an_unlock_that_the_daemon_did_not_live_to_read(daemons, own_zk, programs, of_zookeeper):
    broker = daemons(own_zk(tick_ms=FAST_TICK_MS), **FAST) if of_zookeeper else daemons()
    p = programs(broker.socket).open()
    token_of(p.do("lock 0 a"))
    broker.signal(signal.SIGSTOP)
    assert p.do("unlock 0 a") == "OK 0"
    kill_and_start(broker)
    assert p.do("try 0 b") == "OK 0"
    assert p.do("open 1") == "OK 0"
    token_of(p.do("timeout 1 a 20000"))
    assert p.do("unlock 1 a") == "OK 0"


def test_signals_and_unlocks_that_are_not_waited_for(broker, programs):
    p = programs(broker.socket).open(2)
    assert p.do("interrupt") == "OK"
    for i in range(200):
        token_of(p.do(f"lock {i % 2} a"))
        assert p.do(f"unlock {i % 2} a") == "OK 0"
    assert p.do("lock_all 0 2 a b").startswith("OK ")
    assert p.do("unlock_all 0 2 a b") == "OK 0"
    assert p.do("timeout 1 a 0").startswith("OK ")


def lose_unseen(broker, k, root, name):
    """An operator deletes the znode of a lock that is held; its holder has not read of it yet."""
    (znode,) = k.get_children(f"{root}/{name}")
    k.delete(f"{root}/{name}/{znode}")
    with broker.client() as c:
        harness.wait_until(lambda: not c.call("HOLDERS", name), "the loss")


def test_an_unlock_that_fails_later_is_told_by_the_next_call(daemons, zk, root, programs, clients, kazoo_client):
    d, k = daemons(zk, root), kazoo_client(zk)
    c = clients(d)
    p = programs(d.socket).open()
    for following in ("lock 0 b", "timeout 0 b 20000", "try 0 b"):
        token_of(p.do("lock 0 a"))
        lose_unseen(d, k, root, "a")
        assert p.do("unlock 0 a") == "OK 0"
        assert p.do(following).startswith("LOST Unlocking a: ")
        assert token_of(p.do("valid 0 b")) == 0
        assert c.call("LOCK", "b", "WAIT", "10000") > 0, "what failed took nothing"
        assert c.call("UNLOCK", "b") == 0
        assert re.fullmatch(r"LOST a \d+ 0 .*", p.do("event 0 0"))
        assert p.do("event 0 0").startswith("NONE ")
    # An unlock tells it as well, and has unlocked.
    token_of(p.do("lock 0 b"))
    token_of(p.do("lock 0 a"))
    lose_unseen(d, k, root, "a")
    assert p.do("unlock 0 a") == "OK 0"
    assert p.do("command 0 PING") == "'PONG'"
    assert p.do("unlock 0 b").startswith("LOST Unlocking a: ")
    assert c.call("LOCK", "b", "WAIT", "10000") > 0
    # So does who takes several at once, and takes none. Of those that are unlocked together it would say that they are
    # held still: it is kept for later.
    assert c.call("UNLOCK", "b") == 0
    for last in "lock_all 0 2 b d wait 20000", "lock 0 e":
        p.do("event 0 0")
        if last == "lock 0 e":
            assert p.do("lock_all 0 2 b d wait 20000").startswith("OK ")
        token_of(p.do("timeout 0 a 20000"))
        lose_unseen(d, k, root, "a")
        assert p.do("unlock 0 a") == "OK 0"
        if last == "lock 0 e":
            assert p.do("unlock_all 0 2 b d") == "OK 0"
        assert p.do(last).startswith("LOST Unlocking a: ")
        assert [token_of(p.do(f"valid 0 {name}")) for name in "bde"] == [0, 0, 0]
        assert c.call("MLOCK", 3, "b", "d", "e", "WAIT", "10000")
        assert c.call("MUNLOCK", 3, "b", "d", "e") == [0, 0, 0]
    assert c.call("LOCK", "b") > 0
    # What fails by itself says that first, and the late failure stays for the next.
    assert re.fullmatch(r"LOST a \d+ 0 .*", p.do("event 0 0"))
    token_of(p.do("lock 0 a"))
    lose_unseen(d, k, root, "a")
    assert p.do("unlock 0 a") == "OK 0"
    assert p.do("try 0 b").startswith("TAKEN ")
    assert p.do("lock 0 a").startswith("LOST Unlocking a: ")
    token_of(p.do("lock 0 a"))


def test_every_level_of_a_lost_lock_is_gone(daemons, zk, root, programs, kazoo_client):
    d, k = daemons(zk, root), kazoo_client(zk)
    p = programs(d.socket).open()
    token_of(p.do("lock 0 a"))
    token_of(p.do("lock 0 a"))
    lose_unseen(d, k, root, "a")
    assert p.do("unlock 0 a") == "OK 0"
    assert p.do("command 0 PING") == "'PONG'"
    assert p.do("valid 0 a") == "OK 0"
    assert p.do("unlock 0 a").startswith("NOTHELD ")
    assert p.do("lock 0 a").startswith("LOST Unlocking a: ")
    token_of(p.do("lock 0 a"))


class Impostor:
    """A server that answers as it is told, to show the library nonsense."""

    def __init__(self, path, answers):
        self.listener = socket.create_server(path, family=socket.AF_UNIX)
        self.answers = answers
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        peer, _ = self.listener.accept()
        with peer:
            for answer in self.answers:
                peer.recv(65536)
                peer.sendall(answer)
            peer.recv(1)

    def end(self):
        self.thread.join(harness.PATIENCE)
        self.listener.close()


@pytest.fixture
def deceived(programs, tmp_path):
    """Makes a program that such a server answers so, which closes its handle in the end."""
    made = []

    def make(*answers):
        impostor = Impostor(str(tmp_path / "s"), answers)
        made.append((impostor, programs(str(tmp_path / "s"))))
        return made[-1][1]

    yield make
    for impostor, p in made:
        p.do("close 0")
        impostor.end()


@pytest.mark.parametrize("answers, line, expected", [
    ([HELLO, b":7\r\n"], "lock 0 a", "OK 7"),
    ([HELLO, b">2\r\n+odd\r\n+event\r\n:7\r\n"], "lock 0 a", "OK 7"),
    ([HELLO, b"-NEWCODE a sentence of the future\r\n"], "lock 0 a", "REFUSED NEWCODE a sentence of the future"),
    ([HELLO, b"-LIMIT\r\n"], "lock 0 a", "LIMIT "),
    ([HELLO, b"+OK\r\n"], "lock 0 a", "REFUSED The daemon gave LOCK an answer"),
    ([HELLO, b"+OK\r\n"], "unlock 0 a", "REFUSED The daemon gave UNLOCK an answer"),
    ([HELLO, b"HTTP/1.1 400 Bad Request\r\n"], "lock 0 a", "CONNECTION "),
    ([HELLO, b"$99999999999999\r\n"], "lock 0 a", "CONNECTION "),
    ([HELLO, b"*-7\r\n"], "lock 0 a", "CONNECTION "),
    ([HELLO, b"*1\r\n" * 1000], "lock 0 a", "CONNECTION "),
])
def test_whatever_answers_is_not_trusted(deceived, answers, line, expected):
    assert deceived(*answers).open().do(line).startswith(expected)


@pytest.mark.parametrize("answers, expected", [
    ([b"-LIMIT too many clients\r\n"], "LIMIT too many clients"),
    ([b"HTTP/1.1 400 Bad Request\r\n"], "CONNECTION "),
    ([], "CONNECTION "),
])
def test_a_refusal_at_open_is_told(deceived, answers, expected):
    p = deceived(*answers)
    assert p.do("open 0").startswith(expected)
    assert p.do("fd 0") == "-1"


@pytest.mark.parametrize("said, believed", [("right", True), ("0" * 32, False), ("", False), (None, False)])
def test_a_page_is_believed_when_its_id_is_said(standalone, deceived, said, believed):
    with standalone.client() as c:
        page, right = c.hello["session_page"], c.hello["session_page_id"]
    with open(page, "rb") as f:
        assert f.read()[40:56].hex() == right
    words = ["session_page", page, *([] if said is None else ["session_page_id", said.replace("right", right)])]
    hello = f"%{len(words) // 2}\r\n" + "".join(f"${len(w)}\r\n{w}\r\n" for w in words)
    p = deceived(hello.encode(), b":7\r\n", *([] if believed else [b":5\r\n"])).open()
    assert p.do("lock 0 a") == "OK 7"
    assert (p.do("valid 0 a") == "OK 5") != believed


def test_only_its_own_names_are_visible():
    def symbols(*options):
        done = subprocess.run(["nm", "--defined-only", *options], capture_output=True, text=True, check=True)
        return {line.split()[2].split("@")[0] for line in done.stdout.splitlines() if len(line.split()) == 3 and line.split()[1] != "A"}

    with open(os.path.join(harness.SOURCE, "client-lib", "lockbroker.h")) as f:
        declared = set(re.findall(r"^[a-z].*?\b(lb_\w+)\(", f.read(), re.M))
    assert symbols("-D", harness.program("liblockbroker.so.1")) == declared
    assert symbols("-g", harness.program("liblockbroker.a")) == declared


@pytest.mark.plain_only("a sanitized library needs more than libc")
def test_it_needs_nothing_but_libc():
    for name in ("liblockbroker.so.1", "lockbroker"):
        done = subprocess.run(["readelf", "-d", harness.program(name)], capture_output=True, text=True, check=True)
        assert re.findall(r"NEEDED.*\[(.*)\]", done.stdout) == ["libc.so.6"]
    assert re.search(r"SONAME.*\[liblockbroker\.so\.1\]", subprocess.run(
        ["readelf", "-d", harness.program("liblockbroker.so.1")], capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def settle(tmp_path):
    """Runs a program of that code with that socket."""

    def run(code, path):
        (tmp_path / "settle.c").write_text(code)
        program = compile_with_library(tmp_path / "settle.c", tmp_path / "settle", harness.program("liblockbroker.a"))
        return subprocess.run([program], env=os.environ | {"LOCKBROKER_SOCKET": path}, capture_output=True, text=True)

    return run


def test_the_example_of_ten_lines_works(standalone, settle):
    (code,) = pages.claimed("docs/CLIENTS.md", __file__, "c")
    done = settle(code, standalone.socket)
    assert re.fullmatch(r"settling with token \d+\n", done.stdout) and done.stderr == ""


def test_the_example_of_the_manual_works(standalone, tmp_path, settle):
    (code,) = pages.claimed("client-lib/man/liblockbroker.3", __file__)
    code = (
        "#include <inttypes.h>\n#include <lockbroker.h>\n#include <stdio.h>\n\n"
        "static void settle(int order, int64_t token)\n{\n\tprintf(\"%d %\" PRId64 \"\\n\", order, token);\n}\n\n"
        f"int main(void)\n{{\n{code}\treturn 0;\n}}\n")
    for path, said in (standalone.socket, r"42 [1-9]\d*\n"), (str(tmp_path / "none"), ""):
        done = settle(code, path)
        assert re.fullmatch(said, done.stdout) and bool(done.stderr) != bool(said), done


def test_the_example_counts(two_hosts, tmp_path):
    example = compile_with_library(os.path.join(harness.SOURCE, "client-lib", "examples", "counter.c"),
                                   tmp_path / "counter", harness.program("liblockbroker.so.1"),
                                   f"-Wl,-rpath,{harness.build_dir()}")
    counter = tmp_path / "n"
    counter.write_text("")
    many = [harness.spawn([example, str(counter), "20", "counter"], stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"LOCKBROKER_SOCKET": two_hosts[i % 2].socket}) for i in range(6)]
    lines = [line.split() for p in many for line in p.communicate(timeout=harness.PATIENCE)[0].splitlines()]
    assert counter.read_text() == "120\n"
    by_number = sorted((int(number), int(token), pid) for pid, token, number in lines)
    assert [number for number, *_ in by_number] == list(range(1, 121))
    # A lock that is left with a process keeps its token, since nobody else has it in between.
    assert all(a[1] < b[1] or a[1:] == b[1:] for a, b in zip(by_number, by_number[1:])), "tokens grow with the counter"
