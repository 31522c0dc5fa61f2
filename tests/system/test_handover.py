# SPDX-License-Identifier: Apache-2.0
"""A planned hand-over: a new process of the installed program serves, and no client sees anything but a short pause."""

import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

import harness
from harness import PATIENCE, Closed, Error, install
from mishaps import stopped
from test_cli import run
from witness import Page

OPERATORS = True  # see clients of conftest.py


@pytest.fixture(autouse=True)
def orphans():
    harness.inherit_orphans()


def relay(daemon, at, do, sender=0, **more):
    install(daemon, harness.read_source("tests/system/relay.py"))
    with open(daemon.program + ".json", "w", encoding="ascii") as f:
        json.dump({"real": harness.program("lockbrokerd"), "at": at, "do": do, "sender": sender, "more": more}, f)


def follow(daemon):
    """As its follow(), when the relay has ended and left us its child."""
    daemon.follow()
    parent = daemon.process.pid if daemon.has_keeper else os.getpid()
    harness.wait_until(lambda: int(harness.stat(f"/proc/{daemon.pid}/stat")[1]) == parent, "the child")


def restart(daemon):
    """Hands over, and what the new process says of it."""
    reply = daemon.hand_over()
    assert reply["process_id"] == daemon.pid
    return reply


def refused(daemon):
    """Why not. The same process serves."""
    with daemon.client(operator=True) as c:
        reply = c.call("RESTART")
        assert isinstance(reply, Error) and reply.startswith("ERR not restarted: "), reply
        assert c.call("PING") == "PONG"
    assert int(daemon.info("server")["process_id"]) == daemon.pid
    return reply.removeprefix("ERR not restarted: ")


# ---- what goes on ----


def test_holders_keep_their_locks_and_waiters_their_places(broker, clients):
    holder, reader, first, second, third = (clients(broker) for _ in range(5))
    token = holder.call("LOCK", "a", "DATA", "mine")
    assert holder.call("LOCK", "a", "REENTER") == token
    shared = reader.call("LOCK", "s", "SHARED")
    first.send("LOCK", "a")
    harness.wait_queued(broker, "a", 1)
    assert second.call("ENQUEUE", "a") == "QUEUED"
    third.send("MLOCK", 2, "m", "a")
    harness.wait_queued(broker, "a", 3)
    ids = [c.call("CLIENT", "ID") for c in (holder, reader)]
    restart(broker)
    assert [c.call("CLIENT", "ID") for c in (holder, reader)] == ids
    assert holder.call("VALID", "a", "TOKEN", token) > 0 and reader.call("VALID", "s", "TOKEN", shared) > 0
    assert clients(broker).call("HOLDERS", "a")[0]["data"] == "mine"
    assert [holder.call("UNLOCK", "a") for _ in range(2)] == [1, 0]
    tokens = [token, first.reply()]
    assert first.call("UNLOCK", "a") == 0
    what, name, granted = second.push()[:3]
    assert (what, name) == ("granted", "a")
    assert second.call("UNLOCK", "a") == 0
    tokens += [granted, third.reply()[1]]
    assert tokens == sorted(set(tokens)), "they only grow"
    assert isinstance(clients(broker).call("LOCK", "s", "SHARED"), int)
    for c in (holder, reader, first, second, third):
        assert c.quiet(0) and not c.pushes, "nobody was told anything of it"


def test_what_other_hosts_are_asked_is_asked_anew(daemons, own_zk, root, clients):
    zk = own_zk()
    d = daemons(zk, root)
    questions = [("HOLDERS", "a"), ("QUEUE", "a"), ("LEADER", "e"), ("LIMIT", "s"), ("LIMIT", "s", 3)]
    asking = [clients(d) for _ in questions]
    assert asking[0].call("ACQUIRE", "s", "LIMIT", 2) == 1 and asking[0].call("RELEASE", "s") == 0
    with stopped(zk):
        for c, words in zip(asking, questions):
            c.send(*words)
        assert all(c.quiet(0.05) for c in asking)
        restart(d)
        late = clients(d)
        late.send("HOLDERS", "a")
        assert late.quiet() and all(c.quiet(0) for c in asking)
    assert [c.reply() for c in asking[:3]] == [[], [], None] and late.reply() == []
    assert asking[3].reply() in (2, 3) and asking[4].reply() == 3


