# SPDX-License-Identifier: Apache-2.0
"""What `lockbroker http --page` answers, and what it asks the daemon and ZooKeeper for that."""

import concurrent.futures
import contextlib
import ctypes
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest

import harness
from mishaps import stopped
from test_cli import run
from users import OTHER_USER, let_in
from web import Web, request, rest

POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
VIEWERS_MAX = 64
VISITORS_MAX = 128


class Answer:
    def __init__(self, text):
        head, _, self.body = text.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}

    def json(self):
        return json.loads(self.body)


class Page(Web):
    """A `lockbroker http --page` with a port of its own."""

    def __init__(self, broker, *words, under=()):
        port = harness.free_port()
        super().__init__(broker, port, f"--page=127.0.0.1:{port}", *words, under=under, lines=2 if "--listen" in words else 1)
        assert f"lockbroker http: serves the page on http://127.0.0.1:{port}/\n" in self.said

    def connect(self, path=None):
        """As somebody who has asked for that."""
        s = super().connect()
        if path:
            s.sendall(request(path))
        return s

    def ask(self, path, **how):
        return Answer(self.raw(request(path, **how)))

    def get(self, path, **parameters):
        answer = self.ask(path + ("?" + urllib.parse.urlencode(parameters) if parameters else ""))
        assert answer.status == 200, answer.body
        return answer.json()

    def rows(self, **parameters):
        return self.get("/api/locks", **parameters)["rows"]

    def row(self, name, wanted=lambda row: True):
        """The row of that lock, once it is as it should be."""
        return harness.wait_until(lambda: [r for r in self.rows(q=name) if r["name"] == name and wanted(r)],
                                  f"the row of {name}")[0]

    def lock(self, name, wanted=lambda lock: True):
        return harness.wait_until(lambda: [k for k in [self.get("/api/lock", name=name)] if wanted(k)], name)[0]


