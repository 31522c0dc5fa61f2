# SPDX-License-Identifier: Apache-2.0
"""The operators' door: a second socket, through which alone what is for operators is carried out."""

import collections
import os
import re
import socket
import subprocess
import sys

import pytest

import harness
from mishaps import stopped

HOW = re.compile(r"DENIED only operators may .*: use the operators' socket (\S+) \(lockbroker does so by itself for root\)")


def lockbroker(*words, **env):
    return harness.run([harness.program("lockbroker"), *words], env=os.environ | env)


def reload(daemon):
    """By another operator."""
    with daemon.client(operator=True) as c:
        return c.call("RELOAD")


def test_root_is_a_user_like_any_other_on_the_socket_of_everybody(standalone, clients):
    c, operator = clients(standalone), clients(standalone, operator=True)
    for words in (["FORCEUNLOCK", "a"], ["LIMIT", "s", 5], ["RESTART"], ["RELOAD"]):
        assert HOW.fullmatch(c.call(*words)).group(1) == standalone.operator_socket, words
    token = c.call("LOCK", "a")
    assert operator.call("FORCEUNLOCK", "a") == 1 and c.push() == ["lost", "a", token, "forced"]


def test_the_socket_has_its_mode_and_goes_with_the_daemon(daemons):
    d = daemons(daemon__socket_mode="0666")
    assert os.stat(d.operator_socket).st_mode & 0o777 == 0o600
    assert d.operator_socket == os.path.join(d.dir, "operator.sock")
    assert d.terminate() == 0
    assert not os.path.exists(d.operator_socket)


def test_a_group_opens_it(daemons, tmp_path):
    path = str(tmp_path / "door")
    d = daemons(daemon__operator_socket=path, daemon__operator_group="4711")
    st = os.stat(path)
    assert (st.st_mode & 0o777, st.st_gid) == (0o660, 4711)
    assert reload(d) == ""


@pytest.mark.parametrize("options, sentence", [
    ({"daemon__operator_group": "no-such-group"}, "daemon.operator_group = no-such-group: there is no such group"),
    ({"daemon__operator_socket": "{socket}"}, "is daemon.socket, too; set another path"),
])
def test_a_door_that_cannot_be_is_an_error(daemons, options, sentence):
    d = harness.Daemon(wait=False)
    daemons.list.append(d)
    d.expected_exit = 2
    d.options |= {k.replace("__", "."): v.format(socket=d.socket) for k, v in options.items()}
    d.spawn()
    assert d.process.wait(harness.PATIENCE) == 2 and sentence in d.log()
    checked = subprocess.run([*d.command(), "--check-config"], capture_output=True, text=True, check=False)
    assert checked.returncode == 2 and sentence in checked.stderr


def test_a_second_daemon_does_not_take_it(daemons, standalone):
    d = harness.Daemon(wait=False, daemon__operator_socket=standalone.operator_socket)
    daemons.list.append(d)
    d.spawn()
    assert d.process.wait(harness.PATIENCE) != 0
    assert f"another lockbrokerd is serving {standalone.operator_socket}" in d.log()
    assert reload(standalone) == ""


def test_who_came_through_it_stays_an_operator(standalone, clients):
    """Over a hand-over, and after a kill: then those go on that hold something."""
    c, operator = clients(standalone), clients(standalone, operator=True)
    assert isinstance(c.call("LOCK", "mine"), int) and isinstance(operator.call("LOCK", "a"), int)
    standalone.hand_over(operator)
    assert operator.call("RELOAD") == "" and HOW.fullmatch(c.call("RELOAD"))
    assert reload(standalone) == ""


def test_after_a_kill_it_is_open_and_its_clients_are_operators(standalone, clients):
    operator, c = clients(standalone, operator=True), clients(standalone)
    for client in (operator, c):
        assert isinstance(client.call("LOCK", f"{client is c}"), int)
    harness.wait_until(lambda: [x for x in clients(standalone, operator=True).call("CLIENT", "LIST").splitlines()
                                if int(re.search(r"age=(\d+)", x).group(1)) >= 3], "the keeper to have them")
    standalone.crash()
    assert operator.call("RELOAD") == "" and HOW.fullmatch(c.call("RELOAD"))
    assert reload(standalone) == ""


