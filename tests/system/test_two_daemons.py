# SPDX-License-Identifier: Apache-2.0
"""Two daemons where one should be: of one directory, of one name, or at one session."""

import os
import shutil
import socket
import struct
import subprocess

import pytest

import ensemble
import harness
from harness import FAST, FAST_TICK_MS, ROOMY
from saved import LOAD, Saved, processes, session_id, wait_announced  # noqa: F401 (processes is a fixture)


def test_a_copy_of_a_living_daemons_file_does_it_no_harm(daemons, zk, root, clients):
    """A second daemon of the name, with a copied directory: it is refused, and ends nobody's session."""
    alpha, beta = daemons(zk, root, host="alpha"), daemons(zk, root, host="beta")
    c = clients(alpha)
    session = session_id(alpha)
    twin = harness.Daemon(zk, root, host="alpha", wait=False)
    shutil.copy(os.path.join(alpha.dir, "saved"), os.path.join(twin.dir, "saved"))
    token = c.call("LOCK", "a")
    twin.expected_exit = 2
    twin.spawn()
    assert twin.process.wait(harness.PATIENCE) == 2
    assert "it is a copy" in twin.log()
    assert session_id(alpha) == session and c.call("VALID", "a", "TOKEN", token) > 0
    assert clients(beta).call("LOCK", "a", "WAIT", 0) is None
    twin.end()


def take_over(zk, session, password):
    """Continues the session on a connection of its own. False: the server knows no such session."""
    with socket.create_connection(("127.0.0.1", zk.port), harness.PATIENCE) as s:
        request = struct.pack(">iqiqi16s?", 0, 0, 15000, session, 16, password, False)
        s.sendall(struct.pack(">i", len(request)) + request)
        answer = s.recv(64)
    return not answer or struct.unpack_from(">i", answer, 8)[0] > 0


def test_who_knows_a_session_can_disturb_it_and_costs_nobody_a_lock(daemons, zk, root, clients):
    """A session's password can be derived from its id, which every znode shows: the ensemble's port is what must be
    guarded. Who shares a session takes its connection away, again and again."""
    d = daemons(zk, root)
    c = clients(d)
    token = c.call("LOCK", "a")
    session = Saved(d).session()
    password = ensemble.session_password(session)
    at = Saved.SESSIONS + 40 * struct.unpack_from("=I", Saved(d).read(), Saved.PRESENT)[0] + 8
    assert Saved(d).read()[at:at + 16] == password
    for _ in range(10):
        before = d.info()["suspensions_total"]
        assert take_over(zk, session, password)
        harness.wait_until(lambda before=before: d.info()["suspensions_total"] != before, "the connection to be lost")
        harness.wait_until(lambda: d.info()["connected"] == "1", "another one")
    harness.wait_until(lambda: d.info()["session_state"] == "safe", "the session")
    assert "connection to ZooKeeper lost" in d.log()
    assert c.call("LOCK", "a", "REENTER") == token and not any(p[0] == "lost" for p in c.pushes)
    assert Saved(d).session() == session


def test_two_daemons_of_one_directory(daemons, zk, root):
    first = daemons(zk, root)
    ran = subprocess.run([*first.command(), "-o", f"daemon.socket={first.socket}2"], stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, timeout=harness.PATIENCE, check=False)
    assert ran.returncode == 1
    assert f"pid {first.process.pid}" in ran.stderr.decode()
    assert Saved(first).session() != 0 and first.info()["session_state"] == "safe"


def test_two_daemons_of_one_name(own_zk, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    first = daemons(zk, **ROOMY, host="alpha")
    wait_announced(first)
    a = clients(first)
    token = a.call("LOCK", "a")
    second = daemons(zk, **ROOMY, host="alpha", start=False)
    second.expected_exit = 2
    second.spawn()
    assert second.process.wait(harness.PATIENCE) == 2
    log = second.log()
    assert '"alpha"' in log and f'pid "{first.pid}" on this host' in log and "zookeeper.host" in log
    assert 'version "0.' in log
    with open("/proc/sys/kernel/random/boot_id") as f:
        assert f.read().strip() in log
    info = first.info()
    assert info["announced"] == "1" and info["rival"] == "" and a.call("LOCK", "a", "REENTER") == token
    harness.wait_until(lambda: len(zk.sessions()) == 1, "the second's session to be gone, and not by its timeout", 8)


@pytest.mark.release_only("it takes as long as a second daemon looks, under load")
@pytest.mark.plain_only("it is about time: the same code runs in shorter tests")
def test_a_busy_host_is_seen_to_live_too(own_zk, daemons, processes):
    """Lock traffic stands for heartbeats, but not on the host's own znode."""
    zk = own_zk(tick_ms=FAST_TICK_MS)
    first = daemons(zk, **FAST, host="alpha", locks__linger_ms=0)
    wait_announced(first)
    processes(LOAD, first.socket, 5)
    second = daemons(zk, **FAST, host="alpha", start=False)
    second.spawn()
    assert second.process.wait(harness.PATIENCE) == 2


def test_a_leftover_without_its_file_refuses_nobody(own_zk, daemons, clients):
    zk = own_zk(tick_ms=FAST_TICK_MS)
    d = daemons(zk, **FAST, host="alpha")
    d.kill()
    os.unlink(Saved(d).path)
    d.start()
    assert d.info()["announced"] == "0"
    assert isinstance(clients(d).call("LOCK", "a"), int), "it serves meanwhile"
    wait_announced(d)
    assert d.info()["rival"] == ""
