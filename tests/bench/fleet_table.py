# SPDX-License-Identifier: Apache-2.0
"""The runs of `make fleet` that are recorded, as a table in Markdown: a column for each number of hosts."""

import glob
import json
import math
import os
import sys

THREE = "three servers"
# Head of a row: section, figures of it, and how they are told.
ROWS = (
    ("s until all hosts are safe after their start", "start", ("all_safe_s",), "{:.1f}"),
    ("idle host: packets to the server, and from it, a second", "idle", ("idle_in_s", "idle_out_s"), "{:.2f}, {:.2f}"),
    ("idle host: us of a core a second, daemon and server", "idle", ("idle_daemon_us_s", "idle_server_us_s"), "{:.0f}, {:.0f}"),
    ("idle host: transactions a second, bytes of the log for them", "idle", ("idle_transactions_s", "idle_log_bytes_s"), "{:.2f}, {:.0f}"),
    ("MiB of a daemon (PSS); of its run directory", "idle", ("pss_bytes", "rundir_bytes"), "{:.1f}; {:.1f} MiB"),
    ("MiB of the server (its JVM may have 256 for its heap)", "idle", ("server_bytes",), "{:.0f} MiB"),
    ("... MiB by which the hosts have made its heap grow", "idle", ("heap_bytes",), "{:.1f} MiB"),
    ("idle: znodes, watches", "idle", ("znodes", "watches"), "{:,.0f}, {:,.0f}"),
    ("hand-offs a second", "hand-offs", ("hand_offs_s",), "{:,.0f}"),
    ("a hand-off: packets to the server, and from it", "hand-offs", ("hand_off_in", "hand_off_out"), "{:.2f}, {:.2f}"),
    ("a hand-off: us of a core, daemons and server", "hand-offs", ("hand_off_daemon_us", "hand_off_server_us"), "{:.0f}, {:.0f}"),
    ("a hand-off: transactions, bytes of the log for them", "hand-offs", ("hand_off_transactions", "hand_off_log_bytes"), "{:.2f}, {:.0f}"),
    ("grants of a host: least, fair, most", "hand-offs", ("grants_least", "grants_fair", "grants_most"), "{:,.0f}, {:,.1f}, {:,.0f}"),
    ("ms of a wait: median, 99 %", "hand-offs", ("wait_p50_ms", "wait_p99_ms"), "{:,.0f}, {:,.0f}"),
    ("a host that begins to wait: packets in, znodes, watches", "questions", ("waiter_in", "waiter_znodes", "waiter_watches"),
     "{:.2f}, {:.2f}, {:.2f}"),
    ("`hosts`: s; packets to the server", "questions", ("hosts_s", "hosts_in"), "{:.3f}; {:,.0f}"),
    ("`who` of a lock that all hosts wait for: s; packets", "questions", ("who_s", "who_in"), "{:.3f}; {:,.0f}"),
    ("`ls --all`, a lock for each host: s; packets", "questions", ("ls_s", "ls_in"), "{:.3f}; {:,.0f}"),
    ("server away for about 0.4 T: s that it was away", "away for 0.4 T", ("away_s",), "{:.1f}"),
    ("... s until all are safe; locks lost; hosts that were warned", "away for 0.4 T", ("all_safe_s", "lost", "warned"),
     "{:.1f}; {:.0f}; {:.0f}"),
    ("server away for longer than T: s that it was away", "away for longer than T", ("away_s",), "{:.1f}"),
    ("... s until all are safe; locks lost", "away for longer than T", ("all_safe_s", "lost"), "{:.1f}; {:.0f}"),
    ("... s more until each host has a lock again", "away for longer than T", ("all_locked_s",), "{:.1f}"),
    ("its snapshot: bytes, znodes", "away for longer than T", ("snapshot_bytes", "snapshot_znodes"), "{:,.0f}, {:,.0f}"),
    ("rolling restart of all daemons: s; ms of each; locks lost", "restart of all daemons", ("took_s", "each_ms", "lost"),
     "{:.1f}; {:.0f}; {:.0f}"),
    ("... packets to the server, and from it, of each", "restart of all daemons", ("each_in", "each_out"), "{:.0f}, {:.0f}"),
    ("three servers: s until all hosts are safe", THREE, ("all_safe_s",), "{:.1f}"),
    ("... idle host: packets in, out a second; us of all servers", THREE, ("idle_in_s", "idle_out_s", "idle_server_us_s"),
     "{:.2f}, {:.2f}; {:.0f}"),
    ("... hand-offs a second; packets in, out of each", THREE, ("hand_offs_s", "hand_off_in", "hand_off_out"),
     "{:,.0f}; {:.2f}, {:.2f}"),
    ("rolling restart of three servers: s; longest without a leader", "restart of three servers",
     ("took_s", "longest_without_leader_s"), "{:.1f}; {:.1f} s"),
    ("... locks lost; hosts that were warned", "restart of three servers", ("lost", "warned"), "{:.0f}; {:.0f}"),
)


