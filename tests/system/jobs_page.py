# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/JOBS.md, as they stand there."""

import re

import harness


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", harness.read_source("docs/JOBS.md"), re.M | re.S)


def units():
    """The unit files, by their paths."""
    return {re.match(r"# (\S+)\n", text)[1]: text for text in blocks("ini")}
