#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A column of the main table of README.md beside this file, as a chart of text; or a row of its aims, with several ratios.

chart.py [COLUMN | delegation | hosts]

The null broker's bar is UNIT long, the others are as long as their figures say; a bar that would be longer than LONGEST
is cut, and ends in >.
"""

import os
import re
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")
UNIT, LONGEST = 40, 68


# A row of the aims by its beginning, what the ratios are to, and what each of them is of.
RATIOS = {
    "delegation": ("`locks.delegation = 1`", "flock(2)", ("lockbroker, 1 process", "32 processes with a lock each")),
    "hosts": ("hand-off between hosts / recipe's", "ZooKeeper recipe in C", ("lockbroker, 2 hosts", "lockbroker, 4 hosts", "lockbroker, 8 hosts")),
}


def ratios(begin):
    """The first figures in the last cell of that row."""
    with open(TABLE, encoding="utf-8") as f:
        (row,) = re.findall(rf"^\| {re.escape(begin)}.*\|$", f.read(), re.M)
    return [float(figure) for figure in re.match(r"[\d., ]+[\d]", row.split("|")[-2].strip()).group(0).split(", ")]


def figures():
    """The heads of the columns, and (row, pairs a second of each column) for each row; the null broker is the first."""
    with open(TABLE, encoding="utf-8") as f:
        section = f.read().split("\n## The main table\n")[1]
    lines = re.search(r"(?:^\|.*\n)+", section, re.M).group(0).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return cells[0][1:-1], [(row[0], [float(c.split()[0].replace(",", "")) for c in row[1:-1]]) for row in cells[2:]]


def bar(ratio):
    length = round(UNIT * ratio)
    return "#" * (LONGEST - 1) + ">" if length > LONGEST else "#" * max(length, 1)


def chart(column):
    heads, rows = figures()
    values = [(row, values[heads.index(column)]) for row, values in rows]
    wide = max(len(row) for row, _ in rows)
    return "\n".join(f"{row:{wide}} {value:10,.0f} {bar(value / values[0][1])}" for row, value in values)


def chart_of_ratios(begin, base, labels):
    rows = [(base, 1.0), *zip(labels, ratios(begin), strict=True)]
    wide = max(len(label) for label, _ in rows)
    unit = UNIT / max(value for _, value in rows)
    return "\n".join(f"{label:{wide}} {value:5.2f} {'#' * round(unit * value)}" for label, value in rows)


def main():
    column = sys.argv[1] if len(sys.argv) > 1 else "32, one lock"
    if column in RATIOS:
        print(chart_of_ratios(*RATIOS[column]))
        return
    heads = figures()[0]
    if column not in heads:
        sys.exit(f"chart.py: no column is called {column!r}; there are: {'; '.join(heads)}")
    print(chart(column))


if __name__ == "__main__":
    main()
