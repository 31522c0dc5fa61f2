# SPDX-License-Identifier: Apache-2.0
"""The configuration is read again while the daemon runs: by RELOAD, by `lockbroker reload`, by SIGHUP. What it is by then:
CONFIG GET. What is wrong with it, without a daemon: --check-config."""

import os
import re
import signal
import subprocess

import pytest

import fakezk
import harness
from library import compile_shim
from test_cli import run

OPERATORS = True  # see clients of conftest.py


class Conf:
    """The file of a daemon."""

    def __init__(self, path):
        self.path = str(path)
        self.write("")

    def write(self, text):
        """At once, as an editor does it: nobody reads a half of it."""
        with open(self.path + ".new", "w") as f:
            f.write(text)
        os.rename(self.path + ".new", self.path)


@pytest.fixture
def conf(tmp_path):
    return Conf(tmp_path / "lockbroker.conf")


@pytest.fixture
def daemon(daemons, conf):
    return daemons(argv=["-c", conf.path])


def lines(daemon, text):
    return [line for line in daemon.log().splitlines() if text in line]


def test_what_has_changed_is_told_and_logged(daemon, conf, clients):
    c = clients(daemon)
    assert c.call("RELOAD") == ""
    assert lines(daemon, "info: the configuration was read again: nothing has changed")
    conf.write("[limits]\nlocks = 7\n[daemon]\nlog_level = warning\n")
    assert c.call("RELOAD") == "daemon.log_level = warning, before info\nlimits.locks = 7, before 140000\n"
    assert lines(daemon, "info: limits.locks = 7, before 140000")
    assert daemon.info("limits")["limit_locks"] == "7"
    conf.write("")
    assert c.call("RELOAD") == "daemon.log_level = info, before warning\nlimits.locks = 140000, before 7\n"
    assert not lines(daemon, "info: limits.locks = 140000, before 7"), "it was still left out"


def test_a_key_that_needs_a_restart_keeps_its_value_and_that_is_said_each_time(daemon, conf, clients):
    c = clients(daemon)
    conf.write("[zookeeper]\ntick_ms = 1000\n[prefix:app/]\nflavour = mutex\n")
    for times in (1, 2):
        told = c.call("RELOAD").splitlines()
        assert told == ["zookeeper.tick_ms = 1000 needs a restart; until then it is 2000",
                        "[prefix:app/] is new, which needs a restart"]
        assert all(len(lines(daemon, f"warning: {line}")) == times for line in told)


def test_an_option_goes_on_to_override_the_file(daemon, conf, clients):
    conf.write("[daemon]\nstop_timeout_ms = 77\nsocket = /nowhere\n")
    assert clients(daemon).call("RELOAD") == ""


def test_a_wrong_configuration_changes_nothing(daemon, conf, clients):
    c = clients(daemon)
    for text, error in (("[limits]\nlocks = 7\nlock = 8\n", f"{conf.path}:3: limits.lock: unknown key"),
                        ("[limits]\nlocks = none\n", f"{conf.path}:2: limits.locks = none: must be a number from 1 to 10000000"),
                        ("[locks", f"{conf.path}:1: the line is neither a [section] nor KEY = VALUE nor a comment")):
        conf.write(text)
        assert c.call("RELOAD") == f"ERR {error}"
        assert lines(daemon, f"error: the configuration is not changed: {error}")
        assert daemon.info("limits")["limit_locks"] == "140000"
    os.unlink(conf.path)
    assert c.call("RELOAD") == f"ERR {conf.path}: No such file or directory"
    assert isinstance(c.call("LOCK", "a"), int)


def test_what_does_not_fit_to_the_session_that_goes_on_is_refused(daemons, zk, root, conf, clients):
    d = daemons(zk, root, argv=["-c", conf.path])
    conf.write("[zookeeper]\nsession_timeout_ms = 60000\n[locks]\ngrant_min_ms = 9000\nlinger_ms = 1\n")
    assert clients(d).call("RELOAD") == ("ERR locks.grant_min_ms: 9000 is not less than a third of "
                                         "zookeeper.session_timeout_ms = 15000")


