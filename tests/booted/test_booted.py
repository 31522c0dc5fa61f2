# SPDX-License-Identifier: Apache-2.0
"""The service on a booted systemd, set up as docs/INSTALL.md says: what systemctl does, and what systemd does by itself."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import kazoo.client
import pytest

import cgroup
import harness
import hoard
import pages

UNIT = "lockbrokerd.service"
SOCKET = "/run/lockbroker/lockbroker.sock"
DROP_INS = f"/run/systemd/system/{UNIT}.d"
(STANDALONE,) = pages.claimed("docs/INSTALL.md", __file__, "ini")
(WITHOUT_PACKAGES,) = pages.claimed("docs/INSTALL.md", __file__, "sh")


@pytest.fixture(scope="session")
def installed(machine):
    """The steps of docs/INSTALL.md: alice is a member of the group, bob is not."""
    conf = machine.read("/etc/lockbroker.conf")
    machine.run("useradd", "alice")
    machine.run("useradd", "bob")
    make, *steps = WITHOUT_PACKAGES.splitlines()
    assert make.startswith("make deps && make install "), "what makes the machine has done that"
    for step in steps:
        machine.run("sh", "-c", step)
    assert "zk1:2181" in machine.read("/etc/lockbroker.conf") and machine.show("UnitFileState") == "enabled"
    machine.run("systemctl", "disable", "--now", UNIT)
    return machine, conf


@pytest.fixture
def service(installed):
    """The machine with the service started, standalone, with the configuration as it was installed."""
    machine, conf = installed
    machine.run("systemctl", "stop", UNIT, "lockbrokerd.socket")
    machine.run("systemctl", "reset-failed", status=None)
    machine.run("rm", "-rf", DROP_INS)
    machine.write("/etc/lockbroker.conf", conf)
    configure(machine, standalone=STANDALONE)
    machine.run("systemctl", "start", UNIT)
    return machine


def configure(machine, **drop_ins):
    for name, text in drop_ins.items():
        machine.write(f"{DROP_INS}/{name}.conf", text)
    machine.run("systemctl", "daemon-reload")


def change(machine, key, value):
    """In the configuration file."""
    text, count = re.subn(rf"^{key} =.*$", f"{key} = {value}", machine.read("/etc/lockbroker.conf"), flags=re.M)
    assert count == 1
    machine.write("/etc/lockbroker.conf", text)


def shorten_session(machine):
    change(machine, "session_timeout_ms", 3000)
    change(machine, "tick_ms", 500)
    machine.run("systemctl", "restart", UNIT)


def main_pid(machine):
    return int(machine.show("MainPID"))


def restarted(machine, before):
    """Waits until systemd has started it again after it died."""
    harness.wait_until(lambda: main_pid(machine) not in (0, before) and machine.show("ActiveState") == "active",
                       "the service to be started again")
    return main_pid(machine)


def hold(machine, name):
    """A process that holds the lock until its standard input ends; says so when it holds."""
    process = machine.start("lockbroker", "lock", name, "--", "sh", "-c", "echo held; cat")
    assert process.stdout.readline() == "held\n"
    return process


def ends_well(holder):
    """It releases the lock, which it still has."""
    holder.communicate()
    assert holder.returncode == 0


def may_lock(machine, user=None):
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
    said = machine.run(*as_user, "lockbroker", "lock", "hello", "--", "echo", "I have the lock", status=None)
    return said == "I have the lock\n"


def test_the_machine_is_whole(machine):
    """Nothing that was booted failed, so that what is tested is the service."""
    assert machine.run("systemctl", "is-system-running", "--wait", status=None) == "running\n"


def test_readmes_service_starts_and_the_group_may_lock(service):
    assert service.run("stat", "-c", "%a %G", SOCKET) == "1660 lockbroker\n"
    assert may_lock(service, "alice") and may_lock(service)
    assert not may_lock(service, "bob")


def status_of(machine, pid):
    """What the kernel says of a process, by its keys."""
    return dict(line.split(":\t", 1) for line in machine.read(f"/proc/{pid}/status").splitlines())


def test_the_daemon_has_no_privilege(service):
    """Neither of its processes; also after a crash and a hand-over, which start a program under the unit's restrictions."""
    uid = service.run("id", "-u", "lockbroker").strip()
    for _ in workers(service):
        for pid in (main_pid(service), worker_pid(service)):
            status = status_of(service, pid)
            assert status["Uid"].split() == [uid] * 4 and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
            assert {int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert "cannot" not in service.journal().rpartition("Starting")[2]


def test_without_privilege_a_holder_of_any_user_is_shown_with_its_command(service):
    job = service.start("setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "lockbroker", "lock", "a", "--",
                        "sleep", "1000")
    harness.wait_until(lambda: "sleep" in service.run("lockbroker", "call", "HOLDERS", "a"), "the name of the command")
    send(service, "TERM", re.search(r'"pid" => \(integer\) (\d+)', service.run("lockbroker", "call", "HOLDERS", "a")).group(1))
    job.wait(harness.PATIENCE)


def test_what_clients_read_is_open_to_them_and_nothing_else_is(service):
    modes = dict(line.split() for line in service.run("find", "/run/lockbroker", "/var/lib/lockbroker", "-printf",
                                                      "%p %u:%g:%m\n").splitlines())
    assert modes.pop("/run/lockbroker") == "lockbroker:lockbroker:755"
    # Files are sticky, so that systemd-tmpfiles spares them.
    assert modes.pop(SOCKET) == "lockbroker:lockbroker:1660"
    assert modes.pop("/run/lockbroker/operator.sock") == "lockbroker:lockbroker:1600"
    assert modes.pop("/run/lockbroker/session") == "lockbroker:lockbroker:1644"
    assert modes.pop("/var/lib/lockbroker") == "lockbroker:lockbroker:700"
    assert "/run/lockbroker/saved" in modes and set(modes.values()) == {"lockbroker:lockbroker:1600"}


def ask_http(port, path):
    """Status and text. A machine has the network of the host."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=harness.PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def check_confinement(service, unit):
    """The process of a server for browsers or Prometheus has no privilege, and sees a root that it cannot change; its id."""
    pid = int(service.show("MainPID", unit))
    process = status_of(service, pid)
    (uid,) = set(process["Uid"].split())
    assert 61184 <= int(uid) <= 65519, "a dynamic user"
    assert service.run("id", "-g", "lockbroker").strip() in process["Groups"].split()
    assert process["NoNewPrivs"] == "1" and process["Seccomp"] == "2"
    assert {int(process[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    within = ("nsenter", "-t", pid, "-m", "--")
    for path in ("/etc", "/var/lib", "/usr"):
        assert "Read-only file system" in service.run(*within, "touch", f"{path}/written", status=1)
    service.run("touch", "/root/of-root")
    assert service.run(*within, "ls", "-A", "/root") == ""
    return pid


def test_metrics_are_served_by_a_process_without_privilege(service):
    """As a user that exists only as long as it runs. It outlives the daemon, and says when that is away."""
    unit, port = "lockbroker-http.service", harness.free_port()
    service.write(f"/run/systemd/system/{unit}.d/port.conf",
                  f"[Service]\nExecStart=\nExecStart=/usr/bin/lockbroker http --listen 127.0.0.1:{port}\n")
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "start", unit)
    try:
        harness.wait_until(lambda: listens(port), "the listener")
        status, text = ask_http(port, "/metrics")
        assert status == 200 and "\nlockbroker_up 1\n" in text
        status, text = ask_http(port, "/healthz")
        assert status == 200, f"{text}{service.journal()}"
        pid = check_confinement(service, unit)
        service.run("systemctl", "stop", UNIT)
        assert [ask_http(port, path)[0] for path in ("/metrics", "/healthz")] == [503, 503]
        service.run("systemctl", "start", UNIT)
        assert ask_http(port, "/healthz")[0] == 200
        assert int(service.show("MainPID", unit)) == pid
    finally:
        service.run("systemctl", "stop", unit)


def test_the_page_is_served_by_a_process_without_privilege_until_it_is_stopped(service):
    """It goes on when the daemon is restarted, and shows the locks that are still held."""
    unit, port = "lockbroker-page.service", harness.free_port()
    service.write(f"/run/systemd/system/{unit}.d/port.conf", f"[Service]\nEnvironment=LISTEN=127.0.0.1:{port}\n")
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "enable", "--now", unit)

    def page_sees(state, names):
        return (json.loads(ask_http(port, "/api/overview")[1])["broker"] == state and
                [row["name"] for row in json.loads(ask_http(port, "/api/locks")[1])["rows"]] == names)

    try:
        harness.wait_until(lambda: listens(port), "the listener")
        assert ask_http(port, "/")[0] == 200
        pid = check_confinement(service, unit)
        holder = hold(service, "held over a restart")
        harness.wait_until(lambda: page_sees("ok", ["held over a restart"]), "the lock")
        service.run("systemctl", "restart", UNIT)
        harness.wait_until(lambda: page_sees("ok", ["held over a restart"]), "the lock again")
        holder.communicate()
        harness.wait_until(lambda: page_sees("ok", []), "the lock to be released")
        assert int(service.show("MainPID", unit)) == pid
    finally:
        service.run("systemctl", "disable", "--now", unit)
    assert (service.show("ActiveState", unit), service.show("Result", unit)) == ("inactive", "success")
    assert not listens(port)


def test_status_says_what_the_daemon_does(service):
    """Which lines of the journal it shows is up to systemd, which may take the first ones for those of the start before."""
    said = service.run("systemctl", "status", "--no-pager", UNIT)
    assert "Active: active (running)" in said and re.search(r"Main PID: \d+ \(lockbrokerd\)", said)
    line = r"^lockbrokerd \S+ serves /run/lockbroker/lockbroker.sock as host "
    harness.wait_until(lambda: re.search(line, service.journal(), re.M), "the journal")


def test_stop_waits_for_the_holders(service):
    holder = hold(service, "a")
    stop = service.start("systemctl", "stop", UNIT)
    harness.wait_until(lambda: service.show("ActiveState") == "deactivating", "the stop to begin")
    holder.communicate()
    assert stop.wait(harness.PATIENCE) == 0
    assert (service.show("ActiveState"), service.show("Result")) == ("inactive", "success")


def test_a_killed_daemon_is_started_again(service):
    before = main_pid(service)
    service.run("systemctl", "kill", "-s", "KILL", UNIT)
    restarted(service, before)
    assert service.show("NRestarts") == "1"
    assert may_lock(service, "alice")


def test_a_daemon_that_hangs_is_started_again(service):
    """The watchdog of the drop-in is shorter than what costs no lock, and is lengthened."""
    configure(service, watchdog="[Service]\nWatchdogSec=1\n")
    shorten_session(service)
    assert service.show("WatchdogUSec") == "10s"  # the session goes on with the timeout that it had, 15 s
    service.run("systemctl", "stop", UNIT)
    service.run("systemctl", "start", UNIT)
    assert service.show("WatchdogUSec") == "2s"
    before = main_pid(service)
    service.run("systemctl", "kill", "-s", "STOP", UNIT)
    restarted(service, before)
    assert "Watchdog timeout (limit 2s)!" in service.journal()
    assert may_lock(service, "alice")


def test_a_rule_for_a_unit_is_for_its_processes(service):
    """Wherever below its cgroup they are; and after a crash and a hand-over as well."""
    service.write("/etc/lockbroker.conf", service.read("/etc/lockbroker.conf") + "\n[access]\nrule = deny unit:web.service * lock\n")
    service.run("systemctl", "restart", UNIT)

    def tries(unit, *argv):
        return service.run("systemd-run", f"--unit={unit}", "--collect", "--wait", "--pipe", "--quiet", *argv,
                           "lockbroker", "lock", "a", "--", "echo", "locked", status=None)

    for _ in workers(service):
        for argv in (), ("setsid", "--wait"):
            assert "the rule \"deny unit:web.service * lock\"" in tries("web.service", *argv)
        assert tries("other.service") == "locked\n"


def test_each_unit_of_a_user_that_is_named_is_counted_by_itself(service):
    """Also after a crash and a hand-over."""
    change(service, "by_unit", "alice")
    service.run("systemctl", "restart", UNIT)
    for unit in ("web.service", "other.service"):
        service.run("systemd-run", f"--unit={unit}", "--uid=alice", "--collect", "--quiet", "lockbroker", "lock", unit, "--",
                    "sleep", "infinity")
    uid = service.run("id", "-u", "alice").strip()
    for _ in workers(service):
        for unit in ("web.service", "other.service"):
            harness.wait_until(lambda: f"user {uid} (unit {unit})" in service.run("lockbroker", "accounts"), "its account")
        time.sleep(2)  # after a second, of which nobody is told, a crash costs these connections nothing
    service.run("systemctl", "stop", "web.service", "other.service")


def test_without_a_keeper_systemd_is_told_who_the_main_process_is(service):
    """By the one that was it: nobody else is believed (NotifyAccess=main)."""
    configure(service, standalone=STANDALONE.replace("--standalone", "--standalone -o daemon.keeper=0"),
              watchdog="[Service]\nWatchdogSec=2\n")
    shorten_session(service)
    holder, main = hold(service, "a"), main_pid(service)
    for _ in range(2):
        service.run("lockbroker", "restart")
        harness.wait_until(lambda: main_pid(service) not in (0, main), "the main process to be another one")
        main = main_pid(service)
        service.run("systemctl", "reload", UNIT)
        assert service.show("ActiveState") == "active"
    time.sleep(3)  # a watchdog that is not fed bites
    assert (main_pid(service), service.show("NRestarts"), service.show("ActiveState")) == (main, "0", "active")
    ends_well(holder)


# ---- the keeper and the worker ----


def worker_pid(machine):
    """The process that serves: the only child of the main one."""
    main = main_pid(machine)
    found = harness.wait_until(lambda: machine.run("cat", f"/proc/{main}/task/{main}/children").split(), "the worker")
    assert len(found) == 1
    return int(found[0])


def send(machine, number, pid):
    """What the machine has without procps."""
    machine.run("sh", "-c", f"kill -s {number} {pid}")


def workers(machine):
    """For the first one, the one after its crash, and the one after a hand-over by that."""
    yield
    for end in (lambda: send(machine, "SEGV", before)), (lambda: machine.run("lockbroker", "restart")):
        before = worker_pid(machine)
        end()
        harness.wait_until(lambda: may_lock(machine) and worker_pid(machine) != before, "the next worker")
        yield


def another_worker(machine, before):
    """Waits until the keeper has started another one, which serves."""
    harness.wait_until(lambda: f"(process {before}) was killed by signal" in machine.journal(), "the end of the worker")
    harness.wait_until(lambda: may_lock(machine), "the next one")
    assert worker_pid(machine) != before


@pytest.mark.skipif(not cgroup.memory(), reason="no control group of memory can be made here")
def test_six_processes_that_keep_what_they_can_do_not_end_the_service_as_it_is_shipped(service):
    holder, main, worker, killed = hold(service, "a"), main_pid(service), worker_pid(service), service.journal().count("killed")
    alice = [f"--re{kind}={service.run('id', f'-{kind[0]}', 'alice').strip()}" for kind in ("uid", "gid")]
    group = service.run("stat", "-c", "%g", SOCKET).strip()
    rundir, name = os.path.split(SOCKET)
    hoarders = []
    with hoard.memory_limited(service, {main, worker}), contextlib.ExitStack() as stack:
        for _ in range(hoard.HOARDERS):
            hoarders.append(stack.enter_context(harness.spawn(
                ["nsenter", "-t", str(service.leader), "--pid", "prlimit", f"--nofile={hoard.FILES}:{hoard.FILES}",
                 "setpriv", *alice, f"--groups={group}", sys.executable, "-c", hoard.HOARD, name,
                 str(hoard.PAGES), str(hoard.ANSWERS)],
                cwd=f"/proc/{service.leader}/root{rundir}", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)))
        kept = [[int(p.stdout.readline() or -1) for p in hoarders] for _ in ("pages", "answers")]
        assert (main_pid(service), worker_pid(service)) == (main, worker) and service.journal().count("killed") == killed, kept
        assert holder.poll() is None and may_lock(service)
        assert min(map(sum, kept)) > 1000, kept
        for kind in "unread answers", "pages of delegations":
            harness.wait_until(lambda kind=kind: kind in service.run("lockbroker", "accounts"), kind)
        for p in hoarders:
            p.stdin.close()
    ends_well(holder)


@pytest.mark.parametrize("number", ["SEGV", "KILL"])
def test_a_worker_that_crashes_is_no_end_of_the_service(service, number):
    main, worker = main_pid(service), worker_pid(service)
    send(service, number, worker)
    another_worker(service, worker)
    assert (main_pid(service), service.show("NRestarts"), service.show("ActiveState")) == (main, "0", "active")


def test_a_worker_that_hangs_is_ended_by_the_keeper(service):
    """The watchdog of the service does not fire: it watches the keeper."""
    configure(service, watchdog="[Service]\nWatchdogSec=2\n")
    shorten_session(service)
    main, worker = main_pid(service), worker_pid(service)
    send(service, "STOP", worker)
    another_worker(service, worker)
    assert "has not said for too long that it lives: it hangs, and is ended" in service.journal()
    assert (main_pid(service), service.show("NRestarts")) == (main, "0")


def test_a_keeper_that_is_killed_takes_the_worker_with_it(service):
    main, worker = main_pid(service), worker_pid(service)
    send(service, "KILL", main)
    restarted(service, main)
    service.run("test", "-d", f"/proc/{worker}", status=1)
    assert service.show("NRestarts") == "1" and may_lock(service)


def test_after_a_hand_over_the_keeper_runs_what_is_installed(service):
    """And the main process is the same one."""
    main, holder = main_pid(service), hold(service, "a")
    for _ in range(2):
        service.install()
        old = worker_pid(service)
        service.run("lockbroker", "restart")
        harness.wait_until(lambda: service.run("readlink", f"/proc/{main}/exe") == "/usr/sbin/lockbrokerd\n", "the keeper")
        assert main_pid(service) == main and worker_pid(service) != old
    assert service.show("ActiveState") == "active" and holder.poll() is None
    service.run("systemctl", "restart", UNIT)
    assert holder.poll() is None and main_pid(service) != main
    ends_well(holder)


def test_a_stop_reaches_the_worker_of_now(service):
    """Not the one that the keeper has started."""
    holder = hold(service, "a")
    service.run("lockbroker", "restart")
    stop = service.start("systemctl", "stop", UNIT)
    harness.wait_until(lambda: service.show("ActiveState") == "deactivating", "the stop to begin")
    holder.communicate()
    assert stop.wait(harness.PATIENCE) == 0
    assert (service.show("ActiveState"), service.show("Result")) == ("inactive", "success")


def test_the_watchdog_is_fed_while_holders_have_time_to_stop(service):
    """For longer than it lasts."""
    configure(service, watchdog="[Service]\nWatchdogSec=2\n")
    shorten_session(service)
    holder = hold(service, "a")
    stop = service.start("systemctl", "stop", UNIT)
    time.sleep(3)  # a watchdog that is not fed bites
    assert stop.poll() is None
    holder.communicate()
    assert stop.wait(harness.PATIENCE) == 0
    assert service.show("Result") == "success"


def test_reload_is_done_when_it_returns(service):
    holder = hold(service, "a")
    before = main_pid(service)
    change(service, "locks", 7)
    service.run("systemctl", "reload", UNIT)
    assert "limit_locks:7" in service.run("lockbroker", "info", "limits")
    assert (main_pid(service), service.show("ActiveState")) == (before, "active")
    ends_well(holder)


def test_reload_fails_if_the_configuration_has_an_error(service):
    service.write("/etc/lockbroker.conf", "[locks]\nlinger = 5\n")
    service.run("systemctl", "reload", UNIT, status=1)
    assert "/etc/lockbroker.conf:2: locks.linger: unknown key" in service.journal()
    assert service.show("ActiveState") == "active" and may_lock(service, "alice")


def test_a_signal_reloads_too(service):
    change(service, "locks", 7)
    service.run("systemctl", "kill", "-s", "HUP", "--kill-who=main", UNIT)
    harness.wait_until(lambda: "limit_locks:7" in service.run("lockbroker", "info", "limits"), "the reload")
    harness.wait_until(lambda: service.show("ActiveState") == "active", "the end of the reload")


def test_a_wrong_configuration_is_not_started_again_and_again(service):
    service.run("systemctl", "stop", UNIT)
    service.write("/etc/lockbroker.conf", "[locks]\nlinger = 5\n")
    service.run("systemctl", "start", UNIT, status=1)
    assert (service.show("ActiveState"), service.show("NRestarts")) == ("failed", "0")
    assert "/etc/lockbroker.conf:2: locks.linger: unknown key" in service.journal()


def test_a_connection_to_the_socket_starts_the_service(service):
    service.run("systemctl", "stop", UNIT)
    configure(service, socket="[Service]\n")
    service.run("systemctl", "start", "lockbrokerd.socket")
    assert service.show("ActiveState") == "inactive"
    assert may_lock(service)
    assert service.show("ActiveState") == "active"


# ---- a restart keeps everything ----


def test_the_secret_may_be_a_credential(service, zk):
    """Root's, and seen by the running service only; a hand-over has it, too."""
    service.run("mkdir", "-p", "/etc/credstore")
    service.write("/etc/credstore/zookeeper-auth", "broker:s3cret\n")
    service.run("chmod", "600", "/etc/credstore/zookeeper-auth")
    change(service, "servers", zk.address)
    change(service, "root", "/secret")
    service.run("rm", "-rf", DROP_INS)
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "stop", UNIT)
    service.run("systemctl", "start", UNIT)
    for _ in range(2):
        assert may_lock(service)
        friend = kazoo.client.KazooClient(hosts=zk.address, auth_data=[("digest", "broker:s3cret")])
        friend.start(timeout=harness.PATIENCE)
        (acl,), _ = friend.get_acls("/secret")
        friend.stop()
        assert acl.id.scheme == "digest" and acl.id.id.startswith("broker:")
        service.run("lockbroker", "restart")
    service.run("setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "cat",
                "/run/credentials/lockbrokerd.service/zookeeper-auth", status=1)
    service.run("rm", "/etc/credstore/zookeeper-auth")


