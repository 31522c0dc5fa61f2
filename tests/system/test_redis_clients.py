# SPDX-License-Identifier: Apache-2.0
"""Redis's own clients: redis-cli by hand, redis-py, redis-benchmark, and plain lines as nc sends them."""

import asyncio
import re
import socket
import subprocess

import pytest
import redis
import redis.asyncio

import harness
import pages
from parallel import in_thread
from tools import need


def redis_cli(daemon, *words, options=(), stdin=None):
    """What redis-cli prints when it is not on a terminal."""
    need("redis-cli", "--version")
    done = subprocess.run(["redis-cli", "-s", daemon.socket, *options, *map(str, words)], input=stdin,
                          stdin=None if stdin is not None else subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.stderr == ""
    return done.stdout.rstrip("\n")


@pytest.fixture(params=["RESP2", "RESP3"])
def options(request):
    return ["-3"] if request.param == "RESP3" else []


def test_redis_cli_can_do_everything_by_hand(broker, clients, options):
    """One redis-cli process is one client: its commands come on the standard input."""
    other = clients(broker)
    other.call("LOCK", "taken")
    script = """
        LOCK orders/42
        LOCK orders/42 WAIT 0 REENTER
        VALID orders/42
        UNLOCK orders/42
        UNLOCK orders/42
        UNLOCK orders/42
        LOCK taken WAIT 0
        LOCK taken WAIT 50
        PING
        PING hello
        ECHO "two words"
        SELECT 0
        CLIENT SETNAME me
        CLIENT GETNAME
        CLIENT SETINFO LIB-NAME hand
        CLIENT NO-EVICT on
        COMMAND COUNT
        LOCK ..
        RESET
    """
    lines = redis_cli(broker, options=options, stdin=script).splitlines()
    lines = [line for line in lines if line]
    token, again, valid = lines[:3]
    assert int(token) > 0 and again == token and int(valid) > 0
    assert lines[3:5] == ["1", "0"]
    assert lines[5].startswith("NOTHELD ")
    rest = lines[6:]
    assert rest[0] == "PONG", rest  # the two nils print as empty lines
    assert rest[1:8] == ["hello", "two words", "OK", "OK", "me", "OK", "OK"]
    assert int(rest[8]) >= 16
    assert rest[9].startswith("BADNAME ")
    assert rest[10] == "RESET"


def test_redis_cli_leases_and_queues_by_hand(broker, clients):
    clients(broker).call("LOCK", "taken")
    lines = redis_cli(broker, stdin="""
        LOCK a LEASE 60000 DATA "two words"
        VALID a
        RENEW a 1000
        ENQUEUE a REENTER
        EVENTS
        ENQUEUE taken WAIT 10
        EVENTS
        ENQUEUE taken
        CANCEL taken
        CANCEL taken
        RENEW a 10
        EVENTS
        RENEW a 10
    """).splitlines()
    token, valid, *rest = [line for line in lines if line]
    assert int(token) > 0 and 0 < int(valid) <= 60000
    assert rest[:7] == ["1", "QUEUED", "granted", "a", token, "QUEUED", "timeout"]
    # The granted re-entry asked for no lease; RENEW gives it one again.
    assert rest[7:12] == ["taken", "QUEUED", "1", "0", "1"]
    assert rest[12:16] == ["lost", "a", token, "lease"]
    assert rest[16].startswith("NOTHELD ")


def test_redis_cli_looks_at_locks(broker, clients, options):
    a = clients(broker)
    token = a.call("LOCK", "orders/42")
    assert str(token) in redis_cli(broker, "HOLDERS", "orders/42", options=options)
    assert redis_cli(broker, "QUEUE", "orders/42", options=options) == ""
    assert "orders/42" in redis_cli(broker, "LOCKS", options=options)
    assert "orders/42" in redis_cli(broker, "LOCKS", "orders/*", options=options)
    assert "orders/42" not in redis_cli(broker, "LOCKS", "x*", options=options)


def test_redis_cli_is_told_the_state(broker, options):
    text = redis_cli(broker, "INFO", options=options)
    info = harness.parse_info(text)
    assert re.fullmatch(r"\d+\.\d+\.\d+", info["redis_version"])
    assert info["loading"] == "0"
    assert "standalone" in text
    assert "id=" in redis_cli(broker, "CLIENT", "LIST", options=options)
    assert "lock" in redis_cli(broker, "COMMAND", options=options).lower()
    assert "lock" in redis_cli(broker, "COMMAND", "DOCS", options=options).lower()
    assert "lock" in redis_cli(broker, "COMMAND", "INFO", "LOCK", options=options).lower()
    if not options:
        assert redis_cli(broker, "EVENTS", "WAIT", "20") == ""


def test_redis_cli_lock_ends_with_its_process(broker, clients):
    assert int(redis_cli(broker, "LOCK", "a")) > 0
    assert isinstance(clients(broker).call("LOCK", "a", "WAIT", 20000), int)


def test_redis_py(broker):
    r = redis.Redis(unix_socket_path=broker.socket, decode_responses=True, client_name="worker",
                    single_connection_client=True)
    other = redis.Redis(unix_socket_path=broker.socket, single_connection_client=True)
    assert r.ping() is True
    assert r.client_getname() == "worker"
    token = r.execute_command("LOCK", "a")
    assert isinstance(token, int)
    assert other.execute_command("LOCK", "a", "WAIT", 0) is None
    assert other.execute_command("LOCK", "a", "WAIT", 30) is None
    with pytest.raises(redis.ResponseError, match="NOTHELD"):
        other.execute_command("UNLOCK", "a")
    assert r.execute_command("UNLOCK", "a", "TOKEN", token) == 0
    assert other.execute_command("LOCK", "a") > token
    assert r.info()["loading"] == 0
    assert isinstance(r.info()["redis_version"], str)
    assert [c["name"] for c in r.client_list()].count("worker") == 1
    assert r.echo("ümläut") == "ümläut"
    assert r.execute_command("HELLO", 2)
    r.close()
    other.close()


def example(broker, heading, work):
    """The code in PROTOCOL.md that begins with that comment, with what it calls do_the_work."""
    texts = pages.claimed("protocol/PROTOCOL.md", __file__, "python")
    found, = [text for text in texts if text.startswith(f"# {heading}:")]
    names = {"redis": redis, "SOCKET": broker.socket, "do_the_work": work}
    exec(compile(found, "PROTOCOL.md", "exec"), names)
    return names["worker"]


class Inside:
    """How many are in what the lock protects: now, at most, in all."""

    def __init__(self):
        self.now = self.most = self.all = 0

    def __enter__(self):
        self.now += 1
        self.most = max(self.most, self.now)
        self.all += 1
        return self.all

    def __exit__(self, *_):
        self.now -= 1


def all_wait(broker, count):
    """Who is inside stays until all the others have asked."""
    harness.wait_until(lambda: broker.info("locks")["requests"] == str(count), "the others to ask")


def in_threads(worker, count):
    """The errors they ended with."""
    errors = []
    for wait in [in_thread(worker) for _ in range(count)]:
        try:
            wait(timeout=None)
        except redis.RedisError as e:
            errors.append(str(e))
    return errors


def test_threads_that_share_a_pool_do_not_both_get_in(broker):
    """The second asks while the first is inside, and gets the connection that the first has put back."""
    inside, errors = Inside(), []

    def work():
        with inside as number:
            if number == 1:
                errors.extend(in_threads(worker, 1))

    worker = example(broker, "Wrong with redis-py", work)
    worker()
    assert (inside.most, inside.all) == (1, 1)
    assert len(errors) == 1 and errors[0].startswith("HELD ")


def test_threads_with_a_connection_each_exclude_each_other(broker):
    inside = Inside()

    def work():
        with inside as number:
            all_wait(broker, 8 - number)

    assert in_threads(example(broker, "Right with redis-py", work), 8) == []
    assert (inside.most, inside.all) == (1, 8)


def test_tasks_that_share_a_pool_do_not_both_get_in(broker):
    inside, errors = Inside(), []

    async def work():
        with inside as number:
            if number == 1:
                errors.extend(await asyncio.gather(worker(), return_exceptions=True))

    worker = example(broker, "Wrong with redis.asyncio", work)
    asyncio.run(worker())
    assert (inside.most, inside.all) == (1, 1)
    assert isinstance(errors[0], redis.ResponseError) and str(errors[0]).startswith("HELD ")


def test_tasks_with_a_connection_each_exclude_each_other(broker):
    inside = Inside()

    async def work():
        with inside as number:
            await asyncio.to_thread(all_wait, broker, 8 - number)

    async def run():
        await asyncio.gather(*(worker() for _ in range(8)))

    worker = example(broker, "Right with redis.asyncio", work)
    asyncio.run(run())
    assert (inside.most, inside.all) == (1, 8)


def test_redis_py_pipelines(broker):
    r = redis.Redis(unix_socket_path=broker.socket, decode_responses=True, single_connection_client=True)
    pipe = r.pipeline(transaction=False)
    for i in range(100):
        pipe.execute_command("LOCK", f"n{i}")
        pipe.execute_command("UNLOCK", f"n{i}")
    answers = pipe.execute()
    assert all(isinstance(t, int) and t > 0 for t in answers[::2])
    assert answers[1::2] == [0] * 100
    r.close()


def test_redis_py_timeouts_and_hang_ups_release(broker, clients):
    holder = clients(broker)
    holder.call("LOCK", "a")
    r = redis.Redis(unix_socket_path=broker.socket, socket_timeout=0.2, retry_on_timeout=False)
    with pytest.raises(redis.TimeoutError):
        r.execute_command("LOCK", "a")
    r.close()
    harness.wait_until(lambda: holder.call("QUEUE", "a") == [], "the request to go")


def test_hello(standalone):
    with standalone.client(2) as c:
        two = c.call("HELLO", "2")
        assert dict(zip(two[::2], two[1::2]))["proto"] == 2
        three = c.call("HELLO", "3", "SETNAME", "me")
        assert three["proto"] == 3 and isinstance(three["version"], str)
        assert c.call("CLIENT", "GETNAME") == "me"
        assert c.call("HELLO")["proto"] == 3
        assert c.call("HELLO", "3", "AUTH", "default", "secret")["proto"] == 3
        assert c.call("HELLO", "5").code == "NOPROTO"
        assert c.call("HELLO")["proto"] == 3


def test_redis_benchmark(standalone):
    need("redis-benchmark", "--version")
    done = subprocess.run(["redis-benchmark", "-s", standalone.socket, "-t", "ping", "-n", "20000", "-c", "50",
                           "-P", "8", "--csv"], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    rates = [float(line.split(",")[1].strip('"')) for line in done.stdout.splitlines() if line.startswith('"PING')]
    assert len(rates) == 2 and min(rates) > 1000
    with standalone.client() as c:
        harness.wait_until(lambda: len(c.call("CLIENT", "LIST").splitlines()) == 1, "its clients to be gone")


def exchange(daemon, data):
    """As `nc -N -U` does it: sends, half-closes, reads to the end."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(harness.PATIENCE)
        s.connect(daemon.socket)
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        chunks = []
        while True:
            data = s.recv(65536)
            if not data:
                return b"".join(chunks)
            chunks.append(data)


def test_inline_lines(broker):
    assert exchange(broker, b"PING\r\n") == b"+PONG\r\n"
    assert exchange(broker, b"ping\nPING x\n") == b"+PONG\r\n$1\r\nx\r\n"
    assert exchange(broker, b"\r\n\r\n  PING  \r\n") == b"+PONG\r\n"
    assert exchange(broker, b'ECHO "two words \\x41\\n"\r\n') == b"$12\r\ntwo words A\n\r\n"
    assert exchange(broker, b"ECHO 'it\\'s'\r\n") == b"$4\r\nit's\r\n"
    answer = exchange(broker, b"LOCK a\r\nUNLOCK a\r\n")
    assert re.fullmatch(rb":\d+\r\n:0\r\n", answer)
    assert exchange(broker, b"QUIT\r\nPING\r\n") == b"+OK\r\n"


def test_nc(broker):
    """Of the kinds of nc, OpenBSD's; test_inline_lines does the same by hand."""
    need("sh", "-c", "nc -h 2>&1 | grep -q OpenBSD")
    done = subprocess.run(["nc", "-N", "-U", broker.socket], input=b"PING\r\n", capture_output=True,
                          timeout=harness.PATIENCE)
    assert done.stdout == b"+PONG\r\n"
