# SPDX-License-Identifier: Apache-2.0
"""Elections: CAMPAIGN, RESIGN, LEADER, OBSERVE on one host and on several, through the library and the command."""

import os
import signal

import redis

import harness
import test_cli
from harness import FAST, FAST_TICK_MS, ROOMY
from mishaps import stopped
from test_library import HELLO, Impostor

OPERATORS = True  # see clients of conftest.py


NOBODY = "0\t-\t-"  # as the command says it


def leads(client, name="e"):
    leader = client.call("LEADER", name)
    return leader and leader["data"]


def next_leader(client):
    """The next push that tells of a leader: (token, host, data)."""
    event, _, token, host, data = client.push()
    assert event == "leader"
    return token, host, data


def told_until(client, data):
    """What an observer is told until that one leads; None: nobody. Tokens grow, and nothing is told twice."""
    told = [next_leader(client)]
    while told[-1][2] != (data or ""):
        told.append(next_leader(client))
        assert told[-1][0] != told[-2][0]
    tokens = [t for t, _, _ in told if t]
    assert tokens == sorted(set(tokens))
    return told[-1]


# ---- on one host ----


def test_one_leads_and_everybody_can_read_its_data(broker, clients):
    a, b, o = clients(broker), clients(broker), clients(broker)
    assert o.call("LEADER", "e") is None
    token = a.call("CAMPAIGN", "e", "DATA", "10.0.0.1:80")
    leader = o.call("LEADER", "e")
    assert (leader["data"], leader["host"], leader["token"], leader["pid"]) == \
        ("10.0.0.1:80", broker.host, token, os.getpid())
    assert b.call("CAMPAIGN", "e", "DATA", "b", "WAIT", 0) is None
    assert a.call("CAMPAIGN", "e", "DATA", "b").code == "HELD"
    b.send("CAMPAIGN", "e", "DATA", "b")
    harness.wait_queued(broker, "e", 1)
    assert a.call("RESIGN", "e") == 1 and b.reply() > token and leads(o) == "b"
    b.close()
    harness.wait_until(lambda: o.call("LEADER", "e") is None, "the leader to be gone")
    assert a.call("RESIGN", "e").code == "NOTHELD"


def test_redis_py_campaigns_and_observes(broker):
    with redis.Redis(unix_socket_path=broker.socket, decode_responses=True) as r:
        with r.client() as a:
            token = a.execute_command("CAMPAIGN", "e", "DATA", "me")
            assert a.execute_command("LEADER", "e")[:6] == ["host", broker.host, "data", "me", "token", token]
            assert a.execute_command("OBSERVE", "e") == "OK"
            assert a.execute_command("EVENTS", "WAIT", 20000) == ["leader", "e", token, broker.host, "me"]


# ---- among hosts ----


def test_the_leader_is_known_on_every_host(two_hosts, clients):
    a, b, o = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    o.call("OBSERVE", "e")
    token = a.call("CAMPAIGN", "e", "DATA", "a")
    assert told_until(o, "a") == (token, "alpha", "a")
    assert (o.call("LEADER", "e")["host"], leads(b)) == ("alpha", "a")
    b.send("CAMPAIGN", "e", "DATA", "b")
    harness.wait_queued(two_hosts[1], "e", 1)
    assert leads(o) == "a"
    assert a.call("RESIGN", "e") == 1
    assert b.reply() > token
    # Whoever is told that it leads can be found by everybody.
    assert clients(two_hosts[0]).call("LEADER", "e")["data"] == "b"
    assert told_until(o, "b")[1] == "beta"


def test_a_leader_is_asked_and_forced_to_go_from_another_host(two_hosts, clients):
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    token = a.call("CAMPAIGN", "e", "DATA", "a")
    assert b.call("REVOKE", "e", "please") == 1
    assert a.push() == ["revoke", "e", token, "please"]
    b.call("OBSERVE", "e")
    told_until(b, "a")
    assert b.call("FORCEUNLOCK", "e") == 1
    assert a.push() == ["lost", "e", token, "forced"]
    assert told_until(b, None) == (0, "", "") and b.call("LEADER", "e") is None


def test_a_lock_elsewhere_is_no_election_here(two_hosts, clients):
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    a.call("LOCK", "x")
    assert b.call("CAMPAIGN", "x", "DATA", "b").code == "MISMATCH"
    assert b.call("OBSERVE", "x") == "OK"
    assert b.push()[:3] == ["unobserved", "x", "MISMATCH"]
    a.call("CAMPAIGN", "y", "DATA", "a")
    assert b.call("LOCK", "y").code == "MISMATCH"


