# SPDX-License-Identifier: Apache-2.0
"""What `lockbroker` shows to people: tables on a terminal of 80x24 and in a pipe, the log, and errors."""

import datetime
import json
import os
import re

import pytest

import harness
from test_cli import command, on_screen, plain, run, started

OPERATORS = True  # see clients of conftest.py


def cells(line):
    return re.split("  +", line)


def table(daemon, *words):
    lines = run(daemon, *words).stdout.splitlines()
    return cells(lines[0]), [cells(line) for line in lines[1:]]


def column(daemon, head, *words):
    heads, rows = table(daemon, *words)
    return [row[heads.index(head)] for row in rows]


@pytest.fixture
def busy(daemons, zk, root, clients):
    """Two hosts with names as they are in life: a lock that is waited for on both, a semaphore, an election."""
    two = [daemons(zk, root, host=name) for name in ("web-01", "batch-02")]
    a, b, waiter, other = clients(two[0]), clients(two[1]), clients(two[0]), clients(two[1])
    a.call("CLIENT", "SETNAME", "settle-orders")
    a.call("LOCK", "orders/42", "DATA", "42")
    a.call("ACQUIRE", "encoder", "LIMIT", 3, "COUNT", 2)
    b.call("CAMPAIGN", "scheduler", "DATA", "10.0.0.2")
    waiter.send("LOCK", "orders/42")
    harness.wait_queued(two[0], "orders/42", 1)
    other.send("LOCK", "orders/42")
    harness.wait_until(lambda: len(a.call("QUEUE", "orders/42")) == 2 and a.call("HOLDERS", "scheduler"), "all to be there")
    harness.wait_until(lambda: len(b.call("HOSTS")) == 2, "both to be announced")
    return two


@pytest.mark.parametrize("words", [["who", "orders/42"], ["who", "encoder"], ["hosts"], ["ls"], ["ls", "--all"]], ids=" ".join)
def test_tables_fit_80_columns(busy, words):
    """With nothing left out of them, so that they are the same in a pipe."""
    lines, status = on_screen(command(busy[0], *words))
    piped = run(busy[0], *words).stdout.splitlines()
    assert status == 0 and max(map(len, plain(lines))) <= 80 and len(lines) < 24
    assert not any("…" in line for line in lines)

    def timeless(table):
        return [re.sub(r" +", " ", re.sub(r"\d+m?s\b", "T", line)) for line in table]

    assert timeless(plain(lines)) == timeless(piped)


def test_the_job_is_the_holder_and_a_semaphore_is_one(busy):
    heads, rows = table(busy[0], "ls", "--all")
    assert heads == ["NAME", "MODE", "HOST", "HOLDER", "SINCE", "WAITERS", "LONGEST"]
    encoder, orders, scheduler = rows
    assert encoder[:4] == ["encoder", "2 of 3", "web-01", "settle-orders"]
    assert orders[:4] == ["orders/42", "exclusive", "web-01", "settle-orders (42)"]
    assert orders[5] == "1 + 1 host" and re.fullmatch(r"\d+(ms|s)", orders[6]) and encoder[6] == "-"
    assert scheduler[:3] == ["scheduler", "leader", "batch-02"]
    assert all(" leader " in run(two, "who", "scheduler").stdout for two in busy), "and who calls it the same"
    assert column(busy[0], "STATE", "ls", "e*") == ["semaphore"] and column(busy[0], "STATE", "ls", "o*") == ["held"]
    assert "web-01" in (shown := run(busy[0], "who", "encoder").stdout) and " 2 of 3 " in shown and "TOKEN" not in shown
    assert " settle-orders (42)  exclusive  " in run(busy[0], "who", "orders/42").stdout


def test_a_semaphore_is_one_to_those_that_wait_for_it(standalone, clients):
    a, b = clients(standalone), clients(standalone)
    a.call("ACQUIRE", "s", "LIMIT", 3, "COUNT", 3)
    b.send("ACQUIRE", "s", "LIMIT", 3, "COUNT", 2)
    harness.wait_queued(standalone, "s", 1)
    held, waiting = run(standalone, "who", "s").stdout.split("\nwaiting:\n")
    assert " 3 of 3 " in held and " 2 of 3 " in waiting
    assert column(standalone, "STATE", "ls") == ["semaphore"]


