# SPDX-License-Identifier: Apache-2.0
"""Asking for a lock back, and taking it: REVOKE, FORCEUNLOCK, and the mail between daemons."""

import os
import signal
import subprocess
import time

import pytest

import harness
from harness import FAST_TICK_MS, ROOMY
from mishaps import kill_and_start, stopped
from test_cli import LOST, run, started
from tools import need

OPERATORS = True  # see clients of conftest.py

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:kazoo")


@pytest.fixture
def kz(zk, kazoo_client):
    return kazoo_client(zk)


def ask_until_told(other, name, holder):
    """It is told of one question a second, and counts with the others."""

    def is_told():
        assert other.call("REVOKE", name) == 1
        return not holder.quiet(0)

    harness.wait_until(is_told, "the holder to be told")


def test_the_holder_is_asked_on_whichever_host(two_hosts, clients):
    a, near, far = clients(two_hosts[0]), clients(two_hosts[0]), clients(two_hosts[1])
    assert far.call("REVOKE", "a") == 0
    token = a.call("LOCK", "a")
    assert far.call("REVOKE", "a", "maintenance at noon") == 1
    assert a.push() == ["revoke", "a", token, "maintenance at noon"]
    ask_until_told(near, "a", a)
    assert a.push() == ["revoke", "a", token, "requested"]
    assert a.call("UNLOCK", "a") == 0


def test_a_holder_that_only_listens_is_asked_every_time(daemons, clients):
    """It asks nothing, and reads what comes: far more than a client may leave unread."""
    d = daemons(limits={"output_bytes": 4096, "events_per_client": 4})
    holder, other = clients(d), clients(d)
    names = [f"{i:02d}" + "x" * 200 for i in range(60)]
    for name in names:
        holder.call("LOCK", name)
    for name in names:
        assert other.call("REVOKE", name) == 1
        assert holder.push()[:2] == ["revoke", name]
    ask_until_told(other, names[0], holder)
    assert holder.push()[:2] == ["revoke", names[0]]


def test_a_holder_that_does_not_read_is_asked_no_more_until_it_has_read(daemons, clients):
    """It is not closed for what others ask of it. What a socket takes is read as far as the daemon knows."""
    d = daemons(limits={"output_bytes": 65536})
    holder, other = clients(d), clients(d)
    names = [f"{i:04d}" + "x" * 500 for i in range(900)]
    for name in names:
        holder.call("LOCK", name)
    asked = [name for name in names if other.call("REVOKE", name) == 1]
    assert 0 < len(asked) < len(names)
    for name in asked:
        assert holder.push()[1] == name
    rest = names[len(asked)]
    harness.wait_until(lambda: other.call("REVOKE", rest) == 1, "the holder to be asked again")
    assert holder.push()[1] == rest
    assert holder.call("UNLOCK", rest) == 0


def test_readers_of_several_hosts_are_all_asked(daemons, zk, root, clients):
    hosts = [daemons(zk, root, host=name) for name in ("alpha", "beta", "gamma")]
    readers = [clients(h) for h in hosts for _ in range(2)]
    for r in readers:
        r.call("LOCK", "a", "SHARED")
    # Those of its own host one by one, and two hosts.
    assert clients(hosts[0]).call("REVOKE", "a", "all of you") == 4
    for r in readers:
        assert r.push()[0::3] == ["revoke", "all of you"]


def test_other_software_cannot_be_asked_but_bereft(two_hosts, clients, kz, root):
    c = clients(two_hosts[0])
    znode = kz.create(f"{root}/a/_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__", b"10.0.0.1", ephemeral=True,
                      sequence=True, makepath=True)
    assert c.call("REVOKE", "a").startswith("ERR it is held by software other than lockbroker")
    waiter = clients(two_hosts[1])
    waiter.send("LOCK", "a")
    assert c.call("FORCEUNLOCK", "a") == 1
    assert waiter.reply() > 0 and kz.exists(znode) is None


def test_a_lock_is_taken_on_whichever_host(two_hosts, clients):
    a, waiter, far = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    assert far.call("FORCEUNLOCK", "a") == 0
    token = a.call("LOCK", "a")
    waiter.send("LOCK", "a")
    assert far.call("FORCEUNLOCK", "a") == 1
    assert a.push() == ["lost", "a", token, "forced"]
    assert waiter.reply() > token
    assert a.call("UNLOCK", "a").code == "LOST"
    assert a.call("FORCEUNLOCK", "a") == 1
    assert waiter.push()[3] == "forced"
    who = f"uid {os.getuid()}, pid {os.getpid()} ("
    assert 'lock "a" taken by force from 1 holders, for ' + who in two_hosts[0].log()
    assert who in two_hosts[1].log() and 'takes lock "a" by force from: "alpha"' in two_hosts[1].log()