@pytest.mark.parametrize("names, operators", [("lockbrokerd.socket:operators", 1), ("operators:lockbrokerd.socket", 0)])
def test_a_service_manager_may_pass_it(launch, names, operators):
    d = harness.Daemon(wait=False)
    listening = [socket.create_server(os.path.join(d.dir, name), family=socket.AF_UNIX) for name in ("first", "second")]
    launch(d, listening=[s.fileno() for s in listening], names=names)
    with harness.Client(listening[operators].getsockname()) as c:
        assert c.call("RELOAD") == ""
    with harness.Client(listening[1 - operators].getsockname()) as c:
        assert HOW.fullmatch(c.call("RELOAD"))
    for s in listening:
        s.close()


def test_the_command_uses_it_by_itself(standalone, locked):
    c, token = locked(standalone)
    done = lockbroker("force-unlock", "a", LOCKBROKER_SOCKET=standalone.socket)
    assert (done.returncode, done.stderr) == (0, "") and c.push() == ["lost", "a", token, "forced"]
    assert lockbroker("call", "RELOAD", LOCKBROKER_SOCKET=standalone.socket).returncode == 0
    assert lockbroker("reload", LOCKBROKER_OPERATOR_SOCKET=standalone.operator_socket).returncode == 0
    # It stands beside the one that is named.
    assert lockbroker("-S", standalone.socket, "reload").returncode == 0
    assert lockbroker("-S", standalone.operator_socket, "reload").returncode == 0


# ---- rules of access ----


def as_user(uid, daemon, *words):
    """What redis-cli is told as another user."""
    return harness.run(["setpriv", f"--reuid={uid}", "--regid=4711", "--groups=4712", "redis-cli", "-s", daemon.socket,
                        *words]).stdout.strip()


def for_all(d):
    for path in (d.dir, os.path.dirname(d.dir)):
        os.chmod(path, 0o755)
    os.chmod(d.socket, 0o777)
    return d


def test_rules_say_who_may_take_what(daemons, conf):
    conf.write_text("[access]\nrule = allow 4000 app/* lock\nrule = deny @4712 * lock,shared\nrule = deny 4000-4999 s acquire\n"
                    "rule = allow @4711 r revoke\nrule = allow 4000 s limit\n")
    d = for_all(daemons(argv=["-c", str(conf)]))
    denied = f'DENIED this user may not lock other: the rule "deny @4712 * lock,shared" ({conf}:3) denies that'
    assert as_user(4000, d, "LOCK", "other") == denied
    assert as_user(4000, d, "ENQUEUE", "other") == denied and as_user(4000, d, "MLOCK", "1", "other") == denied
    assert as_user(4000, d, "LOCK", "app/1").isdigit() and as_user(4000, d, "LOCK", "app/1", "SHARED").startswith("DENIED ")
    assert as_user(4001, d, "LOCK", "app/1").startswith("DENIED ")
    assert as_user(4000, d, "ACQUIRE", "s", "LIMIT", "1").startswith("DENIED ")
    assert as_user(4000, d, "ACQUIRE", "t", "LIMIT", "1") == "1"
    assert as_user(4000, d, "REVOKE", "r") == "0" and HOW.fullmatch(as_user(4000, d, "REVOKE", "a"))
    assert as_user(4000, d, "LIMIT", "s", "3") == "" and HOW.fullmatch(as_user(4000, d, "LIMIT", "t", "3"))


@pytest.mark.parametrize("rule, sentence", [
    ("deny no-such-user * lock", "access.rule = deny no-such-user * lock: there is no user no-such-user"),
    ("deny @no-such-group * lock", "there is no group no-such-group"),
    ("deny * * fly", 'there is no verb "fly"'),
])
def test_a_rule_that_is_none_is_an_error(conf, rule, sentence):
    conf.write_text(f"[access]\nrule = {rule}\n")
    done = harness.run([harness.program("lockbrokerd"), "-c", str(conf)])
    assert done.returncode == 2 and sentence in done.stderr and f"{conf}:2" in done.stderr


