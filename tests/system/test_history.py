# SPDX-License-Identifier: Apache-2.0
"""`lockbroker history`: who held a lock, by the journal of a real systemd-journald."""

import itertools
import json
import os
import re
import shutil
import subprocess

import pytest

import harness
import journald
from delegation import Delegate
from test_cli_json import is_of

LOCKBROKER = harness.program("lockbroker")
T = 1764534665000  # 2025-11-30 20:31:05 UTC
SECOND, MINUTE, HOUR = 1000, 60000, 3600000
USUAL = {"kind": "lock", "mode": "exclusive", "client": 3, "pid": 700, "uid": 0, "command": "settle"}
UTC = {"TZ": "UTC"}


@pytest.fixture(scope="module")
def journal():
    journald.need()
    made = journald.Journald()
    yield made
    made.end()


tokens = itertools.count(1)
names = itertools.count(1)


@pytest.fixture
def name():
    """A lock of the test's own."""
    return f"lock-{next(names)}"


def hold(journal, name, since, held, event="released", **fields):
    """A line about a hold since a time, in milliseconds after T."""
    why = {} if event == "granted" else {"why": "released" if event == "released" else "session"}
    fields = USUAL | {"name": name, "token": next(tokens), "since_ms": T + since, "held_ms": held} | why | fields
    journal.log(event, **fields)
    return fields


def history(journal, *words, status=0, **options):
    done = journal.run(LOCKBROKER, "history", *words, env=UTC | options.pop("env", {}), **options)
    assert done.returncode == status, done
    return done.stdout if status == 0 else done.stderr


def asked(journal, *words, **options):
    value = json.loads(history(journal, "--json", *words, **options))
    assert is_of(value, "history")
    return value


def held(journal, *words):
    """The holders, by their numbers of processes."""
    return [row["pid"] for row in asked(journal, *words)["holds"]]


def gaps(journal, *words):
    return {gap["gap"]: gap["text"] for gap in asked(journal, *words)["gaps"]}


def row_of(text, mark):
    """What stands below each head in the line that has the mark."""
    table = text.split("\n\n")[0].splitlines()
    (line,) = [line for line in table if mark in line]
    heads = [(m.group(), m.start()) for m in re.finditer(r"\S+(?: \S+)*", table[0])]
    ends = [start for _, start in heads[1:]] + [None]
    return {head: line[start:end].strip() for (head, start), end in zip(heads, ends, strict=True)}


def test_a_hold_is_a_line_with_who_when_how_long_and_how_it_ended(journal, name):
    fields = hold(journal, name, 250, 90 * SECOND, data="orders of today", waited_ms=1500, before="db2")
    row = row_of(history(journal, name), "settle")
    assert row == {"SINCE": "2025-11-30 20:31:05.250", "UNTIL": "20:32:35.250", "HELD": "1m30s", "HOST": "here", "PID": "700",
                   "HOLDER": "settle (orders of today)", "UID": "0", "MODE": "exclusive", "END": "released", "WAITED": "1s",
                   "BEFORE": "db2", "TOKEN": str(fields["token"])}
    (hold_,) = asked(journal, name)["holds"]
    assert hold_ == {"state": "ended", "since_ms": T + 250, "until_ms": T + 90250, "held_ms": 90000, "host": "here", "event": "released",
                     "kind": "lock", "mode": "exclusive", "token": fields["token"], "permits": None, "client": 3, "pid": 700, "uid": 0,
                     "unit": None, "command": "settle", "data": "orders of today", "waited_ms": 1500, "why": "released",
                     "before": "db2", "takings": None, "count": None, "commands": None, "longest_ms": None}