def test_the_znode_of_a_frozen_daemon_is_deleted(two_hosts, clients):
    a, waiter, operator = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    token = a.call("LOCK", "a")
    waiter.send("LOCK", "a")
    assert waiter.quiet(1.2)  # alpha watches its znode by now: it knows that somebody waits
    with stopped(two_hosts[0]):
        began = time.monotonic()
        assert operator.call("FORCEUNLOCK", "a") == 1
        assert time.monotonic() - began >= 2
        assert waiter.reply() > token
    assert a.news() == ["lost", "a", token, "deleted"]


def test_what_a_killed_daemon_left_is_taken_at_once_by_its_successor(two_hosts, clients):
    """On a busy machine the successor may need two seconds to answer: not each time."""
    alpha, beta = two_hosts
    operator = clients(beta)

    def at_once():
        clients(alpha).call("LOCK", "a")
        kill_and_start(alpha)
        waiter = clients(alpha)
        waiter.send("LOCK", "a")
        began = time.monotonic()
        assert operator.call("FORCEUNLOCK", "a") == 1
        took = time.monotonic() - began
        assert waiter.reply() > 0 and waiter.call("UNLOCK", "a") == 0
        return took < 2

    harness.wait_until(at_once, "it not to be waited for")


def test_a_dead_host_is_not_waited_for(two_hosts, clients, kz, root):
    clients(two_hosts[0]).call("LOCK", "a")
    two_hosts[0].kill()
    c = clients(two_hosts[1])
    assert c.call("REVOKE", "a") == 1  # it may come back
    assert c.call("FORCEUNLOCK", "a") == 1
    assert c.call("LOCK", "a", "WAIT", 1000) > 0
    # A letter that takes a lock does not wait for a later life of the daemon.
    letters = [kz.get(f"{root}/.mail/alpha/{x}")[0] for x in kz.get_children(f"{root}/.mail/alpha")]
    assert len(letters) == 1 and b"kind=revoke" in letters[0]


def test_only_operators_take_by_force(broker, root):
    if os.getuid() != 0:
        pytest.skip("needs root to be somebody else")
    need("redis-cli", "--version")
    need("setpriv", "--reuid=65534", "--clear-groups", "true")
    os.chmod(broker.dir, 0o755)
    os.chmod(os.path.dirname(broker.dir), 0o755)
    os.chmod(broker.socket, 0o777)
    denied = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "redis-cli", "-s", broker.socket, "FORCEUNLOCK", "a"],
                            capture_output=True, text=True, timeout=harness.PATIENCE)
    assert denied.stdout.startswith("DENIED "), denied
    asked = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "redis-cli", "-s", broker.socket, "REVOKE", "a"],
                           capture_output=True, text=True, timeout=harness.PATIENCE)
    assert asked.stdout.startswith("DENIED only operators may ask for what others hold"), asked


def test_redis_cli_can_ask(standalone, clients):
    need("redis-cli", "--version")
    a = clients(standalone)
    a.call("LOCK", "a")
    for words, answer in ((["REVOKE", "a", "go home"], "1\n"), (["FORCEUNLOCK", "a"], "1\n"), (["FORCEUNLOCK", "a"], "0\n")):
        done = subprocess.run(["redis-cli", "-s", standalone.operator_socket, *words], capture_output=True, text=True,
                              timeout=harness.PATIENCE)
        assert done.stdout == answer
    assert [a.push()[0] for _ in range(2)] == ["revoke", "lost"]


def test_without_zookeeper_only_holders_here_are_asked(own_zk, daemons, clients):
    server = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(server, **ROOMY)
    a, c = clients(d), clients(d)
    a.call("LOCK", "held")
    server.kill()
    harness.wait_until(lambda: d.info("zookeeper")["connected"] == "0", "the connection to go")
    assert c.call("REVOKE", "held") == 1
    assert c.call("REVOKE", "other").code == "UNAVAILABLE" and c.call("FORCEUNLOCK", "other").code == "UNAVAILABLE"
    server.start()


# ---- the mailbox ----


