# SPDX-License-Identifier: Apache-2.0
"""What a host can tell about locks that others hold: HOLDERS, QUEUE, WHY, HOSTS."""

import os
import re

import harness
from harness import FAST, FAST_TICK_MS, ROOMY
from mishaps import kill_and_start, stopped
from test_cli import run

OPERATORS = True  # see clients of conftest.py


def described(client, name):
    """The holder, once its host has written about it."""
    (holder,) = client.call("HOLDERS", name)
    return holder if holder["pid"] else None


def test_who_says_where_to_ask_for_what_only_the_holders_host_knows(two_hosts, clients):
    holder = clients(two_hosts[0])
    holder.call("LOCK", "orders")
    elsewhere, there = (run(two_hosts[i], "who", "orders").stdout for i in (1, 0))
    assert ("\nWhich process it is, and since when, is known to host alpha only, until somebody elsewhere waits: run there: "
            "lockbroker who orders\n") in elsewhere
    assert str(os.getpid()) in there and "known to" not in there
    waiter, asker = clients(two_hosts[1]), clients(two_hosts[1])
    waiter.send("LOCK", "orders")
    harness.wait_until(lambda: described(asker, "orders"), "the holder to write")
    told = run(two_hosts[1], "who", "orders").stdout
    assert str(os.getpid()) in told and "known to" not in told


def test_who_is_on_that_host_is_not_sent_there(daemons, zk, root, clients):
    """The whole service was killed while its holder lives: the znode is still this host's."""
    d = daemons(zk, root, host="alpha")
    holder = clients(d)
    holder.call("LOCK", "orders")
    kill_and_start(d)
    said = run(d, "who", "orders").stdout
    assert "alpha" in said and "run there" not in said
    assert "a daemon of this host that was killed has left it" in said
    holder.close()


def test_the_questions_of_operators_have_answers_on_every_host(two_hosts, clients):
    """Each command of the manual's list."""
    section = harness.read_source("client-lib/man/lockbroker.1").split(".Sh QUESTIONS OF AN OPERATOR\n")[1].split("\n.Sh ")[0]
    commands = [re.sub(r"\b(?:Cm|Ar) |Fl (?=-)", lambda m: "-" if m[0] == "Fl " else "", line)
                for line in re.findall(r"^\.Nm (.*)", section, re.M)]
    assert len(commands) == 11 and commands[-1] == "drain --wait"
    holder, waiter = clients(two_hosts[0]), clients(two_hosts[1])
    token = holder.call("LOCK", "orders/42")
    waiter.send("LOCK", "orders/42")
    asker = clients(two_hosts[1])
    harness.wait_until(lambda: described(asker, "orders/42"), "the holder to write")
    shown = {"who orders/42": str(token), "ls --all": "orders/42", "why orders/42": f"pid {os.getpid()}", "info session": "session_state:safe",
             "check": "OK", "accounts": "connections", "log": "event=client_connected", "drain --wait": ""}
    for command in "ls --all --watch", "top":  # they do not end
        commands.remove(command)
    commands.remove("history orders/42 --at 20:31:05")  # it reads the journal: test_history.py
    for command in commands:
        if command.startswith("drain"):
            waiter.close()
            holder.call("UNLOCK", "orders/42")
        for d in two_hosts:
            done = run(d, *command.split())
            assert done.returncode == 0, (command, done)
            assert shown[command] in done.stdout, (command, done)
        if command.startswith("why"):
            assert "beta" in run(two_hosts[0], "who", "orders/42").stdout


def test_a_holder_of_another_host_is_named(two_hosts, clients):
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    a.call("CLIENT", "SETNAME", "settling")
    token = a.call("LOCK", "orders")
    (before,) = b.call("HOLDERS", "orders")
    assert (before["host"], before["mode"], before["pid"], before["held_ms"]) == ("alpha", "exclusive", 0, -1)
    waiter = clients(two_hosts[1])
    waiter.send("LOCK", "orders")
    holder = harness.wait_until(lambda: described(b, "orders"), "the holder to write")
    assert holder["host"] == "alpha" and holder["pid"] == os.getpid() and holder["uid"] == os.getuid()
    assert holder["name"] == "settling" and holder["token"] == token and holder["held_ms"] >= 100
    assert holder["znode"].startswith("_c_")
    (queued,) = b.call("QUEUE", "orders")
    assert (queued["host"], queued["position"], queued["pid"]) == ("beta", 1, os.getpid())
    why = b.call("WHY", "orders")
    assert why["why"].startswith(f"held by host alpha, pid {os.getpid()} (")
    assert (why["state"], why["waiters"], why["hosts_before"], why["position"]) == ("waiting", 1, 1, 0)
    assert [h["host"] for h in why["holders"]] == ["alpha"]
    (elsewhere,) = a_view = clients(two_hosts[0]).call("QUEUE", "orders")
    assert elsewhere["host"] == "beta" and len(a_view) == 1
    a.call("UNLOCK", "orders")
    assert waiter.reply() > token
    (here,) = b.call("HOLDERS", "orders")
    assert (here["host"], here["age_ms"]) == ("beta", 0)


