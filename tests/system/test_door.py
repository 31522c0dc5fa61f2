# SPDX-License-Identifier: Apache-2.0
"""The operators' door: a second socket, through which alone what is for operators is carried out."""

import fcntl
import os
import re
import signal
import socket
import stat
import subprocess
import sys

import pytest

import harness

HOW = re.compile(r"DENIED only operators may .*: use the operators' socket (\S+) \(lockbroker does so by itself for root\)")


def lockbroker(*words, **env):
    return subprocess.run([harness.program("lockbroker"), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=harness.PATIENCE, env=os.environ | env)


def test_root_is_a_user_like_any_other_on_the_socket_of_everybody(standalone, clients):
    c, operator = clients(standalone), clients(standalone, operator=True)
    for words in (["FORCEUNLOCK", "a"], ["LIMIT", "s", 5], ["RESTART"], ["RELOAD"]):
        assert HOW.fullmatch(c.call(*words)).group(1) == standalone.operator_socket, words
    token = c.call("LOCK", "a")
    assert operator.call("FORCEUNLOCK", "a") == 1 and c.push() == ["lost", "a", token, "forced"]


def test_the_socket_has_its_mode_and_goes_with_the_daemon(daemons):
    d = daemons(daemon__socket_mode="0666")
    assert stat.S_IMODE(os.stat(d.operator_socket).st_mode) == 0o600
    assert d.operator_socket == os.path.join(d.dir, "operator.sock")
    assert d.terminate() == 0
    assert not os.path.exists(d.operator_socket)


def test_a_group_opens_it(daemons, tmp_path):
    path = str(tmp_path / "door")
    d = daemons(daemon__operator_socket=path, daemon__operator_group="4711")
    st = os.stat(path)
    assert (stat.S_IMODE(st.st_mode), st.st_gid) == (0o660, 4711)
    with d.client(operator=True) as c:
        assert c.call("RELOAD") == ""


@pytest.mark.parametrize("options, sentence", [
    ({"daemon__operator_group": "no-such-group"}, "daemon.operator_group = no-such-group: there is no such group"),
    ({"daemon__operator_socket": "{socket}"}, "is daemon.socket, too; set another path"),
])
def test_a_door_that_cannot_be_is_an_error(daemons, options, sentence):
    d = harness.Daemon(wait=False)
    daemons.list.append(d)
    d.expected_exit = 2
    d.options |= {k.replace("__", "."): v.format(socket=d.socket) for k, v in options.items()}
    d.spawn()
    assert d.process.wait(harness.PATIENCE) == 2 and sentence in d.log()


def test_a_second_daemon_does_not_take_it(daemons, standalone):
    d = harness.Daemon(wait=False, daemon__operator_socket=standalone.operator_socket)
    daemons.list.append(d)
    d.spawn()
    assert d.process.wait(harness.PATIENCE) != 0
    assert f"another lockbrokerd is serving {standalone.operator_socket}" in d.log()
    with standalone.client(operator=True) as c:
        assert c.call("RELOAD") == ""


def test_who_came_through_it_stays_an_operator(standalone, clients):
    """Over a hand-over, and after a kill: then those go on that hold something."""
    c, operator = clients(standalone), clients(standalone, operator=True)
    assert isinstance(c.call("LOCK", "mine"), int) and isinstance(operator.call("LOCK", "a"), int)
    assert isinstance(operator.call("RESTART"), dict)
    standalone.follow()
    assert operator.call("RELOAD") == "" and HOW.fullmatch(c.call("RELOAD"))
    with standalone.client(operator=True) as another:
        assert another.call("RELOAD") == ""


def test_after_a_kill_it_is_open_and_its_clients_are_operators(standalone, clients):
    operator, c = clients(standalone, operator=True), clients(standalone)
    for client in (operator, c):
        assert isinstance(client.call("LOCK", f"{client is c}"), int)
    harness.wait_until(lambda: [x for x in clients(standalone, operator=True).call("CLIENT", "LIST").splitlines()
                                if int(re.search(r"age=(\d+)", x).group(1)) >= 3], "the keeper to have them")
    old = standalone.pid
    standalone.signal(signal.SIGKILL)
    standalone.await_another(old)
    assert operator.call("RELOAD") == "" and HOW.fullmatch(c.call("RELOAD"))
    with standalone.client(operator=True) as another:
        assert another.call("RELOAD") == ""


ACTIVATE = """
import os, sys
for number, fd in enumerate(sys.argv[1].split(",")):
    os.dup2(int(fd), 3 + number)
os.environ.update(LISTEN_FDS="2", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


@pytest.mark.parametrize("names, operators", [("lockbrokerd.socket:operators", 1), ("operators:lockbrokerd.socket", 0)])
def test_a_service_manager_may_pass_it(daemons, names, operators):
    d = harness.Daemon(wait=False)
    daemons.list.append(d)
    listening = []
    for name in "first", "second":
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.join(d.dir, name))
        s.listen()
        listening.append(s)
    command = d.command
    # Their numbers are none of those that the program is to find them at.
    fds = [fcntl.fcntl(s, fcntl.F_DUPFD, 100) for s in listening]
    d.command = lambda: [sys.executable, "-c", ACTIVATE, ",".join(map(str, fds)), names, *command()]
    d.start(pass_fds=fds)
    for fd in fds:
        os.close(fd)
    with harness.Client(listening[operators].getsockname()) as c:
        assert c.call("RELOAD") == ""
    with harness.Client(listening[1 - operators].getsockname()) as c:
        assert HOW.fullmatch(c.call("RELOAD"))
    for s in listening:
        s.close()


def test_the_command_uses_it_by_itself(standalone, clients):
    c = clients(standalone)
    token = c.call("LOCK", "a")
    done = lockbroker("force-unlock", "a", LOCKBROKER_SOCKET=standalone.socket)
    assert (done.returncode, done.stderr) == (0, "") and c.push() == ["lost", "a", token, "forced"]
    assert lockbroker("call", "RELOAD", LOCKBROKER_SOCKET=standalone.socket).returncode == 0
    assert lockbroker("reload", LOCKBROKER_OPERATOR_SOCKET=standalone.operator_socket).returncode == 0
    # What is named is meant.
    done = lockbroker("-S", standalone.socket, "reload")
    assert done.returncode == 77 and standalone.operator_socket in done.stderr
    assert lockbroker("-S", standalone.operator_socket, "reload").returncode == 0
