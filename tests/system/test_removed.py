# SPDX-License-Identifier: Apache-2.0
"""Files that somebody removes under the living daemon: by a cleaner of old files, or by hand."""

import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

import harness
from mishaps import standing_still
from saved import Saved, wait_kept
from test_cli import run

OPERATORS = True  # see clients of conftest.py


@pytest.fixture
def apart(daemons, tmp_path):
    """A daemon whose run directory and state directory have nothing else in them."""

    def make(*args, **options):
        for name in ("run", "state"):
            (tmp_path / name).mkdir(mode=0o755, exist_ok=True)
        rundir = str(tmp_path / "run")
        return daemons(*args, daemon__rundir=rundir, daemon__socket=f"{rundir}/socket",
                       daemon__statedir=str(tmp_path / "state"), **options)

    return make


def made_by(daemon):
    return {name for name in os.listdir(daemon.options["daemon.rundir"]) if ".spare" not in name}


def socket_of(daemon):
    daemon.socket = daemon.options["daemon.socket"]
    return daemon


def test_what_is_removed_is_made_again_and_said_once(apart, clients):
    d = socket_of(apart())
    c = clients(d)
    token = c.call("LOCK", "a")
    saved = Saved(d)
    saved.path = f"{d.options['daemon.rundir']}/saved"
    wait_kept(saved, c)
    rundir, names = d.options["daemon.rundir"], made_by(d)
    with standing_still(d):
        for name in os.listdir(rundir):
            os.unlink(f"{rundir}/{name}")
    harness.wait_until(lambda: made_by(d) == names, "the files")
    # A line follows its file.
    for name in names:
        line = f"warning: somebody has removed {rundir}/{name}: it was made again"
        harness.wait_until(lambda line=line: line in d.log(), line)
        assert d.log().count(line) == 1
    assert "error:" not in d.log() and d.info("server")["files_lost"] == "0"
    assert c.call("VALID", "a", "TOKEN", token) > 0
    assert clients(d).call("LOCK", "a", "WAIT", 0) is None
    assert run(d, "check").returncode == 0
    # What was made again is what the next process goes on with.
    old = d.pid
    d.signal(signal.SIGKILL)
    d.await_another(old)
    assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a", "TOKEN", token) == 0


def test_a_run_directory_that_is_removed_is_made_again(apart, clients):
    d = socket_of(apart())
    rundir, names = d.options["daemon.rundir"], made_by(d)
    os.rename(rundir, f"{rundir}.away")
    harness.wait_until(lambda: os.path.isdir(rundir) and made_by(d) == names, "the directory")
    assert clients(d).call("LOCK", "a") > 0
    assert clients(d).call("HELLO", 3)["session_page"] == f"{rundir}/session"


def test_who_stands_at_the_socket_that_was_removed_still_comes_in(apart, clients):
    """The daemon stands still while somebody connects and the socket is removed; then it makes another one."""
    d = socket_of(apart())
    with standing_still(d):
        early = harness.Client(d.socket, version=2)
        os.unlink(d.socket)
    assert early.call("LOCK", "a") > 0
    harness.wait_until(lambda: os.path.exists(d.socket), "the socket")
    assert clients(d).call("LOCK", "a", "WAIT", 0) is None
    early.close()
    assert clients(d).call("LOCK", "a") > 0


def test_a_hand_over_and_a_reload_make_it_again_at_once(apart, clients):
    d = socket_of(apart())
    operator = clients(d, operator=True)
    os.unlink(d.socket)
    assert operator.call("RELOAD") is not None
    assert os.path.exists(d.socket)
    os.unlink(d.socket)
    os.unlink(f"{d.options['daemon.rundir']}/session")
    operator.call("RESTART")
    harness.wait_until(lambda: made_by(d) >= {"socket", "session"}, "the files")
    d.follow()


def test_a_path_at_which_somebody_else_listens_is_not_taken_back(apart, clients):
    d = socket_of(apart())
    with socket.socket(socket.AF_UNIX) as other:
        with standing_still(d):
            os.unlink(d.socket)
            other.bind(d.socket)
            other.listen(5)
        mine = os.stat(d.socket).st_ino
        harness.wait_until(lambda: "it cannot be made again" in d.log(), "the error")
        assert f"{d.socket}, and it cannot be made again: another lockbrokerd is serving" in d.log()
        assert os.stat(d.socket).st_ino == mine
        checked = run(d, "-S", d.operator_socket, "check")
        assert checked.returncode == 2 and "CRITICAL - 1 files or sockets of the daemon were removed" in checked.stdout
        assert d.info("server")["files_lost"] == "1"
    # Nobody listens there any longer.
    harness.wait_until(lambda: d.answers(), "the socket")
    assert d.info("server")["files_lost"] == "0" and d.log().count("it cannot be made again") == 1


def test_a_second_daemon_that_took_the_run_directory_keeps_it(apart, daemons):
    """The first one stands still for so long."""
    first = socket_of(apart())
    rundir = first.options["daemon.rundir"]
    with standing_still(first):
        for name in os.listdir(rundir):
            os.unlink(f"{rundir}/{name}")
        daemons(daemon__rundir=rundir)
        names = "lockbrokerd.pid", "saved", "session", "operator.sock"
        inodes = {name: os.stat(f"{rundir}/{name}").st_ino for name in names}
    said = "lockbrokerd.pid, and it cannot be made again: another lockbrokerd (pid"
    harness.wait_until(lambda: said in first.log(), "the error")
    harness.wait_until(lambda: os.path.exists(first.socket), "its own socket, which it makes after the error")
    with harness.Client(first.socket) as c:
        assert c.call("PING") == "PONG"
        assert harness.parse_info(c.call("INFO", "server"))["files_lost"] == "5"
    assert inodes == {name: os.stat(f"{rundir}/{name}").st_ino for name in inodes}


def test_systemd_tmpfiles_leaves_the_files_of_a_living_daemon_alone(apart, tmp_path):
    """Its line may be about the directory, or about the one above it."""
    if not shutil.which("systemd-tmpfiles") or os.geteuid() != 0:
        pytest.skip("systemd-tmpfiles is not installed, or this is not root")
    d = socket_of(apart())
    names = made_by(d)
    for path in (d.options["daemon.rundir"], tmp_path):
        (tmp_path / "old.conf").write_text(f"d {path} 0755 root root 1s\n")
        until = time.time() + 1.5
        harness.wait_until(lambda until=until: time.time() > until, "the files to be old enough")
        subprocess.run(["systemd-tmpfiles", "--clean", str(tmp_path / "old.conf")], check=True)
        assert made_by(d) == names
    assert "somebody has removed" not in d.log()


def test_the_files_of_the_state_directory_are_made_again(apart, clients):
    """A daemon that found no tokens would give out the same ones again."""
    d = socket_of(apart())
    statedir = d.options["daemon.statedir"]
    assert clients(d).call("LOCK", "a") > 0
    with open(f"{statedir}/tokens") as f:
        before = int(f.read())
    with standing_still(d):
        for name in os.listdir(statedir):
            os.unlink(f"{statedir}/{name}")
    harness.wait_until(lambda: {"tokens", "tokens.lock"} <= set(os.listdir(statedir)), "the files")
    with open(f"{statedir}/tokens") as f:
        assert int(f.read()) >= before