def test_a_signal_reloads_and_the_service_manager_is_told(daemon, conf):
    conf.write("[limits]\nlocks = 7\n")
    daemon.signal(signal.SIGHUP)
    told = []
    while "READY=1" not in told:
        more = daemon.notified(harness.PATIENCE)
        assert more, told
        told += more
    assert "RELOADING=1" in told and re.fullmatch(r"MONOTONIC_USEC=\d+", told[told.index("RELOADING=1") + 1])
    assert daemon.info("limits")["limit_locks"] == "7"
    assert lines(daemon, "received a signal (Hangup): reading the configuration again")


def test_many_who_ask_at_once_are_all_told(daemon, conf, clients):
    everybody = [clients(daemon) for _ in range(20)]
    conf.write("[limits]\nlocks = 7\n")
    for c in everybody:
        c.send("RELOAD")
    daemon.signal(signal.SIGHUP)
    assert {c.reply() for c in everybody} <= {"", "limits.locks = 7, before 140000\n"}
    assert daemon.info("limits")["limit_locks"] == "7"


def test_who_asks_gets_what_stands_there_after_that(daemon, conf, clients):
    """Also while it is being read because of another one."""
    first, second = clients(daemon), clients(daemon)
    for locks in range(1, 50):
        first.send("RELOAD")
        conf.write(f"[limits]\nlocks = {locks}\n")
        second.call("RELOAD")
        assert daemon.info("limits")["limit_locks"] == str(locks)
        first.reply()


def test_connections_beyond_a_lower_limit_stay_and_more_are_refused(daemon, conf, clients):
    a, b = clients(daemon), clients(daemon)
    assert isinstance(a.call("LOCK", "a"), int)
    conf.write("[limits]\nclients = 1\n")
    b.call("RELOAD")
    with harness.Client(daemon.socket, 2) as refused:
        assert refused.reply().startswith("LIMIT user ")
    assert a.call("VALID", "a") > 0 and b.call("LOCK", "a", "WAIT", 0) is None
    conf.write("[limits]\nclients = 1000000\n")
    told = b.call("RELOAD").splitlines()
    assert told[0] == "limits.clients = 1000000, before 1"
    assert re.fullmatch(r"limits.clients = 1000000 needs a restart; until then \d+ clients are served, as many as at the start",
                        told[1])
    assert clients(daemon).call("PING") == "PONG"


def test_a_limit_of_requests_is_that_of_new_connections(daemon, conf, clients):
    old = clients(daemon)
    conf.write("[limits]\nrequest_bytes = 1024\nrequest_args = 8\n")
    old.call("RELOAD")
    assert old.call("ECHO", "x" * 5000) == "x" * 5000
    assert old.call("MLOCK", 10, *"abcdefghij")[0] > 0
    for words in (("ECHO", "x" * 5000), ("MLOCK", 10, *"abcdefghij")):
        new = clients(daemon)
        new.send(*words)
        assert new.reply().startswith("ERR Protocol error") and new.ended()


def test_unread_output_is_limited_at_once(daemon, conf, clients):
    c = clients(daemon)
    assert c.call("CLIENT", "LIST").startswith("id=")
    conf.write("[limits]\noutput_bytes = 4096\n")
    c.call("RELOAD")
    for _ in range(40):
        clients(daemon).call("CLIENT", "SETNAME", "x" * 64)
    assert c.call("CLIENT", "LIST").startswith("LIMIT the answer is longer than limits.output_bytes")


def test_a_daemon_that_stops_does_not_reload(daemon, conf, clients):
    holder, other = clients(daemon), clients(daemon)
    holder.call("LOCK", "a")
    daemon.signal(signal.SIGTERM)
    harness.wait_until(lambda: lines(daemon, "stopping"), "the stop to begin")
    assert other.call("RELOAD") == "DRAINING the daemon is stopping"
    daemon.signal(signal.SIGHUP)
    holder.call("UNLOCK", "a")
    assert daemon.terminate() == 0
    assert not lines(daemon, "the configuration was read")