class Stream:
    """A browser that looks."""

    def __init__(self, page):
        self.socket = page.connect("/api/stream")
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])

    def event(self):
        """The next one's data."""
        while not (line := self.file.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
        return json.loads(line[6:])

    def end(self):
        self.file.close()
        self.socket.close()


@pytest.fixture
def pages(ending):
    return lambda *args, **options: ending(Page(*args, **options))


@pytest.fixture
def streams(ending):
    return lambda page: ending(Stream(page))


# ---- what it shows ----


def test_the_overview_shows_this_host_and_its_session(zk, daemons, root, pages, streams, clients):
    daemon = daemons(zk, root)
    page = pages(daemon)
    look = streams(page)
    assert look.status == 200
    seen = harness.wait_until(lambda: [e for e in [look.event()] if e["hosts"] and e["session"]["proof_left_ms"]], "the hosts")[0]
    assert seen["broker"] == "ok" and seen["trouble"] is None and seen["host"] == daemon.host
    assert [(h["host"], h["self"]) for h in seen["hosts"]] == [(daemon.host, True)]
    session = seen["session"]
    assert session["state"] == "safe" and session["connected"] and not session["standalone"]
    assert 0 < session["proof_left_ms"] <= session["proof_max_ms"] < session["timeout_ms"]
    c = clients(daemon)
    for _ in range(20):
        c.call("LOCK", "a")
        c.call("UNLOCK", "a")
    c.call("LOCK", "a")
    plots = harness.wait_until(lambda: [e["plots"] for e in [look.event()] if (e["plots"]["grants_per_s"][-1] or 0) > 0],
                               "a step with grants")[0]
    assert all(len(plots[k]) == 180 for k in plots if k not in ("step_s", "end_ms"))
    assert plots["grants_per_s"][-1] <= 21 and plots["wait_p50_ms"][-1] <= plots["wait_p99_ms"][-1]
    assert plots["round_trip_ms"][-1] > 0 and plots["refusals"][-1] == 0 and plots["waiters"][-1] == 0
    totals = page.get("/api/overview")["totals"]
    assert totals["locks"] == totals["holders"] == 1 and totals["waiters"] == 0 and totals["clients"] >= 1


def test_a_page_that_is_opened_has_the_plots_of_the_time_before(standalone, pages, clients):
    page = pages(standalone)
    c = clients(standalone)

    c.call("LOCK", "a")
    ours = itertools.count()

    def requests():
        """The requests of the page's server, which this test asks for nothing: a question would count as a viewer."""
        return int(harness.parse_info(c.call("INFO", "stats"))["requests_total"]) - next(ours)

    before = requests()
    harness.wait_until(lambda: requests() - before >= 6, "the page's server to ask twice")
    assert [n for n in page.get("/api/overview")["plots"]["grants_per_s"] if n is not None]


def test_locks_are_shown_with_who_holds_them_and_who_waits(standalone, pages, clients):
    page, a, b = pages(standalone), clients(standalone), clients(standalone)
    a.call("LOCK", "jobs", "DATA", "the night's run")
    a.call("LOCK", "other")
    b.send("LOCK", "jobs")
    row = page.row("jobs", lambda r: r["waiters"] == 1 and r["kind"] == "lock")
    assert not row["remote"] and row["holders"] == 1 and row["waited_ms"] >= 0 and row["state"] == "local"
    holder = row["holder"]
    assert (holder["pid"], holder["uid"]) == (os.getpid(), os.getuid()) and holder["here"]
    assert holder["text"] == "the night's run" and holder["mode"] == "exclusive" and holder["since_ms"] >= row["waited_ms"]
    assert [r["name"] for r in page.rows()] == ["jobs", "other"], "the longest wait comes first"
    assert [r["name"] for r in page.rows(sort="name", q="OTH")] == ["other"]
    none = page.get("/api/locks", q="x" * 6000)
    assert (none["total"], none["matching"], none["rows"]) == (2, 0, [])
    assert [r["name"] for r in page.rows(show="waited")] == ["jobs"]
    assert page.rows(show="remote") == [] and len(page.rows(show="here")) == 2
    assert [r["name"] for r in page.rows(offset=1, count=1)] == ["other"]
    shown = page.get("/api/lock", name="jobs")
    assert [h["pid"] for h in shown["holders"]] == [os.getpid()] and shown["holders"][0]["token"] > 0
    assert [(q["position"], q["pid"], q["here"]) for q in shown["queue"]] == [(1, os.getpid(), True)]
    assert "held on this host" in shown["why"] and shown["known"] and shown["trouble"] is None
    a.call("UNLOCK", "jobs")
    assert b.reply()
    page.row("jobs", lambda r: r["waiters"] == 0)
    b.call("UNLOCK", "jobs")
    harness.wait_until(lambda: [r["name"] for r in page.rows()] == ["other"], "jobs to go")
    seen = " | ".join(s["text"] for s in page.get("/api/lock", name="jobs")["seen"])
    assert re.search(r"held on this host by .*pid \d+: the night's run", seen), seen
    assert "1 of this host waits for it" in seen and "nobody of this host waits" in seen and seen.endswith("holds it"), seen
    assert all(abs(s["at_ms"] / 1000 - time.time()) < 300 for s in page.get("/api/lock", name="jobs")["seen"])


def test_locks_of_other_hosts_are_shown_with_their_age(zk, daemons, root, pages, streams, clients):
    here, there = daemons(zk, root), daemons(zk, root)
    page = pages(here)
    streams(page)
    c = clients(there)
    c.call("LOCK", "far", "DATA", "elsewhere")
    row = page.row("far")
    assert row["remote"] and row["holder"]["host"] == there.host and not row["holder"]["here"] and row["age_ms"] >= 0
    clients(here).send("LOCK", "far")
    row = page.row("far", lambda r: not r["remote"] and r["holder"] and r["holder"]["text"] == "elsewhere")
    assert row["waiters"] == 1 and row["holder"]["host"] == there.host
    assert [r["name"] for r in page.rows(show="waited")] == ["far"]
    shown = page.lock("far", lambda k: k["holders"] and k["holders"][0]["text"])
    assert shown["holders"][0]["host"] == there.host and [q["host"] for q in shown["queue"]] == [here.host]
    assert there.host in " ".join(s["text"] for s in shown["seen"])
    hosts = harness.wait_until(lambda: page.get("/api/overview")["hosts"], "the hosts")
    assert sorted(h["host"] for h in hosts) == sorted((here.host, there.host))


NAMES = ["a'b\"c", "<script>alert(1)</script>", "\u202egnp.exe", "x" * 512, "%00", "a+b c&d=e#f", "-rf", "\U0001f512/../..", "\\n"]


def test_names_are_what_they_are(standalone, pages, clients):
    page, c = pages(standalone), clients(standalone)
    for name in NAMES:
        c.call("LOCK", name)
    harness.wait_until(lambda: sorted(r["name"] for r in page.rows()) == sorted(NAMES), "all names")
    for name in NAMES:
        shown = page.get("/api/lock", name=name)
        assert shown["name"] == name and len(shown["holders"]) == 1
        typed = subprocess.run(["sh", "-c", shown["history"].replace("lockbroker", "printf '%s,'", 1)], capture_output=True, text=True)
        assert typed.stdout in (f"history,{name},", f"history,--,{name},")
    assert "\u202e" not in page.ask("/api/locks").body.decode(), "the text of an answer steers no terminal"


def take_long_rows(page, c):
    for i in range(200):
        c.call("LOCK", "\u202e" * 160 + str(i), "DATA", "\u202e" * 160)
    harness.wait_until(lambda: page.get("/api/locks", count=1)["matching"] == 200, "all names")


def test_an_answer_with_long_rows_has_fewer_of_them(standalone, pages, clients):
    page = pages(standalone)
    take_long_rows(page, clients(standalone))
    answer = page.ask("/api/locks?count=300&sort=name")
    rows = answer.json()["rows"]
    assert 256 * 1024 <= len(answer.body) < 264 * 1024 and answer.json()["matching"] == 200 and len(rows) < 200
    assert rows[-1]["name"] < page.rows(sort="name", offset=len(rows), count=1)[0]["name"]


def test_an_answer_about_a_lock_has_the_first_of_very_many(standalone, pages, clients):
    page = pages(standalone)
    for _ in range(200):
        clients(standalone).call("LOCK", "a", "SHARED", "DATA", "\u202e" * 160)
    for _ in range(1000):
        c = clients(standalone)
        c.call("CLIENT", "SETNAME", "x" * 64)
        c.send("LOCK", "a")
    harness.wait_until(lambda: clients(standalone).call("WHY", "a")["waiters"] == 1000, "the waiters")

    def has_all():
        answer = page.ask("/api/lock?name=a")
        lock = answer.json()
        counts = lock.get("holder_count", len(lock["holders"])), lock.get("queue_count", len(lock["queue"]))
        return counts == (200, 1000) and [(lock, len(answer.body))]

    ((lock, size),) = harness.wait_until(has_all, "the whole queue")
    assert size < 300 * 1024, "it is kept for each one who does not read it"
    assert 100 <= len(lock["holders"]) < 200 and 300 <= len(lock["queue"]) < 1000 and lock["queue_here_count"] == 1000
    assert [q["position"] for q in lock["queue"]] == list(range(1, len(lock["queue"]) + 1))


def test_what_a_program_calls_itself_does_no_harm(standalone, pages, clients):
    page = pages(standalone)
    odd = b"\xff\xfe\xc3<b>\x1b"
    libc, before = ctypes.CDLL(None), ctypes.create_string_buffer(16)
    libc.prctl(16, before)  # PR_GET_NAME
    libc.prctl(15, odd)  # PR_SET_NAME
    try:
        clients(standalone).call("LOCK", "a")
    finally:
        libc.prctl(15, before)
    assert "<b>" in page.row("a")["holder"]["command"]
    assert "held" in page.get("/api/lock", name="a")["seen"][0]["text"]


def test_others_are_shown_as_the_rules_let_it_look(daemons, pages, clients):
    """To the rules it is the user that runs it."""
    daemon = daemons(argv=["-o", "access.rule=deny 65534 secret look"], daemon__socket_mode="0666")
    let_in(daemon)
    c = clients(daemon)
    for name in "secret", "open":
        c.call("LOCK", name, "DATA", "of nobody's business")
    page = pages(daemon, under=["setpriv", f"--reuid={OTHER_USER}", "--clear-groups"])
    assert page.row("open")["holder"]["text"] == "of nobody's business"
    veiled = page.row("secret")["holder"]
    assert veiled and not any(veiled[k] for k in ("pid", "uid", "command", "text")), veiled
    shown = page.get("/api/lock", name="secret")
    assert "business" not in json.dumps(shown) and str(os.getpid()) not in json.dumps(shown)


# ---- what is wrong ----


@pytest.mark.parametrize("path, status", [
    ("/api/locks?sort=size", 400), ("/api/locks?show=mine", 400), ("/api/locks?count=301", 400), ("/api/locks?count=-1", 400),
    ("/api/locks?offset=1e3", 400), ("/api/locks?count=99999999999999999999", 400), ("/api/lock", 400), ("/api/lock?name=", 400),
    ("/api/lock?name=" + "x" * 513, 400), ("/api/lock?name=%00", 400), ("/api/lock?name=%ff", 400), ("/api/lock?name=..", 400),
    ("/api/nothing", 404), ("/api/", 404), ("/nothing", 404), ("/metrics", 404), ("/healthz", 404), ("/../etc/passwd", 404),
    ("/%2e%2e/etc/passwd", 404), ("//page.css", 421), ("/page.css/", 404), ("/page/../page.css", 404), ("/api/../page.css", 404),
])
def test_what_makes_no_sense_gets_a_sentence(standalone, pages, path, status):
    answer = pages(standalone).ask(path)
    assert answer.status == status and len(answer.json()["error"]) > 10
    assert answer.headers["content-security-policy"] == POLICY


def test_every_answer_has_the_headers_that_keep_others_out(standalone, pages):
    page = pages(standalone)
    for path in ("/", "/lock?name=a", "/page.css", "/page.js", "/api/overview", "/api/locks", "/nothing"):
        answer = page.ask(path)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == ("no-store" if "api" in path or "nothing" in path else "no-cache")
        head = page.ask(path, method="HEAD")
        assert (head.status, head.body) == (answer.status, b"")
    assert page.ask("/").headers["content-type"] == "text/html; charset=utf-8"
    assert page.ask("/lock?name=a").body == page.ask("/").body
    with open(os.path.join(harness.SOURCE, "client-lib", "http", "page", "page.js"), "rb") as f:
        assert page.ask("/page.js").body == f.read()


def test_only_get_and_head_and_only_by_its_own_names(standalone, pages):
    page = pages(standalone)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"):
        assert page.ask("/api/overview", method=method).status in (405, 501), method
    for host in ("localhost", f"localhost:{page.port}", "127.0.0.1", f"127.0.0.1:{page.port}"):
        assert page.ask("/", host=host).status == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "127.0.0.2", "localhost@evil", "", "localhost.evil"):
        answer = page.ask("/api/locks", host=host)
        assert answer.status in (400, 421) and b"rows" not in answer.body
    assert page.ask("http://evil.example/api/locks").status == 421
    assert Answer(page.raw(b"GET /api/locks HTTP/1.1\r\n\r\n")).status == 421
    assert pages(standalone, "--host", "page.example").ask("/", host="page.example").status == 200