def test_rules_change_by_a_reload_and_what_is_held_stays(daemons, clients, locked, conf):
    d = daemons(argv=["-c", str(conf)])
    (c, token), operator = locked(d), clients(d, operator=True)
    conf.write_text("[access]\nrule = deny root * lock,acquire,campaign,observe\n")
    assert operator.call("RELOAD") == "access.rule: there are 1 rules, before 0\n"
    assert c.call("LOCK", "b").startswith("DENIED this user may not lock b: ")
    assert c.call("VALID", "a", "TOKEN", token) > 0 and isinstance(operator.call("LOCK", "b"), int)
    conf.write_text("[access]\nrule = deny nobody-of-that-name * lock\n")
    assert operator.call("RELOAD").code == "ERR" and c.call("LOCK", "c").startswith("DENIED ")
    conf.write_text("")
    assert operator.call("RELOAD") == "access.rule: there are 0 rules, before 1\n"
    assert isinstance(c.call("LOCK", "c"), int) and c.call("UNLOCK", "a") == 0


def test_rules_and_verdicts_outlive_a_kill_and_a_hand_over(daemons, clients, conf):
    """After a kill those in use go on, whatever the file says by then, and name the file where they stood."""
    conf.write_text("[access]\n\nrule = deny @root a lock\n")
    d = daemons(argv=["-c", str(conf), "-o", "access.rule=allow root * revoke"])
    c = clients(d)
    denied = f'DENIED this user may not lock a: the rule "deny @root a lock" ({conf}:3) denies that'
    assert c.call("LOCK", "a") == denied and isinstance(c.call("LOCK", "held"), int)
    harness.wait_until(lambda: "age=0" not in (seen := clients(d, operator=True).call("CLIENT", "LIST")) or
                       all(int(age) >= 3 for age in re.findall(r"held=1.* age=(\d+)", seen)), "the keeper to have it")
    conf.write_text("[access]\nrule = deny * b lock\n")
    d.crash()
    assert c.call("LOCK", "a") == denied and isinstance(c.call("LOCK", "b"), int) and c.call("UNLOCK", "b") == 0
    assert c.call("REVOKE", "b") == 0
    rows = clients(d, operator=True).call("ACCESS", 0, "a", "GROUPS", "0")
    assert [row["where"] for row in rows if row["rule"]] == [f"{conf}:3", "-o"]
    d.hand_over()
    assert c.call("LOCK", "b").startswith("DENIED ") and isinstance(c.call("LOCK", "a"), int)
    assert c.call("UNLOCK", "held") == 0


class Inherited(harness.Client):
    """A client of a connection that another process has made, which has ended by now."""

    def __init__(self, path):
        self.socket, self.buffer = socket.socket(socket.AF_UNIX), b""
        self.pushes = collections.deque()
        self.socket.settimeout(harness.PATIENCE)
        connect = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).connect(sys.argv[2])"
        subprocess.run([sys.executable, "-c", connect, str(self.fileno()), path], pass_fds=[self.fileno()], check=True)


def test_who_ends_before_its_unit_is_read_gets_nothing_by_that(daemons, clients, request):
    d = daemons(argv=["-o", "access.rule=deny unit:report.service a *", "-o", "access.rule=allow unit:report.service * revoke"])
    with stopped(d):
        c = Inherited(d.socket)
    request.addfinalizer(c.close)
    denied = 'DENIED this user may not lock a: the rule "deny unit:report.service a *" (-o) denies that'
    assert c.call("LOCK", "a") == denied and isinstance(c.call("LOCK", "b"), int)
    assert c.call("REVOKE", "c").startswith("DENIED ")
    operator = clients(d, operator=True)
    if os.geteuid() == 0:  # it has an account of its own then
        assert "user 0 (unit unknown)" in {row["account"] for row in operator.call("ACCOUNTS")}
    d.hand_over(operator)
    assert c.call("LOCK", "a") == denied and c.call("UNLOCK", "b") == 0
    allowed = {row["verb"]: (row["allowed"], row["rule"][:4]) for row in operator.call("ACCESS", 1, "a", "UNIT", "unknown")}
    assert allowed["lock"] == (0, "deny") and allowed["revoke"] == (0, "deny")


def test_who_may_not_look_sees_no_process_and_no_data(daemons, clients):
    d = for_all(daemons(argv=["-o", "access.rule=deny 4000 secret look"]))
    c = clients(d)
    for name in "secret", "open":
        c.call("LOCK", name, "DATA", "of nobody's business")
    c.call("CAMPAIGN", "lead", "DATA", "x")
    for command in ("HOLDERS", "WHY"):
        shown, veiled = as_user(4000, d, command, "open"), as_user(4000, d, command, "secret")
        assert str(os.getpid()) in shown and "business" in shown
        assert str(os.getpid()) not in veiled and "business" not in veiled and "python" not in veiled
    assert f"pid={os.getpid()}" not in as_user(4000, d, "CLIENT", "LIST")
    assert f"pid={os.getpid()}" in clients(d, operator=True).call("CLIENT", "LIST")