def test_who_held_it_at_an_instant(journal, name):
    """Whenever that hold began and ended, and however long the journal of the time before and after is."""
    hold(journal, name, -2 * SECOND, SECOND, pid=1)
    hold(journal, name, -3 * HOUR, 10 * SECOND, "granted", pid=2, mode="shared", client=1, token=9)
    hold(journal, name, -HOUR, 2 * HOUR, pid=3, mode="shared")
    hold(journal, name, 100, 200, pid=4, mode="shared")
    hold(journal, name, SECOND, SECOND, pid=5, mode="shared")
    hold(journal, name, -3 * HOUR, 4 * HOUR, pid=2, mode="shared", client=1, token=9)
    hold(journal, name, HOUR * 2, 10 * SECOND, "granted", pid=6)
    at = "2025-11-30 20:31:05"
    assert held(journal, name, "--at", at) == [2, 3, 4]
    assert held(journal, name, "--at", at + ".250") == [2, 3, 4]
    assert held(journal, name, "--at", at + ".301") == [2, 3]
    assert held(journal, name, "--since", at, "--until", at) == [2, 3]
    assert held(journal, name, "--since", "2025-11-30 20:31:06") == [2, 3, 5, 6]
    assert held(journal, name, "--until", "2025-11-30 20:31:03") == [2, 3, 1]
    assert held(journal, name, "--at", "2025-11-30") == [2, 3, 1, 4, 5, 6]
    assert held(journal, name, "--at", "2025-11-30 20:31") == [2, 3, 1, 4, 5]
    assert held(journal, name, "--at", f"@{T // 1000 - 2}") == [2, 3, 1]
    assert held(journal, name, "--at", "2025-12-01T00:00") == [6], "it is held still"
    assert held(journal, name, "--at", "2025-11-30 10:00") == []
    assert history(journal, name, "--at", "2025-11-30 10:00").startswith(f"No hold of {name} in that time is in the journal.\n")
    assert history(journal, "another").startswith("No hold of another is in the journal.\n")


def test_what_has_no_end_is_held_until_somebody_else_holds_it(journal, name):
    hold(journal, name, 0, 10 * SECOND, "granted", pid=1)
    text = history(journal, name)
    assert (row_of(text, "settle")["END"], row_of(text, "settle")["UNTIL"]) == ("still held", "-")
    assert "restarted" not in gaps(journal, name)
    journal.log("serves", socket="/run/x", host="here", standalone=0, version="1")
    assert "lockbroker who" in gaps(journal, name)["restarted"]
    hold(journal, name, MINUTE, SECOND, pid=2)
    first, second = asked(journal, name)["holds"]
    assert (first["pid"], first["state"], first["until_ms"], first["held_ms"], first["why"]) == (1, "unknown", None, None, None)
    assert (second["pid"], second["state"]) == (2, "ended")
    assert "not logged" in history(journal, name) and "restarted" not in gaps(journal, name)
    assert held(journal, name, "--since", f"@{T // 1000 + 61}") == [2], "it had ended before"


def test_readers_hold_it_together(journal, name):
    readers = [hold(journal, name, n, 10 * SECOND, "granted", pid=n, client=n, mode="shared") for n in (1, 2, 3)]
    assert [row["state"] for row in asked(journal, name)["holds"]] == ["open"] * 3
    journal.log("lost", **readers[1] | {"why": "lease", "held_ms": 20000})
    assert [(row["pid"], row["state"], row["why"]) for row in asked(journal, name)["holds"]] == [
        (1, "open", None), (2, "ended", "lease"), (3, "open", None)]
    assert row_of(history(journal, name), "lost")["END"] == "lost: lease"
    hold(journal, name, 30 * SECOND, 10 * SECOND, "granted", pid=4, client=4)
    assert [row["state"] for row in asked(journal, name)["holds"]] == ["unknown", "ended", "unknown", "open"]


