# SPDX-License-Identifier: Apache-2.0
"""Scripts that were written for the version before run as they did: each of its options, with what it prints and does."""

import os
import re
import shlex
import signal
import socket
import subprocess
import time

import pytest

import harness

OPERATORS = True  # see clients of conftest.py

PROGRAM = harness.program("lockbroker")
VERSION = re.escape(harness.read_source("VERSION").strip())


def script(daemon, line):
    """As a script does it: the socket comes out of the environment, which commands inside see as well."""
    return harness.run([PROGRAM, *shlex.split(line)], env=harness.environment(daemon.socket))


WHO_B = "b lockbroker who b"
LEFT = "b sh -c 'sleep 60 >/dev/null 2>&1 & echo $!'"

# The line, how it ends, and all that it prints to the two outputs. `a` is held by another client.
LINES = [
    # How the lock is held is what another command sees meanwhile.
    (f"lock -s {WHO_B}", 0, r"(?s).* shared .*", ""), (f"lock --shared {WHO_B}", 0, r"(?s).* shared .*", ""),
    (f"lock -s -x {WHO_B}", 0, r"(?s).* exclusive .*", ""), (f"lock -s -e {WHO_B}", 0, r"(?s).* exclusive .*", ""),
    (f"lock --shared --exclusive {WHO_B}", 0, r"(?s).* exclusive .*", ""),
    (f"lock --sha {WHO_B}", 0, r"(?s).* shared .*", ""),
    ("lock -a c -a d b lockbroker ls", 0, r"(?s)NAME.*\na .*\nb .*\nc .*\nd .*", ""),
    (f"lock -d since-noon {WHO_B}", 0, r"(?s).*since-noon.*", ""),
    (f"lock -L 60 {WHO_B}", 0, r"(?s).*LEASE.* (59s|1m00s) .*", ""),
    (f"lock --lease=60 {WHO_B}", 0, r"(?s).*LEASE.* (59s|1m00s) .*", ""),
    (f"lock --le 60 {WHO_B}", 0, r"(?s).*LEASE.* (59s|1m00s) .*", ""),
    ("lock --owner me b lockbroker call CLIENT LIST", 0, r"(?s).* owner=me\n.*", ""),
    ("lock --own me b lockbroker call CLIENT LIST", 0, r"(?s).* owner=me\n.*", ""),
    # What it does if it is taken, or the broker is away.
    *((f"lock {options} a true", 75, "", "") for options in ("-n", "--nb", "--nonblock", "--nonblocking", "--non")),
    *((f"lock {options} a true", 75, "", "") for options in ("-w 0.1", "--wait=0.1", "--timeout 0.1", "--wa 0.1", "--t 0.1")),
    ("lock -n -E 5 a true", 5, "", ""), ("lock --nb --conflict-exit-code=6 a true", 6, "", ""),
    ("lock --nb --conf 6 a true", 6, "", ""),
    ("hold -n a", 75, "", ""), ("hold -n -s -a c --json a", 75, "", ""), ("hold -w 0.1 -x -d x a", 75, "", ""),
    *((f"-S /nonexistent/socket lock {options} b true", 69, "", "(?s)lockbroker: .*/nonexistent/socket.*") for options in ("--connect 0", "--conn 0", "-n")),
    # What the command is, and what becomes of it.
    ("lock b -c 'echo out; exit 3'", 3, "out\n", ""), ("lock b --command 'echo out; exit 4'", 4, "out\n", ""),
    ("lock -- b -- sh -c 'echo \"$0\"; exit 2' x", 2, "x\n", ""), ("lock b sh -c 'kill -9 $$'", 137, "", ""),
    ("lock b /nonexistent/program", 127, "", "(?s)lockbroker: .*"), ("lock b /etc/passwd", 126, "", "(?s)lockbroker: .*"),
    ("lock -F b sh -c 'echo $PPID'", 0, f"{os.getpid()}\n", ""),
    ("lock --no-fork b sh -c 'echo $PPID'", 0, f"{os.getpid()}\n", ""),
    ("lock --no-f b sh -c 'echo $PPID'", 0, f"{os.getpid()}\n", ""),
    (f"lock -o {LEFT}", 0, r"\d+\n", ""), (f"lock --close {LEFT}", 0, r"\d+\n", ""), (f"lock --cl {LEFT}", 0, r"\d+\n", ""),
    *((f"lock {option} USR1 b sh -c 'trap \"echo asked; exit 7\" USR1; lockbroker revoke b; while :; do sleep 0.1; done'", 7, "asked\n", "(?s)lockbroker: .*")
      for option in ("-r", "--on-revoke", "--on")),
    ("lock -r none b sh -c 'lockbroker revoke b; echo on'", 0, "on\n", "(?s)(lockbroker: .*)?"),
    ("lock -r 10 b sh -c 'trap \"exit 8\" USR1; lockbroker revoke b; while :; do sleep 0.1; done'", 8, "", "(?s)lockbroker: .*"),
    ("lock -k 0.1 b sh -c 'trap \"\" TERM; lockbroker force-unlock b; sleep 60'", 79, "", "(?s)lockbroker: .* is lost.*"),
    ("lock --verbose b true", 0, "", r"(?s)lockbroker: .*"), ("lock --verb b true", 0, "", r"(?s)lockbroker: .*"),
    ("lock --splay 0.1 b true", 0, "", ""), ("lock --spl 0.1 b true", 0, "", ""), ("lock --connect 5 b true", 0, "", ""),
    ("lock -u b", 64, "", "lockbroker: lock has no -u: .*\n"),
    ("lock --unlock b", 64, "", "lockbroker: lock has no --unlock: .*\n"),
    ("sem -l 3 -K 2 s lockbroker who s", 0, "(?s).* 2 of 3 .*", ""),
    ("sem -l 3 --count 2 s lockbroker who s", 0, "(?s).* 2 of 3 .*", ""),
    ("sem -l 3 --cou 2 s lockbroker who s", 0, "(?s).* 2 of 3 .*", ""),
    ("sem -l 3 --l 60 s lockbroker who s", 0, "(?s).* 1 of 3 .* (59s|1m00s).*", ""),
    ("sem -l 3 -L 60 -k 1 -r none -o -E 3 s lockbroker limit s", 0, "3\n", ""),
    ("sem -n -w 1 -F -l 3 s lockbroker limit s", 0, "3\n", ""),
    ("sem --min-hold 0 --splay 0 --connect 5 -l 3 s true", 0, "", ""),
    ("sem -l 3 s sh -c 'lockbroker limit s 4; lockbroker limit s'", 0, "4\n4\n", ""),
    ("campaign -n -k 1 -r 10 -o --min-hold 0 --splay 0 --connect 5 e 10.0.0.1 lockbroker leader e", 0, "\\d+\t\\S+\t10.0.0.1\n", ""),
    ("campaign -w 5 -E 3 -F e DATA true", 0, "", ""), ("leader e", 1, "", "lockbroker: Nobody leads the election e.*\n"),
    # What looks.
    *((f"ls {options}", 0, r"(?s)NAME .* SINCE .*\na .*", "") for options in ("-a", "--all")), ("ls", 0, r"(?s)NAME .* STATE .*\na .* 1 .*", ""),
    ("ls -- -x", 0, "", ""), ("ls a*", 0, "(?s)NAME.*\na .*", ""), ("who a", 0, "(?s)holders:\n.*\nwaiting: none\n", ""),
    ("why a", 0, "held on this host.*\n", ""),
    ("--json ls", 0, r'\[\{"name":"a",.*\}\]\n', ""), ("ls --json -a b*", 0, r"\[\]\n", ""),
    ("who --json a", 0, r'\{"holders":\[\{.*\}\],"waiting":\[\]\}\n', ""),
    ("hosts", 0, "", ""), ("limit nix", 1, "", "lockbroker: There is no semaphore nix.*\n"),
    ("limit a", 64, "", "lockbroker: a .*\n"),
    ("ping", 0, r"PONG \(\d+\.\d{3} ms\)\n", ""), ("--json ping", 0, r'\{"ms":\d+\.\d{3}\}\n', ""),
    ("--js ping", 0, r'\{"ms":\d+\.\d{3}\}\n', ""),
    ("info", 0, r"(?s)# Server\n.*\nlockbroker_version:.*\n# Stats\n.*", ""),
    ("info session", 0, r"(?s)# Session\nsession_state:.*", ""),
    ("info --json session", 0, r'\{"Session":\{"session_state":.*\}\}\n', ""),
    ("metrics", 0, r"(?s)# HELP .*\nlockbroker_locks .*", ""),
    ("check", 0, r"LOCKBROKER OK - .*\| limit=[\d.]+%;80;95;0;100 wait=0.000s;;;0 proof=0.000s;;;0 answer=[\d.]+s;1;5;0 locks=1;;;0 waiting=0;;;0\n", ""),
    ("check -w limit=70 -c limit=90,wait=60 -w wait=50", 0, r"LOCKBROKER OK - .*\| limit=[\d.]+%;70;90;0;100 wait=0.000s;50;60;0 .*\n", ""),
    ("check --lock monitor --json", 0, r'\{"verdict":"OK",.*\}\n', ""),
    ("check --l monitor", 0, r"LOCKBROKER OK - .* lock=[\d.]+s;;;0 .*\n", ""), ("check -w 5", 3, "", "lockbroker: .*\n"),
    ("audit", 0, r"(?s)directories +\d+\ncontenders +\d+\n.*", ""), ("audit --json", 0, r'\{"directories":.*\}\n', ""),
    ("access root a", 0, r"(?s)VERB .*\nlock .*", ""), ("access root a unit:x.service", 0, r"(?s)VERB .*\nlock .*", ""),
    ("accounts", 0, "(?s)PERCENT  ACCOUNT .*", ""),
    ("config limits.user_share", 0, "limits.user_share = 100\n", ""),
    ("config 'limits.*'", 0, r"(?s)(limits\.\w+ = .*\n)+", ""),
    ("config", 0, "(?s).*\nlimits.output_bytes = 1048576\n.*", ""),
    ("log 2", 0, r"(.*event=\w+.*\n){2}", ""), ("log", 0, r"(.*event=\w+.*\n){9,}", ""), ("call PING", 0, "PONG\n", ""),
    ("call --json HOLDERS a", 0, r'\[\{"host":.*\}\]\n', ""),
    ("call NONSENSE", 1, r"\(error\) ERR unknown command.*\n", ""), ("call ECHO 'a b'", 0, '"a b"\n', ""),
    # What operators do.
    ("reload", 0, "", ""), ("revoke a why", 0, "", ""),
    ("revoke nix", 1, "", "lockbroker: No holder was asked to release nix.*\n"),
    ("force-unlock nix", 1, "", "lockbroker: Nobody held nix.*\n"),
    ("drain", 0, "The broker grants nothing any longer; still held: 1.\n", ""),
    ("drain --off", 0, "The broker grants again.\n", ""),
    ("restart", 0, rf"lockbrokerd {VERSION} serves now, as process \d+; nobody was served for .* ms\n", ""),
    ("force-unlock a", 0, "", ""), ("lock -n a echo free", 0, "free\n", ""),
    # Without a broker.
    *((f"{options}", 0, rf"lockbroker {VERSION}\n", "") for options in ("-V", "--version", "lock -V", "lock --version", "sem --vers")),
    *((f"{options}", 0, "(?s).*lockbroker.*", "") for options in ("-h", "--help", "help", "help lock", "lock -h", "lock --help", "ls --help", "who -h")),
]


