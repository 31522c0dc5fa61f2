# SPDX-License-Identifier: Apache-2.0
"""The README's tables of features: that every test named there exists, and that they are whole."""

import glob
import os
import re

import harness

WORDS = {"yes", "no", "partly", "by hand", "TTL", "–"}


def section():
    return re.search(r"^## What it can do, and others\n(.*?)^## ", harness.read_source("README.md"), re.M | re.S).group(1)


def tables():
    """Each as a list of rows, the head first, without the line below it."""
    blocks = re.findall(r"(?:^\|.*\n)+", section(), re.M)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
             if not re.fullmatch(r"[| -]+", line)] for block in blocks]


def path_of(name):
    """The one file of that name below tests/."""
    (path,) = glob.glob(os.path.join(harness.SOURCE, "tests", "*", name))
    return os.path.relpath(path, harness.SOURCE)


def test_every_feature_has_a_test_that_exists():
    ours = tables()[0][1:]
    assert len(ours) > 30
    assert not [feature for feature, test in ours if not re.fullmatch(r"`test_\w+\.(py|c)::\w+`", test)]
    named = re.findall(r"`(test_\w+\.\w+)::(\w+)`", section())
    assert len(named) >= len(ours)
    assert not [test for file, test in named if not harness.names_a_test(f"{path_of(file)}::{test}")]


def test_the_comparison_is_whole():
    _, services, others = tables()
    assert [row[0] for row in services] == [row[0] for row in others]
    for table in (services, others):
        assert not [row for row in table if len(row) != len(table[0])]
        assert not [cell for row in table[1:] for cell in row[1:] if cell not in WORDS]