def test_permits_are_given_back_one_after_the_other(journal, name):
    of = {"kind": "semaphore", "token": 0, "client": 5}
    hold(journal, name, 0, 10 * SECOND, "granted", permits=3, **of)
    hold(journal, name, 0, 12 * SECOND, permits=1, **of)
    hold(journal, name, 5, 10, permits=1, kind="semaphore", token=0, client=6)
    assert [(row["state"], row["permits"]) for row in asked(journal, name)["holds"]] == [("open", 2), ("ended", 1), ("ended", 1)]
    assert row_of(history(journal, name), "still held")["MODE"] == "2 permits"
    hold(journal, name, 0, 13 * SECOND, permits=2, why="closed", **of)
    rows = asked(journal, name)["holds"]
    assert [(row["state"], row["permits"], row["token"]) for row in rows] == [("ended", 1, None), ("ended", 2, None), ("ended", 1, None)]
    text = history(journal, name)
    assert row_of(text, "closed")["MODE"] == "2 permits" and "TOKEN" not in text


def test_long_waits_are_shown_with_who_held_it(journal, name):
    waiter = USUAL | {"name": name, "pid": 801, "client": 9}
    journal.log("waits", **waiter, waited_ms=60000, holder="db1", holder_pid=77, holder_command="backup")
    (wait,) = asked(journal, name)["waits"]
    assert (wait["state"], wait["waited_ms"], wait["why"], wait["holder"], wait["holder_pid"]) == ("open", None, None, "db1", 77)
    assert "still waits" in history(journal, name)
    journal.log("waited", **waiter | {"command": "pay"}, waited_ms=75000, why="timeout")
    (wait,) = asked(journal, name)["waits"]
    assert (wait["state"], wait["waited_ms"], wait["why"], wait["command"]) == ("ended", 75000, "timeout", "pay")
    assert (wait["holder"], wait["holder_pid"], wait["holder_command"]) == ("db1", 77, "backup")
    text = history(journal, name)
    row = row_of(text.partition("\nlong waits:\n")[2], "timeout")
    assert (row["WAITED"], row["PID"], row["WAITER"], row["HELD BY"]) == ("1m15s", "801", "pay", "db1: backup 77")
    assert asked(journal, name, "--until", "-1h")["waits"] == []


def test_of_an_election_it_shows_the_leader_and_candidates(journal, name):
    hold(journal, name, 0, SECOND, kind="election")
    assert row_of(history(journal, name), "settle")["MODE"] == "leader"
    journal.log("waits", **USUAL | {"kind": "election", "name": name, "command": "pay"}, waited_ms=60000)
    assert row_of(history(journal, name).partition("\nlong waits:\n")[2], "pay")["MODE"] == "candidate"


def test_it_says_what_is_not_known(journal, name):
    hold(journal, name, 0, SECOND)
    journal.log("delegated", name=name, uid=0, token=4, client=3, pid=7, command="loop", since_ms=T + 2000, held_ms=500, takings=1234)
    journal.log("summary", name=name, count=500, waits=12, commands="a,b", longest_ms=70, since_ms=T + 3000, until_ms=T + 63000)
    journal.log("summary", count=9, longest_ms=70, since_ms=T + 3000, until_ms=T + 63000)
    journal.log("unread", lines=3)
    journal.log("held_back", of="lost", lines=4)
    journal.log("held_back", of="refused", lines=400)
    text = history(journal, name)
    assert row_of(text, "loop")["END"] == "delegated: 1234 takings" and row_of(text, "loop")["HELD"] == "500ms"
    summary = row_of(text, "500 holds")
    assert (summary["END"], summary["HOLDER"], summary["HELD"], summary["LONGEST"]) == ("500 holds", "a,b", "-", "70ms")
    assert (summary["SINCE"], summary["UNTIL"]) == ("2025-11-30 20:31:08.000", "20:32:08.000")
    said = gaps(journal, name)
    assert set(said) == {"delegated", "summary", "others", "left_out", "before", "hosts"}
    assert ": 1234." in said["delegated"] and ": 512." in said["summary"] and ": 9." in said["others"] and ": 7." in said["left_out"]
    assert text.endswith("".join(sentence + "\n" for sentence in said.values()))
    assert set(gaps(journal, name, "--at", f"@{T // 1000}")) == {"before", "hosts"}, "what it does not say of another time"
    assert "before" not in gaps(journal, name, "--since", "now")


