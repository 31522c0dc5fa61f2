# SPDX-License-Identifier: Apache-2.0
"""What shows how the daemon does: METRICS, `lockbroker metrics`, `check` and `http`, and the rules of alerts."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import fakebroker
import harness
from mishaps import stopped
from test_cli import run
from tools import need
from web import Web, request, rest

LOCKBROKER = harness.program("lockbroker")
DOWN = "# HELP lockbroker_up 1: the daemon has answered.\n# TYPE lockbroker_up gauge\nlockbroker_up 0\n"


def promtool(what, text="", *paths):
    """Prometheus's own opinion; without promtool there is none."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    return subprocess.run(["promtool", "check", what, *paths], input=text, capture_output=True, text=True)


def value(text, name):
    return float(re.search(rf"^lockbroker_{re.escape(name)} (\S+)$", text, re.M).group(1))


@pytest.mark.plain_only("it is about the text")
def test_prometheus_finds_nothing_wrong(standalone, zk, daemons, root):
    for daemon in (standalone, daemons(zk, root)):
        text = run(daemon, "metrics").stdout
        checked = promtool("metrics", text)
        assert checked.returncode == 0 and checked.stdout + checked.stderr == ""
        assert len(text) < 65536 and text.endswith("\n")


@pytest.mark.plain_only("it is about a document")
def test_the_rules_of_alerts_are_valid_and_name_what_there_is(zk, daemons, root):
    path = os.path.join(harness.SOURCE, "conf", "lockbroker.rules.yml")
    assert promtool("rules", "", path).returncode == 0
    text = run(daemons(zk, root), "metrics").stdout
    for name in re.findall(r"\b(lockbroker_[a-z_]+)\b", re.sub(r".*rule_files.*", "", harness.read_source(path))):
        assert re.search(rf"^{name}[ {{]", text, re.M), name


