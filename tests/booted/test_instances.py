# SPDX-License-Identifier: Apache-2.0
"""Several daemons on a host, each with its ensemble: lockbrokerd@one.service and lockbrokerd@two.service, from the packages."""

import re
import subprocess
import urllib.request

import kazoo.client
import pytest

import harness
import machine as machines
import packages
import pages
from holders import install

NAMES = ("one", "two")


def unit(name, of="lockbrokerd", kind="service"):
    return f"{of}@{name}.{kind}"


def conf(name):
    return f"/etc/lockbroker@{name}.conf"


@pytest.fixture(scope="module")
def ensembles():
    made = {name: harness.Zookeeper() for name in NAMES}
    yield made
    for server in made.values():
        server.end()


@pytest.fixture(scope="module")
def booted():
    made = machines.Machine(installed=False)
    made.write("/etc/needrestart/conf.d/tests.conf", "$nrconf{kernelhints} = 0; $nrconf{ucodehints} = 0;\n")
    yield made
    made.end()


@pytest.fixture
def host(booted, current, ensembles):
    """Both run, as the manual says how, with the first version of the packages, and without locks. The plain one does not."""
    booted.run("systemctl", "stop", "lockbrokerd*.socket", "lockbrokerd*.service", "lockbroker-http@*.service", status=None)
    booted.run("systemctl", "reset-failed", status=None)
    if f"lockbrokerd {packages.version()}\n" != booted.run("sh", "-c", "lockbrokerd --version || :"):
        install(booted, current)
    booted.run("systemctl", "disable", "--now", "lockbrokerd.service")
    for name, ensemble in ensembles.items():
        booted.run("cp", "/etc/lockbroker.conf", conf(name))
        change(booted, name, "servers", ensemble.address)
    booted.run("systemctl", "enable", "--now", *map(unit, NAMES))
    for name in NAMES:
        safe(booted, name)
    return booted


def change(machine, name, key, value):
    """In the configuration file of the instance."""
    text, count = re.subn(rf"^{key} =.*$", f"{key} = {value}", machine.read(conf(name)), flags=re.M)
    assert count == 1
    machine.write(conf(name), text)


def ask(machine, name, *words):
    return machine.run("lockbroker", "-S", f"@{name}", *words)


def safe(machine, name):
    harness.wait_until(lambda: "session_state:safe" in machine.run("lockbroker", "-S", f"@{name}", "info", "session", status=None),
                       "the session")


def serving(machine, name):
    return re.search(r"^lockbroker_version:(\S+)", ask(machine, name, "info", "server"), re.M).group(1)


def main_pid(machine, name):
    return machine.show("MainPID", unit(name))


class Holder:
    """Holds the lock "a" of an instance, and another process waits for it."""

    def __init__(self, machine, name):
        self.machine, self.name = machine, name
        self.holder = machine.start("lockbroker", "-S", f"@{name}", "lock", "a", "--", "sh", "-c", "echo held; cat")
        assert self.holder.stdout.readline() == "held\n"
        self.waiter = machine.start("lockbroker", "-S", f"@{name}", "lock", "a", "--", "echo", "later")
        harness.wait_until(lambda: "uid" in ask(machine, name, "call", "QUEUE", "a"), "the waiter")
        self.before = self.state()

    def state(self):
        """Without the numbers that change with time."""
        said = "".join(ask(self.machine, self.name, "call", word, "a") for word in ("HOLDERS", "QUEUE"))
        return re.findall(r'"(?:client|pid|token|uid)" => \(integer\) \d+', said)

    def check(self):
        assert self.state() == self.before and [self.holder.poll(), self.waiter.poll()] == [None, None]

    def release(self):
        self.check()
        self.holder.communicate()
        assert self.holder.returncode == 0
        assert self.waiter.communicate(timeout=harness.PATIENCE)[0] == "later\n"

    def end(self):
        self.holder.stdin.close()
        for process in (self.holder, self.waiter):
            process.wait(harness.PATIENCE)