def test_an_audit_and_a_search_for_holders_begin_again(daemons, own_zk, root, clients):
    zk = own_zk()
    d = daemons(zk, root)
    holder, auditor, revoker, forcer = (clients(d) for _ in range(4))
    assert isinstance(holder.call("LOCK", "a", "SHARED"), int)
    with stopped(zk):
        auditor.send("AUDIT")
        revoker.send("REVOKE", "a", "please")
        forcer.send("FORCEUNLOCK", "b")
        assert all(c.quiet(0.05) for c in (auditor, revoker, forcer))
        restart(d)
        assert all(c.quiet() for c in (auditor, revoker, forcer, holder))
    assert auditor.reply()["directories"] == 1 and revoker.reply() == 1 and forcer.reply() == 0
    assert holder.push()[:2] == ["revoke", "a"]


def test_a_request_of_which_half_has_come_is_answered_once(broker, clients):
    c, waiting = clients(broker), clients(broker)
    request = harness.encode("ECHO", "x" * 1000)
    c.send_raw(harness.encode("PING") + request[:500])
    assert c.reply() == "PONG"
    assert isinstance(clients(broker).call("LOCK", "a"), int)
    waiting.send_raw(harness.encode("LOCK", "a", "WAIT", 1000) + harness.encode("PING") + request[:700])
    harness.wait_queued(broker, "a", 1)
    restart(broker)
    c.send_raw(request[500:] + harness.encode("PING"))
    assert [c.reply(), c.reply()] == ["x" * 1000, "PONG"]
    waiting.send_raw(request[700:])
    assert [waiting.reply() for _ in range(3)] == [None, "PONG", "x" * 1000]
    assert c.quiet(0) and waiting.quiet()


def test_output_that_was_not_read_is_read_after_it(broker, clients):
    """More than the socket takes, answered and pushed in order: nothing is lost, and nothing comes twice."""
    c = clients(broker)
    texts = [f"{i}" * 50000 for i in range(10)]
    for text in texts:
        c.send("ECHO", text)
    harness.wait_until(lambda: c.socket.recv(1, socket.MSG_PEEK), "the first of it")
    restart(broker)
    restart(broker)
    assert [c.reply() for _ in texts] == texts
    assert c.call("PING") == "PONG"


def test_a_half_closed_client_gets_its_answers(broker, clients):
    c, gone = clients(broker), clients(broker)
    c.send_raw(b"".join(harness.encode("ECHO", f"{i}" * 50000) for i in range(10)))
    c.socket.shutdown(socket.SHUT_WR)
    gone.call("LOCK", "a")
    gone.close()
    restart(broker)
    assert [c.reply() for _ in range(10)] == [f"{i}" * 50000 for i in range(10)]
    assert c.ended()
    assert isinstance(clients(broker).call("LOCK", "a"), int)


def test_the_page_stays_the_same_file_and_says_that_all_is_safe(daemons, zk, root, clients, locked):
    d = daemons(zk, root)
    c, _ = locked(d)
    page, path = Page(d), os.path.join(d.dir, "session")
    harness.wait_until(lambda: page.seen, "a first look")
    said, inode = c.hello["session_page_id"], os.stat(path).st_ino
    epoch = page.read()[0]
    for _ in range(3):
        restart(d)
    assert os.stat(path).st_ino == inode and clients(d).hello["session_page_id"] == said
    harness.wait_until(lambda: d.info("zookeeper")["zookeeper_state"] == "connected", "a proof")
    before = page.read()[2]
    harness.wait_until(lambda: page.read()[2] > before, "a later proof on the same page")
    page.end()
    assert {s[1] for s in page.seen} == {Page.SAFE} and not c.pushes and c.quiet(0)
    assert d.info("session")["session_state"] == "safe" and epoch == 0


def test_other_hosts_see_one_session(two_hosts, clients, locked):
    alpha, beta = two_hosts
    (holder, token), waiter = locked(alpha), clients(beta)
    waiter.send("LOCK", "a")
    harness.wait_queued(beta, "a", 1)
    session = alpha.info("session")["session_id"]
    restart(alpha)
    assert waiter.quiet()
    assert alpha.info("session")["session_id"] == session
    harness.wait_until(lambda: clients(beta).call("HOLDERS", "a")[0]["pid"] == os.getpid(), "the same holder")
    assert holder.call("UNLOCK", "a", "TOKEN", token) == 0
    assert waiter.reply() > token
    assert clients(alpha).call("LOCK", "b") > 0