def test_a_flood_of_letters_is_thrown_away(two_hosts, clients, kz, root):
    a, far = clients(two_hosts[0]), clients(two_hosts[1])
    token = a.call("LOCK", "a")
    box = f"{root}/.mail/alpha"
    junk = [b"", b"1\nkind=force\nfrom=../x\n", b"\xff" * 300000, b"1\nkind=revoke\nname=..\nreason=x\n"]
    futures = [kz.create_async(f"{box}/{i:05}", junk[i % 2 if i % 1000 else 2 + i // 1000 % 2]) for i in range(5000)]
    for f in futures:
        f.get(60)
    assert far.call("REVOKE", "a", "still here") == 1
    assert a.push() == ["revoke", "a", token, "still here"]
    harness.wait_until(lambda: not kz.get_children(box), "the box to be emptied")
    stats = two_hosts[0].info("stats")
    assert int(stats["mail_ignored_total"]) >= 4950 and int(stats["suspensions_total"]) == 0
    assert a.call("UNLOCK", "a") == 0


def test_a_box_deleted_by_hand_is_made_again(two_hosts, clients, kz, root):
    a, far = clients(two_hosts[0]), clients(two_hosts[1])
    token = a.call("LOCK", "a")
    kz.delete(f"{root}/.mail/alpha")
    harness.wait_until(lambda: kz.exists(f"{root}/.mail/alpha"), "the box")
    assert far.call("REVOKE", "a") == 1 and a.push() == ["revoke", "a", token, "requested"]


def test_what_cannot_be_deleted_harms_nobody(two_hosts, clients, kz, root):
    a, far = clients(two_hosts[0]), clients(two_hosts[1])
    token = a.call("LOCK", "a")
    kz.create(f"{root}/.mail/alpha/000/child", makepath=True)
    assert far.call("REVOKE", "a") == 1 and a.push() == ["revoke", "a", token, "requested"]
    kz.delete(f"{root}/.mail/alpha/000", recursive=True)


# ---- the command ----


def test_the_command_may_get_a_signal_when_the_lock_is_asked_for(two_hosts):
    p, _ = started(two_hosts[0], "sh", "-c", "trap 'echo asked; exit 3' USR1; echo ready; while :; do sleep 0.05; done",
                     options=["--on-revoke", "SIGUSR1"])
    assert p.stdout.readline() == "ready\n"
    assert run(two_hosts[1], "revoke", "a", "move \u202eover").returncode == 0
    out, err = p.communicate(timeout=harness.PATIENCE)
    assert (out, p.returncode) == ("asked\n", 3)
    assert err == "lockbroker: Somebody asks for the lock a: move \\u202eover.\n"


def test_by_default_it_gets_none(broker):
    p, pid = started(broker, "sleep", "60")
    assert run(broker, "revoke", "a").returncode == 0
    assert "asks for the lock a: requested." in p.stderr.readline()
    assert p.poll() is None
    os.kill(pid, signal.SIGTERM)
    assert p.wait(harness.PATIENCE) == 128 + signal.SIGTERM


def test_a_command_whose_lock_is_taken_is_ended(two_hosts):
    p, _ = started(two_hosts[0], "sleep", "60")
    done = run(two_hosts[1], "force-unlock", "a")
    assert (done.returncode, done.stderr) == (0, "")
    assert "is lost: an operator took it by force. Ending sh." in p.communicate(timeout=harness.PATIENCE)[1]
    assert p.returncode == LOST


def test_exit_statuses_tell_what_came_of_it(broker):
    for words, status, said in (
            (["revoke", "a"], 1, "No holder was asked to release a: nobody holds it"), (["force-unlock", "a"], 1, "Nobody held a:"),
            (["revoke"], 64, "NAME is missing: lockbroker revoke "), (["force-unlock"], 64, "NAME is missing: lockbroker force-unlock "),
            (["revoke", "a", "b", "c"], 64, 'revoke does not take the argument "c".'), (["revoke", ".."], 64, "a lock name is"),
            (["revoke", "a", "x" * 129], 64, "a reason is 1..128 bytes")):
        done = run(broker, *words)
        assert done.returncode == status and said in done.stderr, (words, done)
    assert run(None, "force-unlock", "a").returncode == 69


def test_signals_go_by_name_and_number(standalone):
    for word in ("TERM", "sigterm", "15", "none", "0", "USR1"):
        assert run(standalone, "lock", "-r", word, "a", "--", "true").returncode == 0, word
    for word in ("", "TREM", "-1", "65", "15x", "SIG"):
        assert run(standalone, "lock", "-r", word, "a", "--", "true").returncode == 64, word