# What more hosts would cost: hosts, T in seconds. Bytes of a contender in a list (`bench.py --only crowd`), transactions from one
# snapshot of a server to the next (its snapCount: half of it to all of it).
CALCULATED = ((200, 15), (1000, 15), (10000, 15), (10000, 40))
LIST_BYTES, SNAP_COUNT = 62, 100000


def cell(run, section, keys, shape):
    figures = run["figures"].get(section, {})
    if not any(key in figures for key in keys):
        return "-"
    each = (figures.get(key, math.nan) / (2**20 if shape.endswith("MiB") else 1) for key in keys)
    return shape.format(*each).removesuffix(" MiB").replace("nan", "-")


def runs(directory):
    found = []
    for path in glob.glob(os.path.join(directory, "*.json")):
        with open(path) as f:
            found.append(json.load(f))
    return sorted(found, key=lambda run: run["hosts"])


def table(directory):
    columns = runs(directory)
    lines = [["", *(f"{run['hosts']:,} hosts" for run in columns)], ["---", *("--:" for _ in columns)]]
    lines += [["locks that they contend for", *(f"{run['locks']:,}" for run in columns)],
              ["T, ms", *(f"{run['timeout_ms']:,}" for run in columns)]]
    lines += [[head, *(cell(run, *row) for run in columns)] for head, *row in ROWS]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = [f"{run['hosts']:,} hosts: {run['at']}, {run['version']}, {run['seconds']:g} s of load, {run['machine']}"
             + (" - FAILED" if run["failures"] else "") for run in columns]
    return text + "\n\n" + "\n".join(notes)


def calculated(run):
    """What an ensemble of three carries, from the figures of that run."""
    one, idle, three = run["figures"]["away for longer than T"], run["figures"]["idle"], run["figures"][THREE]
    waits = run["figures"]["questions"]["waiter_watches"]
    each = one["snapshot_znodes"] / run["hosts"], one["snapshot_bytes"] / one["snapshot_znodes"]
    log_bytes = idle["idle_log_bytes_s"] / idle["idle_transactions_s"]
    columns = []
    for hosts, timeout_s in CALCULATED:
        writes_s = 8 * hosts / timeout_s
        columns.append((
            f"{hosts:,}, T = {timeout_s} s", f"{writes_s:,.0f}", f"{writes_s * log_bytes / 1e3:,.0f}, {writes_s * log_bytes * 0.0864:,.0f}",
            f"{SNAP_COUNT / 2 / writes_s:,.0f} to {SNAP_COUNT / writes_s:,.0f}", f"{hosts * each[0]:,.0f}",
            f"{hosts * each[0] * each[1] / 1e6:,.1f}", f"{hosts * (1 + waits):,.0f}",
            f"{writes_s * three['idle_server_us_s'] / three['idle_in_s'] / 1e6:,.2f}",
            f"{hosts * LIST_BYTES / 1e3:,.0f} KB, {hosts ** 2 * LIST_BYTES / 1e6:,.0f} MB"))
    heads = ("", "transactions a second, idle", "KB of log a second; MB a day, of each server", "s from a snapshot to the next",
             "znodes: each host has a lock and waits for another", "MB of a snapshot with these", "watches with these",
             "cores of all three servers, idle", "one lock that all want: a list; all lists")
    lines = list(zip(heads, *columns))
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], ["---", *("--:" for _ in columns)], *lines[1:]])


def both(directory):
    """The table, and what follows from the run with the most hosts that has all that is needed."""
    whole = [run for run in runs(directory) if THREE in run["figures"] and "questions" in run["figures"]]
    return table(directory) + (f"\n\nCalculated from {whole[-1]['hosts']:,} hosts:\n\n{calculated(whole[-1])}" if whole else "")


if __name__ == "__main__":
    print(both(sys.argv[1]))