def test_a_holder_on_another_host_is_as_old_as_what_is_known_of_it(busy):
    """Its description says when it was written, and for how long it had been held by then."""
    harness.wait_until(lambda: " settle-orders (42) " in run(busy[1], "who", "orders/42").stdout, "the holder to write")

    def held():
        heads, row = [cells(line) for line in run(busy[1], "who", "orders/42").stdout.splitlines()[1:3]]
        assert row[heads.index("HOST")] == "web-01"
        return re.fullmatch(r"\d+s|\d+m\d+s", row[heads.index("HELD")])

    harness.wait_until(held, "it to be held for more than a second")
    (since,) = column(busy[1], "SINCE", "ls", "--all", "orders/*")
    assert re.fullmatch(r"\d+s|\d+m\d+s", since)


@pytest.mark.parametrize("words, more", [
    (["hosts"], {"TICK", "BOOT_ID"}), (["ls"], {"DELEGATED"}), (["ls", "--all"], {"PID", "CLIENT", "UID", "TOKEN", "AGE", "ZNODE"}),
    (["who", "orders/42"], {"CLIENT", "UID", "COMMAND", "ZNODE", "AGE"}),
], ids=["hosts", "ls", "all", "who"])
def test_wide_shows_the_rest(busy, words, more):
    with busy[0].client() as c:
        c.call("LOCK", "orders/" + "x" * (29 if words == ["ls"] else 1))
        tables = [run(busy[0], *words, *option).stdout for option in ([], ["--wide"])]
        narrow, wide = (set(re.findall(r"\b[A-Z_]{3,}\b", table)) for table in tables)
        assert wide - narrow == more and narrow < wide
        widths = [max(len(line) for line in table.splitlines() if not line.startswith("Which")) for table in tables]
        assert widths[0] <= 80 < widths[1], "each column has its place"
        lines, _ = on_screen(command(busy[0], *words, "--wide"))
        assert max(map(len, plain(lines))) == 80 and any("…" in line for line in lines)


def test_what_is_too_wide_is_cut_at_a_terminal_and_nowhere_else(standalone, clients):
    name = "x" * 60 + "/" + "y" * 60
    c = clients(standalone)
    c.call("LOCK", name, "DATA", "a text " + "z" * 200)
    for words in (["ls", "--all"], ["who", name]):
        whole = run(standalone, *words).stdout
        assert "z" * 200 in whole and "…" not in whole
        lines = plain(on_screen(command(standalone, *words))[0])
        assert max(map(len, lines)) <= 80 and any("…" in line for line in lines)
        assert all(head in "\n".join(lines) for head in ("HOLDER", "MODE")), "all columns are there"
    assert name in run(standalone, "ls", "--all").stdout
    for columns in (30, 40, 41, 42, 43, 44):
        for words in (["ls", "--all"], ["ls"], ["who", name]):
            narrow = [line for line in plain(on_screen(command(standalone, *words), columns=columns)[0]) if "  " in line]
            heads = [line for line in run(standalone, *words).stdout.splitlines() if "  " in line][0].split()
            assert max(map(len, narrow)) <= columns
            assert narrow[0].split() == heads or len(narrow[0]) == columns and narrow[0].endswith("…"), "no column goes without a sign"
            assert words == ["who", name] or narrow[1].startswith("x" * 11 + "…")
    wide = plain(on_screen(command(standalone, "ls", "--all"), columns=500)[0])
    assert name in wide[1] and "z" * 200 in wide[1] and not any("…" in line for line in wide)


def test_a_character_that_takes_two_columns_counts_as_two(standalone, clients):
    c = clients(standalone)
    c.call("LOCK", "日本/" + "語" * 60)
    c.call("LOCK", "b")
    lines = plain(on_screen(command(standalone, "ls"))[0])
    columns = [sum(2 if character >= "\u3000" else 1 for character in line) for line in lines]
    assert max(columns) <= 80 and "…" in lines[2]
    piped = run(standalone, "ls").stdout.splitlines()
    at = [sum(2 if character >= "\u3000" else 1 for character in line[:line.index("local")]) for line in piped[1:]]
    assert at[0] == at[1]