def test_the_command_shows_what_has_changed_and_fails_if_there_is_an_error(daemon, conf):
    conf.write("[limits]\nlocks = 7\n")
    done = run(daemon, "reload")
    assert (done.returncode, done.stdout, done.stderr) == (0, "limits.locks = 7, before 140000\n", "")
    done = run(daemon, "reload")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    conf.write("[limits]\nlock = 7\n")
    done = run(daemon, "reload")
    assert (done.returncode, done.stdout) == (64, "")
    assert f"{conf.path}:2: limits.lock: unknown key" in done.stderr


# ---- drop-ins, and errors ----


def drop_in(conf, name, text):
    os.makedirs(conf.path + ".d", exist_ok=True)
    path = os.path.join(conf.path + ".d", name)
    with open(path, "w") as f:
        f.write(text)
    return path


def check(*words):
    return subprocess.run([harness.program("lockbrokerd"), "--check-config", *words], capture_output=True, text=True,
                          timeout=harness.PATIENCE)


def test_a_rule_that_leaves_other_ways_to_take_a_name_is_told(daemon, conf, clients):
    rule, rest = "deny 4000 backup/* lock,shared,look", "a name that may not be locked can still be taken as an election or a "
    conf.write(f"[access]\nrule = {rule}\n")
    done = check(conf.path)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert f"{conf.path}:2: access.rule = {rule}: {rest}" in done.stderr
    told = clients(daemon).call("RELOAD").splitlines()
    assert len(told) == 2 and told[1].startswith(f"{conf.path}:2: access.rule = {rule}: {rest}")
    conf.write("[access]\nrule = deny 4000 backup/* *\n")
    assert check(conf.path).stderr == "" and len(clients(daemon).call("RELOAD").splitlines()) == 1


def test_drop_ins_are_read_after_the_file_and_again_with_it(daemon, conf, clients):
    c = clients(daemon)
    conf.write("[limits]\nlocks = 7\n")
    second = drop_in(conf, "20-b.conf", "[limits]\nlocks = 9\n")
    drop_in(conf, "10-a.conf", "[limits]\nlocks = 8\n[locks]\nlinger_ms = 1\n")
    drop_in(conf, "20-b.conf~", "nonsense")
    assert c.call("RELOAD") == "locks.linger_ms = 1, before 100\nlimits.locks = 9, before 140000\n"
    os.unlink(second)
    assert c.call("RELOAD") == "limits.locks = 8, before 9\n"


def test_of_many_errors_the_first_is_answered_and_all_are_logged(daemon, conf, clients):
    conf.write("[limits]\nlocks = 7\nlock = 8\n")
    path = drop_in(conf, "10-a.conf", "[locks]\nlinger_ms = 5s\n")
    first, second = f"{conf.path}:3: limits.lock: unknown key", f"{path}:2: locks.linger_ms = 5s: must be a number from 0 to 60000"
    assert clients(daemon).call("RELOAD") == f"ERR {first} (and 1 more: lockbrokerd --check-config shows all)"
    assert all(lines(daemon, f"error: the configuration is not changed: {e}") for e in (first, second))
    assert daemon.info("limits")["limit_locks"] == "140000"


def test_a_drop_in_that_others_can_write_is_refused(daemon, conf, clients):
    path = drop_in(conf, "10-a.conf", "[limits]\nlocks = 7\n")
    os.chmod(path, 0o666)
    assert clients(daemon).call("RELOAD") == (f"ERR {path}: must belong to root or the daemon's user and not be writable by others "
                                              "(chmod go-w)")
    assert daemon.info("limits")["limit_locks"] == "140000"


