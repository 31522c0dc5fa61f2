# SPDX-License-Identifier: Apache-2.0
"""zookeeper.auth_file: what the daemon makes is for its user alone."""

import os
import subprocess

import kazoo.exceptions
import kazoo.security
import pytest

import harness

OPERATORS = True  # see clients of conftest.py


def test_hosts_of_one_secret_exclude_each_other(daemons, zk, root, clients, secret):
    one, two = (daemons(zk, root=root, zookeeper__auth_file=secret) for _ in range(2))
    a, b = clients(one), clients(two)
    token = a.call("LOCK", "a")
    assert b.call("LOCK", "a", "WAIT", "0") is None
    a.call("UNLOCK", "a")
    assert b.call("LOCK", "a", "WAIT", "20000") > token


def test_nobody_else_reads_or_deletes(daemons, zk, root, clients, secret, kazoo_client):
    d = daemons(zk, root=root, zookeeper__auth_file=secret)
    clients(d).call("LOCK", "a")
    stranger = kazoo_client(zk)
    with pytest.raises(kazoo.exceptions.NoAuthError):
        stranger.get_children(f"{root}/a")
    friend = kazoo_client(zk, auth_data=[("digest", "broker:s3cret")])
    (znode,) = friend.get_children(f"{root}/a")
    with pytest.raises(kazoo.exceptions.NoAuthError):
        stranger.delete(f"{root}/a/{znode}")


def test_mail_is_for_hosts_of_the_secret_only(daemons, zk, root, clients, secret, kazoo_client):
    one, two = (daemons(zk, root=root, host=host, zookeeper__auth_file=secret) for host in ("alpha", "beta"))
    a, b = clients(one), clients(two)
    token = a.call("LOCK", "a")
    assert b.call("REVOKE", "a", "please") == 1 and a.push() == ["revoke", "a", token, "please"]
    assert b.call("FORCEUNLOCK", "a") == 1 and a.push() == ["lost", "a", token, "forced"]
    with pytest.raises(kazoo.exceptions.NoAuthError):
        kazoo_client(zk).create(f"{root}/.mail/alpha/x", b"x")


def test_a_daemon_without_the_secret_is_refused_and_says_so(daemons, zk, root, clients, secret):
    first = daemons(zk, root=root, zookeeper__auth_file=secret)
    clients(first).call("LOCK", "a")
    other = harness.Daemon(zk, root=root, wait=False)
    other.has_session = False
    daemons.list.append(other)
    other.start()
    c = clients(other)
    harness.wait_until(lambda: other.info("session")["session_state"] == "safe", "the session")
    assert c.call("LOCK", "a", "WAIT", "1000").code == "UNAVAILABLE"
    assert "ZooKeeper refuses" in other.log() and "not authenticated" in other.log()


@pytest.mark.parametrize("text, mode, says", [
    ("broker:s3cret", 0o640, "readable by nobody else"),
    ("broker:s3cret\nmore", 0o600, "one line"),
    ("broker", 0o600, "one line"),
    (":s3cret", 0o600, "one line"),
    ("", 0o600, "one line"),
    (None, 0o600, "No such file"),
])
def test_a_bad_secret_is_an_error_before_anything_starts(tmp_path, text, mode, says):
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    done = subprocess.run([harness.program("lockbrokerd"), "-o", f"zookeeper.auth_file={path}",
                           "-o", f"daemon.socket={tmp_path}/s", "-o", f"daemon.rundir={tmp_path}"],
                          capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 2 and says in done.stderr and str(path) in done.stderr
    assert not os.path.exists(tmp_path / "s")


def test_a_root_that_others_prepared_below_what_is_theirs(daemons, zk, root, clients, secret, kazoo_client):
    """As a chroot: of all above it the daemon may only know that it is there."""
    owner = kazoo_client(zk, auth_data=[("digest", "admin:other"), ("digest", "broker:s3cret")])
    admin = kazoo.security.make_digest_acl("admin", "other", all=True)
    broker = kazoo.security.make_digest_acl("broker", "s3cret", all=True)
    owner.create(root, b"", acl=[admin])
    owner.create(f"{root}/locks", b"", acl=[broker])
    d = daemons(zk, root=f"{root}/locks", zookeeper__auth_file=secret)
    c = clients(d)
    assert c.call("LOCK", "a") > 0 and c.call("UNLOCK", "a") == 0
    assert sorted(owner.get_children(f"{root}/locks")) == [".hosts", ".mail", "a"]
    assert d.info("zookeeper")["trouble"] == ""