@pytest.mark.parametrize("data", [
    b"\0" * 100 + b"\r\n\r\n", b"\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/locks HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"GET /api/lock?name=" + b"%" * 4000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"*1\r\n$4\r\nPING\r\n",
], ids=range(9))
def test_it_outlives_hostile_requests(standalone, pages, data):
    page = pages(standalone)
    with contextlib.suppress(BrokenPipeError):
        assert Answer(page.raw(data)).status != 200
    assert page.process.poll() is None and page.ask("/").status == 200


def test_a_request_that_never_ends_keeps_nobody_out(standalone, pages):
    page = pages(standalone)
    slow = [page.connect() for _ in range(150)]
    for s in slow:
        s.sendall(b"GET /api/over")
    assert page.ask("/api/overview").status == 200
    for s in slow:
        assert rest(s) == b""
        s.close()


def test_the_page_is_for_this_host_alone(standalone):
    for words, sentence in [
        (["--page=0.0.0.0:80"], "a proxy with a login"), (["--page=0.0.0.0:80", "--anywhere"], "a proxy with a login"),
        (["--page=[::]:80"], "a proxy with a login"), (["--page=192.0.2.1:80"], "a proxy with a login"),
        (["--page=nowhere"], "no address and port"), (["--page=unix:"], "no address and port"),
        (["--page=unix:/" + "x" * 200], "no address and port"), ([], "--listen"), (["--page", "127.0.0.1:1"], "127.0.0.1:1"),
    ]:
        done = run(standalone, "http", *words)
        assert (done.returncode, done.stdout) == (64, "") and sentence in done.stderr, (words, done)


