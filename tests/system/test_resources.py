# SPDX-License-Identifier: Apache-2.0
"""What a machine may run out of, or have wrong, beside ZooKeeper: memory, room in the rundir, the time of day. Descriptors are
test_turns.py's, room in the statedir test_directories.py's."""

import contextlib
import os
import re
import resource
import subprocess
import time

import pytest

import cgroup
import harness
from library import compile_shim
from saved import Saved, wait_kept
from test_directories import Within, directory, full  # noqa: F401 (directory is a fixture)


# ---- memory ----


def bytes_mapped(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[0]) * resource.getpagesize()


@pytest.mark.plain_only("sanitizers reserve terabytes of addresses")
def test_out_of_memory_is_said_and_costs_what_a_kill_does(broker, clients):
    c, old = clients(broker), broker.pid
    token = c.call("LOCK", "a")
    wait_kept(Saved(broker), c)
    resource.prlimit(old, resource.RLIMIT_AS, (bytes_mapped(old),) * 2)
    greedy = clients(broker, 2)
    with pytest.raises((harness.Closed, OSError)):
        for i in range(1 << 20):
            greedy.call("LOCK", f"{i} {'x' * 400}", "DATA", "x" * 400)
    broker.await_another(old)
    assert "error: out of memory: this process ends, as if it was killed" in broker.log()
    assert re.search(rf"the worker \(process {old}\) was killed by signal (6|11) ", broker.log())
    # ZooKeeper's library may lack memory first, and whoever is told of the session at that moment has something under way.
    if "session in jeopardy" not in broker.log():
        assert c.call("VALID", "a", "TOKEN", token) > 0 and c.call("UNLOCK", "a", "TOKEN", token) == 0


class Limited:
    """A daemon in a control group of its own, whose memory can be limited."""

    def __init__(self, **conf):
        self.group = cgroup.Memory("test")
        self.limit = self.group.limit
        with self.group.inside():
            self.daemon = harness.Daemon(**conf)

    def close(self):
        self.daemon.end()
        harness.wait_until(self.group.is_empty, "the processes of the group to end")
        self.group.remove()


@pytest.mark.plain_only("it is about how much memory is used")
@pytest.mark.skipif(not cgroup.memory(), reason="no control group of memory can be made here")
def test_a_limit_of_memory_is_warned_of_before_it_is_reached_and_named_as_the_cause(clients):
    with contextlib.closing(Limited()) as limited:
        d, old = limited.daemon, limited.daemon.pid
        greedy = clients(d, 2)
        for i in range(9000):
            greedy.call("LOCK", f"{i} {'x' * 400}", "DATA", "x" * 400)
        limited.limit(limited.group.used()[0] * 100 // 95)
        harness.wait_until(lambda: all(greedy.call("PING") for _ in range(64)) and "event=memory_short" in d.log(),
                           "the warning")
        who = rf"user {os.getuid()}.* \(up to \d+ MiB: 1 connections, 9000 names\)"
        assert re.search(rf"the service uses \d+ of the \d+ MiB that its control group may have; most is charged to {who}: raise "
                         r"MemoryMax= of the unit", d.log())
        with pytest.raises((harness.Closed, OSError)):
            for i in range(1 << 20):
                greedy.call("LOCK", f"more {i} {'x' * 400}", "DATA", "x" * 400)
        limited.limit(1 << 30)
        d.await_another(old)
        assert f"the worker (process {old}) was killed by signal 9 " in d.log()
        assert "because it had no memory left: raise MemoryMax= of the unit" in d.log()
        assert re.search(rf"most was charged to user {os.getuid()}.* \(up to \d+ MiB: 1 connections, \d+ names\)  "
                         rf'event=out_of_memory most="user {os.getuid()}', d.log())


# ---- the time of day ----

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* So many seconds the time of day is wrong, as the file says that CLOCK_SHIFT names: */
static long shift(void)
{
	char text[32] = "";
	int fd = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	int rc;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	rc = real(id, ts);
	if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += shift();
	return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;
	int rc = clock_gettime(CLOCK_REALTIME, &ts);

	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return rc;
}

time_t time(time_t *ret)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (ret)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}
"""
DAY_S = 86400


@pytest.fixture
def clock(tmp_path):
    """set(seconds): by so much the time of day is wrong from now on, for a daemon with that environment."""
    shift = tmp_path / "shift"
    shift.write_text("0")

    def set_clock(seconds):
        new = tmp_path / "shift.new"
        new.write_text(str(seconds))
        new.rename(shift)

    set_clock.env = {"LD_PRELOAD": compile_shim(SHIM, tmp_path), "CLOCK_SHIFT": str(shift)}
    return set_clock


@pytest.mark.plain_only("a sanitizer wants to be the first library")
def test_the_time_of_day_may_be_set_and_nothing_is_lost_or_ends_early(own_zk, daemons, clients, clock):
    d = daemons(own_zk(), env=clock.env)
    c, waiter = clients(d), clients(d)
    token = c.call("LOCK", "a")
    for wrong in (DAY_S, -DAY_S * 3650, DAY_S * 3650, 0):
        began = time.monotonic()
        assert isinstance(c.call("LOCK", f"leased {wrong}", "LEASE", 700), int)
        waiter.send("LOCK", "a", "WAIT", 600)
        clock(wrong)
        assert waiter.reply() is None
        assert time.monotonic() - began >= 0.6
        assert c.push()[:2] == ["lost", f"leased {wrong}"]
        assert time.monotonic() - began >= 0.7
    assert c.call("VALID", "a", "TOKEN", token) > 0 and not c.pushes
    assert int(d.info()["jeopardies_total"]) == int(d.info()["sessions_lost_total"]) == 0
    assert c.call("UNLOCK", "a") == 0


def test_the_shim_sets_the_time_of_day(clock):
    clock(-DAY_S)
    told = subprocess.run(["date", "+%s"], env=os.environ | clock.env, capture_output=True, text=True, check=True)
    assert abs(time.time() - DAY_S - int(told.stdout)) < 3600


# ---- room in the rundir ----

LOCKS = 6000  # for the first megabyte of the ledger these are too many


def test_without_room_in_the_rundir_it_serves_and_says_what_a_kill_would_cost(directory, daemons, clients):  # noqa: F811
    d = daemons(kind=Within, start=False, daemon__rundir=directory, limits={"grants_per_client": 100000})
    d.before = full(directory, "16m")
    d.options["daemon.operator_socket"] = os.path.join(d.dir, "operator.sock")  # the rundir is seen by the daemon alone
    d.start()
    inside = f"/proc/{d.process.pid}/root{directory}"
    filler = os.path.join(inside, "filler")
    with open(filler, "wb", buffering=0) as f, pytest.raises(OSError):
        while f.write(b"x" * 4096):
            pass
    c = clients(d, 2)
    harness.lock_many(c, [f"{i} {'x' * 200}" for i in range(LOCKS)])
    sentence = "the file saved cannot become larger: No space left on device; if the daemon is killed now, all locks are lost"
    harness.wait_until(lambda: c.call("PING") == "PONG" and sentence in d.log(), "the log")
    with d.client(operator=True) as operator:
        refused = operator.call("RESTART")
        assert "daemon.rundir has no room for a new one" in refused, refused
        os.unlink(filler)
        d.hand_over(operator)
    assert c.call("VALID", f"0 {'x' * 200}") > 0