def test_an_operator_is_told_what_applies_and_why(daemons):
    d = daemons(argv=["-o", "access.rule=deny unit:web.service a* lock", "-o", "access.rule=allow daemon * revoke"])
    env = {"LOCKBROKER_SOCKET": d.socket}
    rows = [re.split(r"\s{2,}", line.strip()) for line in lockbroker("access", "daemon", "abc", **env).stdout.splitlines()]
    assert ["revoke", "yes", "allow daemon * revoke", "-o"] in rows and ["lock", "yes", "-", "-"] in rows and ["limit", "no", "-", "-"] in rows
    assert re.search(r"^lock +no +deny unit:web.service a\* lock +-o$",
                     lockbroker("access", "daemon", "abc", "web.service", **env).stdout, re.M)
    assert lockbroker("access", "no-such-user", "a", **env).returncode == 64
    with d.client() as c:
        assert c.call("ACCESS", 1, "a").code == "DENIED"


# ---- sessions ----


def test_a_contender_of_a_host_that_is_configured_otherwise_is_told_without_its_session(daemons, zk, root, clients, kazoo_client):
    """In a directory that other software made. That no log tells a session is looked at when each daemon ends."""
    path = f"{root}/theirs"
    kazoo_client(zk).ensure_path(f"{path}/x")
    a = daemons(zk, f"{root}/own", host="alpha", argv=["-o", f"prefix:p/.path={path}", "-o", "prefix:p/.flavour=rw"])
    b = daemons(zk, f"{root}/own", host="beta", argv=["-o", f"prefix:p/.path={path}", "-o", "prefix:p/.flavour=mutex"])
    holder = clients(a)
    assert holder.call("LOCK", "p/x", "WAIT", 20000) > 0
    assert clients(b).call("LOCK", "p/x", "WAIT", 300) is None
    assert "a child of no known kind" in b.log()


def test_what_a_client_is_shown_does_not_tell_the_session(daemons, zk, root, clients):
    """The exposure figure: how often any answer tells the number of a session, in any form."""
    a, b = two_hosts = [daemons(zk, root, host=host, daemon__log_level="debug") for host in ("alpha", "beta")]
    secrets = {int(h["session"], 16) for h in clients(a, operator=True).call("HOSTS")}
    assert len(secrets) == 2
    assert all(h["session"] == "" for h in clients(a).call("HOSTS"))
    ours, theirs = clients(a), clients(b)
    for name in "a", "k/a":
        ours.call("LOCK", name, "DATA", "x")
        theirs.send("LOCK", name, "WAIT", 3000)
        theirs.reply()
        theirs.call("ENQUEUE", name)
    ours.call("ACQUIRE", "s", "LIMIT", 1)
    theirs.call("ACQUIRE", "s", "LIMIT", 1, "WAIT", 1000)
    ours.call("CAMPAIGN", "e", "DATA", "x")
    answers = []
    for d in two_hosts:
        c = clients(d)
        c.call("OBSERVE", "e")
        for words in (["HOSTS"], ["INFO"], ["LOCKS"], ["METRICS"], ["CLIENT", "LIST"], ["LEADER", "e"], ["HELLO", "3"], ["COMMAND"],
                      *([q, name] for q in ("HOLDERS", "QUEUE", "WHY", "REVOKE") for name in ("a", "k/a", "s", "e"))):
            answers.append(f"{words} {c.call(*words)} {list(c.pushes)}")
        answers.append(d.log())
    assert clients(a, operator=True).call("FORCEUNLOCK", "a") == 1
    assert "negotiated timeout" in a.log() and "taken by force" in a.log() + b.log()
    answers += [a.log(), b.log()]
    told = 0
    for secret in secrets:
        digits = f"{secret:016x}"
        # In a uuid of version 8 two fixed digits stand between those of the session.
        forms = [digits, str(secret), f"{digits[:12]}8{digits[12:15]}8{digits[15:]}"]
        told += sum(form in answer.replace("-", "") for form in forms for answer in answers)
    print(f"exposure: {told} of {len(answers)} answers and logs tell a session")
    assert told == 0
    assert any(f"{secret:x}" in str(clients(a, operator=True).call("INFO", "session")) for secret in secrets)
