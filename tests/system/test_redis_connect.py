# SPDX-License-Identifier: Apache-2.0
"""What Redis clients send by themselves when they connect, and when they leave, succeeds: recorded between unmodified
clients and the daemon."""

import contextlib
import os
import socket
import subprocess
import sys
import threading

import pytest

import harness
from test_redis_libraries import modules  # noqa: F401  pylint: disable=unused-import
from tools import need


def parse(data, at=0):
    """A value of RESP2 or RESP3, and where it ends. Errors are bytes with their "-"."""
    end = data.index(b"\r\n", at)
    kind, head, at = data[at:at + 1], data[at + 1:end], end + 2
    if kind == b":":
        return int(head), at
    if kind in b"+#,(_":
        return head, at
    if kind == b"-":
        return kind + head, at
    if int(head) < 0:
        return None, at
    if kind in b"$=!":
        return data[at:at + int(head)], at + int(head) + 2
    values = []
    for _ in range(int(head) * (2 if kind in b"%|" else 1)):
        value, at = parse(data, at)
        values.append(value)
    return values, at


def values(data):
    found, at = [], 0
    while at < len(data):
        value, at = parse(data, at)
        found.append(value)
    return found


class Recorder:
    """A socket before the daemon's."""

    def __init__(self, daemon, path):
        self.to, self.path, self.all, self.threads = daemon.socket, str(path), [], []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.spawn(self.accept)

    def spawn(self, run, *args):
        self.threads.append(threading.Thread(target=run, args=args, daemon=True))
        self.threads[-1].start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server, said = socket.socket(socket.AF_UNIX), (bytearray(), bytearray())
            server.connect(self.to)
            self.all.append(said)
            self.spawn(self.pump, client, server, said[0])
            self.spawn(self.pump, server, client, said[1])

    @staticmethod
    def pump(source, target, said):
        """A client that has gone has not read all that is said to it, and that may be an error."""
        with contextlib.suppress(ConnectionResetError):
            while data := source.recv(65536):
                said += data
                with contextlib.suppress(OSError):
                    target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def end(self):
        if self.listener.fileno() >= 0:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
        for thread in self.threads:
            thread.join(harness.PATIENCE)

    def exchanges(self):
        """Words, and the reply to them; the client has ended."""
        self.end()
        found = []
        for asked, answered in self.all:
            words = [[word.decode() for word in request] for request in values(bytes(asked))]
            found += zip(words, values(bytes(answered)), strict=True)
        return found


@pytest.fixture
def recorded(standalone, tmp_path):
    recorder = Recorder(standalone, tmp_path / "socket")
    yield recorder
    recorder.end()


def names(exchanges):
    """What was asked, without what follows the first word, or the second one of CLIENT."""
    return {" ".join(words[:2] if words[0].upper() == "CLIENT" else words[:1]).upper() for words, _ in exchanges}


def check(recorder, *expected):
    """All succeeded, and these were among them."""
    exchanges = recorder.exchanges()
    wrong = [(words, reply) for words, reply in exchanges if isinstance(reply, bytes) and reply.startswith(b"-")]
    assert not wrong
    assert names(exchanges) >= {"SET", *expected}, exchanges


def run(*argv, **env):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=harness.PATIENCE, env=os.environ | env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


REDIS_PY = """
import sys
import redis
r = redis.Redis(unix_socket_path=sys.argv[1], db=0, client_name="worker")
assert r.ping() and r.client_id() > 0 and r.client_getname() == "worker"
info = r.info()
assert str(info["redis_version"]) == "7.0.0" and info["loading"] == 0
assert r.execute_command("SELECT", 0)
assert len(r.execute_command("COMMAND")) > 10
assert r.execute_command("HELLO", 2)
with r.lock("job"):
    pass
r.execute_command("RESET")
r.execute_command("QUIT")
"""


def test_redis_py(recorded):
    run(sys.executable, "-c", REDIS_PY, recorded.path)
    check(recorded, "PING", "CLIENT SETNAME", "CLIENT ID", "INFO", "SELECT", "COMMAND", "HELLO", "RESET", "QUIT")


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_cli(recorded, protocol):
    """It is hiredis that speaks."""
    need("redis-cli", "--version")
    argv = ["redis-cli", "-s", recorded.path, f"-{protocol}", "-n", "0", "SET", "job", "mine", "NX"]
    assert run(*argv) == "OK\n"
    check(recorded, *(["HELLO"] if protocol == 3 else []))


IOREDIS = """
const from = require("module").createRequire(process.argv[2] + "/");
const r = new (from("ioredis"))(process.argv[1], { connectionName: "worker" });
(async () => {
	if (await r.set("job", "mine", "NX") !== "OK" || await r.del("job") !== 1) process.exit(1);
	await r.quit();
})();
"""


