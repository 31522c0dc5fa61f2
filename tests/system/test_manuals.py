# SPDX-License-Identifier: Apache-2.0
"""The examples of the manuals, as they stand there, against real daemons. tests/system/test_blocks.py knows which tests have the others."""

import os
import re
import signal
import subprocess

import pytest

import harness
import pages

pytestmark = pytest.mark.plain_only("it is about the documents")

COMMANDS = "client-lib/man/lockbroker.1"
CONF = pages.claimed("client-lib/man/lockbroker.conf.5", __file__)
DAEMON = pages.claimed("client-lib/man/lockbrokerd.8", __file__)
JOB = """#!/bin/sh
echo "$(basename "$0") $* with $LOCKBROKER_NAME $LOCKBROKER_TOKEN"
"""


@pytest.fixture
def shell(broker, tmp_path):
    """What a shell does with a line: each program that the manual names says how it was called."""
    for name in "settle", "backup", "report", "transfer", "deploy", "train":
        (tmp_path / name).write_text(JOB)
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"LOCKBROKER_SOCKET": broker.socket, "PATH": f"{harness.build_dir()}:{os.environ['PATH']}"}

    def run(line):
        return subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=harness.PATIENCE)

    run.environment = environment
    return run


def test_the_examples_of_the_commands_manual_run(shell, clients, broker):
    """On free locks; and on taken ones they do what is said of them."""
    one_of_two, lines = pages.claimed("client-lib/man/lockbroker.1", __file__)
    *free, events = (one_of_two + lines).splitlines()
    free = [shell(line) for line in free]
    assert [(done.returncode, done.stderr) for done in free] == [(0, "")] * 6
    said = [re.sub(r"\b\d{4,}", "N", done.stdout) for done in free]
    assert re.fullmatch(r"train  with gpu/[01] \d+\n", free[0].stdout)
    assert said[1:6] == ["settle --order 42 with orders/42 N\n", "backup  with nightly N\n", "report  with catalog N\n",
                         "transfer 7 9 with accounts/9\naccounts/7 N\nN\n", "deploy N with deploy N\n"]
    assert len(set(re.findall(r"\d{4,}", free[5].stdout))) == 1, "it is the token of the lock"
    shell_of_events = harness.spawn(["sh", "-c", events], stdout=subprocess.PIPE, env=shell.environment, text=True, start_new_session=True)
    shown = ""
    while shown.count("granted") < 2:
        shown += shell_of_events.stdout.readline()
    os.killpg(shell_of_events.pid, signal.SIGINT)
    shell_of_events.communicate(timeout=harness.PATIENCE)
    assert shown.count("QUEUED") == 2
    c = clients(broker)
    for name in "nightly", "gpu/0", "accounts/7":
        assert isinstance(c.call("LOCK", name, "WAIT", harness.PATIENCE * 1000), int)
    nightly, gpu = shell(lines.splitlines()[1]), shell(one_of_two)
    assert (nightly.returncode, nightly.stdout) == (0, ""), "75 is a success there"
    assert gpu.stdout.startswith("train  with gpu/1 ")
    assert shell(lines.splitlines()[1].split(" || ")[0]).returncode == 75


def test_a_prefix_of_the_manual_has_its_locks_below_its_path(daemons, zk, root, clients, kazoo_client, tmp_path):
    (tmp_path / "conf").write_text(CONF[0].replace("path = /app", f"path = {root}/app"))
    d = daemons(zk, f"{root}/ours", argv=["-c", str(tmp_path / "conf")])
    c = clients(d)
    assert isinstance(c.call("LOCK", "app/one"), int) and isinstance(c.call("LOCK", "two"), int)
    keeper = kazoo_client(zk)
    (claim,) = keeper.get_children(f"{root}/app/locks/one")
    assert "-lock-" in claim, "the flavour is mutex"
    assert "two" in keeper.get_children(f"{root}/ours") and "one" not in str(keeper.get_children(f"{root}/ours"))


def test_the_rules_of_the_manual_say_who_may_take_what(daemons, tmp_path):
    """For their group stands one that this machine has."""
    text = CONF[1]
    assert text.count("@backup") == 1
    (tmp_path / "conf").write_text(text.replace("@backup", "@daemon"))
    d = daemons(argv=["-c", str(tmp_path / "conf")])

    def may(user, name, *unit):
        done = subprocess.run([harness.program("lockbroker"), "-S", d.operator_socket, "access", user, name, *unit], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "deny unit:report.service" in may("4000", "orders", "report.service")
    assert "deny" not in may("4000", "orders", "other.service")
    assert "allow @daemon" in may("daemon", "backup/1") and "deny * backup/*" in may("4000", "backup/1")


def test_the_tree_of_the_manual_is_that_of_zookeeper(daemons, zk, root, clients, kazoo_client):
    c = clients(daemons(zk, root, host="alpha"))
    assert isinstance(c.call("LOCK", "orders/42"), int)
    claim, *rest = DAEMON[0].split()
    keeper = kazoo_client(zk)
    folder, name = claim.replace("/lockbroker", root).rsplit("/", 1)
    (there,) = keeper.get_children(folder)
    assert re.fullmatch(name.replace("UUID", "[0-9a-f-]{36}|[0-9a-f]{32}").replace("_c_", "_c_(?:").replace("-__WRIT__", ")-__WRIT__")
                        .replace("0000000007", r"\d{10}"), there), there
    assert len(rest) == 2
    for path in rest:
        assert keeper.exists(path.replace("/lockbroker", root)), path


def test_a_deleted_znode_is_logged_as_the_manual_shows(daemons, zk, root, clients, kazoo_client):
    d = daemons(zk, root)
    assert isinstance(clients(d).call("LOCK", "a"), int)
    keeper = kazoo_client(zk)
    (claim,) = keeper.get_children(f"{root}/a")
    keeper.delete(f"{root}/a/{claim}")
    expected = DAEMON[1].strip().replace("/lockbroker", root).replace("__WRIT__0000000007", "__" + claim.split("-__")[1])
    harness.wait_until(lambda: expected in d.log(), lambda: f"the line {expected} in {d.log()}")