def test_lines_print_and_end_as_they_did(standalone, clients):
    holder = clients(standalone)
    holder.call("LOCK", "a")
    left = []
    try:
        for line, status, out, said in LINES:
            done = script(standalone, line)
            assert done.returncode == status and re.fullmatch(out, done.stdout) and re.fullmatch(said, done.stderr), (line, out, said, done)
            if LEFT in line:
                left.append(int(done.stdout))
                assert script(standalone, "lock -n b true").returncode == 0, "what runs on does not keep it"
            if line == "restart":
                standalone.follow()
    finally:
        for pid in left:
            os.kill(pid, signal.SIGKILL)


def test_a_metrics_file_is_replaced(standalone, tmp_path):
    path = tmp_path / "lockbroker.prom"
    for option in ("--textfile", "--text"):
        path.write_text("old")
        assert script(standalone, f"metrics {option} {path}").stdout == "" and path.read_text().startswith("# HELP ")


def test_a_lock_is_held_for_its_time(standalone):
    for option in ("--min-hold", "--min"):
        began = time.monotonic()
        assert script(standalone, f"lock {option} 0.5 b true").returncode == 0
        assert time.monotonic() - began >= 0.5


def begun(daemon, *words):
    return harness.spawn([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                         env=os.environ | {"LOCKBROKER_SOCKET": daemon.socket})


def test_what_goes_on_prints_what_it_did(standalone, clients):
    c = clients(standalone)
    c.call("LOCK", "a")
    for options, first in (["-n"], r"\d+\n"), (["-s", "-d", "x", "--owner", "me"], r"\d+\n"), (["--json"], r'\{"held":\[\{"name":"b","token":\d+\}\]\}\n'):
        with begun(standalone, "hold", *options, "b") as p:
            assert re.fullmatch(first, p.stdout.readline())
            p.terminate()
    for option in ("-w", "--watch", "--watch=0.1"):
        with begun(standalone, "ls", option) as p:
            assert [p.stdout.readline()[:4] for _ in range(3)] == ["NAME", "a   ", "\n"]
            p.terminate()
    with begun(standalone, "observe", "e") as p:
        assert p.stdout.readline() == "0\t-\t-\n"
        token = c.call("CAMPAIGN", "e", "DATA", "x")
        assert re.fullmatch(rf"{token}\t\S+\tx\n", p.stdout.readline())
        p.terminate()
    with begun(standalone, "call", "-e", "ENQUEUE", "b") as p:
        assert p.stdout.readline() == "QUEUED\n" and p.stdout.readline().startswith("1> ")
        p.terminate()


@pytest.mark.skipif(not os.path.exists(harness.program("lockbroker-http")), reason="it is built only where there is libevent")
def test_the_program_for_prometheus_has_its_options(standalone):
    port = harness.free_port()
    with begun(standalone, "http", "--listen", f"127.0.0.1:{port}", "--host", "here", "--host=there") as p:
        def answers():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE) as c:
                    c.sendall(b"GET /healthz HTTP/1.0\r\nHost: there\r\n\r\n")
                    return c.recv(64).startswith(b"HTTP/1.1 200") or c.recv(64)
            except ConnectionRefusedError:
                return None
        harness.wait_until(answers, "it to serve")
        p.terminate()