def test_check_config_tells_all_errors_and_starts_nothing(conf):
    conf.write("[limits]\nlocks = 7\nlock = 8\n")
    path = drop_in(conf, "10-a.conf", "[locks]\nlinger_ms = 5s\n[nope]\n")
    for words in ((conf.path,), ("-c", conf.path)):
        done = check(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == [f"{conf.path}:3: limits.lock: unknown key",
                                            f"{path}:2: locks.linger_ms = 5s: must be a number from 0 to 60000",
                                            f"{path}:3: [nope]: unknown section"]
    conf.write("")
    drop_in(conf, "10-a.conf", "")
    done = check(conf.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{conf.path}: no errors, with {path}\n", "")


def test_check_config_looks_at_what_the_configuration_names(conf):
    conf.write("[daemon]\nsocket_group = no_such_group\n[zookeeper]\nauth_file = /no/such/file\n")
    done = check(conf.path)
    assert done.returncode == 2 and "no_such_group" in done.stderr and "/no/such/file" in done.stderr


def fails(conf, environment=None):
    """A daemon that does not start."""
    return subprocess.run([harness.program("lockbrokerd"), "-c", conf.path], capture_output=True, text=True,
                          env=os.environ | (environment or {}), timeout=harness.PATIENCE)


def test_a_start_with_errors_tells_all_of_them(conf):
    conf.write("[limits]\nlock = 8\nlocks = x\n")
    done = fails(conf)
    assert done.returncode == 2
    assert [line.partition(" ")[0] for line in done.stderr.splitlines()] == ["lockbrokerd:", "lockbrokerd:"]


@pytest.mark.parametrize("what", ["directory", "zeroes", "huge"])
def test_what_is_no_configuration_is_refused(daemon, conf, clients, what):
    if what == "directory":
        os.unlink(conf.path)
        os.mkdir(conf.path)
    else:
        conf.write("\0" * 100 if what == "zeroes" else "#\n" * 1000000)
    told = clients(daemon).call("RELOAD")
    assert told.startswith({"directory": f"ERR {conf.path}: Is a directory", "zeroes": f"ERR {conf.path}:1: the line has a zero byte",
                            "huge": f"ERR {conf.path}:524289: the file is larger than 1048576 bytes"}[what])


# ---- CONFIG GET ----


def test_config_get_tells_what_counts_now(daemon, conf, clients):
    c = clients(daemon)
    assert c.call("CONFIG", "GET", "locks.linger_ms", "*.handoff_*") == {
        "locks.linger_ms": "100", "locks.handoff_max": "64", "locks.handoff_ms": "100"}
    conf.write("[locks]\nlinger_ms = 7\n[zookeeper]\ntick_ms = 1000\n[prefix:app/]\n")
    c.call("RELOAD")
    settings = c.call("CONFIG", "GET", "*")
    assert settings["locks.linger_ms"] == "7"
    assert settings["zookeeper.tick_ms"] == "2000", "that needs a restart"
    assert settings["daemon.socket"] == daemon.socket, "from the command line"
    assert "prefix:app/.flavour" not in settings
    printed = subprocess.run([*daemon.command(), "--print-config"], capture_output=True, text=True).stdout
    assert len(settings) == len(re.findall(r"^\w+ *=", printed, re.M)) - 3
    with daemon.client(2, operator=True) as old:
        assert old.call("CONFIG", "GET", "locks.linger_ms") == ["locks.linger_ms", "7"]
    assert c.call("CONFIG", "GET", "nothing") == {}
    assert c.call("CONFIG", "SET", "locks.linger_ms", 8).startswith("ERR CONFIG GET")
    assert c.call("CONFIG", "GET").startswith("ERR ")
    assert c.call("CONFIG", "GET", "*[" + "q" * 60000 + "]") == {}
    assert c.call("CONFIG", "GET", *["locks.linger_ms"] * 16).keys() == {"locks.linger_ms"}
    assert c.call("CONFIG", "GET", *["locks.linger_ms"] * 17).startswith("LIMIT CONFIG GET takes at most 16 patterns")


def test_the_command_shows_the_configuration(daemon):
    done = run(daemon, "config", "locks.*_ms")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "locks.linger_ms = 100")
    assert "locks.try_ms = 100" in done.stdout and "handoff_max" not in done.stdout


# ---- other servers ----


@pytest.fixture
def on_file(daemons, zk, root, conf):
    """A daemon whose servers are in the file, and nowhere else."""
    d = daemons(zk, root, argv=["-c", conf.path], start=False)
    servers = d.options.pop("zookeeper.servers")
    conf.write(f"[zookeeper]\nservers = {servers}\n")
    d.start()
    return d


def connections(daemon):
    return len(lines(daemon, "connection to ZooKeeper lost")), daemon.info("stats")["sessions_total"]


def test_other_names_of_the_same_server_cost_no_connection(on_file, conf, clients, zk):
    c = clients(on_file)
    assert isinstance(c.call("LOCK", "a"), int)
    before = connections(on_file)
    new = f"localhost:{zk.port},127.0.0.1:1"
    conf.write(f"[zookeeper]\nservers = {new}\n")
    assert c.call("RELOAD") == f"zookeeper.servers = {new}, before 127.0.0.1:{zk.port}\n"
    assert c.call("CONFIG", "GET", "zookeeper.servers") == {"zookeeper.servers": new}
    assert on_file.info("zookeeper")["server"] == zk.address
    assert connections(on_file) == before and c.call("VALID", "a") > 0


def test_a_reload_moves_the_session_to_other_servers_and_costs_no_lock(ending, on_file, conf, clients, zk):
    """To each of two alone, one after the other; and to both, which costs no connection."""
    c = clients(on_file)
    gates = [ending(fakezk.Gate(zk.port)) for _ in range(2)]

    def server():
        return on_file.info("zookeeper")["server"]

    token = c.call("LOCK", "a")
    for gate in gates:
        conf.write(f"[zookeeper]\nservers = {gate.address}\n")
        assert c.call("RELOAD").startswith(f"zookeeper.servers = {gate.address}, before ")
        harness.wait_until(lambda gate=gate: server() == gate.address, "the connection to that server")
    before = connections(on_file)
    conf.write("[zookeeper]\nservers = " + ", ".join(gate.address for gate in gates) + "\n")
    assert c.call("RELOAD").startswith("zookeeper.servers = ")
    assert server() == gates[1].address and connections(on_file) == before
    # The other one is used when this one is gone.
    gates[1].shut()
    harness.wait_until(lambda: server() == gates[0].address, "the connection to the other server")
    assert c.call("LOCK", "a", "REENTER") == token
    stats = on_file.info("stats")
    assert (stats["losses_total"], stats["sessions_total"]) == ("0", "1")


def test_servers_that_nobody_knows_are_refused_and_nothing_changes(on_file, conf, clients, zk):
    c = clients(on_file)
    conf.write("[zookeeper]\nservers = no-such-host.invalid:2181\n[locks]\nlinger_ms = 7\n")
    c.send("RELOAD")
    with on_file.client() as other:
        assert isinstance(other.call("LOCK", "a"), int), "others are served meanwhile"
    assert c.reply().startswith("ERR zookeeper.servers = no-such-host.invalid:2181: cannot look up no-such-host.invalid: ")
    assert c.call("CONFIG", "GET", "locks.linger_ms", "zookeeper.servers") == {
        "locks.linger_ms": "100", "zookeeper.servers": f"127.0.0.1:{zk.port}"}


def test_servers_that_are_found_later_are_used_then(daemons, zk, root, conf, clients):
    """Started with one that is not there, and told of the right one."""
    d = daemons(zk, root, argv=["-c", conf.path], start=False, has_session=False)
    d.options.pop("zookeeper.servers")
    conf.write(f"[zookeeper]\nservers = 127.0.0.1:{harness.free_port()}\n")
    d.start()
    c = clients(d)
    conf.write(f"[zookeeper]\nservers = {zk.address}\n")
    c.call("RELOAD")
    harness.wait_until(lambda: isinstance(c.call("LOCK", "a", "REENTER"), int), "the session")


# ---- a name service that answers late, or not at all ----

NAMES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getpwnam_r(const char *name, struct passwd *entry, char *text, size_t size, struct passwd **ret)
{
	int (*next)(const char *, struct passwd *, char *, size_t, struct passwd **) = dlsym(RTLD_NEXT, "getpwnam_r");
	const char *slow = getenv("NAMES_SLOW");

	for (; strcmp(name, "slow") == 0 && access(slow, F_OK) == 0; usleep(10000)) /* a file that goes wakes nobody */
		truncate(slow, 1);                                                      /* says that somebody waits */
	if (strcmp(name, "broken") != 0)
		return next(strcmp(name, "slow") == 0 ? "root" : name, entry, text, size, ret);
	*ret = NULL;
	return EIO;
}
"""


@pytest.fixture
def names(tmp_path):
    """The environment of a daemon for which there is a user "slow" as long as a file is gone, and blocks while it is there."""
    slow = tmp_path / "slow"
    slow.touch()
    return {"LD_PRELOAD": compile_shim(NAMES, tmp_path), "NAMES_SLOW": str(slow)}


def wait_looked_up(names):
    """The daemon has read the configuration, and asks for "slow"."""
    harness.wait_until(lambda: os.stat(names["NAMES_SLOW"]).st_size, "the look-up to begin")


@pytest.mark.plain_only("a sanitizer wants to be the first library")
def test_a_user_who_cannot_be_looked_up_now_is_no_reason_not_to_start_again(conf, names):
    """RestartPreventExitStatus=2."""
    conf.write("[access]\nrule = deny broken * lock\n")
    done = fails(conf, names)
    assert done.returncode == 1 and "the user broken cannot be looked up: Input/output error" in done.stderr
    conf.write("[access]\nrule = deny broken * lock\nrule = deny no-such-user * lock\n")
    done = fails(conf, names)
    assert done.returncode == 2 and "there is no user no-such-user" in done.stderr


@pytest.mark.plain_only("a sanitizer wants to be the first library")
def test_a_slow_look_up_of_a_user_holds_up_nothing_else(zk, daemons, conf, clients, names, kazoo_client):
    d = daemons(zk, argv=["-c", conf.path], env=names)
    k, presence = kazoo_client(zk), f"{d.options['zookeeper.root']}/.hosts/{d.host}"
    reloader, c = clients(d), clients(d, operator=False)
    conf.write("[access]\nrule = deny slow other* *\n")
    reloader.send("RELOAD")
    wait_looked_up(names)
    assert isinstance(c.call("LOCK", "other"), int) and reloader.quiet()
    os.unlink(names["NAMES_SLOW"])
    assert reloader.reply() == "access.rule: there are 1 rules, before 0\n"
    assert c.call("LOCK", "other2").code == "DENIED" and c.call("UNLOCK", "other") == 0
    open(names["NAMES_SLOW"], "w").close()
    reloader.send("RELOAD")
    wait_looked_up(names)
    # The end of the session blocks, too, and needs another worker.
    harness.wait_until(lambda: k.exists(presence), "the host to be announced")
    d.signal(signal.SIGTERM)
    assert d.process.wait(harness.PATIENCE) == 0 and k.exists(presence) is None


@pytest.mark.plain_only("a sanitizer wants to be the first library")
def test_a_hand_over_does_not_wait_for_a_look_up_for_ever(daemons, conf, clients, names):
    d = daemons(argv=["-c", conf.path], env=names)
    reloader, c, restarter = clients(d), clients(d), clients(d)
    token = c.call("LOCK", "a")
    conf.write("[access]\nrule = deny slow other* *\n")
    reloader.send("RELOAD")
    wait_looked_up(names)
    conf.write("")  # the next process need not look anybody up
    restarter.send("RESTART")
    answer = reloader.reply()
    assert answer.code == "ERR" and "the next process reads it" in answer
    assert isinstance(restarter.reply(), dict)
    d.follow()
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a") == 0
