# SPDX-License-Identifier: Apache-2.0
"""Another user than root, who runs these tests: nobody else can be two users."""

import contextlib
import os

OTHER_USER = 65534


@contextlib.contextmanager
def as_other_user():
    """What connects meanwhile belongs to that user."""
    os.seteuid(OTHER_USER)
    try:
        yield
    finally:
        os.seteuid(0)


def let_in(daemon):
    """That user comes to the socket, if its mode is 0666."""
    os.chmod(daemon.dir, 0o755)
    os.chmod(os.path.dirname(daemon.dir), 0o711)