@pytest.fixture(params=["standalone", "zookeeper"])
def kept(request, service):
    """The service of either kind."""
    if request.param == "zookeeper":
        change(service, "servers", request.getfixturevalue("zk").address)
        service.run("rm", "-rf", DROP_INS)
        service.run("systemctl", "daemon-reload")
        service.run("systemctl", "restart", UNIT)
        harness.wait_until(lambda: "session_state:safe" in service.run("lockbroker", "info", "session"), "the session")
    return service


def lock_state(machine, name):
    """Who holds it and who waits, without the numbers that change with time."""
    said = machine.run("lockbroker", "call", "HOLDERS", name) + machine.run("lockbroker", "call", "QUEUE", name)
    return re.findall(r'"(?:client|pid|token|uid)" => \(integer\) \d+', said)


def stand_in_line(machine, name):
    """Somebody who waits for it."""
    waiter = machine.start("lockbroker", "lock", name, "--", "echo", "later")
    harness.wait_until(lambda: "uid" in machine.run("lockbroker", "call", "QUEUE", name), "the waiter")
    return waiter


def test_a_restart_costs_nobody_a_lock(kept):
    before, holder, waiter = main_pid(kept), hold(kept, "a"), stand_in_line(kept, "a")
    state = lock_state(kept, "a")
    assert state
    for _ in range(3):
        kept.run("systemctl", "restart", UNIT)
        assert main_pid(kept) != before and kept.show("ActiveState") == "active"
        before = main_pid(kept)
        assert lock_state(kept, "a") == state
        assert kept.show("NFileDescriptorStore") == "0", "what was kept is used once"
    assert holder.poll() is None and waiter.poll() is None
    ends_well(holder)
    assert waiter.communicate(timeout=harness.PATIENCE)[0] == "later\n"


