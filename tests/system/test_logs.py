# SPDX-License-Identifier: Apache-2.0
"""The lines of the log, as tools read them. Beside these tests, the harness reads every line of every daemon of a run."""

import os
import re
import signal
import subprocess

import pytest

import harness

EVENTS = "daemon/base/log_event.h"
FOUND = re.compile(r'(?:log_(?:error|warning|info|debug)\(\s*|,\s*)(?:LOG_EVENT_)?(\w+),[\s\\]*'
                   r'(?:(?:\w+ \? )?&who(?: : NULL)?,\s*)?(?:LOG|EFFECT)_FIELDS\(\s*"([^"]*)"')


def declared():
    """The events, and the keys of the fields of each, in their order."""
    found = re.findall(r"X\((\w+), \d+, \d+\)(?: /\* (.*?) \*/)?", harness.read_source(EVENTS), re.S)
    keys = {}
    for event, text in found:
        keys[event] = keys[previous] if text == "the same" else re.findall(r"(\w+)=", text)
        previous = event
    return keys


def sources():
    for folder, _, files in os.walk(os.path.join(harness.SOURCE, "daemon")):
        for name in files:
            if name.endswith(".c"):
                yield harness.read_source(os.path.join(folder, name))


def test_every_key_is_declared_and_in_the_manual():
    keys = declared()
    text = harness.read_source("client-lib/man/lockbrokerd.8")
    manual = dict(re.findall(r'^\.It Ic (\w+)(?: Va((?: \w+=)+))?$', text, re.M))
    recorded = re.findall(r'X\((\w+), "[^"]+", "(\w*)", "(\w*)", "(\w*)"\)', harness.read_source("daemon/base/flight.h"))
    expected = keys | {event: [word for word in words if word] for event, *words in recorded}
    assert {event: words.split() for event, words in manual.items()} == {
        event: [f"{key}=" for key in words] for event, words in expected.items()}
    used = {}
    for source in sources():
        for event, fields in FOUND.findall(source):
            used.setdefault(event, set()).update(re.findall(r"(\w+)=", fields))
    used.pop("event")  # a macro's
    assert len(used) > 40
    assert used == {event: set(keys[event]) for event in used}