def test_a_host_of_its_own_has_no_other_hosts(journal, name):
    journal.log("serves", socket="/run/x", host="here", standalone=1, version="1")
    assert "hosts" not in gaps(journal, name)
    journal.log("serves", socket="/run/x", host="here", standalone=0, version="1")
    assert "hosts" in gaps(journal, name)


def test_only_the_unit_is_believed(journal, name):
    """Anybody can write these fields into the journal."""
    forged = USUAL | {"name": name, "token": 1, "since_ms": T, "held_ms": 5, "why": "released"}
    for unit in ("session-1.scope", "lockbrokerd.service.service", "lockbrokerd@x.service", "user@1000.service/lockbrokerd.service"):
        journal.log("released", unit, **forged)
        journal.send({"MESSAGE": "x", "LOCKBROKER_EVENT": "released", "LOCKBROKER_NAME": name, "_SYSTEMD_UNIT": "lockbrokerd.service",
                      "LOCKBROKER_SINCE_MS": T, "LOCKBROKER_HELD_MS": 5}, unit)
    assert len(journal.entries(f"LOCKBROKER_NAME={name}")) == 8, "they are there"
    assert asked(journal, name)["holds"] == []
    assert held(journal, name, "-S", "@x") == [700, None], "an instance is another broker"


NAMES = ["a", "a b", "a=b", "+", "--", "-x", "*", "ä/ö", "日本", "'; touch /tmp/x; '", "$(true)", "\"q\"\\", "%s%n", "x" * 512, "a\u202eb", "/etc/passwd"]


def test_each_name_is_matched_as_it_is(journal):
    for n, each in enumerate(NAMES):
        hold(journal, each, 0, 10, pid=1000 + n)
    for n, each in enumerate(NAMES):
        assert held(journal, "--", each) == [1000 + n], each
    for wrong in ("", ".", "a\nb", "x" * 513):
        assert "is no name of a lock" in history(journal, "--", wrong, status=64)


def test_what_others_wrote_does_not_steer_the_terminal(journal, name):
    data = "\x1b[2J\u202eevil\n\"]},"
    hold(journal, name, 0, 10, command=b"\xff\x07", data=data)
    text = history(journal, name)
    assert r"\xff\u0007 (\u001b[2J\u202eevil\u000a" in text and not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)
    done = journal.run(LOCKBROKER, "history", "--json", name)
    assert json.loads(done.stdout)["holds"][0]["data"] == data and "\x1b" not in done.stdout and "\u202e" not in done.stdout


def test_journals_of_other_hosts_are_read_with_ours(journal, name, tmp_path):
    other = journald.Journald("there")
    try:
        tmp_path.chmod(0o755)
        hold(journal, name, 0, 10 * SECOND, "granted", pid=1, client=1)
        hold(other, name, 20 * SECOND, SECOND, pid=2, client=1)
        journal.sync(), other.sync()
        for n, each in enumerate((journal, other)):
            for file in os.listdir(each.files()):
                shutil.copy(os.path.join(each.files(), file), tmp_path / f"{n}-{file}")
    finally:
        other.end()
    rows = asked(journal, name, "--directory", str(tmp_path))["holds"]
    assert [(row["host"], row["state"]) for row in rows] == [("here", "unknown"), ("there", "ended")]
    assert "hosts" not in gaps(journal, name, "--directory", str(tmp_path))
    assert [row["state"] for row in asked(journal, name)["holds"]] == ["open"]
    assert "journalctl: Failed to open" in history(journal, name, "--directory", "/nonexistent", status=71)


