# SPDX-License-Identifier: Apache-2.0
"""The figures of a run: kept, and told as text, CSV and a plot."""

import csv
import html
import math
import statistics


class Results:
    """Every figure that was measured, by (section, case, row, metric), in the order of measuring; and its median."""

    def __init__(self):
        self.figures = {}
        self.notes = []  # what was left out or failed, in words

    def add(self, section, case, row, figures):
        for metric, value in figures.items():
            if isinstance(value, (int, float)):
                self.figures.setdefault((section, case, row, metric), []).append(float(value))

    def get(self, section, case, row, metric):
        """The median, or None."""
        found = self.figures.get((section, case, row, metric))
        return statistics.median(found) if found else None

    def spread(self, section, case, row, metric):
        """Half of the distance from the least to the most, as a part of the median; None of a single figure."""
        found = self.figures.get((section, case, row, metric), [])
        middle = self.get(section, case, row, metric)
        return (max(found) - min(found)) / 2 / middle if len(found) > 1 and middle else None

    def rows(self, section):
        return list(dict.fromkeys(row for s, _, row, _ in self.figures if s == section))

    def write_csv(self, path, facts):
        with open(path, "w", newline="") as f:
            for fact in facts:
                f.write(f"# {fact}\n")
            out = csv.writer(f)
            out.writerow(["section", "case", "row", "metric", "median", "least", "most", "rounds"])
            for key, values in self.figures.items():
                out.writerow([*key, f"{statistics.median(values):.6g}", f"{min(values):.6g}", f"{max(values):.6g}",
                              len(values)])


def number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def table(head, lines, left=1):
    """Columns as wide as what is in them: the first `left` to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in
                               enumerate(zip(line, widths))).rstrip() for line in [head, *lines])


def main_table(results, section, columns, base):
    """Pairs per second, their spread, and the ratio to the row `base`."""
    lines = []
    for row in results.rows(section):
        line = [row]
        for column in columns:
            value, ground = (results.get(section, column, r, "pairs_s") for r in (row, base))
            spread = results.spread(section, column, row, "pairs_s")
            line += ([number(value), "" if spread is None else f"±{spread * 100:.0f}%",
                      f"{value / ground:.2f}" if ground else ""] if value is not None else ["-", "", ""])
        lines.append(line)
    return table(["pairs/s, spread, ratio to the null broker", *[w for c in columns for w in (c, "", "")]], lines)


def wait_table(results, section, columns):
    """How long the waiting took, and how often another process got the lock."""
    lines = []
    for row in results.rows(section):
        line = [row]
        for column in columns:
            line += [number(results.get(section, column, row, m)) for m in ("p50_us", "p99_us", "p999_us", "hand_offs_s")]
        lines.append(line)
    return table(["us: median, 99 %, 99.9 %; hand-offs/s",
                  *[w for c in columns for w in (c, "99%", "99.9%", "h-offs")]], lines)


def ratio(results, section, column, row, base, metric="pairs_s"):
    a, b = (results.get(section, column, r, metric) for r in (row, base))
    return a / b if a is not None and b else None


def ratio_table(results, section, columns, ours):
    """How many times the pairs of each other row, and of its hand-offs, where there are any: what polls or barges has
    more pairs than hand-offs."""
    lines = []
    for row in results.rows(section):
        if row == ours:
            continue
        line = [row]
        for column in columns:
            line += [number(ratio(results, section, column, ours, row, m), 2) for m in ("pairs_s", "hand_offs_s")]
        lines.append(line)
    return table([f"{ours}: times the pairs/s and the hand-offs/s of", *[w for c in columns for w in (c, "h-offs")]], lines)


def cost_table(results, section, columns):
    lines = [[row, *[number(results.get(section, c, row, "cpu_us"), 1) for c in columns]] for row in results.rows(section)]
    return table(["CPU us of the service for a pair", *columns], lines)


def markdown(results, section, columns, base, facts, command):
    """The main table in short, to be shown elsewhere."""
    last = columns[-2]
    lines = ["| pairs/s (ratio to the null broker) | " + " | ".join(columns) + f" | p99 / p50, {last} |",
             "| --- |" + " --: |" * (len(columns) + 1)]
    for row in results.rows(section):
        cells = []
        for column in columns:
            part = ratio(results, section, column, row, base)
            cells.append(number(results.get(section, column, row, "pairs_s")) + (f" ({part:.2f})" if part else ""))
        p50, p99 = (results.get(section, last, row, m) for m in ("p50_us", "p99_us"))
        lines.append(f"| {row} | " + " | ".join(cells) + f" | {number(p99 / p50, 1) if p50 and p99 else '-'} |")
    return "\n".join([f"`{command}`: {facts[0]}; {facts[1]}; {facts[2]}.", "", *lines, ""])


def section_table(results, section, shown):
    """A line for each case and row; `shown` is metric -> head, digits."""
    pairs = dict.fromkeys((case, row) for s, case, row, _ in results.figures if s == section)
    shown = {m: v for m, v in shown.items() if any(results.get(section, *p, m) is not None for p in pairs)}
    lines = [[case, row, *[number(results.get(section, case, row, m), digits) for m, (_, digits) in shown.items()]]
             for case, row in pairs]
    return table(["", "", *[head for head, _ in shown.values()]], lines, left=2)


# ---- the plot ----

BAR, GAP, LEFT, WIDTH, PANEL_GAP, TOP = 14, 4, 250, 620, 46, 58
COLOURS = {"lockbroker": "#1f6f8b", "null": "#999999"}


def colour(row):
    return next((c for word, c in COLOURS.items() if row.startswith(word)), "#d08c3f")


def panel(results, section, column, one_lock, y):
    metric, word = ("hand_offs_s", "hand-offs") if one_lock else ("pairs_s", "pairs")
    rows = [(r, results.get(section, column, r, metric)) for r in results.rows(section)]
    rows = [(r, v) for r, v in rows if v]
    if not rows:
        return [], y
    top = max(v for _, v in rows)
    low = 10 ** math.floor(math.log10(min(v for _, v in rows)))
    out = [f'<text x="10" y="{y}" font-weight="bold">{html.escape(column)}: {word}</text>']
    y += 8
    for row, value in rows:
        length = WIDTH * (math.log10(value / low) / math.log10(top / low)) if top > low else WIDTH
        out.append(f'<text x="{LEFT - 8}" y="{y + BAR - 3}" text-anchor="end">{html.escape(row)}</text>'
                   f'<rect x="{LEFT}" y="{y}" width="{max(length, 1):.1f}" height="{BAR}" fill="{colour(row)}"/>'
                   f'<text x="{LEFT + max(length, 1) + 6:.1f}" y="{y + BAR - 3}">{number(value)}</text>')
        y += BAR + GAP
    return out, y + PANEL_GAP - GAP


def write_svg(results, path, section, columns, facts):
    """A panel for each column; where all want one lock, of hand-offs to another process: pairs flatter who barges."""
    y, body = TOP, []
    for column, one_lock in columns.items():
        some, y = panel(results, section, column, one_lock, y)
        body += some
    with open(path, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 100}" height="{y}" '
                'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
                '<text x="10" y="20" font-size="15">Pairs of lock and unlock, and hand-offs to another process, per second (logarithmic)</text>\n'
                f'<text x="10" y="36" fill="#555">{html.escape(facts[0])}</text>\n' + "\n".join(body) + "\n</svg>\n")
