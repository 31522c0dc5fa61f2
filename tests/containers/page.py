# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/CONTAINERS.md."""

import re

import harness

SERVERS = "zk1:2181,zk2:2181,zk3:2181"


def blocks(page="docs/CONTAINERS.md"):
    """Those that are to be run: each as it stands there."""
    found = re.findall(r"^(?:<!-- not run: ([^\n]+) -->\n)?```sh\n(.*?)^```", harness.read_source(page), re.M | re.S)
    return [text for why, text in found if not why]


def block(beginning):
    """The one that begins so."""
    (text,) = [text for text in blocks() if text.startswith(beginning)]
    return text
