# SPDX-License-Identifier: Apache-2.0
"""The directories that the daemon keeps its files in: full, or somebody else's."""

import os
import pathlib
import subprocess

import pytest

import harness
from harness import NoZookeeper
from saved import Saved, wait_kept

OTHER_USER = 12345


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "run"
    path.mkdir(mode=0o755)
    return str(path)


def full(path, size, filled=0):
    """The beginning of a command line: what follows sees a file system of that size there, as nobody else does."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    argv = ["unshare", "--mount", "sh", "-ec",
            f"mount -t tmpfs -o size={size} tmpfs {path}; head -c {filled} /dev/zero >{path}/filler; exec \"$@\"", "sh"]
    tried = subprocess.run([*argv, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {tried.stderr.strip()}")
    return argv


class Within(harness.Daemon):
    """A daemon below another command."""

    before = ()

    def command(self):
        return [*self.before, *super().command()]


gives_away = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory or a file away")


def ends(daemon, status):
    daemon.expected_exit = status
    daemon.spawn()
    try:
        assert daemon.process.wait(harness.PATIENCE) == status, daemon.log()
        return daemon.log()
    finally:
        daemon.end()


def test_a_full_rundir_is_an_error_and_no_signal(directory):
    """Room for the pid file, none for the session page."""
    d = harness.Daemon(NoZookeeper, wait=False, under=full(directory, "4k"), daemon__rundir=directory)
    assert f"error: {directory}/session: No space left on device" in ends(d, 1)


@gives_away
@pytest.mark.parametrize("mode, owner", [(0o755, OTHER_USER), (0o777, 0), (0o775, 0)])
def test_a_rundir_that_others_may_fill_is_refused(directory, mode, owner):
    os.chown(directory, owner, owner)
    os.chmod(directory, mode)
    d = harness.Daemon(NoZookeeper, wait=False, daemon__rundir=directory)
    assert f"daemon.rundir = {directory}: must belong to the daemon's user or root" in ends(d, 1)
    assert os.listdir(directory) == []


@gives_away
@pytest.mark.parametrize("key", ["daemon.socket", "daemon.operator_socket"])
@pytest.mark.parametrize("mode, owner", [(0o755, OTHER_USER), (0o775, 0)])
def test_a_directory_of_a_socket_that_others_may_fill_is_refused(directory, key, mode, owner):
    """They could put a socket of their own there."""
    os.chown(directory, owner, owner)
    os.chmod(directory, mode)
    d = harness.Daemon(NoZookeeper, wait=False, **{key.replace(".", "__"): f"{directory}/s"})
    assert f"error: {key} = {directory}/s: its directory must belong to the daemon's user or root" in ends(d, 1)
    assert os.listdir(directory) == []


@gives_away
def test_who_goes_on_with_locks_only_warns_of_such_a_directory(directory, daemons, locked):
    """A hand-over and a crash: an upgrade must not cost anybody a lock."""
    d = daemons(daemon__operator_socket=f"{directory}/s")
    c, token = locked(d)
    wait_kept(Saved(d), c)
    os.chmod(directory, 0o775)
    warning = f"warning: daemon.operator_socket = {directory}/s: its directory must belong to the daemon's user or root"
    d.hand_over()
    assert warning in d.log()
    before = d.log().count(warning)
    d.crash()
    assert d.log().count(warning) > before
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0


def test_what_clients_need_is_open_to_them_whatever_the_umask_is(directory, daemons):
    """The unit's umask leaves nothing to others."""
    daemons(daemon__rundir=os.path.join(directory, "made"), under=["sh", "-c", 'umask 077; exec "$@"', "sh"])
    modes = {name: os.stat(os.path.join(directory, "made", name)).st_mode & 0o777 for name in (".", "session", "saved")}
    assert modes == {".": 0o755, "session": 0o644, "saved": 0o600}


@gives_away
def test_a_page_of_somebody_else_is_not_written_to(directory, daemons):
    """In a directory where everybody may make files, as in /tmp."""
    os.chmod(directory, 0o1777)
    daemons(daemon__rundir=directory).terminate()
    page = os.path.join(directory, "session")
    other = page + ".other"
    os.link(page, other)
    with open(other, "r+b") as f:
        f.seek(16)
        f.write(b"\xff" * 8)
    os.chown(other, OTHER_USER, OTHER_USER)
    before = pathlib.Path(other).read_bytes()
    d = daemons(daemon__rundir=directory)
    assert pathlib.Path(other).read_bytes() == before
    assert os.stat(page).st_uid == 0 and d.info()["session_state"] == "standalone"


def test_standalone_with_a_full_statedir_blames_nobody_else(directory, daemons):
    d = daemons(daemon__statedir=directory, under=full(directory, "4k", 4096))
    with d.client() as c:
        answer = c.call("LOCK", "a", "WAIT", 100)
    assert answer.code == "UNAVAILABLE" and "daemon.statedir" in answer and "ZooKeeper" not in answer
    assert "cannot write the tokens file: No space left on device" in d.log()


def test_a_crash_with_a_full_statedir_costs_no_lock_that_is_held(directory, daemons, clients, locked):
    """But the next token is above those that the disk says may have been used, so it has to wait for the disk."""
    d = daemons(daemon__statedir=directory, under=full(directory, "64k"))
    c, token = locked(d)
    wait_kept(Saved(d), c)
    filler = f"/proc/{d.process.pid}/root{directory}/filler"
    with open(filler, "wb", buffering=0) as f, pytest.raises(OSError):
        while True:
            f.write(bytes(4096))
    d.crash()
    assert c.call("VALID", "a", "TOKEN", token) > 0
    assert clients(d).call("LOCK", "b", "WAIT", 100).code == "UNAVAILABLE"
    os.unlink(filler)
    assert clients(d).call("LOCK", "b", "WAIT", 20000) > token
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
