# SPDX-License-Identifier: Apache-2.0
"""Lock libraries of Redis, unchanged, with the socket in the place of a server: redis-py's Lock, five libraries of npm over
ioredis, and the cache lock of Laravel.

Of npm those versions that package.json names. With $NEED_NPM, as in a release, it is the newest one of each, and a machine
without npm or its registry fails; else that is skipped."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
import redis
import redis.asyncio
from redis.exceptions import LockError, LockNotOwnedError

import harness
import pages
from parallel import all_at_once, in_thread
from tools import need, trouble

HERE = os.path.join(harness.HERE, "redis_libraries")


@pytest.fixture
def pools():
    """Makes clients of redis-py with a pool each, closed with the test."""
    made = []

    def make(daemon, **options):
        made.append(redis.Redis(unix_socket_path=daemon.socket, **options))
        return made[-1]

    yield make
    for client in made:
        client.connection_pool.disconnect()


# ---- redis-py ----


def test_redis_py_acquires_extends_and_releases(broker, pools):
    one = pools(broker).lock("job", timeout=20, blocking=False)
    other = pools(broker).lock("job", timeout=20, blocking=False)
    assert one.acquire() and one.locked() and one.owned()
    assert not other.acquire() and other.locked() and not other.owned()
    assert one.extend(30) and 40 < pools(broker).pttl("job") / 1000 <= 50
    assert one.extend(30, replace_ttl=True) and 20 < pools(broker).pttl("job") / 1000 <= 30
    assert one.reacquire() and 10 < pools(broker).pttl("job") / 1000 <= 20
    one.release()
    assert not one.locked() and other.acquire()
    other.release()


def test_redis_py_releases_what_is_its_own_only(broker, pools):
    client = pools(broker)
    one, other = client.lock("job", timeout=20), client.lock("job", timeout=20)
    assert one.acquire()
    other.local.token = b"another value"
    with pytest.raises(LockNotOwnedError):
        other.release()
    other.local.token = b"another value"
    with pytest.raises(LockNotOwnedError):
        other.extend(5)
    with pytest.raises(LockNotOwnedError):
        other.reacquire()
    assert one.owned()
    # Who knows the value may release it, whatever connection it comes over.
    other.local.token = one.local.token
    other.release()
    with pytest.raises(LockNotOwnedError):
        one.release()


def test_redis_py_waits_for_a_while(broker, pools):
    client = pools(broker)
    held = client.lock("job", timeout=20)
    assert held.acquire()
    assert not client.lock("job", timeout=20, sleep=0.01, blocking_timeout=0.05).acquire()

    def wait():
        with client.lock("job", timeout=20, sleep=0.01):
            return True

    waits = in_thread(wait)
    held.release()
    assert waits()
    with pytest.raises(LockError):
        held.release()


def test_redis_py_loses_what_has_run_out(broker, pools):
    lock = pools(broker).lock("job", timeout=0.05)
    assert lock.acquire()
    harness.wait_until(lambda: not lock.locked(), "the lease to end")
    with pytest.raises(LockNotOwnedError):
        lock.release()


def test_threads_that_share_a_pool_exclude_each_other(broker, pools):
    """What LOCK cannot do: a thread gives its connection back while it holds the lock."""
    client, inside, most = pools(broker, max_connections=4), [], []

    def work():
        for _ in range(20):
            with client.lock("job", timeout=60, sleep=0.002):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    all_at_once(work, [()] * 4)
    assert most == [1] * 80


def test_redis_py_with_asyncio(broker):
    most, inside = [], []

    async def work(client):
        for _ in range(20):
            async with client.lock("job", timeout=60, sleep=0.002):
                inside.append(1)
                most.append(len(inside))
                await asyncio.sleep(0)  # no pause: the other tasks get a turn
                inside.pop()

    async def run():
        client = redis.asyncio.Redis(unix_socket_path=broker.socket)
        await asyncio.gather(*(work(client) for _ in range(4)))
        lock = client.lock("job", timeout=20)
        assert await lock.acquire(blocking=False) and await lock.owned() and await lock.locked()
        assert await lock.extend(30) and await lock.reacquire()
        await lock.release()
        with pytest.raises(LockError):
            await lock.release()
        await client.connection_pool.disconnect()

    asyncio.run(run())
    assert most == [1] * 80


# ---- programs in other languages ----


NEED_NPM = bool(os.environ.get("NEED_NPM"))


def install(folder):
    """The packages of npm. Returns why they cannot be had; empty: they are there."""
    package = json.loads(harness.read_source("tests/system/redis_libraries/package.json"))
    if NEED_NPM:
        for name, version in package["dependencies"].items():
            # The newest redlock is 4; that of 5 which package.json names is older, and no npm install gives it unasked.
            package["dependencies"][name] = version if name == "redlock5" else version[:version.rfind("@") + 1] + "latest"
    (folder / "package.json").write_text(json.dumps(package))
    # The newest ioredis is newer than some of them say that they want.
    argv = ["npm", "install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund", "--no-package-lock"]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=10 * harness.PATIENCE)
    return f"npm cannot install: {' '.join(done.stderr.split())[-200:]}" if done.returncode else ""


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm")
    why = trouble("node", "--version") or trouble("npm", "--version") or install(folder)
    assert not why or not NEED_NPM, why
    if why:
        pytest.skip(why)
    return folder


def others(modules, daemon, library):
    argv = ["node", "--no-deprecation", os.path.join(HERE, "others.js"), daemon.socket, library]
    return harness.spawn(argv, env={**os.environ, "NODE_MODULES": str(modules)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def redlock(modules, daemon, version, *words):
    argv = ["node", os.path.join(HERE, "redlock.js"), daemon.socket, version, *map(str, words)]
    return harness.spawn(argv, env={**os.environ, "NODE_MODULES": str(modules)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def laravel(daemon, *words):
    need("php", "-r", "exit(extension_loaded('redis') && is_dir('/usr/share/php/Illuminate/Redis') ? 0 : 1);")
    argv = ["php", os.path.join(HERE, "laravel.php"), daemon.socket, *map(str, words)]
    return harness.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def found(process):
    """What a program that does each of what there is prints."""
    text, _ = process.communicate(timeout=harness.PATIENCE)
    assert process.returncode == 0, text
    return json.loads(text)


@pytest.mark.parametrize("version", ["4", "5"])
def test_redlock_of_npm(broker, modules, version):
    refused = {"4": "LockError", "5": "ExecutionError"}[version]
    is_ = found(redlock(modules, broker, version, "each"))
    assert 20000 < is_.pop("left_ms") <= 40000
    assert is_ == {"taken": refused, "other_is_free": "done", "released": "done", "left_after": 0,
                   "released_twice": refused, "extended_after": refused, "several": 3, "one_of_them": refused,
                   "none_of_them": 0, "several_after": 0}


def test_sesamecares_redlock_of_npm(broker, modules):
    is_ = found(others(modules, broker, "@sesamecare-oss/redlock"))
    assert 20000 < is_.pop("left_ms") <= 40000
    assert is_ == {"taken": "ExecutionError", "released": 1, "left_after": 0, "released_twice": "ExecutionError", "several": 3,
                   "one_of_them": "ExecutionError", "several_after": 0, "inside": 1, "after_it": 0}


def test_redis_semaphore_of_npm(broker, modules):
    """Its semaphores are sorted sets."""
    is_ = found(others(modules, broker, "redis-semaphore"))
    assert 20000 < is_.pop("left_ms") <= 40000
    for refusal in is_.pop("semaphore"), is_.pop("several_permits"):
        assert "keeps no sorted sets" in refusal and "use locks that are set with SET NX PX, or ACQUIRE" in refusal
    assert is_ == {"taken": "Error", "taken_over": True, "left_after": 0, "taken_over_after": False, "quorum": 1,
                   "quorum_taken": False, "quorum_after": 0}


def test_warlock_of_npm(broker, modules):
    is_ = found(others(modules, broker, "node-redis-warlock"))
    assert 20000 < is_.pop("left_ms") <= 40000
    assert is_ == {"taken": False, "touched": "OK", "touched_by_another": 0, "unlocked": 1, "unlocked_twice": 0,
                   "touched_after": 0, "optimistic": 1}


IOREDIS = """
const Redis = require("module").createRequire(process.env.NODE_MODULES + "/")("ioredis");
const SOCKET = process.argv[1], nested = process.argv[2] === "nested";
const found = { most: 0, all: 0, errors: [] };
let inside = 0;
async function doTheWork() {
	found.most = Math.max(found.most, ++inside);
	if (++found.all === 1 && nested)
		await worker().catch((e) => found.errors.push(e.message));
	await new Promise(setImmediate);
	inside--;
}
%s
Promise.all(Array.from({ length: nested ? 1 : 8 }, worker)).then(() => { console.log(JSON.stringify(found)); process.exit(0); });
"""


@pytest.mark.parametrize("number, is_", [(0, "nested"), (1, "nested"), (1, "at once")])
def test_the_examples_of_the_protocol_do_with_ioredis_what_they_say(standalone, modules, number, is_):
    """A second worker begins while the first has the lock: the wrong one asks over the same connection."""
    examples = pages.claimed("protocol/PROTOCOL.md", __file__, "js")
    assert [text.split(" ", 2)[1] for text in examples] == ["Wrong", "Right"]
    argv = ["node", "--no-deprecation", "-e", IOREDIS % examples[number], standalone.socket, is_]
    process = harness.spawn(argv, env={**os.environ, "NODE_MODULES": str(modules)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if is_ == "nested" and number == 1:
        harness.wait_queued(standalone, "orders", 1)
        process.kill()
        process.communicate()
        return
    done = found(process)
    if number == 0:
        (error,) = done["errors"]
        assert error.startswith("HELD ") and done["all"] == 1
    else:
        assert done == {"most": 1, "all": 8, "errors": []}


def test_ioredis_lock_of_npm(broker, modules):
    is_ = found(others(modules, broker, "ioredis-lock"))
    assert 20000 < is_.pop("left_ms") <= 40000
    assert is_ == {"taken": "LockAcquisitionError", "left_after": 0, "released_twice": "LockReleaseError",
                   "extended_after": "LockExtendError", "released_after": "LockReleaseError"}


def test_laravels_cache_lock(broker):
    assert found(laravel(broker, "each")) == {
        "got": True, "taken": False, "other_releases": False, "owner": True, "after": True, "forced": True,
        "released": True, "released_twice": False, "in_a_block": False, "after_it": "inside", "added": True,
        "added_twice": False}


# ---- fair to those that ask again and again ----

# Gives the lock back and asks for it under another value in one write, so that between the two nobody is likely to ask.
GREEDY = """
import sys, time, uuid
import redis
client = redis.Redis(unix_socket_path=sys.argv[1])
release = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
value = uuid.uuid4().hex
while True:
    while not client.set("job", value, nx=True, px=60000):
        time.sleep(0.01)  # at its pace
    print("got it", flush=True)
    while True:
        time.sleep(0.02)  # at its pace
        pipe = client.pipeline(transaction=False)
        pipe.eval(release, 1, "job", value)
        value = uuid.uuid4().hex
        pipe.set("job", value, nx=True, px=60000)
        if not pipe.execute()[1]:
            break
