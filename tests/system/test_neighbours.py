# SPDX-License-Identifier: Apache-2.0
"""What one user's attack costs another user: none of its requests, and none of its locks. How long it waits meanwhile is for
the benchmark to say: here nothing is asserted about time. LOCKBROKER_NEIGHBOURS=1: with fifty processes, for longer."""

import json
import os
import subprocess

import pytest

import harness

LONG = bool(os.environ.get("LOCKBROKER_NEIGHBOURS"))
PROCESSES, CONNECTIONS, SECONDS = ("50", "8900", "10") if LONG else ("4", "400", "0.5")

pytestmark = [
    pytest.mark.plain_only("it is about users, and the attackers take all the time that there is"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two other users"),
]


def attack(daemon, what):
    done = subprocess.run([harness.program("tests/bench-neighbours"), daemon.socket, what, PROCESSES, CONNECTIONS, SECONDS],
                          capture_output=True, text=True, timeout=10 * harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", ["spin", "idle", "held", "names", "observers", "locks", "queue", "clients", "deadlock"])
def test_no_request_of_another_user_is_refused_and_no_lock_lost(daemons, what):
    d = daemons(daemon__socket_mode="0666")
    for directory in (os.environ["LOCKBROKER_RUN"], os.path.dirname(d.socket)):
        os.chmod(directory, os.stat(directory).st_mode | 0o011)
    found = attack(d, what)
    assert found["pairs"] > 0 and found["refused"] == found["lost"] == 0
    harness.wait_until(lambda: len(d.client().call("CLIENT", "LIST").splitlines()) == 1, "the attackers' end")
