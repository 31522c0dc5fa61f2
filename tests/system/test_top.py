# SPDX-License-Identifier: Apache-2.0
"""`lockbroker top`, by what is on the screen of a terminal, which tmux is here."""

import contextlib
import fcntl
import itertools
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import termios
import threading
import time
import types

import harness
import pytest
import users

PROGRAM = harness.program("lockbroker-top")
MISSING = ("tmux is not installed" if not shutil.which("tmux") else
           "lockbroker-top is built only where there is ncurses" if not os.path.exists(PROGRAM) else None)

WRITE = {"x86_64": 1, "aarch64": 64}[os.uname().machine]  # the number of that system call
ALTERNATE, CURSOR = "#{alternate_on}", "#{cursor_flag}"


class Screen:
    """A terminal in which a shell runs the command, and then waits to be looked at."""

    def __init__(self, command, columns=80, lines=24, term=None):
        self.dir = harness.fast_tmp("top.")
        self.socket = os.path.join(self.dir, "tmux")
        env = {k: v for k, v in os.environ.items() if not k.startswith("TMUX")} | {"LC_ALL": "C.UTF-8"}
        self.server = harness.spawn(["tmux", "-D", "-S", self.socket, "-f", "/dev/null"], env=env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        harness.wait_until(self.listens, "tmux")
        term = f"TERM={term} " if term else ""
        script = (f"cd {self.dir}; stty -g >before; {term}{command} 2>said; echo $? >status; stty -g >after; touch over; "
                  f"exec sleep 1000")
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), script)

    def listens(self):
        """Its socket is there a moment before."""
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.socket) == 0

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True, stdout=subprocess.PIPE, text=True).stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def wait(self, condition, what):
        """Until the lines of the screen are so; returns them."""
        seen = []

        def holds():
            seen[:] = self.lines()
            return condition(seen)

        harness.wait_until(holds, lambda: f"{what}; on the screen:\n" + "\n".join(seen))
        return seen

    def wait_for(self, *texts):
        return self.wait(lambda lines: all(any(text in line for line in lines) for text in texts), texts)

    def wait_rows(self, *names):
        """These are the first locks, in this order. Rows stand below the head of their columns."""
        return self.wait(lambda lines: [line.split(" ")[0] for line in lines[3:3 + len(names)]] == list(names), names)[3:]

    def read(self, file):
        with open(os.path.join(self.dir, file)) as f:
            return f.read()

    def ended(self):
        """The command has ended: its status, once the terminal is as it was."""
        harness.wait_until(lambda: os.path.exists(os.path.join(self.dir, "over")), lambda: "\n".join(self.lines()))
        assert self.read("after") == self.read("before"), "the settings of the terminal"
        harness.wait_until(lambda: self.tmux("display", "-p", ALTERNATE).strip() == "0", "the screen that was there before")
        assert self.tmux("display", "-p", CURSOR).strip() == "1", "the cursor is shown"
        return int(self.read("status"))

    def pid(self):
        return next(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.runs(pid))

    def runs(self, pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat") as f:
                return os.readlink(f"/proc/{pid}/exe") == PROGRAM and os.readlink(f"/proc/{pid}/cwd") == self.dir and f.read()
        return False

    def end(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")
        self.server.wait(harness.PATIENCE)
        complaint = self.read("said") if os.path.exists(os.path.join(self.dir, "said")) else ""
        shutil.rmtree(self.dir)
        return complaint if harness.COMPLAINTS.search(complaint) else None


@pytest.fixture(autouse=True)
def can_be_tested():
    if MISSING:
        assert not os.environ.get("NEED_CLIENTS"), MISSING
        pytest.skip(MISSING)


@pytest.fixture
def screens():
    made = []

    def make(daemon, *args, **options):
        command = shlex.join([os.path.realpath(harness.program("lockbroker")), "-S", daemon.socket, "top"])
        made.append(Screen(*(args or [command]), **options))
        return made[-1]

    yield make
    wrong = [complaint for complaint in [s.end() for s in made] if complaint]
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def broker(daemons):
    return daemons()


def hold(clients, daemon, name, data=None, label=None):
    c = clients(daemon)
    if label:
        assert c.call("CLIENT", "SETNAME", label) == "OK"
    assert c.call("LOCK", name, *(["DATA", data] if data else [])) > 0
    return c


def wait_in(clients, daemon, name, count=1):
    waiters = [clients(daemon) for _ in range(count)]
    for c in waiters:
        c.send("LOCK", name)
    harness.wait_until(lambda: clients(daemon).call("WHY", name)["waiters"] == count, "the requests")
    return waiters


def three_locks(clients, broker):
    """first has been waited for longest, second by most, third by nobody."""
    hold(clients, broker, "third")
    hold(clients, broker, "second")
    hold(clients, broker, "first", "nightly run", "backup")
    wait_in(clients, broker, "first")
    wait_in(clients, broker, "second", 2)


def test_the_lock_that_was_waited_for_longest_is_the_first_row_with_its_holder(broker, clients, screens):
    three_locks(clients, broker)
    screen = screens(broker)
    row = screen.wait_rows("first", "second", "third")[0]
    assert re.search(rf"^first +\S+ +1 .*backup \(nightly run\) +{broker.host[:6]}", row), row
    head = screen.wait_for("3 locks, 3 held, 3 waiting for up to ", "by longest wait")
    assert head[0].startswith(f"{broker.host}: standalone") and "LOCK" in head[2] and "q end" in head[23]


def test_keys_sort(broker, clients, screens):
    three_locks(clients, broker)
    screen = screens(broker)
    screen.keys("n")
    screen.wait_rows("second", "first", "third")
    screen.keys("a")
    screen.wait_rows("first", "second", "third")
    screen.keys("g")
    screen.wait_for("by grants a second")
    keeps, busy = clients(broker), clients(broker)
    assert keeps.call("LOCK", "zebra", "SHARED") > 0

    def grants_are_seen(lines):
        for _ in range(50):
            assert busy.call("LOCK", "zebra", "SHARED") > 0 and busy.call("UNLOCK", "zebra") == 0
        return re.match(r"zebra .* [1-9][.\d]*$", lines[3])

    screen.wait(grants_are_seen, "the lock that is granted most often")
    screen.keys("w")
    screen.wait_rows("first", "second", "third")


def test_a_filter_shows_the_locks_with_that_text(broker, clients, screens):
    for name in ("alpha", "beta*", "beta"):
        hold(clients, broker, name)
    screen = screens(broker)
    screen.wait_rows("alpha", "beta", "beta*")
    screen.keys("/", "ta*")
    screen.wait_for("/ta*_")
    screen.wait(lambda lines: lines[3].startswith("beta* ") and not lines[4], "the lock with that text, which is no pattern")
    screen.keys("BSpace", "Enter")
    screen.wait_rows("beta", "beta*")
    screen.wait_for('with "ta"')
    screen.keys("/", "x", "Escape")
    screen.wait_rows("beta", "beta*")
    screen.keys("/", "nothing", "Enter")
    screen.wait_for("no lock of this host has that in its name")
    screen.keys("/", "C-u", "Enter")
    screen.wait_rows("alpha", "beta", "beta*")


def test_a_lock_is_opened(broker, clients, screens):
    three_locks(clients, broker)
    screen = screens(broker)
    screen.wait_rows("first", "second", "third")
    screen.keys("Down", "Enter")
    lines = screen.wait_for("second: held on this host", "HOLDER", "WAITER")
    assert [line.split()[0] for line in lines[6:8]] == ["1", "2"], lines
    screen.keys("Escape")
    screen.wait_rows("first", "second", "third")
    screen.keys("?")
    screen.wait_for("ask the holders of the lock to release it")
    screen.keys("Escape")
    screen.wait_rows("first", "second", "third")


def test_a_lock_is_opened_on_a_narrow_screen(broker, clients, screens):
    hold(clients, broker, "a", label="somebody")
    screen = screens(broker, columns=16, lines=12)
    screen.wait_rows("a")
    screen.keys("Enter")
    screen.wait(lambda lines: any(re.fullmatch(r" {5}somebody", line.rstrip()) for line in lines), "its holder")


def test_stopped_it_stands_still(broker, clients, screens):
    hold(clients, broker, "old")
    screen = screens(broker)
    screen.wait_rows("old")
    screen.keys("Space")
    screen.wait_for("STOPPED")
    hold(clients, broker, "new")
    time.sleep(1.2)  # longer than from one question to the next
    screen.keys("?")
    screen.wait_for("stop, or go on")
    screen.keys("?")
    screen.wait(lambda lines: "STOPPED" in lines[1] and lines[3].startswith("old ") and not lines[4], "the screen as it was")
    screen.keys("Space")
    screen.wait_rows("new", "old")


def test_a_release_is_asked_for_when_that_is_confirmed(broker, clients, screens):
    holder = hold(clients, broker, "a")
    screen = screens(broker)
    screen.wait_rows("a")
    screen.keys("r")
    screen.wait_for("y: ask the holders to release a;")
    screen.keys("n")
    screen.wait_for("q end")
    screen.keys("r")
    screen.wait_for("y: ask the holders to release a;")
    screen.keys("y")
    screen.wait_for("1 holder was asked to release it.")
    assert holder.push()[:2] == ["revoke", "a"]
    assert not holder.pushes and holder.quiet(), "it was asked once"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can be two users")
def test_who_may_not_ask_is_told_so(daemons, clients, screens):
    broker = daemons(daemon__socket_mode="0666")
    users.let_in(broker)
    with users.as_other_user():
        holder = hold(clients, broker, "a")
    screen = screens(broker, f"env LOCKBROKER_SOCKET={broker.socket} {PROGRAM}")
    screen.wait_rows("a")
    screen.keys("r", "y")
    screen.wait_for("only operators may")
    assert holder.quiet()


@pytest.mark.parametrize("columns,lines", [(80, 24), (250, 60), (20, 5)])
def test_it_fits_any_screen(broker, clients, screens, columns, lines):
    names = [f"lock{i:03d}" for i in range(70)]
    harness.lock_many(clients(broker), names)
    screen = screens(broker, columns=columns, lines=lines)
    seen = screen.wait(lambda all: all[lines - 2].startswith(names[lines - 5]), "a row on the last line but one")
    assert len(seen) == lines and all(len(line) <= columns for line in seen)
    screen.keys("End")
    screen.wait(lambda all: all[lines - 2].startswith("lock069"), "the last lock")
    screen.keys("Home")
    screen.wait_rows("lock000")


def test_it_is_resized(broker, clients, screens):
    harness.lock_many(clients(broker), [f"lock{i:03d}" for i in range(70)])
    screen = screens(broker)
    screen.wait(lambda lines: lines[22].startswith("lock019"), "24 lines")
    screen.tmux("resize-window", "-x", "250", "-y", "60")
    screen.wait(lambda lines: len(lines) == 60 and lines[58].startswith("lock055"), "60 lines")
    screen.wait_for("w wait  n waiters  g grants/s")
    screen.tmux("resize-window", "-x", "40", "-y", "10")
    screen.wait(lambda lines: len(lines) == 10 and lines[8].startswith("lock005"), "10 lines")


def test_names_are_shown_and_steer_nothing(broker, clients, screens):
    """A name that would write from right to left, one of wide characters, and a program that is called like an escape sequence."""
    with open("/proc/self/comm", "r+") as f:
        own = f.read().strip()
        f.write("\x1b[2Jevil")
    try:
        hold(clients, broker, "bidi\u202ename", "de\u2066ad")
    finally:
        with open("/proc/self/comm", "w") as f:
            f.write(own)
    hold(clients, broker, "日本語" * 20, "ein Wort " + "語" * 60)
    screen = screens(broker)
    lines = screen.wait_for("bidi\\u202ename", "日本語日本語")
    row = next(line for line in lines if line.startswith("bidi"))
    assert "?[2Jevil" in row and "de\\u2066ad" in row, row
    wide = next(line for line in lines if line.startswith("日本語"))
    assert "…" in wide and "ein Wort 語" in wide, wide
    assert screen.lines()[2].split()[0] == "LOCK", "the head is still there"


def test_without_colour(broker, clients, screens):
    hold(clients, broker, "a")
    screen = screens(broker, term="vt100")
    screen.wait_rows("a")
    screen.keys("q")
    assert screen.ended() == 0


def test_the_broker_is_started_again(broker, clients, screens):
    hold(clients, broker, "before")
    screen = screens(broker)
    screen.wait_rows("before")
    broker.hand_over()
    hold(clients, broker, "meanwhile")
    screen.wait_rows("before", "meanwhile")
    assert broker.terminate() == 0
    lines = screen.wait_for("NO BROKER")
    assert lines[3].startswith("before "), "what was known last stays"
    screen.keys("Down", "Up")
    broker.start()
    hold(clients, broker, "after")
    lines = screen.wait_rows("after")
    assert not lines[1], "what ended is gone"


@pytest.mark.parametrize("stopped", [False, True])
def test_it_sleeps_while_nobody_answers(broker, screens, tmp_path, stopped):
    """With a time limit of 0 it would ask the kernel again and again."""
    screen = screens(broker)
    screen.wait_for("LOCK")
    if stopped:
        broker.signal(signal.SIGSTOP)
    else:
        assert broker.terminate() == 0
        screen.wait_for("NO BROKER")
    calls = tmp_path / "calls"
    strace = harness.spawn(["strace", "-q", "-e", "trace=poll,ppoll", "-o", str(calls), "-p", str(screen.pid())],
                           stderr=subprocess.DEVNULL)

    def limits():
        return [int(limit) for limit in re.findall(r"^poll\(\[.*\], 5, (\d+)\)? ", calls.read_text(), re.M)] if calls.exists() else []

    harness.wait_until(lambda: len(limits()) >= 3, lambda: calls.read_text())
    strace.terminate()
    strace.wait(harness.PATIENCE)
    if stopped:
        broker.signal(signal.SIGCONT)
    assert limits().count(0) <= 1, calls.read_text()


@pytest.mark.parametrize("how", ["q", "C-c", "SIGTERM"])
@pytest.mark.parametrize("away", [False, True])
def test_the_terminal_is_left_as_it_was(broker, clients, screens, how, away):
    hold(clients, broker, "a")
    screen = screens(broker)
    screen.wait_rows("a")
    assert screen.tmux("display", "-p", ALTERNATE).strip() == "1"
    if away:
        assert broker.terminate() == 0
        screen.wait_for("NO BROKER")
    if how == "SIGTERM":
        os.kill(screen.pid(), signal.SIGTERM)
    else:
        screen.keys(how)
    assert screen.ended() == 0
    assert screen.read("said") == ""


def test_it_ends_though_the_terminal_takes_no_output(broker, clients):
    c = clients(broker)
    for i in range(100):
        assert c.call("LOCK", f"lock{i:03d}", "DATA", "x" * 100) > 0
    pid, fd = pty.fork()
    if not pid:
        os.execve(PROGRAM, [PROGRAM], os.environ | {"LOCKBROKER_SOCKET": broker.socket, "TERM": "xterm"})
    try:
        lines = itertools.cycle([100, 90])

        def writes():
            time.sleep(0.02)
            with open(f"/proc/{pid}/syscall") as f:
                return f.read().startswith(f"{WRITE} ")

        def is_full():
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", next(lines), 300, 0, 0))
            return all(writes() for _ in range(10))

        harness.wait_until(is_full, "the terminal to be full")
        os.kill(pid, signal.SIGTERM)
        ended = harness.wait_until(lambda: [e for e in [os.waitpid(pid, os.WNOHANG)] if e[0]], "its end")[0]
        assert ended == (pid, 0)
        assert termios.tcgetattr(fd)[3] & termios.ECHO, "the settings of the terminal"
    finally:
        os.close(fd)


def test_without_a_terminal(broker):
    outcome = subprocess.run([harness.program("lockbroker"), "-S", broker.socket, "top"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (outcome.returncode, outcome.stdout) == (64, "")
    assert outcome.stderr == "lockbroker top: it needs a terminal; `lockbroker ls` prints the locks without one.\n"


@pytest.mark.parametrize("term,said", [("dumb", "no cursor that can be moved"), ("no-such-terminal", "is not known here")])
def test_a_terminal_that_cannot_be_drawn_on(broker, screens, term, said):
    screen = screens(broker, term=term)
    assert screen.ended() == 64
    assert screen.read("said").startswith("lockbroker top: ") and said in screen.read("said")


def test_ten_thousand_locks(daemons, clients, screens):
    """Of all the first 200 are there, and each key is answered."""
    count = 10000
    broker = daemons(limits={"locks": 4 * count, "grants": 4 * count, "grants_per_client": 2 * count})
    holder = clients(broker)
    harness.lock_many(holder, [f"lock{i:05d}" for i in range(count)])
    wait_in(clients, broker, "lock07777")
    screen = screens(broker)
    screen.wait_rows("lock07777", "lock00000", "lock00001")
    screen.wait_for("10000 locks, 10000 held, 1 waiting")
    screen.keys("End")
    screen.wait(lambda lines: lines[22].startswith("lock00198"), "the last of 200")
    screen.keys("/", "9999", "Enter")
    screen.wait_rows("lock09999")
    screen.keys("q")
    assert screen.ended() == 0


def test_by_rate_as_many_rows_are_there_as_in_other_orders(broker, clients, screens):
    harness.lock_many(clients(broker), [f"lock{i:03d}" for i in range(220)])
    screen = screens(broker)
    screen.wait_rows("lock000")
    screen.keys("g")
    screen.wait_for("by grants a second")
    screen.keys("End")
    screen.wait(lambda lines: lines[22].startswith("lock199"), "the last of 200")


class Counting(socketserver.StreamRequestHandler):
    """A broker that has counted round trips to ZooKeeper, and is another one for each question after the first."""

    metrics = iter([(1, 3, 9.0), (2, 13, 0.1)] + [(2, 13, 0.1)] * 100)

    def text(self, word):
        if word != b"METRICS":
            return b"session_state:safe\r\nhost:h\r\n" if word == b"INFO" else b""
        since, count, total = next(self.metrics)
        return (f"# \nlockbroker_counters_start_time_seconds {since}\nlockbroker_round_trip_seconds_sum {total}\n"
                f"lockbroker_round_trip_seconds_count {count}\n").encode()

    def handle(self):
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                self.rfile.readline()
                words.append(self.rfile.readline().strip())
            text = self.text(words[0])
            self.wfile.write(b"*0\r\n" if words[0] in (b"LOCKS", b"HOSTS") else b"$%d\r\n%s\r\n" % (len(text), text))


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def test_the_round_trip_is_of_one_broker(screens):
    """Counters that began anew, and have counted further than the former ones: the mean is theirs alone."""
    path = os.path.join(harness.fast_tmp("counting."), "socket")
    with Server(path, Counting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        screen = screens(types.SimpleNamespace(socket=path))
        screen.wait_for("ZooKeeper 3000.0ms")
        lines = screen.wait(lambda lines: "ZooKeeper" in lines[0] and "3000.0ms" not in lines[0], "the next one")
        assert "ZooKeeper 7.7ms" in lines[0], lines[0]
        server.shutdown()


def test_several_hosts(zk, root, daemons, clients, screens):
    """The holder is on another host: this host knows it, because it waits."""
    here, there = daemons(zk, root), daemons(zk, root)
    hold(clients, there, "a", "over there", "elsewhere")
    wait_in(clients, here, "a")
    screen = screens(here, columns=132)
    lines = screen.wait(lambda lines: re.match(rf"a +\S+ +1 .*elsewhere \(over there\) +{there.host[:6]}", lines[3]), "its holder")
    assert re.match(rf"{here.host}: safe, proof \d+\.\ds of \d+\.\ds", lines[0]), lines
    screen.wait(lambda lines: re.search(r", 2 hosts, \S+ grants/s, ZooKeeper \d+\.\dms", lines[0]), "hosts and ZooKeeper's round trip")
    screen.keys("Enter")
    screen.wait_for("a: held by host", "elsewhere (over there)")
