# SPDX-License-Identifier: Apache-2.0
"""How one finds a command: the first screen, the help of each command, what was meant by a word; and its options."""

import os
import re
import shlex
import socket
import subprocess

import pytest

import harness
from test_cli import command, on_screen, run

OPERATORS = True  # see clients of conftest.py

PROGRAM = harness.program("lockbroker")
NO_JSON = {"lock", "sem", "campaign", "top", "metrics", "http"}
OPERATORS_COMMANDS = {"revoke", "force-unlock", "drain", "restart", "reload", "config", "accounts", "access", "audit", "log"}


def offered(*words):
    """What can stand last, with what it means."""
    done = subprocess.run([PROGRAM, "--complete", *words], capture_output=True, text=True, check=True)
    return dict(line.split("\t") for line in done.stdout.splitlines())


COMMANDS = [word for word in offered("") if word != "help"]


def test_the_first_screen_is_one_and_has_every_command():
    lines, status = on_screen([PROGRAM])
    assert status == 64 and len(lines) < 24 and max(map(len, lines)) <= 80, lines
    assert lines[0].startswith("Usage: lockbroker ") and "COMMAND --help" in lines[-1]
    assert [line for line in lines if line.startswith(("Lock:", "Look:", "Operate"))] == ["Lock:", "Look:", "Operate (for operators):"]
    assert len(COMMANDS) == 29 and all(re.search(rf"(^|  ){word}  +\w", "\n".join(lines), re.M) for word in COMMANDS)
    operate = "\n".join(lines[lines.index("Operate (for operators):"):])
    assert {word for word in COMMANDS if re.search(rf"(^|  ){word}  +\w", operate, re.M)} == OPERATORS_COMMANDS
    piped = run(None)
    assert (piped.returncode, piped.stdout) == (64, "") and piped.stderr.splitlines() == lines
    for words in ["--help"], ["-h"], ["help"]:
        done = run(None, *words)
        assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", lines)


# What a stranger asks; the word of it that they look for on the first screen; what they type behind the command that stands
# there; and what the answer has. One command alone has that word.
QUESTIONS = [
    ("Who blocks me?", "blocks", "why", ["orders/42"], r"held on this host, pid \d+ \(settle-orders\), for \d+ ms\n"),
    ("Who are the holders and waiters of orders/42?", "holders and", "who", ["orders/42"], r"(?s)holders:.* settle-orders \(42\) .*waiting:.*"),
    ("Which locks are held, and where?", "held locks", "ls", ["--all"], r"(?s)NAME .*\norders/42 .* settle-orders .*"),
    ("How do I stop grants on this host?", "stop grants", "drain", [], r"The broker grants nothing any longer.*\n"),
    ("What is the limit of encoder?", "limit ", "limit", ["encoder"], "3\n"),
    ("Who is the leader of the election scheduler?", "leader of", "leader", ["scheduler"], r"\d+\t\S+\t10\.0\.0\.1\n"),
    ("Is all well?", "is all well", "check", [], "LOCKBROKER OK - .*\n"),
    ("Which users use up the limits?", "use up", "accounts", [], r"(?s)PERCENT  ACCOUNT .* user \d+ .*"),
    ("Which are the latest events?", "latest events", "log", [], r"(?s).* event=client_connected .*"),
    ("How do I take a lock from a holder that hangs?", "take a lock", "force-unlock", ["orders/42"], ""),
    ("Which rights has a user, say root, and why?", "rights", "access", ["root", "orders/42"], r"(?s)VERB .*\nlock +yes .*"),
    ("Which are the hosts that share locks?", "hosts that share locks", "hosts", [], r"(?s)HOST .* yes\n|"),  # there are none without ZooKeeper
    ("How do I run a command while it holds a lock?", "while it holds a lock", "lock", ["free", "echo", "done"], "done\n"),
    ("Can it read the configuration again?", "read the configuration", "reload", [], ""),
    ("Does the broker answer?", "does the broker answer", "ping", [], r"PONG .*\n"),
]


def summaries(lines):
    """Of each command on the first screen what stands beside it."""
    return dict(re.findall(r"(?:^|  )(" + "|".join(COMMANDS) + r")  +(.+?)(?=  |\n|$)", "\n".join(lines), re.M))


@pytest.mark.parametrize("question, looked_for, answer, words, expected", QUESTIONS,
                         ids=[answer for _, _, answer, *_ in QUESTIONS])
