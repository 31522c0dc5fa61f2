# SPDX-License-Identifier: Apache-2.0
"""The Python library where the grant and its loss arrive in one read."""

import os
import socket

import pytest

import harness
from fakebroker import HELLO
from parallel import in_thread
from python_library import lockbroker

LOST = b">4\r\n$4\r\nlost\r\n$1\r\na\r\n:7\r\n$6\r\nforced\r\n"


@pytest.fixture
def hurried():
    """A broker that answers a LOCK, and takes the lock away in the same write; its socket."""
    path = os.path.join(harness.fast_tmp("lockbroker."), "socket")
    listener = socket.create_server(path, family=socket.AF_UNIX)

    def serve():
        served, _ = listener.accept()
        with served:
            said = b""
            while b"LOCK" not in said:
                said += served.recv(4096)
            served.sendall(HELLO + b"+OK\r\n:7\r\n" + LOST)
            while served.recv(4096):
                pass

    served = in_thread(serve)
    yield path
    listener.close()
    served()


def test_the_loss_is_not_overlooked(hurried):
    with pytest.raises(lockbroker.Lost, match="The grant of the lock a is void .forced."):
        lockbroker.lock("a", socket=hurried, lease=3600).acquire()
