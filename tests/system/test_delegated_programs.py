# SPDX-License-Identifier: Apache-2.0
"""Programs that take a lock in a loop, and keep it while nobody else asks: what happens to them and to the daemon meanwhile.

They count in shared memory, in no other way than under the lock: what two of them did at once would be counted once. What
they were told that they had lost may be missing, and nothing else."""

import mmap
import os
import signal
import struct
import subprocess

import pytest

import harness
from delegation import CONF
from library import compile_with_library
from saved import wait_process_kept

OFTEN, SOMETIMES = 3000, 20
NOW_AND_THEN = 20000  # us between two sections of a program that others disturb little
PAIRS = 100000  # of counter_test.c
LINE = struct.Struct("=QQQ")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    directory = tmp_path_factory.mktemp("counter")
    return compile_with_library(os.path.join(harness.HERE, "counter_test.c"), directory / "counter",
                                harness.program("liblockbroker.a"))


class Counters:
    """Programs that count in one file."""

    def __init__(self, program, directory):
        self.program, self.path = program, str(directory / "count")
        with open(self.path, "w+b") as f:
            f.truncate(mmap.PAGESIZE)
            self.memory = mmap.mmap(f.fileno(), mmap.PAGESIZE)
        self.running, self.started, self.killed, self.readers = {}, 0, 0, set()

    def start(self, daemon, pause_us=0):
        """Returns its number. `pause_us`: the pause between two sections; or "read": it only reads."""
        number = self.started
        self.started += 1
        self.running[number] = harness.spawn([self.program, "counted", self.path, str(number), str(pause_us)],
                                             stdin=subprocess.DEVNULL, env=os.environ | {"LOCKBROKER_SOCKET": daemon.socket})
        return number

    def start_reader(self, daemon):
        self.readers.add(self.started)
        return self.start(daemon, "read")

    def line(self, number):
        """What it has done, lost, and not got."""
        return LINE.unpack_from(self.memory, LINE.size * (number + 1))

    def goes_on(self, number, times=SOMETIMES):
        aim = self.line(number)[0] + times
        harness.wait_until(lambda: self.line(number)[0] >= aim, f"program {number} to go on", 3 * harness.PATIENCE)

    def kill(self, number):
        harness.end(self.running.pop(number), signal.SIGKILL)
        self.killed += 1

    def check(self):
        """Ends them. One that was killed may have counted without writing it down."""
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            assert process.wait(3 * harness.PATIENCE) == 0
        self.running = {}
        lines = [self.line(number) for number in range(self.started) if number not in self.readers]
        total, torn = struct.unpack_from("=QQ", self.memory)
        assert torn == 0
        done, lost = sum(line[0] for line in lines), sum(line[1] for line in lines)
        assert done - lost <= total <= done + self.killed, lines
        return lost

    def end(self):
        for process in self.running.values():
            harness.end(process, signal.SIGKILL)


@pytest.fixture
def counters(program, tmp_path):
    made = Counters(program, tmp_path)
    yield made
    made.end()


@pytest.fixture(params=["standalone", "zookeeper"])
def daemon(request, daemons, own_zk, root):
    if request.param == "standalone":
        return daemons(**CONF)
    return daemons(own_zk(tick_ms=harness.FAST_TICK_MS), root, **harness.FAST, **CONF)


def requests(daemon):
    return int(daemon.info("stats")["requests_total"])


def keep(daemon, counters, *numbers):
    """Until those programs say hardly anything any longer."""

    def are_silent():
        before, done = requests(daemon), sum(counters.line(number)[0] for number in numbers)
        for number in numbers:
            counters.goes_on(number, OFTEN)
        return requests(daemon) - before < (sum(counters.line(number)[0] for number in numbers) - done) / 100

    harness.wait_until(are_silent, f"the programs {numbers} to keep the lock")


def test_one_that_is_alone_says_nothing(daemon, counters):
    one = counters.start(daemon)
    keep(daemon, counters, one)
    assert counters.check() == 0


def take_turns(counters, one, other):
    counters.goes_on(one, OFTEN)
    counters.goes_on(other)
    counters.goes_on(one, OFTEN)
    assert counters.check() == 0


def test_another_asks_in_between(daemon, counters):
    take_turns(counters, counters.start(daemon), counters.start(daemon, NOW_AND_THEN))


def test_readers_that_are_alone_say_nothing(daemon, counters):
    keep(daemon, counters, *(counters.start_reader(daemon) for _ in range(3)))
    assert counters.check() == 0


