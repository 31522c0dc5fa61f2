# SPDX-License-Identifier: Apache-2.0
"""What `lockbroker` does with what it cannot use: one line that says what is wrong, and the exit status for it."""

import os
import re
import shlex
import subprocess

import pytest

import harness
from test_cli import command, run

OPERATORS = True  # see clients of conftest.py

LOCKS = ("lock", "sem -l 2", "campaign", "hold")
SECONDS = "needs a number of seconds, not"


def rest(verb):
    """The words behind the options."""
    return {"campaign": "e data true", "hold": "a"}.get(verb, "a true")


def of_each_verb():
    """Each option of lock and its like with a value that it does not take, by each of the verbs that has it."""
    wrong = [("-w x", SECONDS), ("--timeout -1", SECONDS), ("--wait nan", SECONDS), ("-E 256", "0 to 255"), ("-E x", "0 to 255"),
             ("--conflict-exit-code=-1", "0 to 255"), ("--splay x", SECONDS), ("--connect 1s", SECONDS), ("--nonsense", "no option"),
             ("-Z", "no option -Z"), ("--nb=1", "--nb takes no value"), ("-u", "has no -u: a lock is released")]
    runs = [("-k x", SECONDS), ("-r NOSIG", "needs a signal"), ("--on-revoke=99", "needs a signal"), ("--min-hold inf", SECONDS),
            ("-F -o", "-F does not go with -o"), ("-F --min-hold 1", "-F does not go with --min-hold")]
    locks = [("-L 0", "greater than 0"), ("--lease=x", "greater than 0"), ("-d x -a b", "-d cannot be used with several"),
             ("-l 2", "no option -l"), ("--count 1", "no option --count")]
    for verb in LOCKS:
        for options, sentence in wrong + (runs if verb != "hold" else []) + (locks if verb in ("lock", "hold") else []):
            yield f"{verb} {options} {rest(verb)}", sentence
        yield verb, "NAME is missing"


USAGE = [
    *of_each_verb(),
    ("nonsense", 'There is no command "nonsense".'), ("--nonsense ls", "no option --nonsense"),
    ("-x ls", "no option -x"), ("-S", "-S needs a path"), ("--json=1 ls", "--json takes no value"), ("--json lock a true", "lock has no"),
    ("--json metrics", "metrics has no --json"), ("--json http", "http has no --json"),
    ("lock a", "CMD is missing"), ("lock a --", "CMD is missing"), ("help x", 'no command "x"'), ("help lock x", 'argument "x"'),
    ("access root a report", 'The unit "report" has no kind: its name ends as in report.service.'),
    ("access root a unit:report", 'The unit "report" has no kind'), ("lock a -c", "exactly one word"), ("lock a -c x y", "exactly one word"),
    ("lock -w", "-w needs a number"), ("lock -a", "-a needs a name"), ("lock --json a true", "no option --json"), ("lock --json=1 a true", "no option --json=1"), ("hold --json=1 a", "--json takes no value"),
    ("hold a true", "hold runs no command"), ("hold -F a", "no option -F"), ("hold -k 1 a", "no option -k"),
    ("sem a true", "sem needs -l N"), ("sem -l 0 a true", "needs a number of permits"), ("sem -l 2 -K 3 a true", "-K asks for 3"),
    *((word, f"NAME is missing: lockbroker {word} [OPTION...] NAME")
      for word in ("leader", "observe", "who", "why", "limit", "revoke", "force-unlock")),
    ("sem -l 2 -c 1 a true", "no option -c"), ("campaign e", "DATA is missing"), ("campaign -s e d true", "no option -s"),
    ("access", "USER is missing: lockbroker access [OPTION...] USER NAME [UNIT]."),
    ("access root", "NAME is missing: lockbroker access [OPTION...] USER NAME"), ("leader a b", 'argument "b"'), ("observe a b", 'argument "b"'), ("ls a b", 'argument "b"'),
    ("who a b", 'argument "b"'), ("why a b", 'argument "b"'), ("hosts a", 'argument "a"'), ("limit a 1 2", 'argument "2"'),
    ("revoke a b c", 'argument "c"'), ("force-unlock a b", 'argument "b"'), ("ping a", 'argument "a"'), ("info a b", 'argument "b"'),
    ("audit a", 'argument "a"'), ("access root a u x", 'argument "x"'), ("accounts a", 'argument "a"'), ("reload a", 'argument "a"'),
    ("config a b", 'argument "b"'), ("log 1 2", 'argument "2"'), ("drain --wait --off", "--wait or --off, not both"),
    ("ls --all --watch=x", '0.1 to 86400, not "x"'), ("ls --watch=0", "0.1 to 86400"), ("ls --watch=nan", "0.1 to 86400"),
    ("ls --watch=", "0.1 to 86400"), ("ls -z", "ls has no option -z"), ("ls --all=1", "--all takes no value"),
    ("ls --json=1", "--json takes no value"), ("ls -a a b", 'argument "b"'), ("ls -w 5 6", 'argument "6"'),
    ("restart a", 'argument "a"'), ("metrics a", 'argument "a"'), ("metrics --textfile", "--textfile needs a file"),
    ("-S '' ping", '-S needs a path, not ""'), ("--socket= lock a true", '-S needs a path, not ""'),
    ("http", "--listen ADDRESS:PORT"), ("http --listen nowhere", "no address and port"), ("call -x", "no option -x"),
    ("call --json=1 PING", "--json takes no value"), ("access no-such-user a", "no user"), ("drain --half", "drain has no option --half"),
    *((f"{word} --nonsense", f"{word} has no option --nonsense") for word in
      ("leader", "observe", "ls", "who", "why", "hosts", "limit", "revoke", "force-unlock", "ping", "info", "audit", "access",
       "accounts", "reload", "config", "log", "restart", "call")),
]