def test_ioredis(recorded, modules):  # noqa: F811  pylint: disable=redefined-outer-name
    run("node", "-e", IOREDIS, recorded.path, modules)
    check(recorded, "INFO", "CLIENT SETNAME", "QUIT")


PHPREDIS = """
$r = new Redis();
$r->connect($argv[1]);
$r->client("setname", "worker");
if (!$r->select(0) || !$r->ping() || $r->info()["redis_version"] !== "7.0.0" || $r->info()["loading"] != 0) exit(1);
if (!$r->setnx("job", "mine") || $r->set("job", "other", ["nx"]) || $r->del("job") !== 1) exit(2);
if (!$r->set("job", "mine", ["nx"])) exit(3);
$r->close();
"""


def test_phpredis(recorded):
    need("php", "-r", "new Redis();")
    run("php", "-r", PHPREDIS, "--", recorded.path)
    check(recorded, "CLIENT SETNAME", "SELECT", "PING", "INFO", "SETNX")


RUBY = """
require "redis"
r = Redis.new(path: ARGV[0], db: 0, id: "worker")
exit 1 unless r.ping == "PONG" && r.info["redis_version"] == "7.0.0" && r.info["loading"] == "0"
exit 2 unless r.set("job", "mine", nx: true) && r.del("job") == 1
r.quit
"""


def test_ruby(recorded):
    need("ruby", "-e", 'require "redis"')
    run("ruby", "-e", RUBY, recorded.path)
    check(recorded, "PING", "INFO", "QUIT")


PERL = """
use Redis;
my $r = Redis->new(sock => $ARGV[0], name => "worker");
$r->select(0);
die "info" unless $r->info->{redis_version} eq "7.0.0" && $r->info->{loading} == 0;
die "set" unless $r->set("job", "mine", "NX") eq "OK" && $r->del("job") == 1;
$r->quit;
"""


def test_perl(recorded):
    need("perl", "-MRedis", "-e", "1")
    run("perl", "-e", PERL, recorded.path)
    check(recorded, "CLIENT SETNAME", "SELECT", "INFO", "QUIT")


NODE_REDIS = """
const { createClient } = require("redis");
(async () => {
	const r = createClient({ socket: { path: process.argv[1] }, database: 0, name: "worker" });
	r.on("error", (e) => { console.error(e); process.exit(1); });
	await r.connect();
	if (await r.set("job", "mine", { NX: true }) !== "OK" || await r.del("job") !== 1) process.exit(2);
	await r.quit();
})();
"""


def test_node_redis(recorded):
    paths = "/usr/share/nodejs:/usr/lib/nodejs"
    need("sh", "-c", f"NODE_PATH={paths} node -e 'require(\"redis\")'")
    run("node", "-e", NODE_REDIS, recorded.path, NODE_PATH=paths)
    check(recorded, "CLIENT SETNAME", "QUIT")


def test_each_word_of_a_connection(standalone, clients):
    """Of clients that are not installed here, too."""
    c = clients(standalone)
    for version in 2, 3, 2:
        hello = c.call("HELLO", version)
        hello = hello if isinstance(hello, dict) else dict(zip(hello[::2], hello[1::2]))
        assert hello["proto"] == version and hello["role"] == "master"
    assert c.call("PING") == "PONG" and c.call("SELECT", 0) == "OK"
    assert {"redis_version:7.0.0", "loading:0"} <= set(c.call("INFO").splitlines())
    for words in ("SETNAME", "me"), ("SETINFO", "LIB-NAME", "test"), ("SETINFO", "LIB-VER", "1.0"), ("NO-EVICT", "on"):
        assert c.call("CLIENT", *words) == "OK"
    assert c.call("CLIENT", "ID") > 0 and len(c.call("COMMAND")) > 10
    assert c.call("CLIENT", "TRACKING", "on").code == "ERR" and c.call("PING") == "PONG"
    assert c.call("RESET") == "RESET" and c.call("QUIT") == "OK"


def test_what_has_to_go_from_the_url_is_said_in_a_sentence(standalone, clients):
    c = clients(standalone)
    database, password = c.call("SELECT", 1), c.call("AUTH", "sesame")
    assert (database.code, password.code) == ("ERR", "ERR")
    assert "only database 0" in str(database) and "from the URL" in str(database)
    assert "the kernel tells which user connects" in str(password) and "from the URL" in str(password)
    assert "sesame" not in str(password)
    assert c.call("AUTH", "me", "sesame") == password and c.call("PING") == "PONG"
