# SPDX-License-Identifier: Apache-2.0
"""The Python library where the grant and its loss arrive in one read."""

import os
import socket
import threading

import pytest

import harness
from python_library import lockbroker

GREETING = b"%1\r\n+server\r\n+lockbroker\r\n"
LOST = b">4\r\n$4\r\nlost\r\n$1\r\na\r\n:7\r\n$6\r\nforced\r\n"


@pytest.fixture
def hurried():
    """A broker that answers a LOCK, and takes the lock away in the same write; its socket."""
    folder = harness.fast_tmp("lockbroker.")
    path = os.path.join(folder, "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve():
        served, _ = listener.accept()
        with served:
            said = b""
            while b"LOCK" not in said:
                said += served.recv(4096)
            served.sendall(GREETING + b"+OK\r\n:7\r\n" + LOST)
            while served.recv(4096):
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    yield path
    listener.close()
    thread.join(harness.PATIENCE)


def test_the_loss_is_not_overlooked(hurried):
    with pytest.raises(lockbroker.Lost, match="The grant of the lock a is void .forced."):
        lockbroker.lock("a", socket=hurried, lease=3600).acquire()
