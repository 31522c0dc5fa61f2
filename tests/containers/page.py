# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/CONTAINERS.md."""

import pages

SERVERS = "zk1:2181,zk2:2181,zk3:2181"


def blocks():
    """Each as it stands there."""
    return pages.claimed("docs/CONTAINERS.md", "tests/containers/test_engine.py", "sh")


def block(beginning):
    """The one that begins so."""
    (text,) = [text for text in blocks() if text.startswith(beginning)]
    return text