def test_tokens_go_on_when_they_are_reserved_on_disk(standalone, clients, locked):
    token = 0
    for _ in range(3):
        c, later = locked(standalone)
        assert later > token
        token = later
        c.call("UNLOCK", "a")
        restart(standalone)
    standalone.kill()
    standalone.start()
    assert clients(standalone).call("LOCK", "a") > token


class Worker(threading.Thread):
    """Locks and unlocks until it is told to end; whatever is not as it should be is kept."""

    def __init__(self, daemon, name, tokens):
        super().__init__(daemon=True)
        self.client, self.name_of_lock, self.tokens = daemon.client(), name, tokens
        self.ending, self.wrong, self.count = False, None, 0

    def run(self):
        try:
            while not self.ending:
                token = self.client.call("LOCK", self.name_of_lock)
                assert isinstance(token, int), token
                assert token > self.tokens.get(self.name_of_lock, 0), "tokens only grow"
                self.tokens[self.name_of_lock] = token
                assert self.client.call("UNLOCK", self.name_of_lock, "TOKEN", token) == 0
                assert not self.client.pushes
                self.count += 1
        except (AssertionError, Closed, OSError, TimeoutError) as e:
            self.wrong = e


def test_twenty_in_a_row_under_load(broker, clients):
    tokens = {}
    workers = [Worker(broker, f"lock{i % 4}", tokens) for i in range(16)]
    kept = clients(broker)
    token = kept.call("LOCK", "kept")
    for w in workers:
        w.start()
    for _ in range(20):
        before = sum(w.count for w in workers)
        restart(broker)
        harness.wait_until(lambda: sum(w.count for w in workers) > before + 16, "the load to go on")
    for w in workers:
        w.ending = True
    for w in workers:
        w.join(PATIENCE)
    assert [w.wrong for w in workers] == [None] * 16
    assert kept.call("UNLOCK", "kept", "TOKEN", token) == 0 and kept.quiet(0)
    info = broker.info()
    assert info["losses_total"] == "0" and info["connected_clients"] == str(16 + 2)


# ---- the process ----


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def test_no_descriptor_is_left_open(broker, clients):
    kept = [clients(broker) for _ in range(5)]
    before = descriptors(broker)
    for _ in range(3):
        restart(broker)
        harness.wait_until(lambda: descriptors(broker) <= before, f"{before} descriptors again")
    assert kept[0].call("PING") == "PONG"


def test_the_next_process_keeps_no_memory_that_only_the_process_before_it_needed(standalone, clients):
    """The file saved is made as large as the earlier one, before it is known how much is needed."""
    c = clients(standalone)

    def bytes_of_saved():
        return os.stat(os.path.join(standalone.dir, "saved")).st_blocks * 512

    before = bytes_of_saved()
    for n in range(10000):
        c.send("LOCK", f"{n}", "DATA", "x" * 400)
    assert all(isinstance(c.reply(), int) for _ in range(10000))
    most = bytes_of_saved()
    assert most > before + 4 * 2**20
    c.send("RESET")
    assert c.reply() == "RESET"
    restart(standalone)
    harness.wait_until(lambda: bytes_of_saved() < before + 2**20, f"the file to be much smaller than {most} bytes")


@pytest.mark.parametrize("keeper", [0, 1])
def test_the_service_manager_is_told_and_the_files_are_taken_over(daemons, keeper):
    """With a keeper there is nothing to tell: the main process stays."""
    d = daemons(daemon__keeper=keeper)
    old = d.pid
    restart(d)
    told, main_pid = [], [] if keeper else [f"MAINPID={d.pid}"]
    while not {"READY=1", *main_pid} <= set(told):  # either process may be the first to speak
        told += d.notified(PATIENCE) or pytest.fail(f"it says no more than {told}")
    assert [line for line in told if line.startswith("MAINPID")] == main_pid
    main = d.process.pid
    with open(os.path.join(d.dir, "lockbrokerd.pid"), encoding="ascii") as f:
        assert int(f.read()) == main and d.pid != old
    second = subprocess.run(d.command(), stderr=subprocess.PIPE, text=True, check=False)
    assert second.returncode == 1 and f"another lockbrokerd (pid {main}) uses daemon.rundir" in second.stderr


