# SPDX-License-Identifier: Apache-2.0
"""The daemon as a program: options, configuration, socket file, signals, systemd."""

import array
import grp
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import time

import pytest

import harness
from tools import need


def run(*argv):
    return harness.run([harness.program("lockbrokerd"), *argv])


def private(path):
    return "-o", f"daemon.rundir={path}", "-o", f"daemon.statedir={path}"


def test_version_and_help():
    assert re.search(r"\d+\.\d+\.\d+", run("--version").stdout)
    text = run("--help")
    assert text.returncode == 0
    for word in ("--standalone", "--foreground", "--print-config", "-c", "-o"):
        assert word in text.stdout


# ---- configuration ----


@pytest.mark.parametrize("text, line, what", [
    ("[daemon]\nsocket = /x\nsockte = /y\n", 3, "sockte"),
    ("[locks]\n[nonsense]\nkey = 1\n", 2, "nonsense"),
    ("[locks]\n\nlinger_ms = many\n", 3, "linger_ms"),
    ("[locks]\nlinger_ms = -1\n", 2, "linger_ms"),
    ("[locks]\nlinger_ms = 99999999999999999999\n", 2, "linger_ms"),
    ("[zookeeper]\nroot = /\n", 2, "root"),
    ("[zookeeper]\nroot = relative\n", 2, "root"),
    ("[daemon]\nsocket_mode = 999\n", 2, "socket_mode"),
    ("[daemon]\nlog_level = loud\n", 2, "log_level"),
    ("[daemon\nsocket = /x\n", 1, ""),
    ("[prefix:app/]\nflavour = mutexes\n", 2, "prefix:app/.flavour"),
    ("[prefix:]\nflavour = mutex\n", 1, "[prefix:]"),
])
def test_a_wrong_line_is_named_before_anything_starts(tmp_path, text, line, what):
    conf = tmp_path / "lockbroker.conf"
    conf.write_text(text)
    done = run("-c", str(conf), "--standalone", "--foreground", *private(tmp_path))
    assert done.returncode not in (0, None) and done.returncode > 0
    assert f"{conf}:{line}" in done.stderr
    assert what in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["lockbroker.conf"]


@pytest.mark.parametrize("option", ["daemon.nonsense=1", "nonsense", "locks.linger_ms=x", "=", "locks.=1", "locks"])
def test_a_wrong_option_is_named(option):
    done = run("--standalone", "--print-config", "-o", option)
    assert done.returncode > 0
    assert option.split("=")[0] in done.stderr


def test_a_missing_file_is_an_error(tmp_path):
    done = run("-c", str(tmp_path / "none"), "--standalone", "--print-config")
    assert done.returncode > 0 and str(tmp_path / "none") in done.stderr


@pytest.mark.parametrize("option", ["--nosuch", "-x", "--help=3", "-c", "-o", "--config"])
def test_a_wrong_option_is_said_in_one_line(option):
    done = run(option)
    assert done.returncode == 2
    assert re.fullmatch(rf"lockbrokerd: (there is no option {option}|{option} needs a value): try --help\n", done.stderr)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["--print-config", "-c", "/dev/null"], ["--check-config", "/dev/null"]])
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_what_cannot_be_printed_is_said_in_one_line(words, where):
    done = subprocess.run(["sh", "-c", f'"$@" {where}', "sh", harness.program("lockbrokerd"), *words], stderr=subprocess.PIPE,
                          text=True, timeout=harness.PATIENCE)
    assert done.returncode == 1
    assert re.fullmatch(r"lockbrokerd: cannot write to the standard output: [A-Z][a-z ]+\n", done.stderr)


def test_print_config_round_trip(tmp_path):
    first = run("--print-config", "-c", "/dev/null", "-o", "locks.linger_ms=123", "-o", f"daemon.socket={tmp_path}/s",
                "-o", "prefix:v1.2/.flavour=mutex", "-o", "prefix:v1.2/.path=/app/locks")
    assert first.returncode == 0, first.stderr
    assert re.search(r"^linger_ms *= *123$", first.stdout, re.M)
    assert re.search(r"^\[prefix:v1\.2/\]\n(#.*\n)*flavour = mutex\n(#.*\n)*path = /app/locks$", first.stdout, re.M)
    conf = tmp_path / "conf"
    conf.write_text(first.stdout)
    second = run("--print-config", "-c", str(conf))
    assert second.returncode == 0, second.stderr
    assert second.stdout == first.stdout