def test_a_stranger_finds_the_command_on_the_first_screen(broker, clients, question, looked_for, answer, words, expected):
    assert set(re.findall(r"\w+", looked_for)) <= set(re.findall(r"\w+", question.lower()))
    c = clients(broker)
    c.call("CLIENT", "SETNAME", "settle-orders")
    c.call("LOCK", "orders/42", "DATA", "42"), c.call("ACQUIRE", "encoder", "LIMIT", 3), c.call("CAMPAIGN", "scheduler", "DATA", "10.0.0.1")
    for lines in on_screen([PROGRAM])[0], run(None).stderr.splitlines():
        cells = summaries(lines)
        assert set(cells) == set(COMMANDS)
        assert [word for word, summary in cells.items() if looked_for in f"{word} {summary} ".lower()] == [answer]
    done = run(broker, answer, *words)
    assert done.returncode == 0 and done.stderr == "" and re.fullmatch(expected, done.stdout), done


@pytest.mark.parametrize("word", COMMANDS)
def test_the_help_of_a_command_is_its_own_and_short(word):
    lines, status = on_screen([PROGRAM, word, "--help"])
    assert status == 0 and len(lines) <= 40 and max(map(len, lines)) <= 80, lines
    assert lines[0].startswith(f"Example: lockbroker {word}") and lines[1].startswith(f"Usage:   lockbroker {word} [OPTION]")
    assert max(map(len, lines)) <= 80
    for words in [word, "--help"], [word, "-h"], ["help", word], ["-h", word], ["--help", word]:
        done = run(None, *words)
        assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", lines)
    shown = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", "\n".join(lines), re.M))
    assert shown - {"--command"} == set(offered(word, "--")), "all of its options, and no other"
    assert ("--json" in shown) == (word not in NO_JSON)
    assert ("or operators: root" in "\n".join(lines)) == (word in OPERATORS_COMMANDS | {"limit"})
    if word not in NO_JSON:
        return
    assert f"{word} has no --json. Try `lockbroker {word} --help`." in run(None, "--json", word).stderr
    assert f"{word} has no option --json" in run(None, word, "--json", "a").stderr


@pytest.mark.parametrize("word", sorted(set(COMMANDS) - {"http", "top"}))  # one would serve, one needs a terminal
def test_the_example_is_a_line_that_the_command_takes(word, tmp_path):
    (line,) = re.findall(r"^Example: lockbroker (.*)$", run(None, word, "--help").stdout, re.M)
    done = harness.run([PROGRAM, *shlex.split(line)], cwd=tmp_path, env=harness.environment())
    # Of a user who is not there, access says so; history asks the journal, not the broker.
    usual = {"check": (2,), "access": (64, 69), "history": (0, 69, 77, 127)}
    assert done.returncode in usual.get(word, (69,)), done


@pytest.mark.parametrize("line, word", [
    ("lock -w x a true", "lock"), ("hold", "hold"), ("sem a true", "sem"), ("ls -z", "ls"), ("who", "who"), ("log x", "log"),
    ("call --nonsense", "call"), ("drain --wait --off", "drain"), ("http", "http"), ("http a", "http"), ("check --lock", "check"), ("metrics a", "metrics"),
])
def test_an_error_points_to_the_help_of_its_command(standalone, line, word):
    done = run(standalone, *line.split())
    assert done.stderr.endswith(f" Try `lockbroker {word} --help`.\n") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("line, hint", [
    ("lok a true", "lock"), ("list", "ls"), ("status", "info"), ("unlock a", "force-unlock"), ("version", "--version"),
    ("hsots", "hosts"), ("stauts", "info"), ("locks", "ls"), ("semaphore -l 2 a true", "sem"), ("elect", "campaign"),
    ("lock --wiat 5 a true", "--wait"), ("lock --no-frok a true", "--no-fork"), ("ls --al", None), ("ls --wach", "--watch"),
    ("--jsno ls", "--json"), ("who --wdie a", "--wide"), ("help whoo", "who"),
    ("kill a", "force-unlock"), ("LOCK a true", "lock"), ("Hosts", "hosts"), ("lock --WAIT 5 a true", "--wait"), ("drain --of", None), ("nonsense", None), ("lock --nonsense a true", None), ("x", None),
])
def test_a_word_that_is_nearly_one_leads_to_it(line, hint):
    """Where an option is only cut short it is taken, as by other programs."""
    done = run(None, *line.split())
    if hint:
        assert (done.returncode, done.stdout) == (64, "") and f" Did you mean {hint}?" in done.stderr, done.stderr
        assert on_screen(command(None, *line.split())) == (done.stderr.splitlines(), 64), "and so at a terminal"
    else:
        assert "Did you mean" not in done.stderr


@pytest.mark.parametrize("line, said, command", [
    ("drain --wait=3", "--wait takes no value.", "drain"), ("lock --shared=x a true", "--shared takes no value.", "lock"),
    ("ls --w", "--w is the beginning of several options: --watch, --wide.", "ls"),
    ("lock --no a true", "--no is the beginning of several options: --nonblock, --no-fork.", "lock"),
    ("--json=1 ls", "--json takes no value.", ""),
    ("check -w limit=80,foo", 'answer=SEC, separated by commas, not "limit=80,foo".', "check"),
])
def test_what_is_wrong_with_an_option_is_said(line, said, command):
    done = run(None, *line.split())
    assert done.returncode == (3 if command == "check" else 64) and done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"{said} Try `lockbroker {command + ' ' if command else ''}--help`.\n"), done.stderr