def test_who_may_not_read_the_journal_is_told_so(journal, name):
    hold(journal, name, 0, 10)
    plain = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", LOCKBROKER, "history", name]
    if subprocess.run(plain[:-2] + ["--version"], capture_output=True).returncode:
        pytest.skip("another user cannot run the program here")
    done = journal.run(*plain)
    assert (done.returncode, done.stdout) == (77, "")
    assert done.stderr == ("lockbroker: This user may not read the journal, which has the history: root may, and the members of the groups "
                           "adm and systemd-journal.\n")
    files = journal.files()
    group = os.stat(files).st_gid
    for file in os.listdir(files):
        os.chown(f"{files}/{file}", -1, 4242)
    try:
        done = journal.run(*plain[:3], "--groups=4242", *plain[4:])
        assert (done.returncode, done.stderr) == (0, "") and "settle" in done.stdout
    finally:
        for file in os.listdir(files):
            os.chown(f"{files}/{file}", -1, group)


def test_root_has_a_broker_of_its_own_whose_history_is_in_the_system_journal(journal, name, tmp_path):
    """So is that of other users of the system: the journal has files of their own for people only."""
    tmp_path.chmod(0o700)
    fields = USUAL | {"name": name, "token": 1, "since_ms": T, "held_ms": 5, "why": "released"}
    journal.log("released", "user@0.service/app.slice/lockbrokerd.service", **fields)
    text = journal.run(LOCKBROKER, "--user", "history", name, env=UTC | {"XDG_RUNTIME_DIR": str(tmp_path)}).stdout
    assert row_of(text, "settle")["END"] == "released"
    assert asked(journal, name)["holds"] == []


def test_journals_of_the_past_are_read_when_there_is_no_present_one(name):
    journald.need()
    old = journald.Journald()
    try:
        hold(old, name, 0, 10)
        old.run("journalctl", "--namespace", journald.NAMESPACE, "--rotate")
        os.unlink(f"{old.files()}/system.journal")
        done = harness.run(old.inside(LOCKBROKER, "history", name))
        assert done.returncode == 0 and "settle" in done.stdout
    finally:
        old.end()


def test_where_there_is_no_journal_it_says_so():
    done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/log; exec "$@"', "sh",
                           LOCKBROKER, "history", "a"], capture_output=True, text=True)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no mounts of one's own here")
    assert done.returncode == 69 and "There is no journal of systemd on this host" in done.stderr


# ---- what a daemon writes ----


@pytest.fixture(scope="module")
def broker():
    """A journal, and a daemon that logs there."""
    journald.need()
    made = journald.Journald("db1")
    try:
        made.socket = made.start(**{"log.long_wait_ms": 200})
        yield made
    finally:
        made.end()


def wait_for(journal, name, condition, what):
    return harness.wait_until(lambda: (rows := asked(journal, name)) and condition(rows) and rows, what)


def test_who_held_it_then_is_answered_after_it_was_released(broker, name):
    with harness.Client(broker.socket) as c:
        c.call("LOCK", name, "DATA", "the books")
        c.call("UNLOCK", name)
    with harness.Client(broker.socket) as c:
        c.call("LOCK", name)
    first, second = wait_for(broker, name, lambda said: len(said["holds"]) == 2, "both holds")["holds"]
    assert (first["pid"], first["data"], first["why"], first["host"]) == (os.getpid(), "the books", "released", "db1")
    assert (second["data"], second["why"]) == (None, "closed") and second["token"] > first["token"]
    assert first["since_ms"] <= first["until_ms"] <= second["since_ms"]
    at = f"@{first['since_ms'] // 1000}.{first['since_ms'] % 1000:03}"
    assert held(broker, name, "--at", at)[0] == os.getpid()
    assert "(the books)" in history(broker, name, "--at", at)


def test_each_name_that_a_daemon_takes_is_found(broker):
    for each in NAMES:
        with harness.Client(broker.socket) as c:
            c.call("LOCK", each), c.call("UNLOCK", each)
    for each in NAMES:
        harness.wait_until(lambda each=each: held(broker, "--", each) == [os.getpid()], each)


