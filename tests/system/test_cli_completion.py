# SPDX-License-Identifier: Apache-2.0
"""Completion of `lockbroker`: what shells are told, and that it is what the command has."""

import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

import harness

FILES = {shell: f"client-lib/completion/{name}" for shell, name in
         (("bash", "lockbroker.bash"), ("zsh", "_lockbroker"), ("fish", "lockbroker.fish"))}


def help_of(*words):
    return subprocess.run([harness.program("lockbroker"), *words, "--help"], capture_output=True, text=True, check=True).stdout


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
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=harness.PATIENCE,
                          env=os.environ | {"LOCKBROKER_SOCKET": socket, "PATH": f"{harness.build_dir()}:{os.environ['PATH']}"})
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("shell", FILES)
def test_all_commands_are_there(shell):
    commands = set(re.findall(r"^(?:Usage:|      ) lockbroker \[-S SOCKET\] (\S+)", help_of(), re.M))
    text = harness.read_source(FILES[shell])
    (listed,) = re.findall(r"commands[=( ']+(lock hold [^')]*?)(?:'|\)|\n\n|\nset)", text)
    assert set(listed.replace("\\", " ").split()) == commands and len(commands) > 20


@pytest.mark.parametrize("shell", FILES)
def test_the_options_are_those_that_help_names(shell):
    text = harness.read_source(FILES[shell])
    for verb in ("lock", "hold", "sem"):
        for option in re.findall(r"--([a-z-]{3,})", help_of(verb).split("  -S SOCKET")[0]):
            name = f"-l {option}\\b" if shell == "fish" else f"--{option}\\b"
            assert option in ("timeout", "conflict-exit-code", "exclusive") or re.search(name, text), (verb, option)


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
        done = subprocess.run(["fish", "--no-config", "-c", f"source {FILES['fish']}; complete -C '{line}'"], check=True,
                              capture_output=True, text=True, cwd=harness.SOURCE, timeout=harness.PATIENCE,
                              env=os.environ | {"PATH": f"{harness.build_dir()}:{os.environ['PATH']}"})
        assert done.stderr == "", done
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert offered("lockbroker loc") == ["lock"]
    assert {"--nonblock", "--no-fork"} <= set(offered("lockbroker lock --no"))


@pytest.mark.parametrize("line, expected", [
    ("lockbroker ho", ["hold", "hosts"]), ("lockbroker --js", ["--json"]), ("lockbroker -S /some dr", ["drain"]),
    ("lockbroker lock --sh", ["--shared"]), ("lockbroker sem --c", ["--conflict-exit-code", "--connect", "--close", "--count"]),
    ("lockbroker hold --min", []), ("lockbroker hold --js", ["--json"]), ("lockbroker campaign --le", []),
    ("lockbroker lock -r US", ["USR1", "USR2"]), ("lockbroker lock -w ", []), ("lockbroker drain --o", ["--off"]), ("lockbroker ls --w", ["--watch"]),
    ("lockbroker info se", ["server", "session"]), ("lockbroker http --l", ["--listen"]), ("lockbroker who --", ["--json", "--help"]),
], ids=lambda x: x if isinstance(x, str) else "")
def test_bash_completes_words(line, expected):
    assert completed(line) == (expected or [""])


def test_what_follows_the_name_is_a_command_line_of_its_own():
    offered = completed("lockbroker lock -w 5 a prin")
    assert "printf" in offered and "--json" not in offered


def test_a_name_is_completed_and_not_run(standalone, clients, tmp_path):
    """Others have chosen the names of locks."""
    c = clients(standalone)
    ran = tmp_path / "ran"
    for name in ("orders/1", "orders/2", f"orders/$(touch {ran})", "orders/`touch x`", "two words", "other"):
        assert isinstance(c.call("LOCK", name), int)
    offered = completed("lockbroker lock -n orders/", standalone.socket)
    assert {"orders/1", "orders/2"} < set(offered) and len(offered) == 4
    assert sum("\\" in name for name in offered) == 2
    assert completed("lockbroker who tw", standalone.socket) == ["two\\ words"]
    assert completed("lockbroker lock -a o", standalone.socket).count("other") == 1
    assert not ran.exists()


def test_a_broker_that_hangs_holds_up_a_line_for_a_second_only(standalone):
    standalone.signal(signal.SIGSTOP)
    try:
        assert completed("lockbroker who a", standalone.socket) == [""]
    finally:
        standalone.signal(signal.SIGCONT)