def test_the_page_about_holds_has_each_field_and_explains_it():
    """docs/design/log.md, the owner of these fields; "why" of an event that still lasts is empty, so it is left out there."""
    page = harness.read_source("docs/design/log.md")
    keys, shown, fields = declared(), {}, []
    for event, text in re.findall(r"^\| `(\w+)` \| [^|]+ \| (.*?) \|$", page, re.M):
        named = re.findall(r"`(\w+)`", text)
        fields = shown[event] = [key for key in fields if key not in named] if text.startswith("the same") else named
    assert {event: [key for key in fields if key not in ("uid", "unit")] for event, fields in shown.items()} == {
        event: [key for key in keys[event] if (event, key) != ("granted", "why")] for event in shown}
    assert {"released", "granted", "waits", "summary"} < set(shown)
    explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*`) \| [^|]* \|$", page, re.M))))
    clear = {"uid", "kind", "mode", "token", "client", "pid", "until_ms"}
    assert {key for event in shown for key in keys[event]} - clear <= explained


def test_the_catalogue_of_the_journal_explains_each_event_after_which_somebody_has_to_act():
    """Its texts name fields that the event has."""
    keys = declared()
    ids = dict(re.findall(r'X\((\w+), "([0-9a-f]{32})"\)', harness.read_source("daemon/base/log_catalog.h")))
    entries = dict(re.findall(r"^-- ([0-9a-f]{32})\n(.*?)(?=^-- |\Z)", harness.read_source("conf/lockbroker.catalog"), re.M | re.S))
    assert len(ids) > 10 and len(set(ids.values())) == len(ids) and set(ids.values()) == set(entries)
    for event, number in ids.items():
        assert re.match(r"Subject: .+\nDefined-By: lockbroker\nDocumentation: man:\S+\n\n.+", entries[number]), event
        fields = {name.lower() for name in re.findall(r"@LOCKBROKER_(\w+)@", entries[number])}
        assert fields <= set(keys[event]), event


def test_no_name_can_forge_a_line_or_a_field(daemons, clients):
    d = daemons(log__grants=1)
    c = clients(d)
    names = ["a  event=session_lost", 'c" event=lost name="x', "d\\", "e\u2028error: x", "f\u0627g", "h=" + "i" * 400, "j k"]
    for name in names:
        assert isinstance(c.call("LOCK", name, "DATA", name), int), name
        assert c.call("UNLOCK", name) == 0
    for name in ("b\r\nerror: session lost  event=session_lost", "\x1b[31m", "\x85"):
        assert c.call("LOCK", name).code in ("BADNAME", "ERR")
    lines = [harness.parse_log_line(line) for line in d.log().splitlines()]
    grants = [fields for _, event, fields in lines if event == "released"]
    assert [fields["name"] for fields in grants] == [fields["data"] for fields in grants] == names
    assert {fields["uid"] for fields in grants} == {str(os.getuid())} and {fields["kind"] for fields in grants} == {"lock"}
    # Where few files may be open, a line tells of it.
    assert {event for _, event, _ in lines} - {"descriptors"} == {"serves", "released"}


def test_a_flood_of_lines_is_held_back_and_counted(daemons, clients):
    """Each account has two hundred lines about its losses at once."""
    d = daemons(log__grants=1)
    c = clients(d)
    for i in range(300):
        c.call("LOCK", f"a{i}", "LEASE", 1)
    for _ in range(300):
        assert c.push()[0] == "lost"
    assert d.terminate() == 0
    told = [harness.parse_log_line(line)[1:] for line in d.log().splitlines()]
    held = sum(int(fields["lines"]) for event, fields in told if event == "held_back" and fields["of"] == "lost")
    assert held > 0 and sum(event == "lost" for event, _ in told) + held == 300


def test_what_happened_lately_is_shown_to_operators(two_hosts, clients):
    """Lines that the log leaves out, too; and the form is that of the log."""
    a, b = clients(two_hosts[0]), clients(two_hosts[1])
    name = "with  blanks and event="
    a.call("LOCK", name)
    assert b.call("LOCK", name, "WAIT", 1) is None
    assert a.call("LOG").code == "DENIED"
    with two_hosts[1].client(operator=True) as o:
        records = [harness.parse_log_line("info: " + line) for line in o.call("LOG")]
        assert [line.partition("  ")[0] for line in o.call("LOG", 1)] == [records[-1][0]]
        assert o.call("LOG", 0).code == "ERR" and o.call("LOG", "x").code == "ERR"
    events = [event for _, event, _ in records]
    assert events[0] == "serves" or "session_safe" in events
    for event in ("client_connected", "claim_joining", "claim_waiting", "claim_leaving"):
        assert event in events, events
    times = [float(fields["at"]) for _, _, fields in records]
    assert times == sorted(times)
    done = subprocess.run([harness.program("lockbroker"), "-S", two_hosts[1].operator_socket, "log", "2"],
                          capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2


@pytest.mark.plain_only("a sanitizer has handlers of its own")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT])
def test_a_crash_is_told_with_what_led_to_it(daemons, clients, number):
    d = daemons()
    c = clients(d)
    assert c.call("LOCK", "a", "WAIT", "x").code == "ERR"
    old = d.pid
    os.kill(old, number)
    harness.wait_until(lambda: f"the worker (process {old}) was killed by signal {int(number)} (" in d.log(), "the end")
    harness.wait_until(lambda: "goes on after a crash" in d.log(), "the next process")
    told = [harness.parse_log_line(line) for line in d.log().splitlines()]
    at = [event for _, event, _ in told].index("crash")
    assert told[at][2]["signal"] == str(int(number))
    told = told[at:]
    assert any(event == "refused" for _, event, _ in told)
    frames = [fields for _, event, fields in told if event == "frame"]
    assert len(frames) > 5 and any(fields["object"] == "lockbrokerd" for fields in frames)


def test_without_memory_there_is_no_recorder(daemons):
    d = daemons(log__recorder_bytes=0)
    with d.client(operator=True) as o:
        assert o.call("LOG") == []
