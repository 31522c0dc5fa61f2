# SPDX-License-Identifier: Apache-2.0
"""What is measured besides lockbrokerd: each service in a directory of its own, on a local socket or a free port, and
ended with the process that started it."""

import glob
import json
import os
import resource
import shutil
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))

import cgroup  # noqa: E402, F401
import harness  # noqa: E402

JVM_JARS = "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar"


class Missing(Exception):
    """A peer that is not installed, or does not start: the word that its row is left out with."""


def descriptors():
    """How many connections this process, and a daemon that it starts, may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200


def serves(target):
    """The path of a socket, or http://ADDRESS:PORT."""
    port = target.rpartition(":")[2] if target.startswith("http:") else None
    with socket.socket(socket.AF_INET if port else socket.AF_UNIX) as s:
        try:
            s.connect(("127.0.0.1", int(port)) if port else target)
        except OSError:
            return False
    return True


def found(*names):
    for name in names:
        for path in sorted(glob.glob(name)) if "/" in name else [shutil.which(name)]:
            if path:
                return path
    raise Missing(f"{os.path.basename(names[0])} is not installed")


def first_line(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    return next(iter((done.stdout or done.stderr).splitlines()), "").strip()


class Service:
    """One program that serves a local socket: self.target. `under`: the words of a program that it runs under."""

    def __init__(self, under=()):
        self.under = list(under)
        self.dir = harness.fast_tmp(f"{type(self).__name__.lower()}.")
        self.target = os.path.join(self.dir, "s")
        self.process = None

    def run(self, argv):
        with open(os.path.join(self.dir, "log"), "w") as log:
            self.process = harness.spawn([*self.under, *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        harness.wait_until(lambda: serves(self.target) or self.process.poll() is not None, argv[0])
        if self.process.poll() is not None:
            with open(os.path.join(self.dir, "log")) as log:
                complaint = log.read().strip().splitlines()[-1:]
            self.end()
            raise Missing(f"it does not start: {''.join(complaint)}")

    @property
    def pids(self):
        return [self.process.pid]

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Null(Service):
    def __init__(self, silent=False, under=()):
        super().__init__(under)
        self.run([harness.program("tests/bench-null"), self.target, *(["silent"] if silent else [])])


class Redis(Service):
    def __init__(self, under=()):
        program = found("redis-server")
        self.version = first_line(program, "--version").split(" sha=")[0].replace("Redis server v=", "Redis ")
        super().__init__(under)
        self.run([program, "--port", "0", "--unixsocket", self.target, "--save", "", "--appendonly", "no",
                  "--dir", self.dir])


class Memcached(Service):
    def __init__(self):
        program = found("memcached")
        self.version = first_line(program, "--version")
        super().__init__()
        self.run([program, "-s", self.target, "-c", "1024", *(["-u", "root"] if os.geteuid() == 0 else [])])


class Postgres(Service):
    """It refuses to be root's. What it keeps in its directory is no matter of advisory locks. With `silent_s` it serves a
    port of the loopback interface as well, and gives a connection up whose other host has been silent for so long."""

    def __init__(self, silent_s=None):
        initdb = found("/usr/lib/postgresql/*/bin/initdb", "initdb")
        postgres = os.path.join(os.path.dirname(initdb), "postgres")
        self.version = first_line(postgres, "--version")
        super().__init__()
        self.port = harness.free_port() if silent_s else 5432
        self.target = os.path.join(self.dir, f".s.PGSQL.{self.port}")
        more = {"listen_addresses": "127.0.0.1" if silent_s else ""}
        if silent_s:
            more |= {"tcp_keepalives_idle": silent_s // 2, "tcp_keepalives_interval": 1,
                     "tcp_keepalives_count": silent_s - silent_s // 2}
        other = []
        if os.geteuid() == 0:
            other = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
            shutil.chown(self.dir, "postgres", "postgres")
        data = os.path.join(self.dir, "data")
        done = subprocess.run([*other, initdb, "-D", data, "-U", "bench", "-A", "trust", "--no-sync", "-E", "UTF8"],
                              cwd=self.dir, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
        if done.returncode:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise Missing(f"initdb failed: {done.stderr.strip().splitlines()[-1:]}")
        # To become somebody else drops the signal at the parent's death.
        self.run([*other, "setpriv", "--pdeathsig", "KILL", postgres, "-D", data, "-k", self.dir,
                  "-c", f"port={self.port}", "-c", "max_connections=200", "-c", "shared_buffers=16MB",
                  *[w for key, value in more.items() for w in ("-c", f"{key}={value}")]])


class Etcd(Service):
    """One member. It serves two ports of the loopback interface."""

    def __init__(self):
        program = found("etcd")
        found("etcdctl")
        self.version = first_line(program, "--version").replace("etcd Version:", "etcd")
        super().__init__()
        self.target, peers = (f"http://127.0.0.1:{harness.free_port()}" for _ in range(2))
        self.run([program, "--data-dir", os.path.join(self.dir, "data"), "--listen-client-urls", self.target,
                  "--advertise-client-urls", self.target, "--listen-peer-urls", peers,
                  "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"])


class Way:
    """Where a host reaches the server of that port, `us` microseconds away. To a daemon it looks like a server."""

    tick_ms = 2000

    def __init__(self, port, us):
        self.us = us
        self.process = harness.spawn([harness.program("tests/bench-way"), str(port), str(us)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, bufsize=1)
        self.port = int(self.process.stdout.readline())
        self.address = f"127.0.0.1:{self.port}"

    def delivered(self):
        """How long bytes were on their way since the last time it was asked: pieces, p50_us, p99_us."""
        self.process.stdin.write("\n")
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Files(Service):
    """The directory of flock(2)."""

    pids = []

    def __init__(self):
        super().__init__()
        self.target = self.dir


class Zookeeper(harness.Zookeeper):
    """It syncs its log as a real one does; where, says `directory`: in memory unless another is given."""

    def __init__(self, directory=None):
        found("java")
        super().__init__(jvm=["-Dzookeeper.forceSync=yes"], wait=False)
        if directory:
            shutil.rmtree(self.dir)
            self.dir = harness.tempfile.mkdtemp(prefix="lockbroker-bench-zk.", dir=directory)
        self.start()
        self.target = self.address
        self.version = "ZooKeeper " + self.ask("srvr").split(":", 1)[1].split("-", 1)[0].strip()

    @property
    def pids(self):
        return [self.process.pid]

    def counters(self):
        """mntr: name -> number, of those that are numbers."""
        lines = (line.split("\t") for line in self.ask("mntr").splitlines())
        return {f[0]: float(f[1]) for f in lines if len(f) == 2 and f[1].replace(".", "", 1).isdigit()}


def knows(key, build=None):
    """Whether the daemon of that build has such a key of the configuration: section__name."""
    asked = subprocess.run([f"{build or harness.build_dir()}/lockbrokerd", "--print-config"], capture_output=True, text=True)
    return f"\n{key.split('__')[1]} = " in asked.stdout


class Lockbroker(harness.Daemon):
    def __init__(self, zookeeper=None, under=(), build=None, user_share=100, **conf):
        self.under = list(under)
        self.build = build
        limits = {"clients": 12500, "user_share": user_share, "requests_per_lock": 20000, "grants_per_client": 20000}
        # What a pair costs is the broker's; what the keeper costs is measured by keeper.py. What is delegated has rows of
        # its own. Another build may know neither.
        plain = {k: 0 for k in ("daemon__keeper", "locks__delegation") if knows(k, build)}
        super().__init__(zookeeper, limits=limits, **({"root": "/bench"} | plain | conf))
        self.target = self.socket

    def command(self):
        if self.build:
            self.program = os.path.join(self.build, "lockbrokerd")
        return super().command()

    @property
    def pids(self):
        return [self.process.pid]

    def end(self):
        """valgrind 3.19 aborts when a file that was renamed while it was mapped is unmapped, as a daemon that stops does."""
        if self.under:
            self.kill()
        return super().end()


def jvm(peer):
    """What runs JvmLoad with that peer, "curator" or "lockbroker"; it is compiled each time."""
    found("java")
    if not os.path.exists(JVM_JARS.split(":")[0]):
        raise Missing("libcurator-recipes-java is not installed")
    jar = harness.program("lockbroker.jar")
    if not os.path.exists(jar):
        raise Missing("there is no jar: make java")
    return ["java", "-XX:+UseSerialGC", "-Xmx256m", "-XX:-UsePerfData", "-cp", f"{JVM_JARS}:{jar}",
            os.path.join(HERE, "JvmLoad.java"), peer]


def java_library():
    return jvm("lockbroker")


def curator():
    return jvm("curator")


def kazoo():
    if subprocess.run(["/usr/bin/python3", "-c", "import kazoo"], capture_output=True).returncode:
        raise Missing("python3-kazoo is not installed")
    return ["/usr/bin/python3", os.path.join(HERE, "kazoo_load.py")]