def test_the_commands_of_the_manual_give_an_instance_of_another_ensemble(host, ensembles):
    (text,) = pages.claimed("client-lib/man/lockbrokerd.8", __file__)
    host.write("/srv/backup", "#!/bin/sh\necho the backup has $LOCKBROKER_NAME\n")
    host.run("chmod", "755", "/srv/backup")
    assert text.count("zk1.emea:2181") == 1
    text = text.replace("zk1.emea:2181", ensembles["two"].address)
    try:
        assert host.run("sh", "-ec", f"cd /srv\n{text}").endswith("the backup has nightly\n")
        safe(host, "emea")
    finally:
        host.run("systemctl", "disable", "--now", unit("emea"))
        host.run("rm", conf("emea"))


@pytest.fixture
def holders(host):
    """The same name is another lock in each ensemble."""
    made = {}
    try:
        for name in NAMES:
            made[name] = Holder(host, name)
        yield made
    finally:
        host.run("systemctl", "start", *map(unit, NAMES), status=None)  # who waits goes on waiting for a broker that is stopped
        for holder in made.values():
            holder.end()


def test_each_instance_has_files_of_its_own_and_a_session_with_its_ensemble(host, holders, ensembles):
    for name in NAMES:
        assert len(ensembles[name].sessions()) == 1
        owners = host.run("find", f"/run/lockbroker@{name}", f"/var/lib/lockbroker@{name}", "-printf", "%p %u\n").splitlines()
        assert {line.split()[1] for line in owners} == {"lockbroker"}
        for file in ("lockbroker.sock", "operator.sock", "session", "saved", "lockbrokerd.pid"):
            assert f"/run/lockbroker@{name}/{file} lockbroker" in owners
        said = host.run("journalctl", "-u", unit(name), "-t", f"lockbrokerd@{name}", "-o", "cat")
        assert f"serves /run/lockbroker@{name}/lockbroker.sock as host " in said
        assert "LOCKBROKER OK" in ask(host, name, "check")
    for holder in holders.values():
        holder.release()


def test_a_stop_of_one_leaves_the_other_unharmed(host, holders):
    pid = main_pid(host, "two")
    stop = host.start("systemctl", "stop", unit("one"))
    harness.wait_until(lambda: host.show("ActiveState", unit("one")) == "deactivating", "the stop to begin")
    holders["one"].holder.communicate()
    assert stop.wait(harness.PATIENCE) == 0
    said = host.run("lockbroker", "-S", "@one", "lock", "--connect", "0", "b", "true", status=69)
    assert "No lockbrokerd is serving /run/lockbroker@one/lockbroker.sock" in said
    assert main_pid(host, "two") == pid and ask(host, "two", "lock", "-n", "b", "echo", "mine") == "mine\n"
    holders["two"].release()


def test_an_upgrade_hands_every_instance_over(host, holders, following):
    said = install(host, following)
    assert said.count(f"lockbrokerd {packages.NEXT} serves now") == 2
    assert host.show("ActiveState", "lockbrokerd.service") == "inactive", "it is disabled"
    for name in NAMES:
        assert serving(host, name) == packages.NEXT
        holders[name].release()


def test_an_upgrade_leaves_an_instance_with_a_wrong_configuration_as_it_is(host, holders, following):
    change(host, "one", "linger_ms", "much")
    said = install(host, following)
    assert "lockbroker@one.conf" in said and "lockbrokerd@one.service: the process of the former version goes on" in said
    assert "lockbroker -S @one restart" in said
    assert [serving(host, name) for name in NAMES] == [packages.version(), packages.NEXT]
    change(host, "one", "linger_ms", "50")
    ask(host, "one", "restart")
    assert serving(host, "one") == packages.NEXT
    for holder in holders.values():
        holder.release()


def test_a_reload_and_a_restart_are_of_one_instance(host, holders):
    pids = {name: main_pid(host, name) for name in NAMES}
    for name in NAMES:
        change(host, name, "locks", 7)
    host.run("systemctl", "reload", unit("one"))
    assert "limit_locks:7\n" in ask(host, "one", "info", "limits") and "limit_locks:7\n" not in ask(host, "two", "info", "limits")
    host.run("systemctl", "restart", unit("one"))
    assert main_pid(host, "one") != pids["one"] and main_pid(host, "two") == pids["two"]
    for holder in holders.values():
        holder.release()


