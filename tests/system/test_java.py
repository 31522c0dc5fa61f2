# SPDX-License-Identifier: Apache-2.0
"""The Java library with real brokers: its own tests (tests/java), and what happens to brokers and processes meanwhile. The
programs of docs/JAVA.md are compiled as they stand there."""

import os
import re
import subprocess

import pytest

import harness
import java_library
from mishaps import stopped
from saved import wait_process_kept

pytestmark = pytest.mark.plain_only("it is another program's")
OPERATORS = True  # see clients of conftest.py


@pytest.fixture(scope="module")
def classes():
    return java_library.classes()


@pytest.fixture
def drivers(classes, daemons):
    def end(driver):
        if driver.process.poll() is None:
            driver.process.communicate(timeout=harness.PATIENCE)
            assert driver.process.returncode == 0

    yield from harness.each_ends(lambda daemon, *jvm: java_library.Driver(classes, daemon, *jvm), end)


def token_of(answer):
    return int(re.fullmatch(r"held (\d+)", answer)[1])


# ---- its own tests ----


def test_the_parts_and_what_a_broker_does_only_by_order(classes):
    assert java_library.junit(classes, "lockbroker.RespTest", "lockbroker.FakeBrokerTest") >= 20


def test_what_it_promises_with_zookeeper(classes, daemons, zk, root):
    assert java_library.junit(classes, "lockbroker.BrokerTest", env=java_library.environment(daemons(zk, root))) >= 30


def test_what_it_promises_without_a_clock_for_the_session_page(classes, standalone):
    """As in a container that shows another /proc/uptime: it asks the broker."""
    assert java_library.junit(classes, "lockbroker.BrokerTest", jvm=["-Dlockbroker.uptime=/none"],
                              env=java_library.environment(standalone)) >= 30


def test_virtual_threads_that_wait_leave_their_carrier(classes, standalone):
    version = int(re.search(r'"(\d+)', subprocess.run(["java", "-version"], capture_output=True, text=True).stderr)[1])
    if version < 21:
        pytest.skip(f"no virtual threads in this JDK, {version}: 21 is needed")
    jvm = [f"-Djdk.virtualThreadScheduler.{key}=1" for key in ("parallelism", "maxPoolSize")]
    assert java_library.junit(classes, "lockbroker.VirtualThreadsTest", jvm=jvm, env=java_library.environment(standalone)) == 1


def test_the_adapters_do_what_shedlock_and_spring_ask_for(classes, standalone):
    """With declarations in place of their jars: tests/java/declarations."""
    assert java_library.junit(classes, "adapters.AdaptersTest", env=java_library.environment(standalone)) == 5


def test_it_finds_the_sockets_that_other_libraries_find(classes, daemons, tmp_path):
    """$LOCKBROKER_SOCKET in every driver here; "user" only where it is asked for."""
    folder = tmp_path / "lockbroker"
    folder.mkdir()
    daemon = daemons(daemon__socket=str(folder / "lockbroker.sock"))

    def lock(name, **env):
        return harness.run(java_library.command(classes, "JavaDriver"), input="lock a\n",
                           env=os.environ | env | {"LOCKBROKER_SOCKET": name})

    for done in lock("user", XDG_RUNTIME_DIR=str(tmp_path)), lock(str(folder / "lockbroker.sock")):
        assert token_of(done.stdout.strip()), done.stderr
    daemon.kill()
    done = lock("user", XDG_RUNTIME_DIR="/dev/shm")
    assert "NotAvailable" in done.stderr and "only this user may write to" in done.stderr
    done = lock("@none")
    assert "NotAvailable" in done.stderr and "/run/lockbroker@none/lockbroker.sock" in done.stderr


# ---- with other processes ----


def test_two_processes_lose_no_update(two_hosts, drivers, tmp_path):
    (tmp_path / "n").write_text("0\n")
    both = [drivers(host) for host in two_hosts]
    for driver in both:
        driver.tell(f"count {tmp_path}/n 10 counter 8")
    assert [driver.hear() for driver in both] == ["counted"] * 2
    assert (tmp_path / "n").read_text() == "160\n"


def test_a_lock_is_waited_for_held_and_released(broker, clients, drivers):
    c, driver = clients(broker), drivers(broker)
    first = c.call("LOCK", "a")
    assert driver.do("try a 0") == driver.do("try a 20") == "taken"
    driver.tell("lock a")
    harness.wait_queued(broker, "a", 1)
    c.call("UNLOCK", "a")
    assert token_of(driver.hear()) > first
    assert 0 < int(driver.do("valid a").split()[1])
    assert c.call("LOCK", "a", "WAIT", 0) is None
    assert driver.do("held a") == "true 1"
    assert driver.do("unlock a") == "unlocked"
    assert c.call("LOCK", "a") > first


def test_what_a_killed_process_held_is_the_next_ones(broker, drivers):
    one, two = drivers(broker), drivers(broker)
    first = token_of(one.do("lock a"))
    two.tell("lock a")
    harness.wait_queued(broker, "a", 1)
    one.kill()
    assert token_of(two.hear()) > first
    assert two.do("unlock a") == "unlocked"