def test_heads_are_bold_at_a_terminal_only_and_not_with_no_color(standalone, clients):
    clients(standalone).call("LOCK", "a")
    argv = command(standalone, "ls")
    assert on_screen(argv)[0][0].startswith("\x1b[1mNAME") and on_screen(argv)[0][0].endswith("\x1b[0m")
    assert "\x1b" not in "".join(on_screen(argv)[0][1:])
    for environment in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
        assert "\x1b" not in "".join(on_screen(argv, **environment)[0]), environment
    assert "\x1b" in "".join(on_screen(argv, NO_COLOR="")[0]), "which is not set, then"
    assert "\x1b" not in run(standalone, "ls").stdout


# ---- the log ----


def test_the_log_has_local_time_with_seconds(daemons):
    d = daemons()
    argv = command(d, "log")
    for zone, hours in ("UTC", 0), ("Asia/Tokyo", 9):
        done = harness.run(argv, env=os.environ | {"TZ": zone}, check=True)
        screen, status = on_screen(argv, columns=500, TZ=zone)
        assert status == 0 and screen[:len(done.stdout.splitlines())] == done.stdout.splitlines()
        times = [re.match(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  \S.*?  event=\w+", line) for line in done.stdout.splitlines()]
        assert all(times) and "at=" not in done.stdout
        last = datetime.datetime.fromisoformat(times[-1][1]) - datetime.timedelta(hours=hours)
        assert abs(last - datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)) < datetime.timedelta(hours=1)


def test_the_texts_of_the_log_are_whole(daemons, zk, root, clients):
    """Of the longest names, below the longest root: each byte of a name is three in its path."""
    root = root + "r" * (150 - len(root))
    d = daemons(zk, root, host="alpha")
    name, other = "é" * 256, "ü" * 256
    a, b = clients(d), clients(d)
    a.call("LOCK", name), b.call("LOCK", other)
    a.send("LOCK", other)
    harness.wait_queued(d, other, 1)
    deadlock = b.call("LOCK", name)
    assert deadlock.code == "DEADLOCK" and b.call("FORCEUNLOCK", name) == 1
    mismatch = b.call("CAMPAIGN", other, "DATA", "x")
    assert mismatch.code == "MISMATCH" and mismatch.endswith(other)
    sentences = {"refused": [error.partition(" ")[2] for error in (deadlock, mismatch)], "grant_lost": [name],
                 "claim_held": [root + "/" + "".join(f"%{byte:02X}" for byte in text.encode()) for text in (name, other)]}
    records = [json.loads(line) for line in run(d, "log", "--json").stdout.splitlines()]
    keys = {"refused": "why", "grant_lost": "name", "claim_held": "path"}
    for event, texts in sentences.items():
        assert [record[keys[event]] for record in records if record["event"] == event] == texts
    shown = "\n".join(on_screen(command(d, "log"))[0]), run(d, "log").stdout
    for text in [text.replace('"', '\\"') for texts in sentences.values() for text in texts]:
        assert all(f'="{text}"\n' in log for log in shown), "at a terminal of 80 columns, too"


# ---- errors ----


@pytest.mark.parametrize("words, sentence", [
    (["limit", "nix"], "There is no semaphore nix: `lockbroker sem -l N nix CMD` makes one."),
    (["force-unlock", "nix"], "Nobody held nix: nothing was taken from anybody (see `lockbroker who`)."),
    (["revoke", "nix"], "No holder was asked to release nix: nobody holds it, or its holders do not read their messages "
                        "(see `lockbroker who`)."),
    (["lock", "-n", "encoder", "true"], "encoder is a semaphore, so it cannot be locked; use `lockbroker sem`, or another name."),
    (["lock", "-n", "scheduler", "true"], "scheduler is an election, so it cannot be locked; use `lockbroker campaign`, or another name."),
    (["sem", "-n", "-l", "2", "orders", "true"], "orders is a lock, so it has no permits; use `lockbroker lock`, or another name."),
    (["sem", "-n", "-l", "2", "encoder", "true"], "The semaphore encoder has a limit of 3, not 2: every user names the same limit; "
                                                  "`lockbroker limit encoder` shows it."),
    (["campaign", "-n", "orders", "D", "true"], "orders is a lock, so it has no leader; use `lockbroker lock`, or another name."),
    (["leader", "orders"], "orders is a lock, so it has no leader; use `lockbroker lock`, or another name."),
    (["observe", "encoder"], "encoder is a semaphore, so it has no leader; use `lockbroker sem`, or another name."),
    (["limit", "orders"], "orders is a lock, so it has no permits; use `lockbroker lock`, or another name."),
    (["leader", "nobody"], "Nobody leads the election nobody: `lockbroker observe nobody` shows who does next."),
    (["who", ".."], None), (["why", "a\nb"], None), (["lock", "x" * 513, "true"], None),
], ids=lambda x: x[0] + " " + x[-1][:10] if isinstance(x, list) else "")
def test_an_error_says_what_happened_to_which_name_and_what_to_do(broker, clients, words, sentence):
    c = clients(broker)
    c.call("LOCK", "orders"), c.call("ACQUIRE", "encoder", "LIMIT", 3), c.call("CAMPAIGN", "scheduler", "DATA", "x")
    done = run(broker, *words)
    if sentence:
        assert done.stderr == f"lockbroker: {sentence}\n" and done.returncode in (1, 64)
    else:
        name = words[-1].replace("\n", "\\u000a") if words[0] != "lock" else words[1]
        assert done.returncode == 64 and name in done.stderr and done.stderr.count("\n") == 1
    lines, _ = on_screen(command(broker, *words))
    assert lines == done.stderr.splitlines(), "and so at a terminal"


def test_an_answer_that_is_too_long_names_a_way_that_works(daemons, clients):
    d = daemons(limits={"output_bytes": 65536})
    c = clients(d)
    for i in range(2000):
        c.send("LOCK", f"orders/{i:04}/of-the-shop")
    assert all(isinstance(c.reply(), int) for _ in range(2000))
    for _ in range(400):
        d.client().close()
    for words, ways in ((["ls"], [["ls", "orders/00*"], ["ls", "--all"]]), (["log"], [["log", "100"]])):
        done = run(d, *words)
        assert (done.returncode, done.stdout) == (69, "") and done.stderr.count("\n") == 1
        assert done.stderr.startswith("lockbroker: The answer is longer than limits.output_bytes: `lockbroker ")
        assert on_screen(command(d, *words)) == (done.stderr.splitlines(), 69), "and so at a terminal"
        for way in ways:
            assert f"`lockbroker {' '.join(way)}`".replace("orders/00*", "PATTERN") in done.stderr
            assert len(run(d, *way).stdout.splitlines()) == {"orders/00*": 101, "--all": 2001, "100": 100}[way[1]]


def test_what_a_user_may_do_is_yes_or_no(standalone):
    lines, status = on_screen(command(standalone, "access", "root", "orders/42"))
    assert status == 0 and plain(lines) == run(standalone, "access", "root", "orders/42").stdout.splitlines()
    assert {cells(line)[1] for line in plain(lines)} == {"ALLOWED", "yes", "no"}
    assert run(standalone, "access").stderr.startswith("lockbroker: USER is missing: lockbroker access [OPTION...] USER NAME [UNIT].")


def test_an_error_of_the_daemon_that_lacks_the_name_gets_it(own_zk, daemons):
    d = daemons(harness.NoZookeeper, "/none")
    for words in (["lock", "-n", "orders/42", "true"], ["who", "orders/42"], ["leader", "orders/42"], ["limit", "orders/42"]):
        done = run(d, *words)
        assert done.returncode == 69 and "orders/42" in done.stderr, done


def test_a_command_under_a_lock_is_named_by_what_it_runs(broker):
    p, child = started(broker, "sleep", "60", options=("-d", "since noon"))
    assert re.search(rf" {p.pid} +sh \(since noon\) +exclusive ", run(broker, "who", "a").stdout)
    assert " sh (since noon)  " in run(broker, "ls", "--all").stdout
    harness.end(p)