def test_the_sample_configuration_is_the_default():
    sample = run("--print-config", "-c", os.path.join(harness.SOURCE, "conf", "lockbroker.conf"))
    assert sample.returncode == 0, sample.stderr
    assert sample.stdout == run("--print-config", "-c", "/dev/null").stdout


def test_the_manual_has_every_key_with_its_default():
    page = harness.read_source("client-lib/man/lockbroker.conf.5").replace("\\-", "-")
    manual = dict(re.findall(r'^\.It Cm (\w+) Pq default ([^;\n]*)', page, re.M))
    text = run("--print-config", "-c", "/dev/null", "-o", "prefix:x.path=").stdout
    printed = dict(re.findall(r"^(\w+) *= *(.*)$", text, re.M))
    printed["host"] = ""  # the host's own name
    assert manual == {key: value or "empty" for key, value in printed.items()}


def test_the_manual_says_which_keys_need_a_restart():
    manual = harness.read_source("client-lib/man/lockbroker.conf.5")
    text = run("--print-config", "-c", "/dev/null", "-o", "prefix:x.path=").stdout
    printed = re.findall(r"^# .* \[restart\]\n(\w+) *=", text, re.M)
    assert len(printed) > 8
    assert re.findall(r'^\.It Cm (\w+) Pq default .*; restart$', manual, re.M) == printed


def test_paths_of_prefixes_inside_one_another_are_refused():
    done = run("--print-config", "-c", "/dev/null", "-o", "prefix:a/.path=/app", "-o", "prefix:b/.path=/app/locks")
    assert done.returncode > 0
    assert "prefix:b/.path" in done.stderr and "prefix:a/.path" in done.stderr


def test_a_session_shorter_than_five_ticks_is_refused(tmp_path):
    done = run("--print-config", "-o", "zookeeper.session_timeout_ms=4000", "-o", "zookeeper.tick_ms=2000")
    assert done.returncode > 0
    assert "session_timeout_ms" in done.stderr and "tick_ms" in done.stderr


# ---- the socket ----


def test_socket_mode_from_the_first_instant(daemons):
    for mode in ("0600", "0660", "0666"):
        d = daemons(daemon__socket_mode=mode)
        assert os.stat(d.socket).st_mode & 0o777 == int(mode, 8)


def test_socket_group(daemons):
    group = grp.getgrnam("daemon") if os.getuid() == 0 else grp.getgrgid(os.getgid())
    d = daemons(daemon__socket_group=group.gr_name)
    assert os.stat(d.socket).st_gid == group.gr_gid


def test_an_unknown_group_is_an_error(tmp_path):
    done = run("--standalone", "--foreground", "-o", f"daemon.socket={tmp_path}/s", *private(tmp_path),
               "-o", "daemon.socket_group=nosuchgroup")
    assert done.returncode == 2 and "daemon.socket_group = nosuchgroup: there is no such group" in done.stderr
    assert not (tmp_path / "s").exists()


def test_no_servers_are_an_error(tmp_path):
    for servers in ("", " ", ","):
        done = run("-o", f"daemon.socket={tmp_path}/s", *private(tmp_path), "-o", f"zookeeper.servers={servers}")
        assert done.returncode == 2 and "zookeeper.servers" in done.stderr


def test_a_stale_socket_is_replaced(daemons, clients):
    d = daemons()
    d.kill()
    assert os.path.exists(d.socket)
    d.start()
    assert clients(d).call("PING") == "PONG"