def test_a_daemon_that_is_killed_leads_until_its_session_ends(own_zk, daemons, clients):
    server = own_zk(tick_ms=FAST_TICK_MS)
    first, second, third = (daemons(server, host=h, **ROOMY) for h in ("alpha", "beta", "gamma"))
    o, b = clients(third), clients(second)
    o.call("OBSERVE", "e")
    a = first.client()
    token = a.call("CAMPAIGN", "e", "DATA", "a")
    told_until(o, "a")
    b.send("CAMPAIGN", "e", "DATA", "b")
    harness.wait_queued(second, "e", 1)
    first.kill()
    assert leads(o) == "a"
    next_token = b.reply()
    assert next_token > token and told_until(o, "b") == (next_token, "beta", "b")
    a.close()


def test_a_process_that_is_killed_is_followed_at_once(two_hosts, clients):
    o, b = clients(two_hosts[1]), clients(two_hosts[1])
    o.call("OBSERVE", "e")
    command = test_cli.start(two_hosts[0], "campaign", "e", "here", "--", *test_cli.READY, "sleep", "1000")
    pid = int(command.stdout.readline())
    told_until(o, "here")
    b.send("CAMPAIGN", "e", "DATA", "b")
    harness.wait_queued(two_hosts[1], "e", 1)
    os.kill(command.pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)  # what it runs has inherited the leadership
    command.communicate(timeout=harness.PATIENCE)
    assert isinstance(b.reply(), int) and told_until(o, "b")[1] == "beta"


def test_a_lost_session_ends_a_leadership_first(own_zk, daemons, clients):
    """The leader's host is cut off by a stopped server: it is told before anybody else could lead."""
    server = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(server, **FAST)
    a, o = clients(d), clients(d)
    token = a.call("CAMPAIGN", "e", "DATA", "a")
    o.call("OBSERVE", "e")
    assert next_leader(o) == (token, d.host, "a")
    with stopped(server):
        assert a.loss() == ["lost", "e", token, "session"]
        assert a.call("VALID", "e") == 0 and a.call("CAMPAIGN", "e", "DATA", "a").code == "LOST"
        assert o.call("LEADER", "e").code == "UNAVAILABLE"
    again = a.call("CAMPAIGN", "e", "DATA", "again")
    assert again > token and told_until(o, "again") == (again, d.host, "again")


def test_observers_see_what_happened_while_they_were_cut_off(own_zk, daemons, clients):
    """The observer's daemon stands still while two lead after each other; its connection and session go with that."""
    server = own_zk(tick_ms=FAST_TICK_MS)
    first, second = (daemons(server, host=h, **FAST) for h in ("alpha", "beta"))
    a, b, o = clients(first), clients(first), clients(second)
    o.call("OBSERVE", "e")
    token = a.call("CAMPAIGN", "e", "DATA", "a")
    told_until(o, "a")
    with stopped(second):
        b.send("CAMPAIGN", "e", "DATA", "b")
        harness.wait_queued(first, "e", 1)
        a.call("RESIGN", "e")
        middle = b.reply()
        c = clients(first)
        c.send("CAMPAIGN", "e", "DATA", "c")
        harness.wait_queued(first, "e", 1)
        b.call("RESIGN", "e")
        last = c.reply()
        harness.wait_until(lambda: not any("/.hosts/beta" in path for paths in server.sessions().values() for path in paths),
                           "the session of the observer's host to end")
    assert told_until(o, "c") == (last, "alpha", "c")
    assert token < middle < last and o.quiet()


def test_a_restarted_server_tells_observers_nothing_twice(own_zk, daemons, clients):
    server = own_zk()
    d = daemons(server, zookeeper__session_timeout_ms=40000)  # a server may take long to start: that must cost no leader
    a, o = clients(d), clients(d)
    o.call("OBSERVE", "e")
    token = a.call("CAMPAIGN", "e", "DATA", "a")
    told_until(o, "a")
    server.kill()
    harness.wait_until(lambda: d.info("zookeeper")["connected"] == "0", "the connection to go")
    server.start()
    harness.wait_until(lambda: d.info("zookeeper")["connected"] == "1", "the connection to come back")
    assert d.info("stats")["losses_total"] == "0"
    b = clients(d)
    b.send("CAMPAIGN", "e", "DATA", "b")
    harness.wait_queued(d, "e", 1)
    assert a.call("RESIGN", "e") == 1
    after = b.reply()
    assert after > token and next_leader(o) == (after, d.host, "b")