@pytest.mark.parametrize("number", ["SEGV", "KILL"])
def test_a_crash_costs_nobody_a_lock(kept, number):
    holder, worker = hold(kept, "a"), worker_pid(kept)
    state = lock_state(kept, "a")
    assert state
    time.sleep(2)  # after a second, of which nobody is told, the keeper has the connection
    send(kept, number, worker)
    another_worker(kept, worker)
    assert lock_state(kept, "a") == state and holder.poll() is None
    ends_well(holder)


def test_a_package_that_is_installed_anew_costs_nobody_a_lock(kept):
    """As its scripts do it."""
    holder = hold(kept, "a")
    kept.install()
    kept.run("systemctl", "daemon-reload")
    kept.run("systemctl", "try-restart", UNIT)
    assert holder.poll() is None
    ends_well(holder)


def test_the_socket_of_systemd_is_kept_too(service):
    service.run("systemctl", "stop", UNIT)
    service.run("systemctl", "start", "lockbrokerd.socket")
    holder = hold(service, "a")
    service.run("systemctl", "restart", UNIT)
    assert holder.poll() is None and may_lock(service)
    ends_well(holder)


def test_a_stop_keeps_nothing(service):
    holder = hold(service, "a")
    stop = service.start("systemctl", "stop", UNIT)
    holder.stdin.close()
    assert stop.wait(harness.PATIENCE) == 0 and service.show("NFileDescriptorStore") == "0"
    service.run("systemctl", "start", UNIT)
    assert "kept" not in service.journal().rpartition("Stopping")[2]
    assert may_lock(service)


def test_a_restart_with_another_configuration_that_does_not_fit_begins_anew(service):
    """Whoever holds something is told by the end of its connection."""
    holder = hold(service, "a")
    change(service, "statedir", "/var/lib/lockbroker/other")
    service.run("systemctl", "restart", UNIT)
    assert "the connections and locks that the earlier process left are not used: " in service.journal()
    assert holder.wait(harness.PATIENCE) != 0
    assert may_lock(service)


def test_without_room_in_the_store_a_restart_stops_as_usual(service):
    configure(service, store="[Service]\nFileDescriptorStoreMax=1\n")
    service.run("systemctl", "restart", UNIT)
    holder = hold(service, "a")
    restart = service.start("systemctl", "restart", UNIT)
    harness.wait_until(lambda: "systemd has no room for it (FileDescriptorStoreMax=)" in service.journal(), "the message")
    holder.stdin.close()
    assert restart.wait(harness.PATIENCE) == 0
    assert may_lock(service)