def test_a_second_daemon_in_one_directory_is_refused(daemons, clients, tmp_path):
    d = daemons()
    done = run("--standalone", "--foreground", "-o", f"daemon.socket={tmp_path}/s", "-o", f"daemon.rundir={d.dir}",
               "-o", f"daemon.statedir={tmp_path}")
    assert done.returncode > 0 and f"another lockbrokerd (pid {d.process.pid})" in done.stderr
    assert os.stat(os.path.join(d.dir, "lockbrokerd.pid")).st_mode & 0o777 == 0o600, "who may open it may lock it"
    d.kill()
    d.start()
    assert clients(d).call("PING") == "PONG"


def test_a_live_socket_is_refused_and_left_alone(daemons, clients, locked, tmp_path):
    d = daemons()
    c, _ = locked(d)
    done = run("--standalone", "--foreground", "-o", f"daemon.socket={d.socket}", *private(tmp_path))
    assert done.returncode > 0
    assert "another lockbrokerd is serving" in done.stderr and d.socket in done.stderr
    assert c.call("VALID", "a") > 0
    assert clients(d).call("PING") == "PONG"


def test_what_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "s"
    path.write_text("precious")
    done = run("--standalone", "--foreground", "-o", f"daemon.socket={path}", *private(tmp_path))
    assert done.returncode > 0 and str(path) in done.stderr
    assert path.read_text() == "precious" and not os.path.exists(f"{path}.lock")


# ---- signals ----


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_signals_end_it_with_zero(broker, number):
    broker.signal(number)
    assert broker.process.wait(harness.PATIENCE) == 0
    assert not os.path.exists(broker.socket)


def test_sigterm_tells_holders_and_waits_for_them(broker, clients, locked):
    (a, token), b = locked(broker), clients(broker)
    b.send("LOCK", "a")
    harness.wait_until(lambda: len(a.call("QUEUE", "a")) == 1, "the request to be queued")
    broker.signal(signal.SIGTERM)
    assert b.reply().code == "DRAINING"
    assert a.push() == ["revoke", "a", token, "stopping"]
    assert a.call("LOCK", "c").code == "DRAINING"
    assert a.call("UNLOCK", "a") == 0
    assert broker.process.wait(harness.PATIENCE) == 0


def test_sigterm_without_holders_is_quick(daemons, zk, root):
    d = daemons(zk, root, daemon__stop_timeout_ms=10 * 1000 * harness.PATIENCE)
    with d.client() as c:
        c.call("LOCK", "a")
        c.call("UNLOCK", "a")
        assert d.terminate() == 0


def test_sigterm_waits_no_longer_than_it_was_told(daemons, locked):
    d = daemons(daemon__stop_timeout_ms=300)
    a, _ = locked(d)
    began = time.monotonic()
    assert d.terminate() == 0
    assert time.monotonic() - began > 0.2
    assert a.ended()


def test_whoever_is_connected_at_the_end_leaves_nothing(daemons, clients):
    """With half a request, with an answer not read, waiting, before and behind one that has gone. What the daemon did
    not free is seen by a sanitizer: then it does not end with 0."""
    d = daemons(daemon__stop_timeout_ms=300)
    holder, gone, half, waiter, deaf = (clients(d, 2) for _ in range(5))
    assert isinstance(holder.call("LOCK", "a"), int)
    half.send_raw(b"*2\r\n$4\r\nECHO\r\n$1000\r\n" + b"x" * 500)
    waiter.send("LOCK", "a")
    deaf.send("ECHO", "x" * 60000)
    harness.wait_until(lambda: len(holder.call("QUEUE", "a")) == 1, "the request to be queued")
    gone.close()
    harness.wait_until(lambda: len(holder.call("CLIENT", "LIST").splitlines()) == 4, "one to be gone")
    assert d.terminate() == 0
    assert holder.ended() and half.ended()


def test_a_second_sigterm_ends_it_at_once(daemons, locked):
    d = daemons(daemon__stop_timeout_ms=60000)
    a, _ = locked(d)
    d.signal(signal.SIGTERM)
    assert a.push()[0] == "revoke"
    d.signal(signal.SIGTERM)
    assert d.process.wait(harness.PATIENCE) == 1