def one_line(done, status, sentence):
    assert (done.returncode, done.stdout) == (status, ""), done
    assert re.fullmatch(r"lockbroker( http)?: [^\n]*\n", done.stderr) and sentence in done.stderr, done.stderr


@pytest.mark.parametrize("words, sentence", USAGE, ids=lambda x: x[:40])
def test_wrong_usage_is_one_line_and_64(standalone_for_all, words, sentence):
    one_line(run(standalone_for_all, *shlex.split(words)), 64, sentence)


@pytest.fixture(scope="module")
def standalone_for_all():
    """One that none of these changes."""
    d = harness.Daemon()
    yield d
    assert not d.end()


@pytest.mark.parametrize("words", ["campaign e DATA", "sem -l 2 s"])
def test_what_only_locks_have_is_named_for_locks_only(words):
    done = run(None, *words.split())
    assert done.returncode == 64 and "CMD is missing" in done.stderr and "hold" not in done.stderr


@pytest.mark.parametrize("words", ["check -w 5", "check -c nonsense=1", "check x", "check --nonsense"])
def test_wrong_usage_is_unknown_to_nagios(words):
    one_line(run(None, *words.split()), 3, "--help")


@pytest.mark.parametrize("words, sentence", [
    ("lock .. true", "lock name"), ("hold ..", "lock name"), ("why ..", "lock name"), ("info nonsense", 'no section "nonsense" of info'),
    ("log x", 'log takes a number of records, not "x"'), ("limit a 0", "1..1000000"), ("config '*' --", None), ("lock -d '' a true", "-d needs a text of 1 to 512 bytes"),
    ("lock --owner 'two words' a true", "--owner needs a text of at most 64 printable"), ("lock -a a a true", "twice"),
], ids=str)
def test_what_the_broker_refuses_is_one_line_and_64(standalone_for_all, words, sentence):
    done = harness.run([harness.program("lockbroker"), "-S", standalone_for_all.operator_socket, *shlex.split(words)])
    if sentence is None:
        assert done.returncode == 0
    else:
        one_line(done, 64, sentence)


EACH = ["leader a", "observe a", "ls", "ls --all", "ls --watch", "who a", "why a", "hosts", "limit a", "revoke a", "force-unlock a", "ping", "info", "audit",
        "access root a", "accounts", "reload", "config", "log", "drain", "restart", "call PING", "lock --connect 0 a true",
        "hold --connect 0 a", "sem -l 1 --connect 0 a true", "campaign --connect 0 e d true"]


@pytest.mark.parametrize("words", EACH)
def test_no_broker_is_one_line_and_69(words):
    one_line(run(None, *words.split()), 69, "No lockbrokerd is serving /nonexistent/socket")


@pytest.mark.skipif(os.getuid() != 0, reason="takes another user")
@pytest.mark.parametrize("words", ["ls", "lock a true", "hold a", "call PING"])
def test_no_permission_is_one_line_and_77(daemons, words):
    d = daemons(daemon__socket_mode="0600")
    with open(harness.program("lockbroker"), "rb") as program:
        argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"/proc/self/fd/{program.fileno()}",
                "-S", d.socket, *words.split()]
        done = harness.run(argv, pass_fds=[program.fileno()])
    one_line(done, 77, "This user may not")


PRINT = ["ping", "info", "ls", "ls -a", "ls --watch", "ls --json", "--version", "--help", "ls --help", "lock --help", "lock -V", "who a", "why a", "config", "metrics",
         "check", "call PING", "hold a", "observe e", "--json ping", "--json info"]


@pytest.mark.parametrize("words", PRINT)
@pytest.mark.parametrize("how", ["closed", "full"])
def test_output_that_cannot_be_written_is_one_line_and_71(standalone_for_all, words, how):
    with standalone_for_all.client() as c:
        c.call("LOCK", "something")  # so that ls has a line
        argv = [harness.program("lockbroker"), "-S", standalone_for_all.operator_socket, *words.split()]
        done = harness.run(["sh", "-c", shlex.join(argv) + (" >&-" if how == "closed" else " >/dev/full")])
    one_line(done, 71, "Cannot write the ")


@pytest.mark.parametrize("words", ["ping", "lock a sh -c 'exit 5'", "nonsense", "lock -n .. true"])
def test_without_standard_descriptors_the_status_is_right(standalone_for_all, words):
    line = " ".join(command(standalone_for_all)) + " " + words
    done = subprocess.run(["sh", "-c", line + " <&- >&- 2>&-"], timeout=harness.PATIENCE)
    assert done.returncode == {"p": 71, "l": 5, "n": 64}[words[0]] if ".." not in words else 64
