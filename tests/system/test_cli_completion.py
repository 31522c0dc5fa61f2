# SPDX-License-Identifier: Apache-2.0
"""Completion of `lockbroker`: what shells are told, and that it is what the command has."""

import os
import re
import select
import shlex
import shutil
import signal
import subprocess

import pytest

import harness
from mishaps import stopped
from test_cli import terminal

FILES = {shell: f"client-lib/completion/{name}" for shell, name in
         (("bash", "lockbroker.bash"), ("zsh", "_lockbroker"), ("fish", "lockbroker.fish"))}


def completed(line, socket="/nonexistent/socket"):
    """What bash offers at the end of that line."""
    words = line.split(" ")
    script = f"""
. {shlex.quote(os.path.join(harness.SOURCE, FILES["bash"]))}
COMP_WORDS=({" ".join(map(shlex.quote, words))})
COMP_CWORD={len(words) - 1}
_lockbroker
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = harness.run(["bash", "-c", script], env=harness.environment(socket))
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("shell", FILES)
def test_the_scripts_know_no_command_themselves(shell):
    """What they offer is out of the tables of the program, of the version that is installed."""
    text = harness.read_source(FILES[shell])
    assert text.count("lockbroker --complete") >= 1 and len(text.splitlines()) < 40
    assert not re.search(r"\b(campaign|force-unlock|nonblock|accounts)\b", text)


def needs(shell):
    if not shutil.which(shell):
        assert not os.environ.get("NEED_CLIENTS"), shell
        pytest.skip(f"there is no {shell}")


@pytest.mark.parametrize("shell", FILES)
def test_it_is_a_script(shell):
    needs(shell)
    subprocess.run([shell, "-n", os.path.join(harness.SOURCE, FILES[shell])], check=True)


def test_fish_offers_commands_and_options():
    needs("fish")

    def offered(line):
        done = harness.run(["fish", "--no-config", "-c", f"source {FILES['fish']}; complete -C '{line}'"], check=True,
                           cwd=harness.SOURCE, env=harness.environment())
        assert done.stderr == "", done
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert offered("lockbroker loc") == ["lock"]
    assert {"--nonblock", "--no-fork"} <= set(offered("lockbroker lock --no"))


def offered(line, socket="/nonexistent/socket"):
    """What the program offers at the end of that line."""
    done = harness.run([harness.program("lockbroker"), "--complete", *line.split(" ")[1:]], env=harness.environment(socket))
    assert done.returncode == 0 and done.stderr == "", done
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def shows(shell, begin, typed, *marks, socket="/nonexistent/socket"):
    """Waits until a terminal of 80x24 shows all of that after a tab."""
    pid, fd = terminal(shell, **harness.environment(socket) | {"TERM": "dumb"})
    os.write(fd, f"{begin}; echo rea''dy\n".encode())
    text = b""

    def read():
        assert select.select([fd], [], [], harness.PATIENCE)[0], text
        return os.read(fd, 65536)

    try:
        while b"ready" not in text:
            text += read()
        os.write(fd, typed.encode() + b"\t")
        while not all(mark.encode() in text for mark in marks):
            text += read()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def test_bash_completes_what_is_typed_at_a_terminal(standalone, clients):
    clients(standalone).call("LOCK", "orders/42")
    bash = ["bash", "--norc", "-i"], f". {shlex.quote(os.path.join(harness.SOURCE, FILES['bash']))}"
    for typed, rest in (("lockbroker dra", "in "), ("lockbroker lock --nonb", "lock "), ("lockbroker who or", "ders/42 "),
                        ("lockbroker config locks.linger_", "ms "), ("lockbroker ls --wat", "ch "), ("lockbroker info ses", "sion ")):
        shows(*bash, typed, typed + rest, socket=standalone.socket)


def test_zsh_offers_commands_options_and_what_follows_a_name(standalone, clients, tmp_path):
    needs("zsh")
    ran = tmp_path / "ran"
    c = clients(standalone)
    for name in f":command a[$(touch {ran})]", ":other":
        assert isinstance(c.call("LOCK", name), int)
    folder = os.path.dirname(os.path.join(harness.SOURCE, FILES["zsh"]))
    zsh = ["zsh", "-f"], f"fpath=({folder} $fpath); autoload -U compinit; compinit -u -D"
    shows(*zsh, "lockbroker ho", "hold  -- hold a lock", "hosts  -- hosts that share")
    shows(*zsh, "lockbroker lock --no", "--nonblock  -- do not wait", "--no-fork  -- CMD takes")
    shows(*zsh, "lockbroker lock -w 5 a printen", "printenv")
    shows(*zsh, "lockbroker who :", ":command a[", ":other", socket=standalone.socket)
    assert not ran.exists(), "others have chosen the names"


@pytest.mark.parametrize("line, expected", [
    ("lockbroker ho", ["hold", "hosts"]), ("lockbroker --js", ["--json"]), ("lockbroker -S /some dr", ["drain"]), ("lockbroker help dr", ["drain"]),
    ("lockbroker lock --sh", ["--shared"]), ("lockbroker sem --c", ["--count", "--conflict-exit-code", "--close", "--connect"]),
    ("lockbroker hold --min", []), ("lockbroker hold --js", ["--json"]), ("lockbroker lock --js", []), ("lockbroker campaign --le", []),
    ("lockbroker lock -r US", ["USR1", "USR2"]), ("lockbroker lock -nr US", ["USR1", "USR2"]), ("lockbroker lock -w ", []),
    ("lockbroker lock --on-revoke US", ["USR1", "USR2"]), ("lockbroker drain --o", ["--off"]), ("lockbroker drain ", []),
    ("lockbroker ls --w", ["--watch", "--wide"]), ("lockbroker ls --watch --al", ["--all"]), ("lockbroker info se", ["server", "session"]),
    ("lockbroker http --l", ["--listen"]), ("lockbroker who --j", ["--json"]), ("lockbroker call HO", ["HOLDERS", "HOSTS"]),
    ("lockbroker check --critical wa", ["wait="]), ("lockbroker history a --since y", ["yesterday"]), ("lockbroker nonsense x", []), ("lockbroker who -- --", []), ("lockbroker lock a", []),
], ids=lambda x: x if isinstance(x, str) else "")
def test_words_and_options_of_the_command_at_hand_are_offered(line, expected):
    assert offered(line) == expected
    assert completed(line) == (expected or [""])


def test_names_hosts_keys_users_and_files_are_offered(two_hosts, clients):
    c = clients(two_hosts[0])
    c.call("LOCK", "orders/1"), c.call("LOCK", "orders/2")
    socket = two_hosts[0].socket
    for line in ("who", "why", "ls", "limit", "leader", "revoke", "lock -n", "lock --also", "hold", "sem -l 2", "check --lock", "access root"):
        assert offered(f"lockbroker {line} orders/", socket) == ["orders/1", "orders/2"], line
    assert offered("lockbroker http --host ", socket) == ["alpha", "beta"]
    assert offered("lockbroker config locks.li", two_hosts[0].operator_socket) == ["locks.linger_ms"]
    assert offered("lockbroker config locks.li", socket) == ["locks.linger_ms"], "at the operators' socket beside it"
    assert offered(f"lockbroker -S {socket} who orders/2") == ["orders/2"]
    assert offered("lockbroker access ro") == [":users"] and "root" in completed("lockbroker access ro")
    for line in ("lockbroker -S ", "lockbroker metrics --textfile ", "lockbroker ping --socket "):
        assert offered(line) == [":files"]
    assert completed("lockbroker -S /et") == ["/etc"]


def test_what_follows_the_name_is_a_command_line_of_its_own():
    assert "printf" in (found := completed("lockbroker lock -w 5 a prin")) and "--json" not in found
    assert offered("lockbroker lock -w 5 a prin") == [":command 4"] and offered("lockbroker lock -- a --") == [":command 3"]
    assert offered("lockbroker -S /x campaign e DATA ") == [":command 5"] and offered("lockbroker campaign e DA") == []
    assert offered("lockbroker hold a ") == [], "it runs none"


def test_a_name_is_completed_and_not_run(standalone, clients, tmp_path):
    """Others have chosen the names of locks."""
    c = clients(standalone)
    ran = tmp_path / "ran"
    for name in ("orders/1", "orders/2", f"orders/$(touch {ran})", "orders/`touch x`", "two words", "other"):
        assert isinstance(c.call("LOCK", name), int)
    found = completed("lockbroker lock -n orders/", standalone.socket)
    assert {"orders/1", "orders/2"} < set(found) and len(found) == 4
    assert sum("\\" in name for name in found) == 2
    assert completed("lockbroker who tw", standalone.socket) == ["two\\ words"]
    assert completed("lockbroker lock -a o", standalone.socket).count("other") == 1
    assert not ran.exists()


def test_a_name_that_looks_like_our_word_to_the_shell_is_a_name(standalone, clients, tmp_path):
    """Shells count with the number behind :command, and would run what is in a name that stood there."""
    c = clients(standalone)
    ran = tmp_path / "ran"
    names = [f":command a[$(touch {ran})]", ":command 0", ":files"]
    for name in names:
        assert isinstance(c.call("LOCK", name), int)
    assert set(offered("lockbroker who :", standalone.socket)) == set(names)
    found = completed("lockbroker who :", standalone.socket)
    assert len(found) == 3 and {name.replace("\\", "") for name in found} == set(names)
    assert not ran.exists()


def test_a_broker_that_hangs_holds_up_a_line_for_a_second_only(standalone):
    with stopped(standalone):
        assert completed("lockbroker who a", standalone.socket) == [""]