def test_a_unix_socket_is_for_its_owner_and_group(standalone, ending, tmp_path):
    path = str(tmp_path / "page")
    for _ in range(2):  # the second one finds the socket of the first, to which nobody listens any longer
        web = Web(standalone, None, f"--page=unix:{path}")
        assert web.said == [f"lockbroker http: serves the page on unix:{path}\n"]
        assert os.stat(path).st_mode & 0o777 == 0o660
        for host, status in (("localhost", 200), ("evil.example", 421)):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                s.sendall(request("/api/overview", host))
                assert Answer(rest(s)).status == status
        web.end()
    ending(Web(standalone, None, f"--page=unix:{path}"))
    done = run(standalone, "http", f"--page=unix:{path}")
    assert done.returncode == 71 and "in use" in done.stderr


def test_what_is_no_socket_stays_where_it_is(standalone, tmp_path):
    path, link = tmp_path / "page", tmp_path / "link"
    path.write_text("of somebody")
    link.symlink_to(path)
    for at in path, link:
        done = run(standalone, "http", f"--page=unix:{at}")
        assert done.returncode == 71 and f"cannot listen on {at}: " in done.stderr and done.stderr.endswith(".\n"), done
    assert path.read_text() == "of somebody" and link.is_symlink()


def test_an_address_that_is_in_use_is_named_with_its_port(standalone):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(standalone, "http", f"--page=127.0.0.1:{port}")
    assert done.returncode == 71 and f"cannot listen on 127.0.0.1, port {port}: Address already in use." in done.stderr, done