@pytest.mark.plain_only("it is about a document")
def test_the_rules_of_alerts_do_what_they_say():
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    done = subprocess.run(["promtool", "test", "rules", os.path.join(harness.SOURCE, "tests", "system", "alerts.yml")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_counters_go_on_over_a_hand_over_and_not_over_a_kill(standalone, clients):
    c = clients(standalone)
    for _ in range(3):
        c.call("LOCK", "a")
        c.call("UNLOCK", "a")
    before = run(standalone, "metrics").stdout
    standalone.hand_over()
    after = run(standalone, "metrics").stdout
    assert value(after, "grants_total") == value(before, "grants_total") == 3
    assert value(after, "hold_seconds_count") == 3
    assert value(after, "counters_start_time_seconds") == value(before, "counters_start_time_seconds")

    old = standalone.pid
    os.kill(old, signal.SIGKILL)
    standalone.await_another(old)
    killed = run(standalone, "metrics").stdout
    assert value(killed, "grants_total") == value(killed, "hold_seconds_count") == 0
    assert value(killed, "counters_start_time_seconds") >= value(after, "counters_start_time_seconds")


def test_the_file_for_a_collector_is_whole_at_any_time(standalone, tmp_path):
    path = tmp_path / "lockbroker.prom"
    assert run(standalone, "metrics", "--textfile", str(path)).returncode == 0
    whole = path.read_text()
    assert value(whole, "up") == 1 and promtool("metrics", whole).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o644
    standalone.terminate()
    assert run(standalone, "metrics", "--textfile", str(path)).returncode == 69
    assert path.read_text() == DOWN
    assert os.listdir(tmp_path) == [path.name]
    assert run(standalone, "metrics", "--textfile", str(tmp_path / "none" / "x")).returncode == 71


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_file_is_not_replaced(standalone, tmp_path, kind):
    path, target = tmp_path / "there", tmp_path / "target"
    target.write_text("former\n")
    {"link": lambda: path.symlink_to(target), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
    before = path.lstat()
    done = run(standalone, "metrics", "--textfile", str(path))
    assert done.returncode == 71 and re.fullmatch("lockbroker: [^\n]* is no regular file[^\n]*\n", done.stderr), done
    assert path.lstat() == before and target.read_text() == "former\n"
    assert sorted(os.listdir(tmp_path)) == ["target", "there"]


def test_the_timer_of_the_manual_writes_the_file(standalone, tmp_path):
    manual = harness.read_source("client-lib/man/lockbroker.1")
    command = re.search(r"^ExecStart=(/usr/bin/lockbroker metrics .*)$", manual, re.M).group(1).replace("\\-", "-").split()
    command[0] = LOCKBROKER
    command[-1] = str(tmp_path / os.path.basename(command[-1]))
    subprocess.run(command, env=os.environ | {"LOCKBROKER_SOCKET": standalone.socket}, check=True)
    assert value(open(command[-1]).read(), "up") == 1


# ---- check ----


def test_check_says_in_a_line_whether_all_is_well(standalone, clients):
    done = run(standalone, "check")
    assert done.returncode == 0
    assert re.fullmatch(r"LOCKBROKER OK - standalone; 0 locks, .* \| limit=\S+%;80;95;0;100 .*\n", done.stdout)
    clients(standalone).call("LOCK", "a")
    clients(standalone).send("LOCK", "a")
    harness.wait_until(lambda: run(standalone, "check", "-w", "wait=0.001").returncode == 1, "the wait to be seen")
    done = run(standalone, "check", "-w", "wait=0.001", "-c", "wait=0.002,limit=0.001")
    assert done.returncode == 2 and "is the longest wait" in done.stdout and "of a limit is in use: clients" in done.stdout


@pytest.mark.parametrize("words", [["x"], ["-w"], ["-w", "wait"], ["-w", "wait=x"], ["-c", "wait=-1"], ["-c", "nothing=1"],
                                   ["-x"], ["-w", "wait=nan"]])
def test_check_knows_nothing_when_it_is_asked_wrongly(standalone, words):
    assert run(standalone, "check", *words).returncode == 3


def test_check_is_critical_without_a_daemon_and_with_one_that_hangs(standalone):
    with stopped(standalone):
        done = run(standalone, "check")
    assert done.returncode == 2 and done.stdout.startswith("LOCKBROKER CRITICAL - ")
    standalone.terminate()
    done = run(standalone, "check")
    assert done.returncode == 2 and "No lockbrokerd is serving" in done.stdout


def test_check_is_critical_when_no_connection_is_left(daemons, clients):
    d = daemons(limits__clients=4)
    many = [clients(d) for _ in range(4)]
    harness.wait_until(lambda: run(d, "check").returncode == 2, "the limit to be reached")
    shown = run(d, "check").stdout
    assert "as many clients as it can have" in shown or "allowed connections (limits.clients" in shown
    assert many[0].call("PING") == "PONG"


def test_a_file_that_cannot_be_made_is_named_as_it_was_given(standalone, tmp_path):
    done = run(standalone, "metrics", "--textfile", tmp_path / "none" / "x")
    assert (done.returncode, done.stderr) == (71, f"lockbroker: Cannot write {tmp_path}/none/x: No such file or directory.\n")


def test_check_tells_a_session_that_is_not_safe(own_zk, daemons, root):
    zookeeper = own_zk()
    daemon = daemons(zookeeper, root)
    assert "the session is safe" in run(daemon, "check").stdout
    zookeeper.kill()
    harness.wait_until(lambda: run(daemon, "check").returncode == 1, "jeopardy")
    harness.wait_until(lambda: "the session is lost" in run(daemon, "check").stdout, "the loss")
    assert run(daemon, "check").returncode == 2


# ---- http ----


class Http(Web):
    def __init__(self, daemon, *words):
        port = harness.free_port()
        super().__init__(daemon, port, "--listen", f"127.0.0.1:{port}", *words)
        assert "serves" in self.said[0]

    def ask(self, path="/metrics", **how):
        return self.raw(request(path, **how)).decode()


@pytest.fixture
def http(standalone, ending):
    return ending(Http(standalone))


def test_http_serves_what_the_daemon_says(standalone, http):
    head, body = http.ask().split("\r\n\r\n", 1)
    assert head.startswith("HTTP/1.1 200 OK") and "text/plain; version=0.0.4" in head
    assert value(body, "up") == 1
    assert http.ask("/healthz").endswith("\r\n\r\nok\n")
    assert http.ask(method="HEAD").endswith("\r\n\r\n")
    assert http.ask("/").startswith("HTTP/1.1 404")
    standalone.terminate()
    assert http.ask().startswith("HTTP/1.1 503") and http.ask().endswith(DOWN)
    assert http.ask("/healthz").startswith("HTTP/1.1 503")


def test_http_does_not_wait_for_a_daemon_that_hangs(standalone, http):
    with stopped(standalone):
        assert http.ask().startswith("HTTP/1.1 503")
    harness.wait_until(lambda: http.ask().startswith("HTTP/1.1 200"), "an answer")


class Pusher(fakebroker.Broker):
    """Never answers, and never falls silent."""

    def serve(self, peer):
        with contextlib.suppress(OSError):  # the other end has given up
            while peer.send(b">1\r\n+x\r\n"):
                time.sleep(0.1)  # more often than patience ends


def test_http_gives_up_a_daemon_that_sends_anything_but_the_answer(tmp_path, ending):
    broker = ending(Pusher(tmp_path / "socket", None))
    assert ending(Http(broker)).ask().startswith("HTTP/1.1 503")


@pytest.mark.parametrize("size, status", [(1 << 19, 200), (1 << 20, 503)])
def test_http_bounds_what_a_daemon_may_answer(tmp_path, ending, size, status):
    broker = ending(fakebroker.Broker(tmp_path / "socket", None))
    broker.answers["METRICS"] = f"${size}\r\n" + "x" * size
    assert ending(Http(broker)).ask().startswith(f"HTTP/1.1 {status}")


def test_http_answers_by_its_own_names_only(standalone, http, ending):
    """A web page may have a name of its own lead here."""
    for host in ("localhost", f"localhost:{http.port}", "127.0.0.1", f"127.0.0.1:{http.port}", "LOCALHOST"):
        assert http.ask(host=host).startswith("HTTP/1.1 200"), host
    for host in ("evil.example", "127.0.0.1.evil.example", "127.0.0.2", "[::1]", "localhost:x", "", "localhost@evil"):
        assert not http.ask(host=host).startswith("HTTP/1.1 200"), host
    assert http.raw(b"GET /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 421")
    assert not http.ask("http://evil.example/metrics").startswith("HTTP/1.1 200")
    named = ending(Http(standalone, "--host", "monitor.example"))
    assert named.ask(host="monitor.example").startswith("HTTP/1.1 200")


@pytest.mark.parametrize("data", [
    b"\0" * 100 + b"\r\n\r\n", b"\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
    b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET //metrics/../metrics%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"*1\r\n$4\r\nPING\r\n",
], ids=range(13))
def test_http_outlives_hostile_requests(http, data):
    with contextlib.suppress(BrokenPipeError):
        assert not http.raw(data).startswith(b"HTTP/1.1 200")
    assert http.process.poll() is None
    assert http.ask().startswith("HTTP/1.1 200")


def test_http_bounds_its_connections_and_their_lives(http):
    """More than it takes at a time, none of which ever says what it wants: each ends, and who asks is answered."""
    descriptors = f"/proc/{http.process.pid}/fd"
    before = len(os.listdir(descriptors))
    slow = [http.connect() for _ in range(80)]
    for s in slow:
        s.sendall(b"GET /met")
    # A connection that goes for another one is closed once the program's loop has come round.
    assert rest(slow[15]) == b""
    harness.wait_until(lambda: len(os.listdir(descriptors)) <= before + 64, "the others to be 64")
    assert http.ask().startswith("HTTP/1.1 200")
    for s in slow:
        rest(s)
        s.close()


def test_a_request_that_has_been_incomplete_longest_goes_for_a_new_connection(http):
    """200 connections that send a byte now and then keep nobody out."""
    slow = [http.connect() for _ in range(200)]
    for s in slow:
        s.sendall(b"GET /healthz HT")
    for _ in range(3):
        assert http.ask("/healthz").startswith("HTTP/1.1 200")
    for s in slow[:130]:
        assert rest(s) == b""
    for s in slow[-32:]:
        s.sendall(b"TP/1.1\r\nHost: localhost\r\n\r\n")
        assert rest(s).startswith(b"HTTP/1.1 200")
    for s in slow:
        s.close()


def unread(port):
    """What each connection to that port has received and nobody has read yet, in bytes."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f]
    return [int(row[4].split(":")[1], 16) for row in rows[1:] if row[1].endswith(f":{port:04X}") and row[3] == "01"]


def test_connections_that_wait_for_the_daemon_are_not_turned_out(standalone, http):
    """They are answered within 5 s, or told that it does not; others are let in then."""
    with stopped(standalone):
        asking = []
        for total in (64, 90):
            while len(asking) < total:
                asking.append(http.connect())
                asking[-1].sendall(request("/healthz"))
            if total == 64:
                harness.wait_until(lambda: unread(http.port) == 64 * [0], "the requests to be read")
    for s in asking:
        assert rest(s).startswith(b"HTTP/1.1 ")
        s.close()


# In a network of its own, one address of which is not of this host's loopback.
ELSEWHERE = """
import socket, subprocess, sys
sys.path.insert(0, sys.argv.pop(1))
from web import request, rest
def connect(to):
    return socket.create_connection((to, int(sys.argv[1])), 60)
REQUEST = request("/healthz", "10.9.9.9")
h = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True)
assert "serves" in h.stdout.readline()
here = [connect("127.0.0.1") for _ in range(40)]
other = [connect("10.9.9.9") for _ in range(30)]
for s in here + other:
    s.sendall(REQUEST[:9])
for s in other[:14]:
    assert rest(s) == b"", "the earliest are turned out"
for s in other[14:] + here:
    s.sendall(REQUEST[9:])
    assert rest(s).startswith(b"HTTP/1.1 200"), "the others are not, and nobody on this host"
h.kill()
print("done")
"""


def test_one_address_elsewhere_has_a_part_of_the_connections(standalone):
    need("unshare", "--net", "ip", "link")
    port = str(harness.free_port())
    done = subprocess.run(["unshare", "--net", "sh", "-ec", "ip link set lo up; ip addr add 10.9.9.9/32 dev lo; exec \"$@\"", "sh",
                           "/usr/bin/python3", "-c", ELSEWHERE, harness.HERE, port, LOCKBROKER, "-S", standalone.socket, "http", "--listen",
                           f"0.0.0.0:{port}", "--anywhere"], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_http_says_why_it_does_not_serve(standalone, http):
    for words, status, sentence in [
        ([], 64, "--listen"), (["--listen", "nowhere"], 64, "no address and port"),
        (["--listen", "0.0.0.0:1"], 64, "--anywhere"), (["--listen", f"127.0.0.1:{http.port}"], 71, "in use"),
        (["--listen", "127.0.0.1:99999"], 64, "no address and port"), (["--listen", "::1"], 64, "no address and port"),
    ]:
        done = run(standalone, "http", *words)
        assert done.returncode == status and sentence in done.stderr, done.stderr
