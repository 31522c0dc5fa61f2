# SPDX-License-Identifier: Apache-2.0
"""The configuration is read again while the daemon runs: by RELOAD, by `lockbroker reload`, by SIGHUP."""

import os
import re
import signal
import subprocess

import pytest

import harness

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


def run(daemon):
    return subprocess.run([harness.program("lockbroker"), "-S", daemon.operator_socket, "reload"], capture_output=True, text=True,
                          timeout=harness.PATIENCE)


def test_what_has_changed_is_told_and_logged(daemon, conf, clients):
    c = clients(daemon)
    assert c.call("RELOAD") == ""
    assert lines(daemon, "info: the configuration was read again: nothing has changed")
    conf.write("[limits]\nlocks = 7\n[daemon]\nlog_level = warning\n")
    assert c.call("RELOAD") == "daemon.log_level = warning, before info\nlimits.locks = 7, before 100000\n"
    assert lines(daemon, "info: limits.locks = 7, before 100000")
    assert daemon.info("limits")["limit_locks"] == "7"
    conf.write("")
    assert c.call("RELOAD") == "daemon.log_level = info, before warning\nlimits.locks = 100000, before 7\n"
    assert not lines(daemon, "info: limits.locks = 100000, before 7"), "it was still left out"


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
        assert daemon.info("limits")["limit_locks"] == "100000"
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
    assert {c.reply() for c in everybody} <= {"", "limits.locks = 7, before 100000\n"}
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
        assert refused.reply().startswith("LIMIT the daemon has as many clients as it may have")
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
    done = run(daemon)
    assert (done.returncode, done.stdout, done.stderr) == (0, "limits.locks = 7, before 100000\n", "")
    done = run(daemon)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    conf.write("[limits]\nlock = 7\n")
    done = run(daemon)
    assert (done.returncode, done.stdout) == (64, "")
    assert f"{conf.path}:2: limits.lock: unknown key" in done.stderr