# ---- when the broker, or ZooKeeper, goes ----

# With the page, and with the broker's answers only.
PAGE = pytest.mark.parametrize("jvm", [[], ["-Dlockbroker.uptime=/none"]], ids=["page", "no page"])


@PAGE
def test_a_loss_of_the_session_is_told(own_zk, daemons, drivers, jvm):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    driver = drivers(daemons(zk, **harness.FAST), *jvm)
    token_of(driver.do("lock a"))
    with stopped(zk):
        assert driver.do("lost a") == "lost session"
        assert driver.do("held a") == "false 1"
        assert driver.do("valid a") == "valid 0"
        assert driver.do("lock a").startswith("error LOST ")
        assert driver.do("unlock a").startswith("error LOST ")
        assert driver.do("held a") == "false 0"


def test_a_broker_that_hangs_proves_nothing_after_a_while(own_zk, daemons, drivers):
    """What the page says is counted by a clock of this process: nobody has to answer."""
    daemon = daemons(own_zk(tick_ms=harness.FAST_TICK_MS), **harness.FAST)
    driver = drivers(daemon)
    token_of(driver.do("lock a"))
    with stopped(daemon):
        assert driver.do("lost a") == "lost session"
        assert driver.do("held a") == "false 1"
        assert driver.do("unlock a").startswith("error LOST ")


def test_without_a_page_a_broker_that_hangs_proves_nothing_either(own_zk, daemons, drivers):
    daemon = daemons(own_zk(tick_ms=harness.FAST_TICK_MS), **harness.FAST)
    driver = drivers(daemon, "-Dlockbroker.uptime=/none")
    token_of(driver.do("lock a"))
    with stopped(daemon):
        assert driver.do("lost a") == "lost unanswered"


def test_no_call_waits_for_ever_for_a_broker_that_hangs(standalone, drivers):
    driver = drivers(standalone, "-Dpatience=1")
    token_of(driver.do("lock a"))
    with stopped(standalone):
        assert driver.do("try b 0").startswith("error ")
        assert driver.do("unlock a") == "unlocked", "it was proven all the time, and the end of the connection releases it"


@PAGE
def test_what_is_held_and_who_waits_survive_an_upgrade(broker, clients, drivers, jvm):
    driver, c = drivers(broker, *jvm), clients(broker)
    first = token_of(driver.do("lock a"))
    c.call("LOCK", "b")
    assert driver.do("background b") == "waits"
    harness.wait_queued(broker, "b", 1)
    broker.hand_over()
    assert driver.do("held a") == "true 1"
    assert int(driver.do("valid a").split()[1]) > 0
    assert c.call("UNLOCK", "b") == 0
    token_of(driver.do("join"))
    assert driver.do("unlock a") == "unlocked"
    assert token_of(driver.do("lock a")) > first


@PAGE
def test_what_is_held_survives_the_death_of_the_process_that_serves(daemons, zk, root, drivers, jvm):
    """Its page has moved: the library asks where the new one is."""
    daemon = daemons(zk, root)
    driver = drivers(daemon, *jvm)
    token_of(driver.do("lock a"))
    harness.wait_until(lambda: int(driver.do("valid a").split()[1]) > 0, "a proof")
    wait_process_kept(daemon, driver.process.pid)
    daemon.crash()
    assert int(driver.do("valid a").split()[1]) > 0
    assert driver.do("held a") == "true 1"
    assert driver.do("unlock a") == "unlocked"


def test_lock_waits_through_a_restart_and_what_was_held_is_lost(standalone, drivers):
    driver = drivers(standalone)
    token_of(driver.do("lock a"))
    with standalone.client() as c:
        c.call("LOCK", "b")
        assert driver.do("background b") == "waits"
        harness.wait_queued(standalone, "b", 1)
        standalone.kill()
    assert driver.do("lost a") == "lost connection"
    standalone.start()
    token_of(driver.do("join"))
    assert driver.do("held a") == "false 1"
    assert driver.do("unlock a").startswith("error LOST ")
    token_of(driver.do("lock a"))


def test_a_broker_that_is_stopped_and_started_is_waited_for(standalone, drivers):
    """It tells those who wait that it is draining: to lock() that is an outage like any other."""
    driver = drivers(standalone)
    with standalone.client() as c:
        c.call("LOCK", "b")
        assert driver.do("background b") == "waits"
        harness.wait_queued(standalone, "b", 1)
        assert standalone.terminate() == 0
    standalone.start()
    token_of(driver.do("join"))


def test_no_broker_is_not_available(standalone, drivers):
    driver = drivers(standalone, "-Dpatience=1")
    token_of(driver.do("lock b"))
    standalone.kill()
    assert driver.do("try a 0").startswith("error CONNECTION ")
    assert driver.do("lock a").startswith("error CONNECTION ")


@pytest.mark.parametrize("words", ["SUBSCRIBE a", "PUBLISH a b", "HSET a b c", "EVAL return(redis.call('hset',KEYS[1],'a','b')) 1 a"])
def test_what_the_locks_of_redisson_need_is_not_there(standalone, clients, words):
    assert clients(standalone).call(*words.split()).startswith("ERR ")