def test_the_port_of_the_metrics_never_shows_names(standalone, pages, clients):
    """Also beside a page."""
    port = harness.free_port()
    page = pages(standalone, "--listen", f"127.0.0.1:{port}")
    clients(standalone).call("LOCK", "secret-name", "DATA", "secret-text")
    page.row("secret-name")

    def ask(path):
        with socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE) as s:
            s.sendall(request(path))
            return Answer(rest(s))

    for path in ("/metrics", "/healthz"):
        answer = ask(path)
        assert answer.status == 200 and b"secret" not in answer.body
    for path in ("/", "/lock?name=secret-name", "/page.js", "/api/overview", "/api/locks", "/api/lock?name=secret-name", "/api/stream"):
        answer = ask(path)
        assert answer.status == 404 and answer.body == b"there are /metrics and /healthz\n"


# ---- who looks ----


def test_one_viewer_too_many_is_told_so(standalone, pages, streams):
    page = pages(standalone)
    many = [streams(page) for _ in range(VIEWERS_MAX)]
    assert {look.status for look in many} == {200}
    refused = page.ask("/api/stream")
    assert refused.status == 503 and "64" in refused.json()["error"]
    assert page.get("/api/overview")["viewers"] == VIEWERS_MAX
    assert many[0].event()["broker"] == "ok" and many[-1].event()["viewers"] == VIEWERS_MAX
    many[0].end()
    harness.wait_until(lambda: page.get("/api/overview")["viewers"] == VIEWERS_MAX - 1, "the place to be free")
    assert streams(page).event()["viewers_max"] == VIEWERS_MAX


