# SPDX-License-Identifier: Apache-2.0
"""The runs of `make fleet` that are recorded, as a table in Markdown: a column for each number of hosts."""

import glob
import json
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
    ("a host that waits for a lock: packets in, znodes, watches", "questions", ("waiter_in", "waiter_znodes", "waiter_watches"),
     "{:.2f}, {:.2f}, {:.2f}"),
    ("s of `hosts`", "questions", ("hosts_s",), "{:.3f}"),
    ("s of `ls --all`, with a lock for each host", "questions", ("ls_all_s",), "{:.3f}"),
    ("s of `who`, of a lock that all hosts wait for", "questions", ("who_s",), "{:.3f}"),
    ("server away for about 0.4 T: s that it was away", "away for 0.4 T", ("away_s",), "{:.1f}"),
    ("... s until all are safe; locks lost; hosts that were warned", "away for 0.4 T", ("all_safe_s", "lost", "warned"),
     "{:.1f}; {:.0f}; {:.0f}"),
    ("server away for longer than T: s that it was away", "away for longer than T", ("away_s",), "{:.1f}"),
    ("... s until all are safe; locks lost", "away for longer than T", ("all_safe_s", "lost"), "{:.1f}; {:.0f}"),
    ("... s more until each host has a lock again", "away for longer than T", ("all_locked_s",), "{:.1f}"),
    ("its snapshot: bytes, znodes", "away for longer than T", ("snapshot_bytes", "snapshot_znodes"), "{:,.0f}, {:,.0f}"),
    ("rolling restart of all daemons: s; ms of each", "restart of all daemons", ("took_s", "each_ms"), "{:.1f}; {:.0f}"),
    ("... packets in of each; locks lost", "restart of all daemons", ("each_in", "lost"), "{:.0f}; {:.0f}"),
    ("three servers: s until all hosts are safe", THREE, ("all_safe_s",), "{:.1f}"),
    ("... idle host: packets in, out a second; us of all servers", THREE, ("idle_in_s", "idle_out_s", "idle_server_us_s"),
     "{:.2f}, {:.2f}; {:.0f}"),
    ("... hand-offs a second; packets in, out of each", THREE, ("hand_offs_s", "hand_off_in", "hand_off_out"),
     "{:,.0f}; {:.2f}, {:.2f}"),
    ("rolling restart of three servers: s; longest without a leader", "restart of three servers",
     ("took_s", "longest_without_leader_s"), "{:.1f}; {:.1f} s"),
    ("... locks lost; hosts that were warned", "restart of three servers", ("lost", "warned"), "{:.0f}; {:.0f}"),
)


def cell(run, section, keys, shape):
    figures = run["figures"].get(section, {})
    if any(key not in figures for key in keys):
        return "-"
    return shape.format(*(figures[key] / (2**20 if shape.endswith("MiB") else 1) for key in keys)).removesuffix(" MiB")


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


if __name__ == "__main__":
    print(table(sys.argv[1]))
