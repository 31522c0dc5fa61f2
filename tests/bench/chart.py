#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A column of the main table of README.md beside this file, as a chart of text.

chart.py [COLUMN]

The null broker's bar is UNIT long, the others are as long as their figures say; a bar that would be longer than LONGEST
is cut, and ends in >.
"""

import os
import re
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")
UNIT, LONGEST = 40, 68


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


def main():
    column = sys.argv[1] if len(sys.argv) > 1 else "32, one lock"
    heads = figures()[0]
    if column not in heads:
        sys.exit(f"chart.py: no column is called {column!r}; there are: {'; '.join(heads)}")
    print(chart(column))


if __name__ == "__main__":
    main()