def test_a_long_wait_is_told_with_its_holder(broker, name):
    with harness.Client(broker.socket) as holder, harness.Client(broker.socket) as waiter:
        holder.call("LOCK", name)
        waiter.send("LOCK", name)
        (wait,) = wait_for(broker, name, lambda said: said["waits"], "the wait")["waits"]
        assert (wait["state"], wait["holder_pid"]) == ("open", os.getpid())
        holder.call("UNLOCK", name)
        assert waiter.reply() > 0
        (wait,) = wait_for(broker, name, lambda said: said["waits"][0]["state"] == "ended", "its end")["waits"]
        assert wait["why"] == "granted" and wait["waited_ms"] >= 200 and wait["holder_pid"] == os.getpid()


def test_takings_of_a_delegated_lock_are_counted(broker, name):
    with Delegate(broker.socket) as c:
        c.ask_page()
        token = c.delegate(name, 1)
        for _ in range(3):
            assert c.leave(1) and c.take(1)
        assert c.call("UNLOCK", name) == 0
    rows = wait_for(broker, name, lambda said: any(row["event"] == "delegated" for row in said["holds"]), "the delegation")["holds"]
    (row,) = [row for row in rows if row["event"] == "delegated"]
    assert row["takings"] >= 3 and (row["token"], row["pid"]) == (token, os.getpid())
    assert "delegated" in gaps(broker, name)


# ---- journalctl, whatever it does ----


@pytest.fixture
def journalctl(tmp_path):
    """One that a test writes, in place of the real one."""
    def write(script):
        path = tmp_path / "journalctl"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    return write


def ask(env, *words, status=0):
    done = subprocess.run([LOCKBROKER, "history", "--directory", "/", *words], env=os.environ | UTC | env, capture_output=True,
                          timeout=harness.PATIENCE)
    assert done.returncode == status, done
    return (done.stdout if status == 0 else done.stderr).decode()


def exported(*entries):
    return b"".join(b"__REALTIME_TIMESTAMP=%d\n" % (T * 1000) + journald.datagram(
        {f"LOCKBROKER_{key.upper()}": value for key, value in ({"event": "released"} | entry).items()}) + b"\n" for entry in entries)


def test_journalctl_gets_words_and_no_input(journalctl, tmp_path):
    env = journalctl(f'{{ printf "<%s>" "$@"; echo; readlink /proc/self/fd/0; }} >> {tmp_path}/said')
    said = tmp_path / "said"

    def words(*more):
        said.unlink(missing_ok=True)
        ask(env, "a b", *more)
        lines = said.read_text().splitlines()
        assert lines[1::2] == ["/dev/null"] * 2
        return lines[2].partition("<-->")

    unit, name = "<_SYSTEMD_UNIT=lockbrokerd.service>", "<LOCKBROKER_NAME=a b>"
    before, _, matches = words("--merge")
    assert matches.startswith(unit + name + "<+>" + unit + "<LOCKBROKER_EVENT=") and matches.count(unit) == matches.count("<+>") + 1
    assert before.startswith("<--output=export><--quiet><--no-pager><--output-fields=") and before.endswith("<--directory></><--merge>")
    assert words("-S", "@blue")[2].startswith("<_SYSTEMD_UNIT=lockbrokerd@blue.service>" + name)
    assert words("-S", "/run/lockbroker@blue/lockbroker.sock")[2].startswith("<_SYSTEMD_UNIT=lockbrokerd@blue.service>")
    tmp_path.chmod(0o700)
    env["XDG_RUNTIME_DIR"] = str(tmp_path)
    for mine in (["--user"], ["-S", f"{tmp_path}/lockbroker/lockbroker.sock"]):
        assert words(*mine)[2].startswith(f"<_SYSTEMD_USER_UNIT=lockbrokerd.service><_UID={os.getuid()}>{name}<+>")
    assert "No unit has this socket" in ask(env, "a", "-S", "/x")


