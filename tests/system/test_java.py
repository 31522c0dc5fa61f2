# SPDX-License-Identifier: Apache-2.0
"""The class of docs/JAVA.md: compiled as it stands there, and used by the program of JavaDriver.java."""

import os
import re
import signal
import subprocess

import pytest

import harness

pytestmark = pytest.mark.plain_only("it is another program's")
OPERATORS = True  # see clients of conftest.py
JVM = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"]


@pytest.fixture(scope="module")
def classes():
    """The programs of the page, and the driver: compiled by one worker of the run, for all of them."""
    return harness.once("java", compile_in)


def compile_in(folder):
    sources = [os.path.join(harness.HERE, "JavaDriver.java")]
    for text in re.findall(r"^```java\n(.*?)^```", harness.read_source("docs/JAVA.md"), re.M | re.S):
        name = re.search(r"^public .*?class (\w+)", text, re.M)[1]
        sources.append(os.path.join(folder, f"{name}.java"))
        with open(sources[-1], "w") as f:
            f.write(text)
    subprocess.run(["javac", *(f"-J{option}" for option in JVM), "--release", "17", "-Xlint:all,-try", "-Werror", "-d", folder,
                    *sources], check=True)


def java(classes, daemon, program):
    return {"args": ["java", *JVM, "-cp", classes, program], "env": os.environ | {"LOCKBROKER_SOCKET": daemon.socket}}


class Driver:
    """do() gives a line and gets one."""

    def __init__(self, argv, env):
        self.process = harness.spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=env)

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def hear(self):
        return self.process.stdout.readline().rstrip("\n")

    def do(self, line):
        self.tell(line)
        return self.hear()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def drivers(classes, daemons):
    made = []

    def start(daemon):
        options = java(classes, daemon, "JavaDriver")
        made.append(Driver(options["args"], options["env"]))
        return made[-1]

    yield start
    for driver in made:
        if driver.process.poll() is None:
            driver.process.communicate(timeout=harness.PATIENCE)
            assert driver.process.returncode == 0


def token_of(answer):
    return int(re.fullmatch(r"held (\d+)", answer)[1])


def test_the_example_runs(classes, standalone):
    done = subprocess.run(**java(classes, standalone, "Settle"), capture_output=True, text=True, timeout=harness.PATIENCE)
    assert re.fullmatch(r"settling with token \d+\n", done.stdout) and done.stderr == ""


def test_a_lock_is_waited_for_held_and_released(broker, clients, drivers):
    c, driver = clients(broker), drivers(broker)
    first = c.call("LOCK", "a")
    assert driver.do("acquire a 0") == driver.do("acquire a 20") == "taken"
    driver.tell("acquire a 60000")
    harness.wait_queued(broker, "a", 1)
    c.call("UNLOCK", "a")
    assert token_of(driver.hear()) > first
    assert 0 < int(driver.do("valid").split()[1])
    assert driver.do("lost 0") == driver.do("lost 20") == "lost false"
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert driver.do("close") == "closed"
    assert c.call("LOCK", "a") > first
    assert c.call("HOLDERS", "a")[0]["pid"] != driver.process.pid


def test_two_processes_lose_no_update(two_hosts, drivers, tmp_path):
    (tmp_path / "n").write_text("0\n")
    both = [drivers(host) for host in two_hosts]
    for driver in both:
        driver.tell(f"count {tmp_path}/n 50 counter")
    assert [driver.hear() for driver in both] == ["counted"] * 2
    assert (tmp_path / "n").read_text() == "100\n"


def test_what_a_killed_process_held_is_the_next_ones(broker, drivers):
    one, two = drivers(broker), drivers(broker)
    first = token_of(one.do("acquire a 0"))
    two.tell("acquire a 60000")
    harness.wait_queued(broker, "a", 1)
    one.kill()
    assert token_of(two.hear()) > first
    assert two.do("close") == "closed"


def test_a_loss_of_the_session_is_told(own_zk, daemons, drivers):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    driver = drivers(daemons(zk, **harness.FAST))
    token_of(driver.do("acquire a 0"))
    zk.signal(signal.SIGSTOP)
    assert driver.do("lost 60000") == "lost true"
    assert driver.do("valid") == "valid 0"
    assert driver.do("close").startswith("error LOST ")
    zk.signal(signal.SIGCONT)


def test_a_lock_that_is_taken_away_is_lost_however_one_asks(standalone, clients, drivers):
    c, driver = clients(standalone), drivers(standalone)
    for ask, answer in (("lost 60000", "lost true"), ("valid", "valid 0"), ("close", "error LOST ")):
        token_of(driver.do("acquire a 60000"))
        assert c.call("FORCEUNLOCK", "a") == 1
        assert driver.do(ask).startswith(answer), ask
        assert driver.do("close").startswith("error ")


def test_an_event_of_another_kind_is_no_loss(standalone, clients, drivers):
    c, driver = clients(standalone), drivers(standalone)
    token_of(driver.do("acquire a 0"))
    assert c.call("REVOKE", "a") == 1
    assert driver.do("lost 20") == "lost false"
    assert driver.do("close") == "closed"


def test_when_the_broker_ends_each_call_throws(standalone, drivers):
    driver = drivers(standalone)
    token_of(driver.do("acquire a 0"))
    standalone.kill()
    assert driver.do("valid").startswith("error ") and driver.do("lost 0").startswith("error ")
    assert driver.do("close").startswith("error ")
    assert driver.do("acquire a 0").startswith("error ")
    standalone.start()
    assert driver.do("valid").startswith("error "), "it does not connect again"
    token_of(driver.do("acquire a 0"))


def test_a_broker_that_hangs_is_not_waited_for_for_ever(standalone, drivers):
    driver = drivers(standalone)
    token_of(driver.do("acquire a 0"))
    standalone.signal(signal.SIGSTOP)
    assert driver.do("valid") == "error no answer of lockbrokerd, or an interrupt: what was held is released"
    standalone.signal(signal.SIGCONT)


def test_an_interrupt_releases_what_is_held(standalone, clients, drivers):
    driver = drivers(standalone)
    first = token_of(driver.do("acquire a 0"))
    assert driver.do("interrupt").startswith("error ")
    assert clients(standalone).call("LOCK", "a", "WAIT", 60000) > first


def test_what_the_broker_refuses_is_its_sentence(standalone, drivers):
    driver = drivers(standalone)
    assert driver.do("acquire .. 0").startswith("error BADNAME ")


@pytest.mark.parametrize("words", ["SUBSCRIBE a", "PUBLISH a b", "HSET a b c", "EVAL return(redis.call('hset',KEYS[1],'a','b')) 1 a"])
def test_what_the_locks_of_redisson_need_is_not_there(standalone, clients, words):
    assert clients(standalone).call(*words.split()).startswith("ERR ")