def test_places_that_all_wait_or_stream_take_nobody_in(standalone, pages, streams):
    page = pages(standalone)
    for _ in range(VIEWERS_MAX - 1):
        assert streams(page).status == 200
    standalone.signal(signal.SIGSTOP)
    waits = [page.connect("/api/lock?name=a") for _ in range(VISITORS_MAX - VIEWERS_MAX)]
    assert streams(page).status == 200
    with page.connect("/") as further:
        standalone.signal(signal.SIGCONT)
        assert Answer(rest(further)).status == 200
    for s in waits:
        assert Answer(rest(s)).status in (200, 503)
        s.close()
    assert page.process.poll() is None


def test_a_viewer_that_does_not_read_is_dropped(standalone, pages, streams):
    page = pages(standalone)
    slow = page.connect()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    slow.sendall(request("/api/stream"))
    harness.wait_until(lambda: page.get("/api/overview")["viewers"] == 1, "the stream")
    look = streams(page)
    harness.wait_until(lambda: look.event()["viewers"] == 1, "the slow one to go", patience=240)
    slow.close()


TALK_BYTES = 64 * 1024 * 1024


def talk(s):
    """How much is taken from it until nothing more is for a second."""
    sent = 0
    s.settimeout(1)
    with contextlib.suppress(TimeoutError, ConnectionError):
        while sent < TALK_BYTES:
            sent += s.send(b"x" * 65536)
    return sent


def test_a_viewer_that_talks_is_not_listened_to(standalone, pages, streams):
    """What is sent on a stream fills the kernel's buffers, not this process's."""
    page = pages(standalone)
    assert talk(streams(page).socket) < TALK_BYTES
    assert page.ask("/api/overview").status == 200


def test_who_talks_and_does_not_read_the_answer_is_not_listened_to(standalone, pages, clients):
    page = pages(standalone)
    take_long_rows(page, clients(standalone))
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        s.connect(("127.0.0.1", page.port))
        s.sendall(request("/api/locks?count=300"))
        assert talk(s) < TALK_BYTES
    assert page.ask("/api/overview").status == 200


# ---- what it costs ----


def requests_in(daemon, seconds):
    """How many requests the daemon has had in that time, but for ours, and how long it was."""
    with daemon.client(2) as c:
        before, after, took = harness.over(seconds, lambda: int(harness.parse_info(c.call("INFO", "stats"))["requests_total"]))
        return after - before - 1, took