def test_a_signal_hands_over(broker, locked):
    c, token = locked(broker)
    broker.hand_over_by_signal()
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
    assert "nobody was served for" in broker.log()


def test_the_command_waits_for_the_outcome(broker):
    said = broker.hand_over_by_command()
    assert f" serves now, as process {broker.pid}; nobody was served for " in said
    assert broker.answers()


def test_the_program_that_is_installed_by_then_runs(fresh, locked):
    d = fresh()
    c, _ = locked(d)
    for _ in range(2):
        install(d)
        assert os.readlink(f"/proc/{d.pid}/exe").endswith(" (deleted)")
        restart(d)
        assert os.readlink(f"/proc/{d.pid}/exe") == d.program
    assert c.call("UNLOCK", "a") == 0


def test_a_kill_after_it_leaves_what_any_kill_does(daemons, zk, root, clients, locked):
    d = daemons(zk, root)
    c, _ = locked(d)
    session = d.info("session")["session_id"]
    restart(d)
    assert d.info("session")["session_id"] == session
    c.close()
    clients(d).call("PING")
    d.kill()
    d.start()
    harness.wait_until(lambda: d.info("session")["leftover_sessions"] == "0", "the end of what was left")
    assert isinstance(clients(d).call("LOCK", "a"), int)


# ---- who may, and when ----


def test_asked_twice_at_once(fresh, clients):
    d = fresh()
    relay(d, "READY", "hold")
    first, second = clients(d), clients(d)
    first.send("RESTART")
    harness.wait_until(lambda: "handing over" in d.log(), "the first")
    assert "has asked for that already" in second.call("RESTART")
    d.signal(signal.SIGUSR2)
    harness.wait_until(lambda: "another hand-over is under way" in d.log(), "the signal")
    assert first.quiet(0), "it is told what comes of what it asked for"
    assert first.reply() == "ERR not restarted: the new process was not ready after 10 s"


def test_asked_while_a_signal_is_followed(fresh, clients):
    """Who asks then is told what comes of that."""
    d = fresh()
    relay(d, "READY", "stop old")
    c, old = clients(d), d.pid
    d.signal(signal.SIGUSR2)
    harness.wait_until(lambda: d.state() == "T", "the new process to be ready")
    c.send("RESTART")
    d.signal(signal.SIGCONT)
    assert c.reply()["process_id"] != old
    follow(d)


def test_during_a_stop(fresh, clients):
    d = fresh(daemon__stop_timeout_ms=3000)
    relay(d, "READY", "hold")
    c, holder = clients(d), clients(d)
    holder.call("LOCK", "a")
    c.send("RESTART")
    harness.wait_until(lambda: "handing over" in d.log(), "the new process")
    d.signal(signal.SIGTERM)
    assert c.reply() == "ERR not restarted: the daemon is stopping"
    assert c.call("RESTART").code == "DRAINING"
    assert holder.call("UNLOCK", "a") == 0
    assert d.terminate() == 0


def test_before_there_is_a_session(daemons, clients):
    d = daemons(harness.NoZookeeper)
    c = clients(d)
    assert c.call("ENQUEUE", "a") == "QUEUED"
    restart(d)
    assert c.call("CANCEL", "a") == 1
    assert d.info("session")["session_state"] == "none"


@pytest.mark.parametrize("keeper", [0, 1])
def test_without_a_service_manager_nobody_could_follow(daemons, keeper):
    d = daemons(daemon__keeper=keeper)
    d.terminate()
    d.env = {"NOTIFY_SOCKET": ""}
    d.spawn()
    harness.wait_until(lambda: "serves" in d.log().split("stopped")[-1], "the daemon")
    d.adopt()
    if keeper:
        restart(d)
    else:
        assert "NOTIFY_SOCKET is not set" in refused(d)


# ---- a new process that does not take over ----