def test_needrestart_restarts_every_instance_that_could_start_again(host, holders):
    pids = {name: main_pid(host, name) for name in NAMES}
    change(host, "one", "linger_ms", "much")
    host.run("sh", "-ec", "path=$(echo /usr/lib/*-linux-gnu/libevent_core-2.1.so.7.*); cp -p $path $path.new; mv $path.new $path")
    outdated = re.findall(r"^NEEDRESTART-SVC: (\S+)$", host.run("needrestart", "-b", "-l"), re.M)
    assert outdated == [unit(name) for name in NAMES]
    said = host.run("needrestart", "-r", "a", "-l")
    assert "lockbrokerd@one is not restarted" in said and "lockbrokerd@two is not" not in said
    assert main_pid(host, "one") == pids["one"] and main_pid(host, "two") != pids["two"]
    change(host, "one", "linger_ms", "50")
    assert "is not restarted" not in host.run("needrestart", "-r", "a", "-l")
    assert main_pid(host, "one") != pids["one"]
    for holder in holders.values():
        holder.release()


def test_a_connection_to_its_socket_starts_an_instance(host):
    host.run("systemctl", "stop", unit("one"))
    host.run("systemctl", "start", unit("one", kind="socket"))
    assert host.show("ActiveState", unit("one")) == "inactive"
    assert "PONG" in ask(host, "one", "ping")
    assert host.show("ActiveState", unit("one")) == "active"
    assert host.run("stat", "-c", "%U", "/run/lockbroker@one") == "lockbroker\n"


def test_each_instance_has_metrics_of_its_own(host):
    ports = {name: harness.free_port() for name in NAMES}
    for name, port in ports.items():
        host.write(f"/run/systemd/system/{unit(name, 'lockbroker-http')}.d/port.conf", f"[Service]\nEnvironment=LISTEN=127.0.0.1:{port}\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "stop", unit("one"))
    for name, port in ports.items():
        host.run("systemctl", "start", unit(name, "lockbroker-http"))
        harness.wait_until(lambda: f"port {port}\n" in host.journal(unit(name, "lockbroker-http")), "the listener")
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://127.0.0.1:{ports['one']}/healthz", timeout=harness.PATIENCE)
    with urllib.request.urlopen(f"http://127.0.0.1:{ports['two']}/healthz", timeout=harness.PATIENCE) as answer:
        assert answer.status == 200


def test_each_instance_has_a_secret_of_its_own(host, ensembles):
    host.run("mkdir", "-p", "/etc/credstore")
    host.write("/etc/credstore/zookeeper-auth@one", "broker:s3cret\n")
    host.run("chmod", "600", "/etc/credstore/zookeeper-auth@one")
    try:
        for name in NAMES:
            host.run("systemctl", "stop", unit(name))
            change(host, name, "root", "/secret")
            host.run("systemctl", "start", unit(name))
            ask(host, name, "lock", "a", "true")
            friend = kazoo.client.KazooClient(hosts=ensembles[name].address, auth_data=[("digest", "broker:s3cret")])
            friend.start(timeout=harness.PATIENCE)
            (acl,), _ = friend.get_acls("/secret")
            friend.stop()
            assert acl.id.scheme == ("digest" if name == "one" else "world")
    finally:
        host.run("rm", "/etc/credstore/zookeeper-auth@one")


def test_a_removal_stops_every_instance_and_a_new_installation_starts_those_that_are_enabled(host, current):
    host.run("systemctl", "disable", unit("two"))
    host.run("dpkg", "--remove", "lockbrokerd")
    assert [host.show("ActiveState", unit(name)) for name in NAMES] == ["inactive", "inactive"]
    install(host, current)
    assert [host.show("ActiveState", unit(name)) for name in NAMES] == ["active", "inactive"]


def test_a_purge_leaves_nothing_of_an_instance(host):
    host.run("sh", "-c", "rm -rf /run/systemd/system/lockbroker-http@*")  # another test's
    for name in NAMES:
        host.write(f"/var/lib/lockbroker@{name}/tokens", "")
    said = host.run("dpkg", "--purge", "lockbrokerd")
    assert said.count("tokens begin anew") == 1
    assert host.run("find", "/etc", "/run", "/var/lib", "-name", "lockbroker*", "-path", "*@*") == ""
    left = subprocess.run(host.inside("systemctl", "list-units", "--plain", "--no-legend", "--state=active", "lockbroker*"),
                          capture_output=True, text=True, check=True).stdout
    assert left == ""