def test_readers_see_no_half_of_what_is_written(daemon, counters):
    readers = [counters.start_reader(daemon) for _ in range(3)]
    writer = counters.start(daemon, NOW_AND_THEN)
    for reader in readers:
        counters.goes_on(reader, OFTEN)
    counters.goes_on(writer)
    counters.kill(readers[0])
    counters.goes_on(writer)
    assert counters.check() == 0


def test_readers_over_an_upgrade_and_a_crash_of_the_daemon(daemon, counters):
    harness.inherit_orphans()
    readers = [counters.start_reader(daemon) for _ in range(2)]
    writer = counters.start(daemon, NOW_AND_THEN)
    counters.goes_on(writer)
    daemon.hand_over_by_command()
    counters.goes_on(writer)
    daemon.crash()
    for number in (*readers, writer):
        counters.goes_on(number)
    counters.check()


def test_many_ask_all_the_time(daemon, counters):
    numbers = [counters.start(daemon) for _ in range(4)]
    for number in numbers:
        counters.goes_on(number)
    assert counters.check() == 0


def test_another_host_asks_in_between(zk, root, daemons, counters):
    take_turns(counters, *(counters.start(daemons(zk, root, **CONF), pause) for pause in (0, NOW_AND_THEN)))


def test_who_is_killed_leaves_it_to_others(daemon, counters):
    other = counters.start(daemon, NOW_AND_THEN)
    for _ in range(3):
        one = counters.start(daemon)
        counters.goes_on(one, OFTEN)
        counters.kill(one)
        counters.goes_on(other)
    assert counters.check() == 0


def holder(client):
    return [h["pid"] for h in client.call("HOLDERS", "counted")]


def test_who_stands_still_holds_what_it_holds_and_nothing_else(daemon, counters, clients):
    one = counters.start(daemon)
    counters.goes_on(one, OFTEN)
    process = counters.running[one]
    process.send_signal(signal.SIGSTOP)
    other = counters.start(daemon, NOW_AND_THEN)
    looks = clients(daemon)
    harness.wait_until(lambda: counters.line(other)[0] or process.pid in holder(looks), "the lock, or that it is held")
    process.send_signal(signal.SIGCONT)
    counters.goes_on(other)
    counters.goes_on(one)
    assert counters.check() == 0


def test_over_an_upgrade_of_the_daemon(daemon, counters):
    harness.inherit_orphans()
    one, other = counters.start(daemon), counters.start(daemon, NOW_AND_THEN)
    for _ in range(3):
        counters.goes_on(one, OFTEN)
        daemon.hand_over_by_command()
        counters.goes_on(other)
    assert counters.check() == 0


def test_over_a_crash_of_the_daemon(daemon, counters):
    """What another one asks for all the time is not held for so long that the keeper has their connections."""
    one, other = counters.start(daemon), counters.start(daemon, NOW_AND_THEN)
    for _ in range(3):
        counters.goes_on(one, OFTEN)
        daemon.crash()
        counters.goes_on(other)
        counters.goes_on(one)
    counters.check()


def test_one_that_is_alone_loses_nothing_by_a_crash(daemon, counters):
    """After a third one in a minute the next process begins with nothing."""
    one = counters.start(daemon)
    for _ in range(2):
        keep(daemon, counters, one)
        wait_process_kept(daemon, counters.running[one].pid)
        daemon.crash()
    keep(daemon, counters, one)
    assert counters.check() == 0


def test_without_zookeeper_for_longer_than_the_session(daemons, own_zk, root, counters):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    daemon = daemons(zk, root, **harness.FAST, **CONF)
    one, other = counters.start(daemon), counters.start(daemon, NOW_AND_THEN)
    counters.goes_on(one, OFTEN)
    counters.goes_on(other)
    zk.kill()
    harness.wait_until(lambda: daemon.info("session")["session_state"] == "lost", "the session to be lost", 3 * harness.PATIENCE)
    zk.start()
    counters.goes_on(one, OFTEN)
    counters.goes_on(other)
    counters.check()


@pytest.mark.plain_only("it is about system calls")
def test_what_is_kept_is_taken_without_a_system_call(daemon, program, counters, tmp_path):
    trace = str(tmp_path / "trace")
    done = subprocess.run(["strace", "-o", trace, program, "counted", counters.path, "0", "warm"], capture_output=True,
                          text=True, env=os.environ | {"LOCKBROKER_SOCKET": daemon.socket})
    assert (done.returncode, done.stdout) == (0, "begins\ndone\n"), done.stderr
    text = harness.read_source(trace)
    between = text[text.index('"begins\\n"'):text.index('"done\\n"')].splitlines()[1:-1]
    # A pair by messages takes four. Until it is kept there are some; then it looks once a second at what it is sent.
    assert len(between) < PAIRS / 100, between[-100:]