def test_the_text_of_a_holder_is_seen_on_hosts_that_wait(two_hosts, clients):
    a, b, waiter = clients(two_hosts[0]), clients(two_hosts[1]), clients(two_hosts[1])
    token = a.call("LOCK", "orders", "DATA", "10.0.0.1:80 = here")
    waiter.send("LOCK", "orders")
    holder = harness.wait_until(lambda: described(b, "orders"), "the holder to write")
    assert holder["data"] == "10.0.0.1:80 = here"
    assert a.call("LOCK", "orders", "REENTER", "DATA", "there") == token
    harness.wait_until(lambda: described(b, "orders")["data"] == "there", "the other text")
    assert "there" in run(two_hosts[1], "who", "orders").stdout


def test_a_try_is_enough_to_learn_who_holds_it(two_hosts, clients):
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    a.call("LOCK", "orders", "DATA", "nightly")

    def tried():
        assert b.call("LOCK", "orders", "WAIT", 0) is None
        return described(b, "orders")

    assert harness.wait_until(tried, "the holder to write")["data"] == "nightly"


def test_a_host_that_does_not_take_part_can_tell(daemons, zk, root, clients):
    a, b, c = (clients(daemons(zk, root, host=name)) for name in ("alpha", "beta", "gamma"))
    a.call("LOCK", "a")
    b.send("LOCK", "a")
    harness.wait_until(lambda: len(c.call("QUEUE", "a")) == 1, "beta to wait")
    (holder,), (waiter,) = c.call("HOLDERS", "a"), c.call("QUEUE", "a")
    assert (holder["host"], waiter["host"], waiter["waited_ms"]) == ("alpha", "beta", -1)
    why = c.call("WHY", "a")
    assert why["why"].startswith("held by host alpha") and (why["hosts_before"], why["hosts_waiting"]) == (2, 1)


def test_hosts_come_and_go(daemons, zk, root, clients):
    a = daemons(zk, root, host="alpha")
    b = daemons(zk, root, host="beta")
    c = clients(a)
    # A session is proven a moment before its host's znode stands.
    harness.wait_until(lambda: len(c.call("HOSTS")) == 2, "both to be announced")
    hosts = {h["host"]: h for h in c.call("HOSTS")}
    assert list(hosts) == ["alpha", "beta"]
    assert (hosts["alpha"]["self"], hosts["beta"]["self"]) == (1, 0)
    assert hosts["beta"]["pid"] == b.pid and hosts["beta"]["session"].startswith("0x")
    b.terminate()
    harness.wait_until(lambda: [h["host"] for h in c.call("HOSTS")] == ["alpha"], "beta to go")


def test_questions_without_zookeeper_are_answered_in_part(own_zk, daemons, clients):
    server = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(server, **ROOMY)
    holder, c = clients(d), clients(d)
    holder.call("LOCK", "held")
    server.kill()
    harness.wait_until(lambda: d.info("zookeeper")["connected"] == "0", "the connection to go")
    assert [h["host"] for h in c.call("HOLDERS", "held")] == [d.host]
    assert c.call("HOLDERS", "other").code == "UNAVAILABLE" and "no connection to ZooKeeper" in c.call("WHY", "other")["why"]
    assert c.call("HOSTS").code == "UNAVAILABLE"
    server.start()


def test_a_silent_server_holds_no_question_for_long(own_zk, daemons, clients):
    server = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(server, **FAST)
    c = clients(d)
    with stopped(server):
        assert c.call("HOLDERS", "a").code == "UNAVAILABLE"
