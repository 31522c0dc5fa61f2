# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed at the one system call that matters: strace kills them when they begin it."""

import os
import signal
import socket
import subprocess

import pytest

import fakekeeper
import harness
from saved import Saved, wait_kept

OPERATORS = True  # see clients of conftest.py


@pytest.fixture
def killed_at():
    """The process, and those that it starts, are killed at their first call of that."""
    def attach(pid, call):
        return harness.spawn(["strace", "-f", "-p", str(pid), "-o", "/dev/null", "-e", f"trace={call}",
                              "-e", f"inject={call}:signal=SIGKILL:when=1"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ready(tracer):
        said = tracer.stderr.readline().decode()
        if "attached" not in said:
            pytest.skip(f"nothing can be traced here: {said.strip()}")
        return tracer

    def end(tracer):
        tracer.terminate()
        tracer.communicate()

    yield from harness.each_ends(attach, end, ready)


def test_a_new_process_that_is_killed_before_its_file_counts_leaves_that_of_the_old_one(broker, clients, killed_at):
    """After COMMIT: the old process never serves again, and what it wrote is true, for nothing was changed since."""
    c, waits = clients(broker), clients(broker)
    token = c.call("LOCK", "a")
    wait_kept(Saved(broker), c)
    waits.send("LOCK", "a", "WAIT", 60000)
    harness.wait_queued(broker, "a", 1)
    old = broker.pid
    killed_at(old, "renameat")
    broker.signal(signal.SIGUSR2)
    broker.await_another(old)
    harness.wait_until(lambda: "goes on after a crash" in broker.log(), "the process after both")
    broker.await_another(old)
    assert c.call("VALID", "a", "TOKEN", token) > 0
    assert waits.ended()
    assert clients(broker).call("LOCK", "a", "WAIT", 200) is None
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0
    assert clients(broker).call("LOCK", "a") > token


@pytest.fixture(params=["standalone", "zookeeper"])
def killed_holder(request, launch, root, locked):
    """A service of which the process was killed; a client of it that goes on; and its token."""
    zk = () if request.param == "standalone" else (request.getfixturevalue("zk"), root)
    d = launch(fakekeeper.Kept(*zk, wait=False))
    c, token = locked(d)
    d.wait_kept(c)
    d.kill()
    return d, c, token


def under_strace(d, call, inject):
    """What starts next meets that at that call; `d.under = ()` ends it."""
    d.under = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{inject}"]


@pytest.mark.parametrize("call", ["renameat", "shutdown"], ids=["before its file counts", "before strangers are closed"])
def test_who_goes_on_after_a_kill_and_is_killed_at_once(killed_holder, call, clients):
    """Its file begins to count with its name, and then the keeper's copies of what it did not take are closed."""
    d, c, token = killed_holder
    when = 2 if call == "renameat" else 1  # the page has its name before
    under_strace(d, call, f"signal=SIGKILL:when={when}")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        d.spawn(crashes=1, back=[*d.kept.items(), (12345, ours.fileno())])
        assert d.process.wait(harness.PATIENCE) in (-signal.SIGKILL, 128 + signal.SIGKILL), d.log()
    d.under = ()
    assert os.path.exists(os.path.join(d.dir, "saved.new")) == (call == "renameat")
    d.crash(crashes=2)
    assert c.call("VALID", "a", "TOKEN", token) > 0
    assert clients(d).call("LOCK", "a", "WAIT", 200) is None
    assert c.call("UNLOCK", "a", "TOKEN", token) == 0


def test_who_goes_on_after_a_kill_and_cannot_give_its_file_its_name_serves(killed_holder, clients):
    """Nobody may go by the earlier file any longer, which is not written: another kill costs the locks, and that is said."""
    d, c, token = killed_holder
    under_strace(d, "renameat", "error=EIO:when=2")  # the page has its name before
    d.spawn(crashes=1)
    d.wait_ready()
    d.under = ()
    assert "/saved cannot be written: Input/output error; if this process is killed, the next one will know nothing" in d.log()
    assert c.call("VALID", "a", "TOKEN", token) > 0
    assert clients(d).call("LOCK", "a", "WAIT", 200) is None
    os.kill(int(d.info("server")["process_id"]), signal.SIGKILL)
    d.process.wait(harness.PATIENCE)
    d.crash(crashes=2)
    assert "it is corrupt" in d.log() and c.ended()
    assert isinstance(clients(d).call("LOCK", "b", "WAIT", 30000), int)