@pytest.mark.parametrize("words, status, hint", [
    (["info", "sesion"], 64, "session"), (["info", "zookeper"], 64, "zookeeper"), (["info", "nonsense"], 64, None),
    (["config", "limits.user_shar"], 1, "limits.user_share"), (["config", "linger_m"], 1, "locks.linger_ms"),
    (["config", "nosuchkey"], 1, None),
])
def test_a_section_and_a_key_that_are_nearly_one_lead_to_it(standalone, words, status, hint):
    for options in [], ["--json"]:
        done = run(standalone, *words, *options)
        assert done.returncode == status and words[1] in done.stderr
        assert (f" Did you mean {hint}?" in done.stderr) if hint else "Did you mean" not in done.stderr
    lines, _ = on_screen(command(standalone, *words))
    assert "".join(lines) == done.stderr.strip(), "and so at a terminal"


def test_the_sections_of_info_are_those_that_the_broker_has(standalone):
    heads = re.findall(r"^# (\w+)", run(standalone, "info").stdout, re.M)
    assert set(offered("info", "")) == {head.lower() for head in heads}
    assert all(head.lower() in run(None, "info", "--help").stdout for head in heads)


# ---- options ----


def test_the_socket_may_stand_before_and_after_the_command(standalone):
    for words in (["ping"], ["lock", "-n", "a", "true"], ["hold", "-n", "a"], ["call", "PING"], ["ls"], ["metrics"], ["check"]):
        option = ["-S", standalone.socket] if words[0] != "call" else [f"--socket={standalone.socket}"]
        line = [PROGRAM, words[0], *option, *words[1:]]
        with harness.spawn(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            if words[0] == "hold":
                assert re.fullmatch(r"\d+\n", p.stdout.readline())
                p.terminate()
            else:
                assert p.communicate(timeout=harness.PATIENCE)[1] == "" and p.returncode == 0
    assert run(None, "ping", "-S", "").returncode == 64
    behind = subprocess.run([PROGRAM, "-S", "/nonexistent", "ping", "-S", standalone.socket], capture_output=True)
    assert behind.returncode == 0, "the one behind the command counts"


def asked_at(socket, *words):
    return harness.run([PROGRAM, "-S", socket, *words])


def test_with_a_socket_operators_find_theirs_beside_it(standalone):
    assert asked_at(standalone.socket, "config", "locks.linger_ms").returncode == 0
    assert asked_at(standalone.socket, "call", "CONFIG", "GET", "locks.linger_ms").returncode == 0
    assert "client_connected" in asked_at(standalone.socket, "log").stdout


def test_where_the_operators_socket_is_not_the_error_names_it(daemons, tmp_path):
    elsewhere = str(tmp_path / "op.sock")
    d = daemons(daemon__operator_socket=elsewhere)
    done = asked_at(d.socket, "drain")
    assert (done.returncode, done.stdout) == (77, "")
    assert f"use the operators' socket {elsewhere}: give it with -S, as root or " in done.stderr
    assert "by itself" not in done.stderr and done.stderr.count("\n") == 1
    assert on_screen([PROGRAM, "-S", d.socket, "drain"]) == (done.stderr.splitlines(), 77), "and so at a terminal"
    assert asked_at(elsewhere, "config", "locks.linger_ms").returncode == 0


def test_the_operators_socket_of_another_daemon_beside_it_is_left_alone(daemons, standalone):
    beside = os.path.join(os.path.dirname(standalone.operator_socket), "second.sock")
    daemons(daemon__socket=beside)
    assert asked_at(beside, "drain").returncode == 77
    assert "draining:0" in run(standalone, "info", "server").stdout


def test_the_operators_socket_is_found_beside_one_that_a_service_manager_listens_at(launch):
    """Whose process is another one than the daemon's."""
    d = harness.Daemon(wait=False)
    with socket.create_server(os.path.join(d.dir, "activated"), family=socket.AF_UNIX) as listener:
        os.chmod(listener.getsockname(), 0o600)
        launch(d, listening=[listener.fileno()])
        done = asked_at(listener.getsockname(), "config", "locks.linger_ms")
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", ["lock --also c --data x -n b true", "lock --also=c --kill-after 1 b true", "sem --limit 2 --count 2 s true",
                                  "hold --also c --nonblock a", "call --events --help", "check --warning limit=80 --critical=limit=90"])
def test_each_letter_has_a_word(standalone, clients, line):
    clients(standalone).call("LOCK", "a")
    if "--data" in line:
        assert run(standalone, *line.split()).returncode == 64, "--data is of one lock"
        line = line.replace("--also c ", "")
    assert run(standalone, *line.split()).returncode == (75 if "hold" in line else 0)
