# SPDX-License-Identifier: Apache-2.0
"""Real servers, real daemons and a small client, for the system tests, the demo and the benchmark.

Everything lives in a directory of its own, uses free ports of the loopback interface, and dies with the process that
started it, however that one ends (setpriv --pdeathsig).
"""

import collections
import contextlib
import ctypes
import fcntl
import glob
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PATIENCE = 60  # seconds: longer than anything takes on a busy machine, short enough to end a hung test

LOOK_S = 0.3  # see Zookeeper.look()

# T = 3 s on a server with a tick of 0.5 s: jeopardy 1 s and loss 2 s after the last proof, proofs 0.5 s apart.
FAST_TICK_MS = 500
FAST = {"zookeeper__session_timeout_ms": 3000, "locks__grant_min_ms": 300}

# T = 10 s, the longest on such a server: for what has to happen between two of its moments, jeopardy 3.3 s and loss 6.7 s after the
# last proof, also where the machine is busy.
ROOMY = {"zookeeper__session_timeout_ms": 10000, "locks__grant_min_ms": 300}

JARS = "/usr/share/java/slf4j-simple.jar:/usr/share/java/zookeeper.jar"
# How our contenders' names have the number of their session, which no line of a log may tell.
SESSIONS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}|[0-9a-f]{32}__r?lock__")
COMPLAINTS = re.compile(r"Sanitizer|runtime error:|[Aa]ssertion")

VALUE = r'(?:"(?:[^"\\]|\\["\\]|\\x[0-9a-f]{2})*"|[^ "=\\]+)'
LOG_LINE = re.compile(r"(?:<\d>|(?:[-\d]+ [\d:.]+ )?(?:error|warning|info|debug): )"
                      rf"((?: ?[^ \x00-\x1f\x7f-\U0010ffff])*)  event=(\w+)((?: \w+={VALUE})*)")


def parse_log_line(line):
    """Its sentence, its event, and its fields."""
    match = LOG_LINE.fullmatch(line)
    assert match, f"no line of the log: {line!r}"
    fields = re.findall(rf" (\w+)=({VALUE})", match[3])
    assert len(fields) == len(dict(fields)), line
    unquoted = {key: re.sub(r'\\(x..|.)', lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 3 else m[1], value[1:-1])
                if value.startswith('"') else value for key, value in fields}
    return match[1], match[2], {key: value.encode("latin-1").decode(errors="ignore") for key, value in unquoted.items()}


def not_of_the_log(text):
    """The first line that is none: errors of the command line are not logged."""
    lines = [line for line in text.splitlines() if not line.startswith(("lockbrokerd: ", "==", "    #"))]
    return next((line for line in lines if not LOG_LINE.fullmatch(line)), None)


def build_dir():
    return os.path.abspath(os.environ.get("LOCKBROKER_BUILD", os.path.join(SOURCE, "build")))


def program(name):
    return os.path.join(build_dir(), name)


def environment(socket_path="/nonexistent/socket"):
    """Of a program that is to find the commands of this build, and that broker."""
    return os.environ | {"LOCKBROKER_SOCKET": socket_path, "PATH": f"{build_dir()}:{os.environ['PATH']}"}


def read_source(path):
    with open(os.path.join(SOURCE, path)) as f:
        return f.read()


def mutants():
    sys.path.append(os.path.join(SOURCE, "tests", "sim"))
    import mutants_table
    return {m[0] for m in mutants_table.MUTANTS}


def names_a_test(name):
    """Whether there is one of that name: path::function, or mutant: name."""
    if name.startswith("mutant: "):
        return name[8:] in mutants()
    path, _, test = name.partition("::")
    text = read_source(path)
    if path.endswith(".py"):
        return re.search(rf"^def {test}\(", text, re.M)
    return re.search(rf"(^[A-Z_]+\(|\bunit_add\([^;]*, ){test}[,)]", text, re.M)


def sanitizer_options():
    """What a program must be compiled with to be linked with this build."""
    with open(program("liblockbroker.so.1"), "rb") as f:
        data = f.read()
    found = [name for name, mark in (("address", b"__asan_"), ("undefined", b"__ubsan_")) if mark in data]
    return [f"-fsanitize={','.join(found)}"] if found else []


def fast_tmp(prefix):
    """A new directory, in memory where that can be had; below that of begin_run()."""
    shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix=prefix, dir=os.environ.get("LOCKBROKER_RUN", shared_memory))


