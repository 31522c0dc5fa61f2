# SPDX-License-Identifier: Apache-2.0
"""The names of sockets: "user", which is a broker of one's own, and "@NAME", which is an instance; in each client."""

import os
import shutil
import subprocess
import sys

import pytest

import harness
import library

PYTHON = os.path.join(harness.SOURCE, "client-lib", "python")
ASK = "import lockbroker, sys; lockbroker.lock('a', socket=sys.argv[1] or None, wait=0, patience=5).acquire().release(); print('locked')"
PROGRAM = """
#include <lockbroker.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct lb *lb;
	int failed = lb_open(argc > 1 && *argv[1] ? argv[1] : NULL, &lb) != LB_OK || lb_try(lb, "a", NULL) != LB_OK;

	printf("%s\\n", failed ? lb_error(lb) : "locked");
	lb_close(lb);
	return failed;
}
"""
USERS_REMEDY = "Start it by `systemctl --user enable --now lockbrokerd.socket`."


@pytest.fixture
def environment(tmp_path):
    """Of a user who has a runtime directory, without a broker."""
    os.chmod(tmp_path, 0o700)
    return {"XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.fixture
def users(daemons, environment):
    """The broker of the user: at the place that its service gives it."""
    folder = os.path.join(environment["XDG_RUNTIME_DIR"], "lockbroker")
    os.mkdir(folder)
    return daemons(daemon__socket=f"{folder}/lockbroker.sock", daemon__operator_socket=f"{folder}/operator.sock")


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """A C program that locks with the library: `program SOCKET`; without a word it names none."""
    folder = tmp_path_factory.mktemp("program")
    source = folder / "program.c"
    source.write_text(PROGRAM)
    return library.compile_with_library(source, folder / "program", harness.program("liblockbroker.a"))


def clients(program):
    """How each of them is asked for the socket of that name, "" for none."""
    return {
        "command": lambda name: [harness.program("lockbroker"), *(["-S", name] if name else []), "lock", "--connect", "0", "a", "echo", "locked"],
        "library": lambda name: [program, name],
        "python": lambda name: [sys.executable, "-c", ASK, name],
    }


CLIENTS = ["command", "library", "python"]


def run(argv, environment, **options):
    kept = {key: value for key, value in os.environ.items() if key not in ("XDG_RUNTIME_DIR", "LOCKBROKER_SOCKET")}
    done = subprocess.run(argv, env=kept | {"PYTHONPATH": PYTHON} | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE, **options)
    return done.returncode, done.stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_the_name_user_is_the_socket_in_the_users_runtime_directory(users, environment, program, client):
    argv = clients(program)[client]
    assert run(argv("user"), environment) == (0, "locked\n")
    assert run(argv(""), environment | {"LOCKBROKER_SOCKET": "user"}) == (0, "locked\n")
    status, said = run(argv("./user"), environment)
    assert status != 0 and "No lockbrokerd is serving ./user" in said, "a path is what has a slash"


@pytest.mark.parametrize("words", ["--user lock a echo locked", "lock --user a echo locked", "lock -S /nonexistent --user a echo locked"])
def test_the_option_user_stands_before_or_behind_the_command(users, environment, words):
    assert run([harness.program("lockbroker"), *words.split()], environment) == (0, "locked\n")


def test_the_user_is_the_operator_of_its_own_broker(users, environment):
    for words in (["--user", "config", "locks.linger_ms"], ["config", "--user", "locks.linger_ms"], ["--user", "call", "CONFIG", "GET", "locks.linger_ms"]):
        assert run([harness.program("lockbroker"), *words], environment)[0] == 0
    assert run([harness.program("lockbroker"), "config", "locks.linger_ms"], environment | {"LOCKBROKER_SOCKET": "user"})[0] == 0
    assert "locks.linger_ms\t" in run([harness.program("lockbroker"), "--complete", "--user", "config", "locks.linger"], environment)[1]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_users_broker_is_never_used_unasked(users, environment, program, client):
    """The system's is not there: nobody gets a lock."""
    status, said = run(clients(program)[client](""), environment)
    # (A traceback of Python 3.13 quotes the program.)
    assert status == (69 if client == "command" else 1) and "locked" not in said.splitlines()
    assert "No lockbrokerd is serving /run/lockbroker/lockbroker.sock: " in said and "lockbroker --user" in said


@pytest.mark.parametrize("client", CLIENTS)
def test_the_error_for_a_users_broker_that_is_not_there_says_how_it_starts(environment, program, client):
    status, said = run(clients(program)[client]("user"), environment)
    path = os.path.join(environment["XDG_RUNTIME_DIR"], "lockbroker", "lockbroker.sock")
    assert status == (69 if client == "command" else 1)
    assert f"No lockbrokerd is serving {path}: No such file or directory. {USERS_REMEDY}" in said


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_runtime_directory_of_its_own_a_user_is_told_so(tmp_path, program, client):
    argv = clients(program)[client]("user")
    usual = f"/run/user/{os.geteuid()}"
    if not os.path.exists(usual):
        status, said = run(argv, {})
        assert status != 0 and f"XDG_RUNTIME_DIR is not set, and {usual} is not a directory that only this user" in said
    names = ["open", "none"]
    os.mkdir(tmp_path / "open")
    os.chmod(tmp_path / "open", 0o777)
    if os.geteuid() == 0:
        names.append("anothers")
        os.mkdir(tmp_path / "anothers", 0o755)
        os.chown(tmp_path / "anothers", 65534, 65534)
    for directory in (*(str(tmp_path / name) for name in names), "relative"):
        status, said = run(argv, {"XDG_RUNTIME_DIR": directory})
        assert status != 0 and f"XDG_RUNTIME_DIR = {directory} is not a directory that only this user" in said, said


@pytest.mark.parametrize("client", CLIENTS)
def test_an_instance_has_a_name(program, client):
    status, said = run(clients(program)[client]("@nobody-calls-it-so"), {})
    assert status != 0 and "No lockbrokerd is serving /run/lockbroker@nobody-calls-it-so/lockbroker.sock: " in said
    status, said = run(clients(program)[client]("@a/b"), {})
    assert status != 0 and "No lockbrokerd is serving @a/b: " in said, "a path"


@pytest.mark.plain_only("sanitizers cannot look into a program that has more rights than its caller")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program that is run as another user")
def test_a_program_with_more_rights_than_its_caller_does_not_trust_the_environment(users, environment, program, tmp_path_factory):
    """Who calls it would lead it to a broker of the caller's choice."""
    folder = tmp_path_factory.mktemp("setuid")
    for path in (folder, folder.parent, folder.parent.parent):
        os.chmod(path, 0o755)
    raised = str(folder / "program")
    shutil.copy(program, raised)
    os.chown(raised, 65534, 65534)
    os.chmod(raised, 0o4755)
    if os.statvfs(raised).f_flag & os.ST_NOSUID:
        pytest.skip("programs are not run as their owner there (nosuid)")
    assert run([raised, "user"], environment)[1] == ("The broker of this user cannot be found: XDG_RUNTIME_DIR is not set, and "
                                                     "/run/user/65534 is not a directory that only this user (65534) may write to. "
                                                     "Log in as this user, or set XDG_RUNTIME_DIR.\n")
    assert "/run/lockbroker/lockbroker.sock" in run([raised], environment | {"LOCKBROKER_SOCKET": "user"})[1]