# What a fault of the program raises has to end it; nobody can do anything about the last two.
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT}
STOPS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
FREEZES = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
# A reload, a stop that keeps everything, a hand-over: test_reload.py, test_keep.py, test_handover.py.
ASKS = {signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
# Nothing happens to any process.
HARMLESS = {signal.SIGPIPE, signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}


@pytest.mark.parametrize("keeper", [0, 1])
@pytest.mark.parametrize("number", sorted(FAULTS))
def test_faults_end_it(daemons, number, keeper):
    """The keeper as well: what the service manager does then is its business."""
    kinds = ("segv", "sigbus", "sigfpe", "sigill", "abort")
    d = daemons(daemon__keeper=keeper, env={"ASAN_OPTIONS": ":".join(f"handle_{kind}=0" for kind in kinds)})
    resource.prlimit(d.process.pid, resource.RLIMIT_CORE, (0, 0))
    d.process.send_signal(number)
    assert d.process.wait(harness.PATIENCE) == -number


def test_no_other_signal_ends_it_or_takes_a_lock(daemons, locked):
    d = daemons()
    holder, token = locked(d)
    real_time = set(range(signal.SIGRTMIN, signal.SIGRTMAX + 1))
    said = (signal.valid_signals() | real_time) - FAULTS - STOPS - FREEZES - HARMLESS - ASKS - {signal.SIGKILL}
    assert {signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
            signal.SIGIO, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGPWR, signal.SIGRTMIN} <= said
    for number in HARMLESS | said:
        d.signal(number)
        assert holder.call("PING") == "PONG", number
    said_of_it = f"signal {int(signal.SIGALRM)} (Alarm clock) from pid {os.getpid()}, uid {os.getuid()}: ignored"
    harness.wait_until(lambda: said_of_it in d.log(), "the keeper to say so")
    assert holder.call("VALID", "a") > 0 and holder.call("UNLOCK", "a", "TOKEN", token) == 0
    assert d.terminate() == 0
    # Lines of one kind are rated, and none of them is lost without a count.
    lines = [line for line in d.log().splitlines() if ": ignored; SIGTERM stops" in line]
    assert 5 <= len(lines) <= len(said)


def test_without_zookeeper_it_serves_and_says_so(daemons, clients, root):
    d = daemons(harness.NoZookeeper, root)
    c = clients(d)
    assert c.call("PING") == "PONG"
    assert c.call("LOCK", "a", "WAIT", 0).code == "UNAVAILABLE"
    assert c.call("LOCK", "a", "WAIT", 100).code == "UNAVAILABLE"
    c.send("LOCK", "a")
    assert c.quiet(0.3)


def test_standalone_is_visible_and_keeps_tokens_growing_over_restarts(daemons, clients, locked):
    d = daemons()
    assert "standalone" in d.log()
    first = clients(d).call("LOCK", "a")
    for kill in (True, False):
        d.kill() if kill else d.terminate()
        d.start()
        c, second = locked(d)
        assert second > first
        first = second
        c.close()


# ---- systemd ----


def test_notify_ready_and_stopping(daemons):
    d = daemons()
    d.terminate()
    told(d, "STOPPING=1", patience=1)


def told(daemon, *least, patience=harness.PATIENCE):
    """What the service manager was told until all of that was there."""
    lines = []
    while not set(least) <= set(lines):
        more = daemon.notified(patience)
        assert more, f"not {least}, only {lines}"
        lines += more
    return lines


@pytest.mark.parametrize("ms", [0, 3600000])
def test_the_service_manager_waits_as_long_as_holders_may_take(daemons, ms):
    d = daemons(daemon__stop_timeout_ms=ms)
    d.terminate()
    assert f"EXTEND_TIMEOUT_USEC={(ms + 10000) * 1000}" in told(d, "STOPPING=1")


def test_the_watchdog_is_fed_also_while_it_stops(daemons, clients):
    d = daemons(env={"WATCHDOG_USEC": "400000"}, zookeeper__session_timeout_ms=300, zookeeper__tick_ms=20)
    for _ in range(3):
        told(d, "WATCHDOG=1")
    holder = clients(d)
    holder.call("LOCK", "a")
    d.signal(signal.SIGTERM)
    assert not [line for line in told(d, "STOPPING=1", "WATCHDOG=1") if line.startswith("WATCHDOG_USEC")]
    told(d, "WATCHDOG=1")


SLOW_EXIT = """
#include <unistd.h>
__attribute__((destructor)) static void slow(void)
{
	sleep(3); /* no wait: it is what is slow */
}
"""


@pytest.mark.plain_only("a sanitizer wants to be the first library")
def test_a_worker_that_has_stopped_and_exits_slowly_does_not_hang(daemons, tmp_path):
    """Its loop has ended, and says nothing more; for the exit of the service there is TimeoutStopSec."""
    source, shim = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SLOW_EXIT)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", shim, source], check=True)
    d = daemons(env={"WATCHDOG_USEC": "400000", "LD_PRELOAD": str(shim)}, zookeeper__session_timeout_ms=300,
                zookeeper__tick_ms=20)
    told(d, "WATCHDOG=1")
    d.terminate()
    assert "stopped" in d.log() and "hangs" not in d.log()


