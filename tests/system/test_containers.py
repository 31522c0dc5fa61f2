# SPDX-License-Identifier: Apache-2.0
"""docs/CONTAINERS.md: a daemon outside, and clients in containers: namespaces of users, processes, mounts and the network of
their own, which bubblewrap makes as container engines do."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess

import pytest

import harness
from library import Program, token_of
from mishaps import stopped
from test_cli import run
from tools import need

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="becomes another user"),
              pytest.mark.plain_only("it is about namespaces")]
OPERATORS = True  # see clients of conftest.py
USER, GROUP = 64001, 64002
NAMESPACES = ("user", "pid", "mnt", "net")
CLONE_NEWPID = 0x20000000


def box(*mounts, user=USER):
    """The words of a container in which the user is root, whoever it is outside. It sees what is mounted of the run
    directory, read-only, at the same path, and programs in /opt."""
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={GROUP}"] if user else []
    root = ["--unshare-user", "--uid", "0", "--gid", "0"] if user else ["--cap-add", "ALL"]
    return [*become, "bwrap", *root, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--ro-bind", "/usr",
            "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
            "--proc", "/proc", "--dev", "/dev", *[word for path in mounts for word in ("--ro-bind", path, path)]]


@pytest.fixture(scope="module")
def opt(driver):
    """The command, and the program of library_test.c, where every user may read them."""
    need("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr",
         "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "/usr/bin/true")
    folder = harness.fast_tmp("opt.")
    os.chmod(os.path.dirname(folder), 0o755)
    os.chmod(folder, 0o755)
    shutil.copy(harness.program("lockbroker"), folder)
    shutil.copy(driver, os.path.join(folder, "driver"))
    yield ["--ro-bind", folder, "/opt"]
    shutil.rmtree(folder)


@pytest.fixture
def outside(daemons):
    """A daemon whose clients are the members of a group, and root."""
    daemon = daemons(daemon__socket_group=GROUP)
    os.chmod(daemon.dir, 0o755)
    return daemon


@pytest.fixture
def inside(opt):
    """Starts the program of library_test.c in a container; it must end well, too."""
    def start(daemon, *mounts, **options):
        return Program("/opt/driver", daemon.socket, [*box(*(mounts or [daemon.dir]), **options), *opt])

    yield from harness.each_ends(start, Program.end)


@pytest.fixture
def lockbroker(opt):
    """Runs the command in a container that has the whole run directory."""

    def inside_of_it(daemon, *words, **options):
        return harness.run([*box(daemon.dir, **options), *opt, "/opt/lockbroker", "-S", daemon.socket, *words])

    return inside_of_it


def reads_the_page(program, daemon):
    """Whether lb_valid() needs no daemon. The handle 0 holds the lock a."""
    assert program.do("patience 0 300") == "OK"
    with stopped(daemon):
        answer = program.do("valid 0 a")
    assert program.do("patience 0 60000") == "OK"
    return not answer.startswith("CONNECTION ") and token_of(answer) > 0


def test_a_container_is_a_client_like_any_other(outside, clients, inside):
    c, program = clients(outside), inside(outside)
    assert program.do("open 0") == "OK 0"
    token = token_of(program.do("lock 0 a"))
    (holder,) = c.call("HOLDERS", "a")
    assert (holder["uid"], holder["command"], holder["token"]) == (USER, "driver", token), "as the user that it is outside"
    pid = holder["pid"]
    assert all(os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES)
    with open(f"/proc/{pid}/status") as f:
        (numbers,) = [line.split()[1:] for line in f if line.startswith("NSpid:")]
    assert numbers[0] == str(pid) != numbers[-1], "the number that it has outside"
    assert reads_the_page(program, outside)
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert program.do("unlock 0 a") == "OK 0"
    assert c.call("LOCK", "a") > token


def test_a_container_is_told_of_a_loss(outside, clients, inside, opt):
    c, program = clients(outside), inside(outside)
    program.do("open 0")
    token = token_of(program.do("lock 0 a"))
    assert c.call("FORCEUNLOCK", "a") == 1
    assert program.do("event 0 60000") == f"LOST a {token} 0 forced"
    assert program.do("valid 0 a") == "OK 0"
    job = harness.spawn([*box(outside.dir), *opt, "/opt/lockbroker", "-S", outside.socket, "lock", "b", "sleep", "1000"],
                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    harness.wait_until(lambda: [h for h in c.call("HOLDERS", "b") if h["command"] == "lockbroker"], "the lock")
    assert c.call("FORCEUNLOCK", "b") == 1
    _, said = job.communicate(timeout=harness.PATIENCE)
    assert job.returncode == 79 and "lost" in said


def test_a_container_that_is_killed_releases_its_locks(outside, clients, opt):
    c = clients(outside)
    job = harness.spawn([*box(outside.dir), *opt, "/opt/lockbroker", "-S", outside.socket, "lock", "a", "sleep", "1000"],
                        stdin=subprocess.DEVNULL)
    harness.wait_until(lambda: c.call("HOLDERS", "a"), "the lock")
    harness.end(job, signal.SIGKILL)
    assert c.call("LOCK", "a", "WAIT", 60000) > 0


def test_its_root_is_an_ordinary_user(daemons, lockbroker):
    daemon = daemons(daemon__socket_group=GROUP, argv=["-o", f"access.rule=deny {USER} theirs/* *", "-o", "access.rule=deny root 0/* *"])
    os.chmod(daemon.dir, 0o755)
    assert lockbroker(daemon, "lock", "0/a", "true").returncode == 0, "rules are about the user outside"
    denied = lockbroker(daemon, "lock", "theirs/a", "true")
    assert denied.returncode == 77 and f"deny {USER} theirs/* *" in denied.stderr
    assert "only operators may" in lockbroker(daemon, "reload").stderr
    for name in ("saved", "operator.sock", "session"):
        seen = subprocess.run([*box(daemon.dir), "cat", f"{daemon.dir}/{name}"], capture_output=True, check=False)
        assert (seen.returncode == 0) == (name == "session")


def test_who_is_not_in_the_group_is_not_let_in(daemons, lockbroker):
    daemon = daemons(daemon__socket_group=GROUP + 1)
    os.chmod(daemon.dir, 0o755)
    denied = lockbroker(daemon, "lock", "a", "true")
    assert denied.returncode == 77 and "This user may not use lockbrokerd" in denied.stderr


def test_the_hosts_root_gets_the_socket_alone(outside, clients, inside, lockbroker):
    """A container without users of its own: its root is that of the host."""
    c = clients(outside)
    assert lockbroker(outside, "-S", outside.operator_socket, "reload", user=0).returncode == 0, "the danger: it has the operators' socket"
    page = os.path.join(outside.dir, "session")
    program = inside(outside, outside.socket, page, user=0)
    program.do("open 0")
    token_of(program.do("lock 0 a"))
    assert c.call("HOLDERS", "a")[0]["uid"] == 0
    assert program.do("command 0 FORCEUNLOCK a").startswith("DENIED ")
    assert reads_the_page(program, outside)
    without = inside(outside, outside.socket, user=0)
    without.do("open 0")
    assert program.do("unlock 0 a") == "OK 0"
    token_of(without.do("lock 0 a"))
    assert token_of(without.do("valid 0 a")) > 0, "the daemon is asked"
    assert not reads_the_page(without, outside)


def operator(daemon, *words):
    with daemon.client(operator=True) as c:
        return c.call(*words)


def test_a_file_is_mounted_until_the_next_start_and_a_directory_for_good(outside, inside):
    """A restart and a crash keep the socket; a stop and a start make a new one."""
    directory, file = inside(outside), inside(outside, outside.socket)
    for program in (directory, file):
        assert program.do("open 0") == "OK 0"
    old = outside.pid
    harness.wait_until(lambda: harness.unless_late(operator(outside, "RESTART")), "a hand-over")
    outside.await_another(old)
    assert directory.do("open 1") == file.do("open 1") == "OK 0"
    outside.crash()
    assert directory.do("open 2") == file.do("open 2") == "OK 0"
    assert outside.terminate() == 0
    outside.start()
    assert directory.do("open 3") == "OK 0"
    assert file.do("open 3") == f"CONNECTION No lockbrokerd is serving {outside.socket}: Connection refused. Start it, or set LOCKBROKER_SOCKET " \
        "to the socket that it serves."


class Contained(harness.Daemon):
    """The daemon is in a container: a namespace of processes of its own, with its own /proc."""

    under = ("unshare", "--mount-proc")

    def spawn(self, **options):
        libc, ours = ctypes.CDLL(None, use_errno=True), os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, ours)
            assert libc.unshare(CLONE_NEWPID) == 0, os.strerror(ctypes.get_errno())
            stack.callback(libc.setns, ours, CLONE_NEWPID)
            super().spawn(**options)


def test_a_daemon_in_a_container_does_not_know_the_numbers_of_others(launch, programs):
    """Those that its namespace of processes does not have."""
    need("unshare", "--pid", "--fork", "--mount-proc", "true")
    daemon = launch(Contained(wait=False))
    program = programs(daemon.socket)
    program.do("open 0")
    token = token_of(program.do("lock 0 a"))
    (holder,) = operator(daemon, "HOLDERS", "a")
    assert (holder["pid"], holder["command"], holder["token"]) == (0, "", token), "not known"
    with daemon.client() as c:
        refused = c.call("SET", "b", "mine", "NX")
        assert refused.code == "ERR" and "cannot be seen from here: give a time with PX" in str(refused)
        assert c.call("SET", "b", "mine", "NX", "PX", 600000) == "OK"
    taken = run(daemon, "lock", "--verbose", "-n", "a", "true")
    assert (taken.returncode, taken.stderr) == (75, f"lockbroker: The lock a is held on host {daemon.host}.\n")
    assert operator(daemon, "FORCEUNLOCK", "a") == 1
    assert program.do("event 0 60000") == f"LOST a {token} 0 forced"