@pytest.mark.plain_only("it is about numbers of requests")
def test_twenty_viewers_cost_the_broker_as_much_as_one(standalone, pages, streams, clients):
    clients(standalone).call("LOCK", "a")
    page = pages(standalone)
    nobody, took = requests_in(standalone, 6)
    assert nobody <= 3 * (2 + took // 5), "each five seconds"
    streams(page).event()

    def one_viewer():
        requests, took = requests_in(standalone, 4)
        return requests >= 3 * 4 and requests / took

    one = harness.wait_until(one_viewer, "a viewer who costs something each second")
    many = [streams(page) for _ in range(19)]
    for _ in range(3):
        for look in many:
            look.event()
            page.rows()
    twenty, took = requests_in(standalone, 4)
    assert twenty <= one * took + 8, (one, twenty, took)


@pytest.mark.plain_only("it is about numbers of requests")
def test_rows_that_somebody_looks_at_are_fresh_among_many_locks(standalone, pages, streams, clients):
    """Also if their names have what patterns are made of. Only lists by an order say how often a lock was granted."""
    c, other = clients(standalone), clients(standalone)
    names = [f"m[*]?\\-{i:04}" for i in range(2000)]
    harness.lock_many(c, names)
    page = pages(standalone)
    streams(page)
    harness.wait_until(lambda: page.get("/api/locks", count=1)["total"] == len(names), "all locks")

    def looked_at():
        return page.rows(sort="name", offset=970, count=60)

    rows = harness.wait_until(lambda: [r for r in looked_at() if r["grants_per_s"] is not None][59:] and looked_at(), "fresh rows")
    assert [r["name"] for r in rows] == names[970:1030]
    before, took = requests_in(standalone, 4)
    assert before <= (1 + took) * (6 + 8), "METRICS, INFO, two orders, the whole list, and few for what is looked at"
    assert page.rows(sort="name", offset=500, count=60)[0]["grants_per_s"] is None, "nobody has looked there"
    c.call("UNLOCK", names[1000])
    other.send("LOCK", names[1001])
    harness.wait_until(lambda: [r["waiters"] for r in looked_at() if r["name"] in names[1000:1002]] == [1], "both changes")


@pytest.mark.plain_only("it is about numbers of requests")
def test_zookeeper_is_asked_only_while_somebody_looks_and_by_a_budget(zk, daemons, root, pages, streams, clients):
    here, there = daemons(zk, root), daemons(zk, root)
    harness.lock_many(clients(there), [f"lock-{i}" for i in range(100)])
    waits = [clients(here) for _ in range(5)]
    for i, w in enumerate(waits):
        w.send("LOCK", f"lock-{i}")
    harness.wait_until(lambda: here.info("locks")["requests"] == "5", "the waiters")
    page = pages(here)

    def reads(seconds):
        before, after, took = harness.over(seconds, lambda: int(here.info("stats")["zk_reads_total"]))
        assert after - before <= 50 * took + 50, (before, after, took)
        return after - before

    # A wait is looked at every 20 to 30 s by two reads, whoever looks at a page.
    harness.wait_until(lambda: reads(3) <= 4, "the joins to be over")
    look = streams(page)
    look.event()

    def held_rows():
        rows = page.rows(show="here")
        return len(rows) == 5 and all(r["holder"] for r in rows) and rows

    held = harness.wait_until(held_rows, "who holds what is waited for")
    assert {r["holder"]["host"] for r in held} == {there.host}
    harness.wait_until(lambda: reads(6) > 60, "somebody who looks to cost something")
    harness.wait_until(lambda: page.get("/api/locks", count=1)["total"] == 100, "all locks of the other host")
    look.end()
    harness.wait_until(lambda: reads(3) <= 4, "nobody to be asked")


def test_locks_that_are_opened_have_their_turns_and_leave_packets_to_the_rest(zk, daemons, root, pages, streams, clients):
    here, there = daemons(zk, root), daemons(zk, root)
    c = clients(there)
    for i in range(40):
        c.call("LOCK", f"lock-{i}")
    page = pages(here)
    streams(page)
    names, shown, ended = [f"lock-{i}" for i in range(20)], set(), threading.Event()

    def look_at(name):
        while not ended.is_set():
            if page.get("/api/lock", name=name)["holders"]:
                shown.add(name)

    with concurrent.futures.ThreadPoolExecutor(len(names)) as viewers:
        looks = [viewers.submit(look_at, name) for name in names]
        try:
            harness.wait_until(lambda: shown == set(names), "all that are opened")
            harness.wait_until(lambda: page.get("/api/locks", count=1)["total"] == 40, "the others")
        finally:
            ended.set()
        for look in looks:
            look.result()


def test_the_first_one_who_looks_is_answered_with_what_is_now(standalone, pages, clients):
    page = pages(standalone)
    operator = clients(standalone, operator=True)
    harness.wait_until(lambda: "name=page" in operator.call("CLIENT", "LIST") and page_has_asked(operator), "the first poll")
    clients(standalone).call("LOCK", "a")
    assert [r["name"] for r in page.rows()] == ["a"]


def page_has_asked(operator):
    (line,) = [line for line in operator.call("CLIENT", "LIST").splitlines() if " name=page " in line]
    return " cmd=locks " in line


# ---- the broker goes ----


def test_it_says_that_the_broker_is_away_and_recovers(daemons, pages, streams, clients):
    daemon = daemons()
    page = pages(daemon)
    look = streams(page)
    clients(daemon).call("LOCK", "a")
    page.row("a")
    daemon.terminate()
    gone = harness.wait_until(lambda: [e for e in [look.event()] if e["broker"] == "away"], "the end")[0]
    assert daemon.socket in gone["trouble"] and gone["host"] == daemon.host
    assert page.ask("/api/lock?name=unheard-of").status == 503
    daemon.start()
    harness.wait_until(lambda: look.event()["broker"] == "ok", "the broker")
    harness.wait_until(lambda: page.rows() == [], "the lock that nobody holds any longer to go")


def test_a_name_that_was_refused_is_shown_when_the_broker_takes_it(zk, root, daemons, pages, clients):
    daemon = daemons(zk, f"{root}/ours", **{"prefix:app/.path": f"{root}/app"})
    page = pages(daemon)
    refused = page.ask("/api/lock?name=app/")
    assert refused.status == 400 and "app/" in refused.json()["error"]
    daemon.terminate()
    del daemon.options["prefix:app/.path"]
    daemon.start()
    clients(daemon).call("LOCK", "app/")
    answer = harness.wait_until(lambda: [a for a in [page.ask("/api/lock?name=app/")] if a.status == 200 or not a.json()["error"]],
                                "another answer")[0]
    assert answer.status == 200


def test_of_a_broker_that_is_started_again_standalone_no_hosts_are_shown(zk, root, daemons, pages, streams):
    daemon = daemons(zk, root)
    page = pages(daemon)
    look = streams(page)
    harness.wait_until(lambda: look.event()["hosts"], "the hosts")
    daemon.terminate()
    daemon.standalone, daemon.has_session = True, False
    for key in [k for k in daemon.options if k.startswith("zookeeper.") and k != "zookeeper.host"]:
        del daemon.options[key]
    daemon.start()
    shown = harness.wait_until(lambda: [e for e in [look.event()] if e["session"]["standalone"]], "the broker")[0]
    assert shown["hosts"] == [] and shown["hosts_age_ms"] is None


def test_it_does_not_wait_for_a_broker_that_hangs(standalone, pages, streams):
    page = pages(standalone)
    look = streams(page)
    with stopped(standalone):
        with page.connect("/api/lock?name=a") as waits:
            harness.wait_until(lambda: look.event()["broker"] == "away", "the silence to be noticed")
            assert page.ask("/").status == 200
            assert Answer(rest(waits)).status == 503
        assert {look.event()["broker"] for _ in range(8)} == {"away"}, "it is asked again, and is away until it answers"
    harness.wait_until(lambda: look.event()["broker"] == "ok", "the broker")


def test_the_first_viewer_is_not_answered_before_the_broker_has_answered(standalone, pages):
    page = pages(standalone)
    with stopped(standalone):
        assert page.get("/api/overview")["broker"] == "away"


def test_it_may_be_there_before_the_broker(daemons, pages, streams):
    daemon = daemons()
    daemon.terminate()
    page = pages(daemon)
    assert page.get("/api/overview")["broker"] == "away" and page.rows() == []
    daemon.start()
    look = streams(page)
    harness.wait_until(lambda: look.event()["broker"] == "ok", "the broker")