# What a command under a lock has started dies with nobody, and may have been stopped. Whoever begins to run a program has no
# environment for a moment: nothing is left when nothing was found twice.
SWEEP = """
cat >/dev/null
before=some
for i in 1 2 3 4 5; do
	found=$(grep -lszxF "LOCKBROKER_RUN=$0" /proc/[0-9]*/environ | tr -cd '0-9\\n')
	kill -9 $found 2>/dev/null
	rm -rf "$0" 2>/dev/null && [ -z "$found$before" ] && exit
	before=$found
	sleep 1
done
"""


def begin_run():
    """All directories of this process, and all processes that it starts, go with it, even if it is killed: a process
    that reads from a pipe learns of that. Keep what is returned until then."""
    directory = fast_tmp("lockbroker-run.")
    process = subprocess.Popen(["sh", "-c", SWEEP, directory], stdin=subprocess.PIPE, start_new_session=True)
    os.environ["LOCKBROKER_RUN"] = directory
    return process


def once(name, make):
    """A folder that one process of the run makes, for all of them."""
    folder = os.path.join(os.environ["LOCKBROKER_RUN"], name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.fstat(lock.fileno()).st_size:
            make(folder)
            lock.write("made\n")
    return folder


def spawn(argv, **options):
    """A process that does not outlive this one, and that ignores no signal because somebody here does."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "env", "--default-signal", *argv], **options)


def run(argv, **options):
    """What came of a program, which gets no input unless there is some; what it says is text."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(argv, **{"capture_output": True, "text": True, "timeout": PATIENCE} | options)


def end(process, number=signal.SIGTERM):
    """Its status, after that signal."""
    process.send_signal(number)
    return process.wait(PATIENCE)


def each_ends(make, end_one, ready=lambda each: each):
    """Of a fixture: a function that makes what make() does, and returns what ready() says of that. All that it has made is ended
    with the test, also what did not get ready."""
    made = []

    def one(*args, **options):
        made.append(make(*args, **options))
        return ready(made[-1])

    yield one
    for each in made:
        end_one(each)


def stat(path):
    """The fields of such a file, as proc(5) has them, from the third one on, which is the state."""
    with open(path, errors="replace") as f:
        return f.read().rpartition(")")[2].split()


def runs(pid):
    """There is such a process, and it has not ended."""
    try:
        return stat(f"/proc/{pid}/stat")[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, what, patience=PATIENCE):
    """For what tells nobody when it happens. Returns the first true value. `what` is said when it does not come: a text, or
    a function that has one then."""
    end = time.monotonic() + patience
    pause = 0.001
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"gave up waiting for {what() if callable(what) else what}"
        # The one pause between two looks: nothing that is waited for here can wake whoever waits. Most have to wait for a moment only,
        # and the others would take a core from each other by their looks.
        time.sleep(pause)  # see above
        pause = min(2 * pause, 0.032)


def over(seconds, look):
    """For what shows only in what happens while time passes: what look() says before and after it, and how long the two are apart.
    That is longer where the machine is busy, and bounds of numbers have to grow with it."""
    began = time.monotonic()
    before = look()
    time.sleep(seconds)  # the time that is looked at
    after = look()
    return before, after, time.monotonic() - began


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class NoZookeeper:
    """An address where nobody serves, for daemons that must do without."""

    address = "127.0.0.1:1"
    tick_ms = 2000


def archive():
    """What the JVMs of servers need not load one class after the other, where a run has that: see conftest.py."""
    return os.path.join(os.environ.get("LOCKBROKER_RUN", "/"), "zookeeper.jsa")


class Zookeeper:
    """One private server. It may be killed, started again on its data, stopped (SIGSTOP) and let go on."""

    def __init__(self, tick_ms=2000, jvm=(), wait=True):
        self.jvm = jvm
        self.dir = fast_tmp("lockbroker-zk.")
        self.tick_ms = tick_ms
        self.port = None
        self.process = None
        self.look_s = LOOK_S
        if wait:
            self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def more_conf(self):
        """Lines that a server of another kind adds to its configuration."""
        return ""

    def spawn(self):
        with open(os.path.join(self.dir, "zoo.cfg"), "w") as f:
            f.write(
                f"tickTime={self.tick_ms}\ndataDir={self.dir}/data\nclientPort={self.port}\n"
                "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\nclientPortListenBacklog=1024\n"
                f"4lw.commands.whitelist=*\n{self.more_conf()}"
            )
        with open(os.path.join(self.dir, "log"), "a") as log:
            self.process = spawn(
                ["java", "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                 "-XX:-UsePerfData", *([f"-XX:SharedArchiveFile={archive()}"] if os.path.exists(archive()) else []),
                 "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.forceSync=no",
                 *self.jvm, "-cp", JARS, "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{self.dir}/zoo.cfg"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _serves(self):
        """True when our server answers on the port: another one there has another dataDir."""
        return f"dataDir={self.dir}/" in self.look("conf") and "Mode:" in self.look("srvr")

    def start(self):
        for _ in range(10):
            if self.port is None:
                self.port = free_port()
            self.spawn()
            wait_until(lambda: self._serves() or self.process.poll() is not None, "the ZooKeeper server")
            if self.process.poll() is None:
                return
            self.port = None  # somebody else took it meanwhile
        raise RuntimeError(f"no ZooKeeper server: see {self.dir}/log")

    def ask(self, word, patience=PATIENCE):
        """A four-letter word's answer. A server that is only starting may take the question and never answer."""
        with socket.create_connection(("127.0.0.1", self.port), patience) as s:
            s.sendall(word.encode())
            return b"".join(iter(lambda: s.recv(65536), b"")).decode(errors="replace")

    def look(self, word):
        """The same for who asks again and again: "" if there is no answer. A server that is only starting costs little, and on a
        busy machine one that serves is given longer and longer."""
        try:
            answer = self.ask(word, self.look_s)
            self.look_s = LOOK_S
            return answer
        except TimeoutError:
            self.look_s = min(2 * self.look_s, 10 * LOOK_S)
        except OSError:
            pass
        return ""

    def zxid(self):
        return int(re.search(r"Zxid: (0x[0-9a-f]+)", self.ask("srvr")).group(1), 16)

    def sessions(self):
        """session id -> ephemeral paths, of the sessions that have any."""
        found, paths = {}, None
        for line in self.ask("dump").splitlines():
            if re.fullmatch(r"0x[0-9a-f]+:", line):
                paths = found.setdefault(line[:-1], [])
            elif line.startswith("\t") and paths is not None:
                paths.append(line.strip())
            else:
                paths = None
        return found

    def signal(self, number):
        """A stopped server does nothing once this returns: each of its threads stops for itself."""
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            wait_until(lambda: set(thread_states(self.process.pid)) == {"T"}, "the server's threads to stop")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def thread_states(pid):
    """A letter for each thread, as proc(5) has it."""
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            yield stat(path)[0]


PR_SET_CHILD_SUBREAPER = 36


def inherit_orphans():
    """What a process that this one started leaves behind becomes a child of this one, so that its end can be seen."""
    assert ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def has_ended(process, patience):
    """Whether the process of that descriptor, which is closed here, has by then."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    try:
        return bool(poll.poll(patience * 1000))
    finally:
        os.close(process)


class Orphan:
    """A child that somebody else started, as subprocess.Popen shows its own."""

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, patience=PATIENCE):
        if self.poll() is None and not has_ended(os.pidfd_open(self.pid), patience):
            raise subprocess.TimeoutExpired(f"process {self.pid}", patience)
        return self.poll()

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def children(pid):
    """Those that run, of a process with one thread."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split() if runs(word)]
    except OSError:
        return []


# As a service manager does it: descriptors from 3 on listen already. Before that each has another number.
ACTIVATE = """
import fcntl, os, sys
names, numbers, program = sys.argv[1], [int(number) for number in sys.argv[2].split()], sys.argv[3:]
fds = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in numbers]
for fd in numbers:
    os.close(fd)
for at, fd in enumerate(fds):
    os.dup2(fd, 3 + at)
    os.close(fd)
os.environ.update(LISTEN_FDS=str(len(fds)), LISTEN_PID=str(os.getpid()), **({"LISTEN_FDNAMES": names} if names else {}))
os.execv(program[0], program)
"""

# What a test does to the process that serves, and what the keeper would not pass on to it.
TO_THE_WORKER = {signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT}


LATE = "the new process did not take over within"


def unless_late(outcome):
    """A machine that is busy enough needs longer for a hand-over than it may take. Nothing has changed then, nobody notices,
    and it is asked for again: None."""
    said = outcome.stderr if isinstance(outcome, subprocess.CompletedProcess) else outcome
    return None if isinstance(said, str) and LATE in said else outcome


class Daemon:
    """One lockbrokerd with a socket and a directory of its own. When it has started it serves, with a session that is
    safe unless there is no ZooKeeper to be had.

    It runs as everywhere, with a keeper: `process` is the main process of the service, the keeper, which a test starts,
    tells to stop and waits for, and whose end is that of the service. `pid` is the process that serves: what a test looks
    at, stops (SIGSTOP) or crashes. Without a keeper (daemon__keeper=0) they are the same."""

    under = ()  # the words of a program that it runs under

    def __init__(self, zookeeper=None, root="/t", host=None, wait=True, argv=(), env=None, limits=None, under=None, **conf):
        self.dir = fast_tmp("lockbroker.")
        self.socket = os.path.join(self.dir, "socket")
        self.log_path = os.path.join(self.dir, "log")
        self.host = host or os.path.basename(self.dir)
        self.expected_exit = 0
        self.options = {"daemon.socket": self.socket, "daemon.rundir": self.dir, "daemon.statedir": self.dir,
                        "daemon.stop_timeout_ms": 1000, "zookeeper.host": self.host}
        if zookeeper:
            self.options |= {"zookeeper.servers": zookeeper.address, "zookeeper.root": root,
                             "zookeeper.tick_ms": zookeeper.tick_ms}
        self.options |= {k.replace("__", "."): v for k, v in conf.items()}
        # One user has all of a total, unless a test is about the share of a user.
        self.options |= {f"limits.{k}": v for k, v in ({"user_share": 100, "new_names_per_s": 0} | (limits or {})).items()}
        self.standalone = zookeeper is None
        self.has_session = zookeeper not in (None, NoZookeeper)
        self.argv = argv
        self.under = self.under if under is None else under
        self.env = env or {}
        self.program = program("lockbrokerd")
        self.notify = None
        self.told = []  # by the daemon, up to READY=1
        self.process = None
        self.worker = None
        if wait:
            self.start()

    def command(self):
        return [*self.under, self.program, "--foreground", *(["--standalone"] if self.standalone else []),
                *[w for k, v in self.options.items() for w in ("-o", f"{k}={v}")], *self.argv]

    @property
    def has_keeper(self):
        return str(self.options.get("daemon.keeper", 1)) == "1"

    @property
    def pid(self):
        if not self.has_keeper:
            return self.process.pid
        if not self.worker or not runs(self.worker):
            self.worker = wait_until(lambda: children(self.process.pid) or self.process.poll() is not None and [0],
                                     "the worker")[0]
        return self.worker

    def spawn(self, listening=(), names="", **options):
        """`listening`: descriptors that it is passed as by a service manager, by which they may have names."""
        self.worker = None
        command = self.command()
        if listening:
            command = [sys.executable, "-c", ACTIVATE, names, " ".join(map(str, listening)), *command]
            options["pass_fds"] = listening
        path = os.path.join(self.dir, "notify")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if self.notify:
            self.notify.close()
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(path)
        self.notify.settimeout(PATIENCE)
        self.stopping = False
        with open(self.log_path, "a") as log:
            self.process = spawn(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 env=os.environ | {"NOTIFY_SOCKET": path} | self.env, **options)

    def start(self, **options):
        self.spawn(**options)
        self.wait_ready()

    def notified(self, patience):
        self.notify.settimeout(patience)
        try:
            return self.notify.recv(4096).decode().splitlines()
        except TimeoutError:
            return []

    def wait_ready(self):
        end = time.monotonic() + PATIENCE
        self.told = []
        while "READY=1" not in self.told:
            self.told += self.notified(0.2)
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"lockbrokerd did not get ready ({self.process.poll()}):\n{self.log()}")
        self.worker = self.pid
        if self.has_session:
            wait_until(lambda: self.info("session")["session_state"] == "safe", "the session")

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    @property
    def operator_socket(self):
        return self.options.get("daemon.operator_socket") or os.path.join(self.options["daemon.rundir"], "operator.sock")

    def client(self, version=3, operator=False):
        return Client(self.operator_socket if operator else self.socket, version)

    def info(self, *sections):
        """As operators see it: with the session's id."""
        with self.client(2, operator=os.path.exists(self.operator_socket)) as c:
            return parse_info(c.call("INFO", *sections))

    def crash(self, number=signal.SIGKILL):
        """The process that serves ends by that signal, and another one serves."""
        old = self.pid
        os.kill(old, number)
        self.await_another(old)
        return old

    def state(self):
        """As ps has it: S sleeps and does not even wait for a core, so what it could do is done; R, T."""
        return stat(f"/proc/{self.pid}/stat")[0]

    def signal(self, number):
        self.stopping |= number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
        if number in TO_THE_WORKER and self.process.poll() is None:
            os.kill(self.pid, number)
        else:
            self.process.send_signal(number)

    def hand_over(self, operator=None):
        """Asks by that connection of an operator, or by one of its own. Returns what the new process says of it."""
        with contextlib.ExitStack() as stack:
            operator = operator or stack.enter_context(self.client(operator=True))
            reply = wait_until(lambda: unless_late(operator.call("RESTART")), "a hand-over")
        assert not isinstance(reply, Error), f"{reply!r}\n{self.log()}"
        self.follow()
        return reply

    def hand_over_by_command(self):
        """Returns what the command prints."""
        command = [program("lockbroker"), "-S", self.operator_socket, "restart"]
        done = wait_until(lambda: unless_late(subprocess.run(command, capture_output=True, text=True)), "a hand-over")
        assert done.returncode == 0, f"{done.stderr}\n{self.log()}"
        self.follow()
        return done.stdout

    def hand_over_by_signal(self):
        old = self.pid

        def done():
            late = self.log().count(LATE)
            self.signal(signal.SIGUSR2)
            wait_until(lambda: not runs(old) or self.log().count(LATE) > late, "the end of a hand-over")
            return not runs(old)

        wait_until(done, "a hand-over")
        self.follow()

    def follow(self):
        """It has handed over: from now on this is about the process that serves. Without a keeper inherit_orphans() comes
        first."""
        if not self.has_keeper:
            assert self.process.wait(PATIENCE) == 0, self.log()
        else:
            old = self.worker
            wait_until(lambda: not runs(old), "the end of the process that handed over")
        self.adopt()

    def adopt(self):
        """Whoever serves is the daemon from now on."""
        serves = int(self.info("server")["process_id"])
        if self.has_keeper:
            self.worker = serves
        else:
            self.process = Orphan(serves)

    def await_another(self, old):
        """The process of that number has ended: whoever serves after it is the daemon."""
        wait_until(lambda: not runs(old), "the end of the process that served")
        wait_until(self.answers, "another process to serve")
        self.adopt()

    def answers(self):
        try:
            with self.client() as c:
                return c.call("PING") == "PONG"
        except (OSError, Closed):
            return False

    def kill(self):
        """The whole service: a worker that saw its keeper end would make another one."""
        workers = {self.worker, *children(self.process.pid)} - {None} if self.has_keeper else set()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGSTOP)
        wait_until(lambda: all(set(thread_states(w)) <= set("TtZX") for w in workers), "the workers to stand still")
        self.process.kill()
        self.process.wait()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        # All its threads: until the last one has ended, its sockets are open.
        wait_until(lambda: all(set(thread_states(w)) <= set("ZX") for w in workers), "the end of the worker")

    def terminate(self):
        """SIGTERM, unless it was told to stop already (a second signal would make it end at once), and the status."""
        if not self.stopping:
            self.signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def end(self):
        """Ends the daemon; returns what is wrong with how it lived and died, or None."""
        status = None
        if self.process and self.process.poll() is None:
            # One that exits has its leaks looked for by a process that stops it with SIGSTOP, which SIGCONT would take back.
            if "T" in thread_states(self.pid):
                self.signal(signal.SIGCONT)
            try:
                status = self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()
                status = "nothing: it did not end by itself"
        if self.worker:
            wait_until(lambda: not runs(self.worker), "the end of the worker")
        log = self.log() if os.path.exists(self.log_path) else ""
        if self.notify:
            self.notify.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        if COMPLAINTS.search(log):
            return f"lockbrokerd complained:\n{log[-8000:]}"
        if SESSIONS.search(log):
            return f"lockbrokerd logged the number of a session ({SESSIONS.search(log)[0]}):\n{log[-8000:]}"
        if not_of_the_log(log):
            return f"lockbrokerd wrote what is no line of its log: {not_of_the_log(log)}\n{log[-8000:]}"
        if status not in (None, self.expected_exit):
            return f"lockbrokerd ended with {status}:\n{log[-8000:]}"
        return None


def logged(daemon, text):
    """The lines of its log that have it."""
    return [line for line in daemon.log().splitlines() if text in line]


def install(daemon, text=None, mode=0o755):
    """Another file at its program's place, as a package puts it there: the right program, or that text."""
    new = daemon.program + ".new"
    if text is None:
        shutil.copy2(program("lockbrokerd"), new)
    else:
        with open(new, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(new, mode)
    os.rename(new, daemon.program)


def wait_queued(daemon, name, count):
    """Of this host's requests: other hosts that wait are listed, too."""
    with daemon.client() as c:
        wait_until(lambda: sum(w["host"] == daemon.host for w in c.call("QUEUE", name)) == count,
                   f"{count} requests to be queued")


def parse_info(text):
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#"))


class Error(str):
    """An error reply, the dash taken off. `code` is its first word."""

    @property
    def code(self):
        return self.split(" ", 1)[0]


class Closed(Exception):
    """The daemon closed the connection."""


# What a reply of one line is, by its first byte.
SIMPLE = {b"+": str, b"-": Error, b":": int, b"_": lambda _: None, b"#": lambda rest: rest == "t", b",": float}


class Client:
    """RESP over the socket. call() gives replies as Python values; pushes go to `pushes`."""

    def __init__(self, path, version=3, patience=PATIENCE):
        self.socket = socket.socket(socket.AF_UNIX)
        # With a timeout of Python's a full queue of the listener is an error; with the socket's own it is waited for.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", patience, 0))
        self.socket.connect(path)
        self.socket.settimeout(patience)
        self.buffer = b""
        self.pushes = collections.deque()
        if version == 3:
            self.hello = self.call("HELLO", "3")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self):
        return self.socket.fileno()

    def close(self):
        self.socket.close()

    def send_raw(self, data):
        self.socket.sendall(data)

    def send(self, *words):
        self.send_raw(encode(*words))

    def call(self, *words):
        self.send(*words)
        return self.reply()

    def quiet(self, seconds=0.15):
        """True when nothing is to be read for that long. For showing that something does NOT happen."""
        poll = select.poll()  # select() takes no descriptor above 1,023
        poll.register(self.socket, select.POLLIN)
        return not self.buffer and not poll.poll(seconds * 1000)

    def reply(self):
        while True:
            kind, value = self._value()
            if kind != b">":
                return value
            self.pushes.append(value)

    def push(self):
        """The next push; a reply instead is an error."""
        if self.pushes:
            return self.pushes.popleft()
        kind, value = self._value()
        assert kind == b">", f"a reply where a push was expected: {value!r}"
        return value

    def news(self):
        """The next push that is of no session in jeopardy: a slow machine may have had one that passed."""
        told = self.push()
        while told[0] in ("jeopardy", "safe"):
            told = self.push()
        return told

    def loss(self):
        """The push of a loss with the session, told of before it. A slow machine may have had a jeopardy that passed."""
        told = [self.push()]
        while told[-1][0] in ("jeopardy", "safe"):
            told.append(self.push())
        assert [t[0] for t in told[-2:]] == ["jeopardy", "lost"], told
        return told[-1]

    def ended(self):
        """True when the daemon closed the connection, after reading what is left."""
        try:
            while True:
                self._fill()
        except Closed:
            return True
        except TimeoutError:
            return False

    def _fill(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            raise Closed
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _bytes(self, count):
        while len(self.buffer) < count + 2:
            self._fill()
        data, end, self.buffer = self.buffer[:count], self.buffer[count:count + 2], self.buffer[count + 2:]
        assert end == b"\r\n"
        return data.decode(errors="surrogateescape")

    def _value(self):
        line = self._line()
        kind, rest = line[:1], line[1:].decode(errors="surrogateescape")
        if kind in SIMPLE:
            return kind, SIMPLE[kind](rest)
        count = int(rest)
        if count < 0:
            return kind, None
        if kind in b"$=":
            return kind, self._bytes(count)
        if kind in b"*>~":
            return kind, [self._value()[1] for _ in range(count)]
        assert kind == b"%", f"not RESP: {line!r}"
        return kind, {self._value()[1]: self._value()[1] for _ in range(count)}


def encode(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def lock_many(client, names):
    """In few messages."""
    for start in range(0, len(names), 500):
        part = names[start:start + 500]
        client.send_raw(b"".join(encode("LOCK", name) for name in part))
        for name in part:
            assert isinstance(client.reply(), int), name
