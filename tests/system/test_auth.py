# SPDX-License-Identifier: Apache-2.0
"""zookeeper.auth_file: what the daemon makes is for its user alone."""

import os

import kazoo.exceptions
import kazoo.security
import pytest

import harness
from saved import Saved, wait_kept
from test_cli import run

OPERATORS = True  # see clients of conftest.py


def test_hosts_of_one_secret_exclude_each_other(daemons, zk, root, clients, locked, secret):
    one, two = (daemons(zk, root=root, zookeeper__auth_file=secret) for _ in range(2))
    (a, token), b = locked(one), clients(two)
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


def test_mail_is_for_hosts_of_the_secret_only(daemons, zk, root, clients, locked, secret, kazoo_client):
    one, two = (daemons(zk, root=root, host=host, zookeeper__auth_file=secret) for host in ("alpha", "beta"))
    (a, token), b = locked(one), clients(two)
    assert b.call("REVOKE", "a", "please") == 1 and a.push() == ["revoke", "a", token, "please"]
    assert b.call("FORCEUNLOCK", "a") == 1 and a.push() == ["lost", "a", token, "forced"]
    with pytest.raises(kazoo.exceptions.NoAuthError):
        kazoo_client(zk).create(f"{root}/.mail/alpha/x", b"x")


def test_a_daemon_without_the_secret_is_refused_and_says_so(daemons, launch, zk, root, clients, secret):
    first = daemons(zk, root=root, zookeeper__auth_file=secret)
    clients(first).call("LOCK", "a")
    other = harness.Daemon(zk, root=root, wait=False)
    other.has_session = False
    c = clients(launch(other))
    harness.wait_until(lambda: other.info("session")["session_state"] == "safe", "the session")
    assert c.call("LOCK", "a", "WAIT", "1000").code == "UNAVAILABLE"
    assert "ZooKeeper refuses" in other.log() and "not authenticated" in other.log()


@pytest.mark.parametrize("text, mode, says", [
    ("broker:s3cret", 0o640, "readable by nobody else"),
    ("broker:s3cret\nmore", 0o600, "must be lines of user:password, at most 8"),
    ("broker", 0o600, "must be lines of user:password"),
    (":s3cret", 0o600, "must be lines of user:password"),
    ("", 0o600, "must be lines of user:password"),
    (None, 0o600, "No such file"),
])
def test_a_bad_secret_is_an_error_before_anything_starts(tmp_path, text, mode, says):
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    done = harness.run([harness.program("lockbrokerd"), "-o", f"zookeeper.auth_file={path}",
                        "-o", f"daemon.socket={tmp_path}/s", "-o", f"daemon.rundir={tmp_path}"])
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
    harness.wait_until(lambda: sorted(owner.get_children(f"{root}/locks")) == [".hosts", ".mail", "a"], "its directories")
    assert d.info("zookeeper")["trouble"] == ""


def test_a_fleet_changes_its_password_in_steps_and_all_hosts_exclude_each_other_throughout(
        daemons, zk, root, clients, tmp_path, kazoo_client):
    """Each host is a step behind the other once. What is made belongs to the first line, and to nobody else."""
    files = [tmp_path / name for name in ("one", "two")]
    for path in files:
        path.write_text("broker:old\n")
        path.chmod(0o600)
    hosts = [daemons(zk, root=root, zookeeper__auth_file=path) for path in files]
    owner = "old"
    for text in (None, "broker:old\nbroker:new\n", "broker:new\nbroker:old\n"):
        for host, path in zip(hosts, files):
            if text:
                path.write_text(text)
                host.terminate()
                host.start()
            owner = "new" if text and text.startswith("broker:new") else "old"
            a, b = clients(hosts[0]), clients(hosts[1])
            for holder, other in ((a, b), (b, a)):
                assert holder.call("LOCK", "a", "WAIT", "20000") > 0
                assert other.call("LOCK", "a", "WAIT", "0") is None
                assert holder.call("UNLOCK", "a") == 0
    clients(hosts[0]).call("LOCK", "made later")
    friend = kazoo_client(zk, auth_data=[("digest", f"broker:{owner}")])
    acls, _ = friend.get_acls(f"{root}/made%20later")
    assert acls == [kazoo.security.make_digest_acl("broker", "new", all=True)]
    with pytest.raises(kazoo.exceptions.NoAuthError):
        kazoo_client(zk, auth_data=[("digest", "broker:old")]).get_children(f"{root}/made%20later")