"""

POLITE = """
import sys
import redis
client = redis.Redis(unix_socket_path=sys.argv[1])
for _ in range(3):
    with client.lock("job", timeout=60):
        pass
"""



@pytest.mark.parametrize("library", ["redis-py", "redlock 4", "redlock 5"])
def test_who_polls_gets_its_turn_from_a_program_that_never_lets_go(broker, modules, library):
    """As often as the library asks by itself; the other program asks again in the write that releases."""
    greedy = harness.spawn([sys.executable, "-c", GREEDY, broker.socket], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert "got it" in str(greedy.stdout.readline())
        if library == "redis-py":
            argv = [sys.executable, "-c", POLITE, broker.socket]
            polite = harness.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        else:
            polite = redlock(modules, broker, library[-1], "polls", "job", os.devnull, 3)
        text, _ = polite.communicate(timeout=harness.PATIENCE)
        assert polite.returncode == 0, text
        assert greedy.poll() is None
    finally:
        greedy.kill()
        greedy.communicate()


# ---- all of them at once, on two hosts ----

BY_REDIS_PY = """
import sys
import redis
client = redis.Redis(unix_socket_path=sys.argv[1])
name, path, count = sys.argv[2:]
for _ in range(int(count)):
    with client.lock(name, timeout=60, sleep=0.005):
        number = int(open(path).read())
        with open(path, "w") as f:
            f.write(str(number + 1))