STUBS = {
    "exit": ("#!/bin/sh\necho lockbrokerd: not today >&2\nexit 3\n", "the new process ended with status 3 before it was ready"),
    "die": ("#!/bin/sh\nkill -9 $$\n", "the new process was killed by signal 9 (Killed) before it was ready"),
    "nonsense": ("#!/usr/bin/python3\nimport os, signal\nos.write(int(os.environ['LOCKBROKERD_HANDOVER']), b'hello')\n"
                 "signal.pause()\n", "the new process says what this one does not understand"),
    "not a program": ("garbage", "cannot be run: Exec format error"),
    "older": ("#!/bin/sh\nunset LOCKBROKERD_HANDOVER\nexec {real} \"$@\"\n",
              "the new process ended with status 1 before it was ready"),
    "hangs": ("#!/bin/sh\nexec sleep 1000\n", "the new process was not ready after 10 s"),
    "closes": ("#!/usr/bin/python3\nimport os, signal\nos.close(int(os.environ['LOCKBROKERD_HANDOVER']))\nsignal.pause()\n",
               "the new process closed its connection before it was ready"),
}


@pytest.mark.parametrize("what", STUBS)
def test_a_program_that_is_none(fresh, locked, what):
    d = fresh()
    c, token = locked(d)
    text, sentence = STUBS[what]
    install(d, text.replace("{real}", harness.program("lockbrokerd")))
    assert sentence in refused(d)
    assert "no hand-over: " in d.log() and sentence in d.log()
    assert c.call("VALID", "a", "TOKEN", token) > 0
    install(d)
    restart(d)
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0


def test_a_program_that_is_gone_or_of_another_user(fresh):
    d = fresh()
    os.chown(d.program, 1234, -1)
    assert "belongs to another user" in refused(d)
    os.unlink(d.program)
    assert "is not there any longer" in refused(d)
    done = run(d, "restart")
    assert done.returncode == 64 and "is not there any longer" in done.stderr


def test_a_configuration_that_cannot_be_used_costs_nothing(fresh, conf, locked):
    conf.write_text("[locks]\nlinger_ms = 5\n")
    d = fresh(argv=["-c", str(conf)])
    c, token = locked(d)
    conf.write_text("[locks]\nlinger_ms = soon\n")
    assert "linger_ms" in refused(d)
    conf.write_text("[prefix:x/]\nflavour = mutex\n")
    assert "other prefixes" in refused(d)
    conf.write_text("[limits]\nclients = 7\n")
    restart(d)
    assert d.info("limits")["limit_clients"] == "7"
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0


def test_a_directory_that_was_moved_away_costs_nothing_and_is_named(fresh, tmp_path, locked):
    d = fresh(argv=["-o", f"daemon.statedir={tmp_path / 'state'}"])
    c, token = locked(d)
    rundir = os.path.dirname(d.operator_socket)
    with d.client(operator=True) as operator:
        os.rename(rundir, rundir + ".away")
        try:
            reply = operator.call("RESTART")
        finally:
            os.rename(rundir + ".away", rundir)
    assert isinstance(reply, Error), reply
    assert f"the file saved: cannot make a new one in {rundir}: No such file or directory" in reply, reply
    restart(d)
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0


@pytest.mark.parametrize("where", ["standalone", "zookeeper"])
def test_more_clients_than_before_are_served_at_once(daemons, zk, root, conf, clients, where):
    """All tables are made anew, and their new places are as good as the others."""
    conf.write_text("[limits]\nclients = 6\n")
    d = daemons(*((zk, root) if where == "zookeeper" else ()), argv=["-c", str(conf)])
    held = [clients(d) for _ in range(3)]
    tokens = [c.call("LOCK", f"{i}") for i, c in enumerate(held)]
    conf.write_text("[limits]\nclients = 12\n")
    with d.client(operator=True) as c:
        assert "limits.clients = 12 needs a restart; until then 6 clients are served" in c.call("RELOAD")
    for _ in range(2):
        restart(d)
        while len(held) < 9:
            held.append(clients(d))
            tokens.append(held[-1].call("LOCK", f"{len(held)}"))
        assert d.info("limits")["limit_clients"] == "12"
    assert all(isinstance(t, int) for t in tokens)
    assert [c.call("UNLOCK", f"{i if i < 3 else i + 1}", "TOKEN", t) for i, (c, t) in enumerate(zip(held, tokens))] == [0] * 9


