# SPDX-License-Identifier: Apache-2.0
"""Lock libraries that are not installed here: the commands and scripts that they send, word by word, over clients that are.
Go's go over redigo and its pool, as redsync and redislock use one; Spring's RedisLockRegistry over redis-py."""

import json
import os
import shutil
import subprocess

import pytest
import redis

import harness
from test_clients_page import GO
from test_redis_connect import check, recorded  # noqa: F401  pylint: disable=unused-import
from test_redis_scripts import libraries
from tools import need

pytestmark = pytest.mark.plain_only("it is about other programs")


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    need("sh", "-c", "go version && test -d /usr/share/gocode/src/github.com/gomodule/redigo")
    folder = tmp_path_factory.mktemp("redigo")
    # Where a source stands below /usr/src, gccgo takes it for a part of Go.
    shutil.copy(os.path.join(harness.HERE, "redis_libraries", "redigo.go"), folder)
    subprocess.run(["go", "build", "-o", "redigo", "redigo.go"], cwd=folder, check=True,
                   env=os.environ | GO | {"GOCACHE": str(folder / "cache"), "HOME": str(folder)})
    return folder / "redigo"


class Go:
    """The program, as a process of its own."""

    def __init__(self, program, path):
        self.process = harness.spawn([str(program), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def command(self, *words):
        return self.ask(Command=words)

    def script(self, text, keys, *args):
        return self.ask(Script=[text], Keys=keys, Args=[str(arg) for arg in args])

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(harness.PATIENCE) == 0


@pytest.fixture
def go(recorded, program):  # noqa: F811  pylint: disable=redefined-outer-name
    running = Go(program, recorded.path)
    yield running
    running.process.kill()
    running.process.wait()


# A value that was refused twice would have the next turn.


def test_redigo_connects_and_redsync_locks(recorded, go):  # noqa: F811  pylint: disable=redefined-outer-name
    known = libraries()
    assert go.command("SET", "job", "mine", "NX", "PX", "8000") == "OK"
    assert go.command("SET", "job", "other", "NX", "PX", "8000") is None
    assert go.command("GET", "job") == "mine" and go.command("SETNX", "job", "a third") == 0
    assert go.script(known["redsync: touch"], ["job"], "mine", 20000) == 1
    assert 8000 < go.command("PTTL", "job") <= 20000
    assert go.script(known["redsync: touch, with set"], ["job"], "a fourth", 20000) == 0
    assert go.script(known["redsync: release"], ["job"], "other") == 0
    assert go.script(known["redsync: release"], ["job"], "mine") == 1
    assert go.script(known["redsync: release"], ["job"], "mine") == -1
    assert go.script(known["redsync: touch, with set"], ["job"], "mine", 20000) == 1
    go.end()
    check(recorded, "CLIENT SETNAME", "PING", "SETNX", "EVALSHA")


def test_redislock_locks_one_or_several(recorded, go):  # noqa: F811  pylint: disable=redefined-outer-name
    """Its value is a token of 22 bytes and what the program has written behind it."""
    known = libraries()
    for version, keys in ("0.9", ["job"]), ("0.10", ["job"]), ("0.10", ["b", "a", "c"]):
        mine, other, several = "m" * 22 + "host-1", f"{version}-{len(keys)}".ljust(22, "o") + "host-2", version == "0.10"
        obtain = known[f"redislock {version}: obtain"]
        assert go.script(obtain, keys, mine, 22, 20000) == "OK"
        assert go.script(obtain, keys[:1], other, 22, 20000) is None
        assert go.script(obtain, keys, mine, 22, 30000) == "OK"
        left = known["redislock 0.10: how long it is held yet" if several else "redislock: how long it is held yet"]
        assert 20000 < go.script(left, keys, mine) <= 30000
        if several:
            assert go.script(known["redislock 0.10: refresh"], keys, mine, 50000) == "OK"
            assert 30000 < go.command("PTTL", keys[0]) <= 50000
            assert go.script(known["redislock 0.10: release"], keys, other) is None
        release = known["redislock 0.10: release" if several else "redlock 3 of npm: release"]
        assert go.script(release, keys, mine) == ("OK" if several else 1)
        assert go.command("EXISTS", *keys) == 0
        assert go.script(release, keys, mine) == (None if several else 0)
    assert go.command("SET", "job", "mine", "NX", "PX", "8000") == "OK"
    go.end()
    check(recorded, "EVALSHA")


def test_redislock_with_a_fence_key_gets_the_token(two_hosts):
    """The text that it sends with each Obtain; its ARGV[4] says whether the last key is a FenceKey."""
    clients = [redis.Redis(unix_socket_path=host.socket) for host in two_hosts]
    known = libraries()
    obtain, release = known["redislock since 0.10, with a FenceKey: obtain"], known["redislock 0.10: release"]
    tokens = []
    for i in range(6):
        client, value = clients[i % 2], str(i).ljust(22, "v") + "host"
        words = [2, "job", "job:fence", value, 22, 20000, 1]
        tokens.append(harness.wait_until(lambda: client.eval(obtain, *words), "the other host"))
        assert client.eval(obtain, *words) == tokens[-1] == client.execute_command("TOKEN", "job", value)
        assert clients[1 - i % 2].eval(obtain, 2, "job", "job:fence", str(i).ljust(22, "o"), 22, 20000, 1) is None
        assert client.exists("job:fence") == 0
        assert client.eval(release, 1, "job", value) == b"OK"
    assert tokens == sorted(set(tokens)) and tokens[0] > 0
    assert clients[0].eval(obtain, 2, "b", "a", "x" * 22, 22, 20000, 0) == b"OK"
    assert clients[0].eval(release, 2, "a", "b", "x" * 22) == b"OK"
    for client in clients:
        client.close()


# Of version 5: a script that differs in its blanks, and commands where there is a script today.
OLD_OBTAIN = """local lockClientId = redis.call('GET', KEYS[1])
if lockClientId == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return true
elseif not lockClientId then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return true
end
return false"""


@pytest.mark.parametrize("obtain", ["today's", "of version 5"])
def test_springs_registry_locks(broker, obtain):
    client, known = redis.Redis(unix_socket_path=broker.socket), libraries()
    obtain, renew, release = (client.register_script(text) for text in (
        known["Spring: acquire"] if obtain == "today's" else OLD_OBTAIN, known["Spring: renew"], known["Spring: release"]))
    assert client.info("server")["redis_version"] == "7.0.0"  # whether there is UNLINK
    key = ["registry:job"]
    assert obtain(key, ["one", 20000]) == 1 and obtain(key, ["other", 20000]) is None
    assert obtain(key, ["one", 30000]) == 1 and 20000 < client.pttl(key[0]) <= 30000
    assert renew(key, ["one", 40000]) == 1 and 30000 < client.pttl(key[0]) <= 40000
    assert renew(key, ["other", 40000]) is None and client.get(key[0]) == b"one"
    assert release(key, ["other"]) is None and release(key, ["one"]) == 1 and release(key, ["one"]) is None
    assert renew(key, ["one", 40000]) is None
    assert obtain(key, ["other", 20000]) == 1
    assert client.unlink(key[0]) == 1 and obtain(key, ["one", 20000]) == 1 and client.delete(key[0]) == 1
    client.close()


def test_springs_registry_by_messages_is_refused_with_a_sentence(broker):
    """RedisLockType.PUB_SUB_LOCK, which is not the default."""
    client = redis.Redis(unix_socket_path=broker.socket)
    with pytest.raises(redis.ResponseError, match="nothing is published here"):
        client.eval("local lockClientId = redis.call('GET', KEYS[1])\n"
                    "if (lockClientId == ARGV[1] and redis.call('UNLINK', KEYS[1]) == 1) then\n"
                    "\tredis.call('PUBLISH', ARGV[2], KEYS[1])\n\treturn true\nend\nreturn false\n", 1, "job", "one", "channel")
    client.close()


def test_the_scripts_of_sesamecares_redlock_lock_several_keys(broker):
    """The first word behind the keys is the number of a database."""
    client, known = redis.Redis(unix_socket_path=broker.socket), libraries()
    acquire, extend, release = (client.register_script(known[f"@sesamecare-oss/redlock 1.4 of npm: {what}"])
                                for what in ("acquire", "extend", "release"))
    for keys in (["job"], ["b", "a"]):
        assert acquire(keys, [0, "one", 20000]) == len(keys) and acquire(keys[:1], [0, "other", 20000]) == 0
        assert 8000 < client.pttl(keys[-1]) <= 20000 and client.get(keys[0]) == b"one"
        assert extend(keys, [0, "other", 40000]) == 0 and extend(keys, [0, "one", 40000]) == len(keys)
        assert 20000 < client.pttl(keys[-1]) <= 40000
        assert release(keys, [0, "other"]) in (0, None) and client.exists(*keys) == len(keys)
        assert release(keys, [0, "one"]) == len(keys) and client.exists(*keys) == 0
        with pytest.raises(redis.ResponseError, match="needs 3 words behind its keys"):
            acquire(keys, [0, "one"])
    client.close()