def test_a_watchdog_is_no_shorter_than_what_costs_no_lock(daemons):
    d = daemons(env={"WATCHDOG_USEC": "9999999"})
    assert "WATCHDOG_USEC=10000000" in d.told + told(d, "WATCHDOG=1")
    assert "the watchdog is made 10000 ms long, two thirds of the session timeout" in d.log()


def test_a_watchdog_follows_the_session_timeout_that_was_granted(daemons, own_zk):
    """Servers grant at least two of their ticks."""
    d = daemons(own_zk(tick_ms=4000), env={"WATCHDOG_USEC": "2000000"}, zookeeper__session_timeout_ms=3000,
                zookeeper__tick_ms=500, locks__grant_min_ms=300)
    assert d.info("session")["session_timeout_ms"] == "8000"
    assert "WATCHDOG_USEC=5333332" in d.told + told(d, "WATCHDOG=1", "WATCHDOG_USEC=5333332")


@pytest.mark.parametrize("env", [{}, {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"},
                                 {"WATCHDOG_USEC": "-5"}, {"WATCHDOG_USEC": "99999999999999999999999"}])
def test_without_a_watchdog_of_its_own_it_feeds_none(daemons, env):
    """It would have begun before it stops."""
    d = daemons(env=env, zookeeper__session_timeout_ms=100, zookeeper__tick_ms=10)
    d.terminate()
    lines = told(d, "STOPPING=1")
    assert not [line for line in lines if "WATCHDOG" in line]


def test_socket_activation(launch):
    """As systemd does it: descriptor 3 listens already, LISTEN_FDS=1, LISTEN_PID is the daemon's."""
    d = harness.Daemon(wait=False)
    listener = socket.create_server(os.path.join(d.dir, "activated"), family=socket.AF_UNIX)
    os.chmod(listener.getsockname(), 0o600)
    early = socket.socket(socket.AF_UNIX)
    early.connect(listener.getsockname())
    early.sendall(b"PING\r\n")
    launch(d, listening=[listener.fileno()])
    early.settimeout(harness.PATIENCE)
    assert early.recv(100) == b"+PONG\r\n"
    assert not os.path.exists(d.socket)
    assert stat.S_IMODE(os.stat(listener.getsockname()).st_mode) == 0o600
    (told,) = [line for line in d.log().splitlines() if "SocketMode= and SocketGroup= in its unit" in line]
    assert "warning: the socket that was passed has mode 0600 and group " in told
    with harness.Client(listener.getsockname()) as c:
        assert isinstance(c.call("LOCK", "a"), int)
    assert d.terminate() == 0
    assert os.path.exists(listener.getsockname()), "the socket is systemd's"
    early.close()
    listener.close()


def test_descriptors_meant_for_another_process_are_left_alone(daemons):
    assert daemons(env={"LISTEN_FDS": "1", "LISTEN_PID": "1"}).answers()


def test_units_are_sound(tmp_path):
    """Verified as installed: the program must be where the unit says."""
    (tmp_path / "none.service").write_text("[Service]\nExecStart=/bin/true\n")
    need("systemd-analyze", "verify", "--man=no", str(tmp_path / "none.service"))
    (tmp_path / "none.service").unlink()
    units = [f for f in os.listdir(os.path.join(harness.SOURCE, "systemd")) if f.endswith((".service", ".socket"))]
    assert {"lockbrokerd.service", "lockbrokerd.socket"} <= set(units)
    for name in units:
        text = re.sub(r"^(Exec\w*=)\S*/(lockbrokerd?)\b", rf"\1{harness.build_dir()}/\2",
                      harness.read_source(f"systemd/{name}"), flags=re.M)
        (tmp_path / name).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.iterdir())],
                          capture_output=True, text=True, env=os.environ | {"SYSTEMD_LOG_LEVEL": "warning"})
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in done.stderr