def test_a_configuration_that_is_read_again_meanwhile_counts(fresh, conf, clients):
    """The new process has read the one before."""
    d = fresh(argv=["-c", str(conf)])
    relay(d, "READY", "stop old")
    c = clients(d)
    d.signal(signal.SIGUSR2)
    harness.wait_until(lambda: d.state() == "T", "the new process to be ready")
    conf.write_text("[limits]\nlocks = 7\n")
    c.send("RELOAD")
    d.signal(signal.SIGCONT)
    assert c.reply() == "limits.locks = 7, before 140000\n"
    follow(d)
    harness.wait_until(lambda: d.info("limits")["limit_locks"] == "7", "what was told")


def test_a_stop_that_reaches_both_processes_is_one(fresh, locked):
    """A service manager signals all processes of a service; the old one passes on what came too late for it. After a second it
    is another stop, which a busy machine may make of it now and then."""
    for _ in range(5):
        d = fresh()
        c, _ = locked(d)
        relay(d, "COMMIT", f"say {signal.SIGTERM:d}", os.getpid())
        d.signal(signal.SIGUSR2)
        follow(d)
        harness.wait_until(lambda d=d: "received a signal (Terminated): stopping" in d.log(), "what was passed on")
        d.signal(signal.SIGTERM)
        try:
            assert c.push()[:2] == ["revoke", "a"]
            assert c.call("UNLOCK", "a") == 0
        except (harness.Closed, ConnectionError):
            assert "received a second signal" in d.log()
            continue
        assert d.process.wait(PATIENCE) == 0
        return
    pytest.fail("it was always two")


def test_an_order_to_keep_everything_that_reaches_the_old_process_is_passed_on(fresh):
    d = fresh()
    relay(d, "COMMIT", f"say {signal.SIGUSR1:d}", os.getpid())
    d.signal(signal.SIGUSR2)
    follow(d)
    harness.wait_until(lambda: "received a signal (User defined signal 1): keeping everything" in d.log(), "what was passed on")


@pytest.mark.parametrize("number, sender", [(signal.SIGTERM, 1), (signal.SIGINT, os.getpid())], ids=["sender", "signal"])
def test_a_stop_of_somebody_else_is_a_second_one(fresh, locked, number, sender):
    d = fresh()
    locked(d)
    relay(d, "COMMIT", f"say {number:d}", sender)
    d.signal(signal.SIGUSR2)
    follow(d)
    harness.wait_until(lambda: "): stopping" in d.log(), "what was passed on")
    d.signal(signal.SIGTERM)
    assert d.process.wait(PATIENCE) == 1 and "received a second signal (Terminated): ending at once" in d.log()


def test_a_configuration_that_is_to_be_read_when_all_is_packed_is_read(fresh, conf):
    """The old process does not come to it any longer."""
    d = fresh(argv=["-c", str(conf)])
    relay(d, "READY", "stop old", PARCEL2="hup old")
    d.signal(signal.SIGUSR2)
    harness.wait_until(lambda: d.state() == "T", "the new process to be ready")
    conf.write_text("[limits]\nlocks = 7\n")
    d.signal(signal.SIGCONT)
    follow(d)
    harness.wait_until(lambda: d.info("limits")["limit_locks"] == "7", "the configuration")


def test_whoever_has_started_it_may_ignore_the_ends_of_children(fresh):
    ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    d = fresh(under=["/usr/bin/python3", "-c", ignoring])
    text, sentence = STUBS["die"]
    install(d, text)
    assert sentence in refused(d)


def test_it_takes_no_longer_than_a_twelfth_of_the_timeout_that_was_granted(fresh, own_zk, clients):
    d = fresh(own_zk(tick_ms=harness.FAST_TICK_MS), zookeeper__session_timeout_ms=30000)
    assert d.info("session")["session_timeout_ms"] == "10000"
    relay(d, "ACCEPT", "hold")
    assert "the new process did not take over within 833 ms" in refused(d)


# ---- trouble at each step ----


GIVEN_UP = [
    ("PARCEL1", "lie", "does not understand what the running one says"),
    ("READY", "lie", "says what this one does not understand"),
    ("READY", "kill new", ""),
    ("READY", "cut", "closed its connection before it was ready"),
    ("PARCEL2", "lie", "does not understand what the running one says"),
    ("PARCEL2", "hold", "did not take over within"),
    ("PARCEL2", "stop new", "did not take over within"),
    ("PARCEL2", "kill new", "ended before it took over"),
    ("PARCEL2", "cut", "ended before it took over"),
    ("ACCEPT", "lie", "says what this one does not understand"),
    ("ACCEPT", "hold", "did not take over within"),
    ("ACCEPT", "cut", "ended before it took over"),
]