def test_nothing_is_left_of_an_election(broker, clients, request, kazoo_client):
    a, b = clients(broker), clients(broker)
    a.call("CAMPAIGN", "e", "DATA", "a")
    b.call("OBSERVE", "e")
    b.call("CAMPAIGN", "e", "DATA", "b", "ENQUEUE")
    assert b.call("RESET") == "RESET" and a.call("RESIGN", "e") == 1
    harness.wait_until(lambda: not a.call("LOCKS"), "the election to be forgotten")
    if not broker.standalone:
        zk = request.getfixturevalue("zk")
        k = kazoo_client(zk)
        path = broker.options["zookeeper.root"] + "/e"
        assert k.get_children(path) == [] and b"kind=election" in k.get(path)[0]


# ---- the command ----


def test_the_command_campaigns_and_tells_who_leads(broker):
    observer = test_cli.start(broker, "observe", "e", says=NOBODY)
    assert test_cli.run(broker, "leader", "e").returncode == 1
    out = test_cli.run(broker, "campaign", "e", "10.0.0.1:80", "--", "sh", "-c", "echo $LOCKBROKER_TOKEN $LOCKBROKER_NAME; "
                       f"{harness.program('lockbroker')} -S {broker.socket} leader e; exit 7")
    assert out.returncode == 7, out.stderr
    (token, name), line = out.stdout.splitlines()[0].split(), out.stdout.splitlines()[1]
    assert name == "e" and line == f"{token}\t{broker.host}\t10.0.0.1:80"
    assert observer.stdout.readline() == line + "\n"
    assert observer.stdout.readline() == NOBODY + "\n"
    observer.terminate()
    observer.communicate(timeout=harness.PATIENCE)


def test_the_command_goes_on_observing_when_the_broker_is_back(broker, clients):
    """After a crash, in which its connection holds nothing that would keep it, and after a stop of some seconds."""
    observer = test_cli.start(broker, "observe", "e", says=NOBODY)
    waits = " Waiting for the broker to come back.\n"
    broker.crash()
    assert observer.stderr.readline().endswith(waits)
    assert observer.stdout.readline() == NOBODY + "\n"
    token = clients(broker).call("CAMPAIGN", "e", "DATA", "a")
    assert observer.stdout.readline() == f"{token}\t{broker.host}\ta\n"
    broker.kill()
    assert observer.stderr.readline().endswith(waits)
    broker.start()
    while (line := observer.stdout.readline()) != NOBODY + "\n":
        assert line, "it goes on; what the killed broker left is still there at first"
    assert harness.end(observer) and observer.stderr.read() == ""


def test_the_command_goes_on_observing_when_the_next_broker_is_just_being_stopped(standalone):
    observer = test_cli.start(standalone, "observe", "e", says=NOBODY)
    standalone.kill()
    os.unlink(standalone.socket)
    stopping = Impostor(standalone.socket, [HELLO, b"-DRAINING the daemon is stopping\r\n"])
    stopping.end()
    os.unlink(standalone.socket)
    standalone.start()
    assert observer.stdout.readline() == NOBODY + "\n"
    assert harness.end(observer) and len(observer.stderr.read().splitlines()) <= 2


def test_the_command_waits_until_it_is_known_whether_it_is_an_election(own_zk, daemons, clients):
    """Another client waits for a lock of that name, which ZooKeeper has not confirmed."""
    server = own_zk()
    d = daemons(server, zookeeper__session_timeout_ms=40000)
    waiter = clients(d)
    with stopped(server):
        waiter.send("LOCK", "e")
        harness.wait_queued(d, "e", 1)
        observer = test_cli.start(d, "observe", "e")
        assert observer.stderr.readline() == "lockbroker: Waiting until it is known whether e is an election.\n"
        waiter.close()
    assert observer.stdout.readline() == NOBODY + "\n"
    observer.terminate()
    assert "Waiting" not in observer.communicate(timeout=harness.PATIENCE)[1], "it is said once"


def test_the_command_refuses_what_it_cannot_do(broker, clients):
    clients(broker).call("CAMPAIGN", "e", "DATA", "a")
    assert test_cli.run(broker, "campaign", "-n", "e", "b", "--", "true").returncode == 75
    for line in "campaign e b", "campaign e", "campaign -s e b -- true", "lock e -- true":
        assert test_cli.run(broker, *line.split()).returncode == 64, line