"""

BY_LOCK = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import harness
name, path, count = sys.argv[2:]
with harness.Client(sys.argv[1]) as c:
    for _ in range(int(count)):
        assert isinstance(c.call("LOCK", name), int)
        number = int(open(path).read())
        with open(path, "w") as f:
            f.write(str(number + 1))
        c.call("UNLOCK", name)
"""

BY_COMMAND = """
for _ in $(seq "$5"); do
    "$1" -S "$2" lock "$3" -c "n=\\$(cat '$4'); echo \\$((n + 1)) > '$4'" || exit
done
"""


@pytest.mark.release_only("chance would show it")
@pytest.mark.plain_only("how libraries behave, over 1,000 rounds")
def test_no_update_is_lost_among_libraries_lock_and_the_command_on_two_hosts(two_hosts, modules, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    workers, total = [], 0

    def add(worker, count):
        nonlocal total
        workers.append(worker)
        total += count

    for host in two_hosts:
        rounds = ("both", counter)
        add(redlock(modules, host, "4", "rounds", *rounds, 90), 90)
        add(redlock(modules, host, "5", "rounds", *rounds, 90), 90)
        add(laravel(host, "rounds", *rounds, 90), 90)
        for text, count, first in ((BY_REDIS_PY, 130, ()), (BY_LOCK, 80, (harness.HERE,))):
            argv = [sys.executable, "-c", text, *first, host.socket, *rounds, count]
            add(harness.spawn([*map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT), count)
        argv = ["sh", "-c", BY_COMMAND, "sh", harness.program("lockbroker"), host.socket, *rounds, 20]
        add(harness.spawn([*map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT), 20)
    for worker in workers:
        text, _ = worker.communicate(timeout=250)
        assert worker.returncode == 0, text
    assert total == 1000 and int(counter.read_text()) == total