def inherited(pid):
    """What a program that this process became would have, by number: all that is there and not marked."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                flags = int(next(line.split()[1] for line in f if line.startswith("flags:")), 8)
            if not flags & os.O_CLOEXEC:
                found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass  # closed meanwhile: who asked whether it is ready has gone, the worker has read its file
    return found


def test_descriptors_are_not_inherited(standalone, clients):
    """Also those that come and go."""
    c = clients(standalone)
    for _ in range(20):
        assert isinstance(c.call("LOCK", "a"), int) and c.call("UNLOCK", "a") == 0
        with standalone.client():
            assert set(inherited(standalone.pid)) == {0, 1, 2}


def test_peer_credentials_are_not_forgeable(standalone, clients):
    """Ancillary data of a client is no way in: the kernel refuses descriptors to their sender (test_descriptors.py), or they
    are closed, and the request goes on."""
    c = clients(standalone)
    # Its worker, which opens files (now that of the tokens), lives for as long as there is something for it.
    harness.wait_until(lambda: len(os.listdir(f"/proc/{standalone.pid}/task")) == 1, "the worker's end")
    before = len(os.listdir(f"/proc/{standalone.pid}/fd"))
    r, w = os.pipe()
    for _ in range(10):
        try:
            c.socket.sendmsg([harness.encode("PING")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r, w]))])
        except PermissionError:
            c.send("PING")
        assert c.reply() == "PONG"
    # Who asked whether it is ready may have gone meanwhile.
    harness.wait_until(lambda: len(os.listdir(f"/proc/{standalone.pid}/fd")) <= before, "what was sent to be closed")
    os.close(r)
    os.close(w)


@pytest.mark.parametrize("options, level", [({"log__grants": 1}, "info"), ({"daemon__log_level": "debug"}, "debug"),
                                            ({"daemon__log_level": "debug", "log__grants": 1}, "info"), ({}, None),
                                            ({"daemon__log_level": "warning", "log__grants": 1}, None)])
def test_grants_are_in_the_log_where_that_is_wanted(daemons, clients, options, level):
    d = daemons(**options)
    c = clients(d)
    assert c.call("LOCK", 'a" b\u00e4')
    assert c.call("UNLOCK", 'a" b\u00e4') == 0
    leased = c.call("LOCK", "b", "LEASE", 1)
    assert c.push() == ["lost", "b", leased, "lease"]
    who = rf'"[^"]+" \(pid {os.getpid()}, uid {os.getuid()}\)'
    expected = [rf'released: lock "a\\" b\\xc3\\xa4", after \d+ ms, by {who}', rf'lost \(lease\): lock "b", after \d+ ms, by {who}']
    lines = [line.split(": ", 1) for line in d.log().splitlines()]
    found = [(at.split()[-1], text) for at, text in lines if re.match(r"(granted|released|lost \(\w+\)): ", text)]
    assert [at for at, _ in found] == [level] * (2 if level else 0)
    assert all(re.fullmatch(pattern, text.partition("  ")[0]) for pattern, (_, text) in zip(expected, found))
    assert not [s for s in d.notified(0.1) if "released" in s]
