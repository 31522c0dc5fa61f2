# SPDX-License-Identifier: Apache-2.0
"""What one account's attack costs another one: none of its requests, and none of its locks. How long it waits meanwhile is for
the benchmark to say: here nothing is asserted about time. LOCKBROKER_NEIGHBOURS=1: with fifty processes, for longer."""

import os
import re
import sys

import pytest

import cgroup
import harness

sys.path.insert(0, os.path.join(harness.SOURCE, "tests", "bench"))

import neighbours  # noqa: E402

LONG = bool(os.environ.get("LOCKBROKER_NEIGHBOURS"))
PROCESSES, CONNECTIONS, SECONDS = (50, 8900, 10) if LONG else (4, 400, 0.3)

pytestmark = [
    pytest.mark.plain_only("it is about users, and the attackers take all the time that there is"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two other users"),
]


SLOW = pytest.mark.release_only("the attacks are those of users; whose a connection is, unit tests and test_accounts.py show")


@pytest.mark.parametrize("who", ["users", pytest.param("app", marks=SLOW), pytest.param("units", marks=SLOW)])
def test_no_request_of_another_account_is_refused_and_no_lock_lost(daemons, who):
    """Each attack, on one daemon: what one leaves behind is not there for the next one."""
    if who == "units" and not cgroup.hierarchy():
        pytest.skip("no cgroup can be made here")
    d = daemons(daemon__socket_mode="0666", limits={"user_share": neighbours.SHARES[who]})
    for directory in (os.environ["LOCKBROKER_RUN"], os.path.dirname(d.socket)):
        os.chmod(directory, os.stat(directory).st_mode | 0o011)
    for what in neighbours.ATTACKS:
        found = neighbours.attack(d.socket, what, who, PROCESSES, CONNECTIONS, SECONDS)
        assert found["pairs"] > 0 and found["lost"] == 0, what
        assert found["refused"] == 0 or (LONG and who == "app"), what  # one user may use up all that it may use
        if what != neighbours.SPIN:
            assert found["attackers_asked"] or found["attackers_connected"], what
        harness.wait_until(lambda: len(d.client(operator=True).call("CLIENT", "LIST").splitlines()) == 1, "the attackers' end")


def anonymous_mb(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^RssAnon:\s+(\d+) kB", f.read(), re.M).group(1)) / 1024


def test_memory_is_given_back_within_seconds(daemons, clients):
    """All but a fifth more than before, and what lies in pages with something that is still in use: the names that are
    remembered (1,024) and what libevent keeps for each descriptor."""
    d = daemons()
    bystander = clients(d)
    assert bystander.call("LOCK", "mine") > 0
    before = anonymous_mb(d.pid)
    many = [clients(d) for _ in range(20)]
    for i, c in enumerate(many):
        c.send_raw(b"".join(harness.encode("ENQUEUE", f"{i}/{n:0500}") for n in range(1000)))
    for c in many:
        assert all(c.reply() for _ in range(1000))
    most = anonymous_mb(d.pid)
    assert most > before + 40
    for c in many:
        c.close()
    harness.wait_until(lambda: anonymous_mb(d.pid) <= 1.2 * before + 16, "the memory to be the kernel's")
    assert bystander.call("VALID", "mine") > 0