@pytest.mark.parametrize(("output", "said"), [
    (b"", None), (b"no export\n", "no export of a journal"), (b"A=b\n", "no export of a journal"), (b"\n", "no export of a journal"),
    (b"A\n\xff\xff\xff\xff\xff\xff\xff\xff", "no export of a journal"), (b"A\n\x01\0\0\0\0\0\0\0bcA=b\n\n", "no export of a journal"),
    (b"x" * 3000000, "no export of a journal"),
], ids=["nothing", "text", "half", "line", "length", "end", "long"])
def test_what_is_no_export_is_not_read(journalctl, tmp_path, output, said):
    (tmp_path / "output").write_bytes(output)
    env = journalctl(f"cat {tmp_path}/output")
    if said:
        assert said in ask(env, "a", status=71)
    else:
        assert "No hold of a" in ask(env, "a")


def test_why_journalctl_failed_is_said(journalctl):
    assert ask(journalctl("echo 'it is \x1b[2J' >&2; echo more >&2; exit 1"), "a", status=71) == "lockbroker: journalctl: it is \\u001b[2J\n"
    assert ask(journalctl("exit 3"), "a", status=71) == "lockbroker: journalctl failed with status 3.\n"
    assert ask(journalctl("kill -9 $$"), "a", status=71) == "lockbroker: journalctl was ended by signal 9.\n"
    assert "Cannot run journalctl: No such file or directory." in ask({"PATH": "/nonexistent"}, "a", status=127)


def test_of_a_file_that_journalctl_leaves_out_it_says_so(journalctl, tmp_path):
    (tmp_path / "output").write_bytes(exported({"name": "a", "token": 1, "since_ms": T, "held_ms": 5}))
    env = journalctl(f"cat {tmp_path}/output; echo 'Journal file x is truncated, ignoring file.' >&2")
    done = subprocess.run([LOCKBROKER, "history", "--directory", "/", "a"], env=os.environ | UTC | env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "lockbroker: journalctl: Journal file x is truncated, ignoring file.\n")
    assert "No hold of a" not in done.stdout


@pytest.mark.plain_only("it is about numbers")
@pytest.mark.parametrize("more", [0, 1])
def test_the_oldest_rows_are_left_out_beyond_20000(journalctl, tmp_path, more):
    count = 20000 + more
    (tmp_path / "output").write_bytes(exported(*({"name": "a", "since_ms": T + n, "held_ms": 1, "pid": n + 1} for n in range(count))))
    value = json.loads(ask(journalctl(f"cat {tmp_path}/output"), "--json", "a"))
    pids = [row["pid"] for row in value["holds"]]
    left_out = [gap["text"] for gap in value["gaps"] if gap["gap"] == "rows"]
    assert pids == list(range(1 if not more else 10001, count + 1))
    assert bool(left_out) == bool(more) and (not more or ": 10000." in left_out[0])


def test_fields_that_are_no_numbers_or_not_there_are_not_known(journalctl, tmp_path):
    (tmp_path / "output").write_bytes(exported({"name": "a", "held_ms": "x", "pid": -1, "since_ms": "9" * 30}, {"name": "a"},
                                               {"name": "a", "event": "granted"}, {"name": "a", "event": "waits"}, {"event": "summary"},
                                               {"name": "a", "event": "summary"}, {"event": "unread"}, {"event": "held_back"}, {"event": ""}))
    env = journalctl(f"cat {tmp_path}/output")
    value = json.loads(ask(env, "--json", "a"))
    assert is_of(value, "history")
    assert [row["state"] for row in value["holds"]] == ["ended", "ended", "open", "ended"] and value["holds"][0]["since_ms"] == T
    assert "still waits" in ask(env, "a")