def give(k, path, acl):
    """What setAcl -R does."""
    k.set_acls(path, acl)
    for child in k.get_children(path):
        give(k, f"{path}/{child}", acl)


def test_the_old_line_may_go_when_what_was_made_before_belongs_to_the_new_one(
        daemons, zk, root, clients, secret, kazoo_client):
    """The last step of a change. Without setAcl the daemon is refused, and says so; it goes on by itself after that."""
    secret.write_text("broker:old\n")
    d = daemons(zk, root=root, zookeeper__auth_file=secret)
    assert clients(d).call("LOCK", "a") > 0
    assert d.terminate() == 0
    secret.write_text("broker:new\n")
    d.has_session = False
    d.start()
    c = clients(d)
    harness.wait_until(lambda: d.info("session")["session_state"] == "safe", "the session")
    assert c.call("LOCK", "b", "WAIT", "1000").code == "UNAVAILABLE"
    assert "not authenticated" in d.info("zookeeper")["trouble"]
    owner = kazoo_client(zk, auth_data=[("digest", "broker:old"), ("digest", "broker:new")])
    give(owner, root, [kazoo.security.make_digest_acl("broker", "new", all=True)])
    assert all(c.call("LOCK", name, "WAIT", "20000") > 0 for name in "ab")
    assert d.info("zookeeper")["trouble"] == ""


def reload(daemon):
    return run(daemon, "reload", check=True).stdout


def test_a_reload_says_that_another_secret_needs_a_restart(daemons, zk, root, secret):
    d = daemons(zk, root=root, zookeeper__auth_file=secret)
    secret.write_text("broker:other\n")
    said = reload(d)
    assert f"zookeeper.auth_file: {secret} has other lines than at the start, which needs a restart" in said
    secret.write_text("nothing\n")
    assert "the next start would fail" in reload(d)
    secret.write_text("broker:s3cret\n")
    assert "zookeeper.auth_file" not in reload(d)


def keeps(daemon, client, token):
    """The lock stays, and the daemon may do in ZooKeeper what it did before."""
    assert client.call("LOCK", "b", "WAIT", "20000") > 0
    assert client.call("VALID", "a", "TOKEN", token) > 0 and client.call("UNLOCK", "a") == 0
    assert client.call("LOCK", "a", "WAIT", "20000") > token
    assert daemon.info("zookeeper")["trouble"] == ""


@pytest.mark.parametrize("change", [lambda path: path.write_text("broker:other\n"), lambda path: path.chmod(0o644),
                                    os.unlink], ids=["other lines", "open to others", "gone"])
def test_a_crash_goes_on_with_the_secret_that_was_in_use(daemons, zk, root, locked, secret, change):
    """What is in the file by now is for the next start: nobody has asked for that. What was made belongs to the former line."""
    d = daemons(zk, root=root, zookeeper__auth_file=secret)
    c, token = locked(d)
    change(secret)
    for _ in range(2):
        wait_kept(Saved(d), c)
        d.crash()
    keeps(d, c, token)


def test_a_hand_over_needs_the_line_that_what_was_made_belongs_to(daemons, zk, root, clients, locked, secret):
    d = daemons(zk, root=root, zookeeper__auth_file=secret)
    (c, token), operator = locked(d), clients(d)
    for text in ("broker:new\n", "broker:s3cret2\nbroker:new\n"):
        secret.write_text(text)
        reply = operator.call("RESTART")
        assert reply.startswith("ERR not restarted: zookeeper.auth_file lacks the first line of the secret in use"), reply
    for text in ("broker:s3cret\nbroker:new\n", "broker:new\nbroker:s3cret\n"):
        secret.write_text(text)
        d.hand_over(operator)
    keeps(d, c, token)