def relayed(daemon):
    """The number of the real process behind the relay."""
    with open(daemon.program + ".pid", encoding="ascii") as f:
        return int(f.read())


@pytest.mark.parametrize("at,do,sentence", GIVEN_UP)
def test_until_the_commit_the_old_process_goes_on(fresh, zk, root, clients, locked, at, do, sentence):
    d = fresh(zk, root)
    (c, token), waiter = locked(d), clients(d)
    waiter.send("LOCK", "a")
    harness.wait_queued(d, "a", 1)
    relay(d, at, do)
    assert sentence in refused(d)
    if do == "stop new":
        os.kill(relayed(d), signal.SIGCONT)
    harness.wait_until(lambda: not harness.runs(relayed(d)), "the end of the new process")
    harness.wait_until(lambda: d.info("zookeeper")["zookeeper_state"] == "connected", "the connection")
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
    assert waiter.reply() > token and not c.pushes and not waiter.pushes
    install(d)
    restart(d)
    assert waiter.call("UNLOCK", "a") == 0


@pytest.mark.parametrize("keeper", [0, 1])
@pytest.mark.parametrize("at", ["PARCEL1", "READY", "PARCEL2", "ACCEPT"])
def test_when_the_old_process_dies_before_the_commit_the_new_one_exits(fresh, clients, locked, at, keeper):
    """The keeper starts another one."""
    d = fresh(daemon__keeper=keeper)
    (c, _), old = locked(d), d.pid
    relay(d, at, "kill old")
    d.signal(signal.SIGUSR2)
    if keeper:
        d.await_another(old)
        assert f"the worker (process {old}) was killed by signal 9 (Killed): another one starts" in d.log()
    else:
        d.process.wait(PATIENCE)
        assert c.ended()
    harness.wait_until(lambda: not harness.runs(relayed(d)), "the end of the new process")
    install(d)
    if not keeper:
        d.start()
    assert isinstance(clients(d).call("LOCK", "b"), int)


def test_when_the_new_process_dies_after_the_commit_the_old_one_exits_too(fresh, clients, locked):
    """As after any kill: the connections end, and the next start serves."""
    d = fresh(daemon__keeper=0)
    c, _ = locked(d)
    relay(d, "COMMIT", "kill new")
    d.signal(signal.SIGUSR2)
    assert d.process.wait(PATIENCE) == 0 and c.ended()
    install(d)
    d.start()
    assert isinstance(clients(d).call("LOCK", "a"), int)


def test_when_the_new_process_dies_after_the_commit_the_keeper_starts_another_one(fresh, clients):
    d = fresh()
    old = d.pid
    relay(d, "COMMIT", "kill new")
    d.signal(signal.SIGUSR2)
    d.await_another(old)
    assert d.pid != relayed(d) and ": another one starts" in d.log()
    assert isinstance(clients(d).call("LOCK", "a"), int)


def test_when_the_old_process_dies_after_the_commit_nobody_notices(fresh, locked):
    d = fresh()
    c, _ = locked(d)
    relay(d, "COMMIT", "kill old")
    d.signal(signal.SIGUSR2)
    follow(d)
    assert d.pid == relayed(d) and c.call("UNLOCK", "a") == 0
    assert ": another one starts" not in d.log()


def test_when_the_old_process_is_stopped_for_too_long_it_goes_on_by_itself(fresh, locked):
    d = fresh()
    c, token = locked(d)
    relay(d, "ACCEPT", "stop old")
    d.signal(signal.SIGUSR2)
    harness.wait_until(lambda: d.state() == "T", "the old process to be stopped")
    time.sleep(2.1)  # only time makes it too long: nothing happens in a process that is stopped
    d.signal(signal.SIGCONT)
    harness.wait_until(lambda: "did not take over within 2000 ms" in d.log(), "the end of the hand-over")
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
    assert int(d.info("server")["process_id"]) == d.pid
    harness.wait_until(lambda: not harness.runs(relayed(d)), "the end of the new process")
