# SPDX-License-Identifier: Apache-2.0
"""Three real ZooKeeper servers on the loopback interface. They reach each other's quorum port through links that can be
cut; elections go directly."""

import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import time

import harness

SIZE = 3
# With a tick of 0.5 s: followers leave a silent leader, and a leader followers, after 1.5 s.
INIT_LIMIT, SYNC_LIMIT = 20, 3
# Who looks for a leader asks again so often at least; by default it waits twice as long each time, up to a minute.
NOTIFICATION_MS = 800
CONTAINER_CHECK_MS = 1000  # directories vanish under the daemons' hands all the time


def server_port():
    """A free port below those that connections get, so that a server that is away for a while finds it free."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Server(harness.Zookeeper):
    """One of them. `lines` says who the others are."""

    def __init__(self, number, tick_ms, container_check_ms):
        self.number = number
        self.lines = ""
        self.quorum_port, self.election_port = server_port(), server_port()
        super().__init__(tick_ms, jvm=[f"-Dznode.container.checkIntervalMs={container_check_ms}",
                                       f"-Dzookeeper.fastleader.maxNotificationInterval={NOTIFICATION_MS}"], wait=False)
        self.port = server_port()

    def more_conf(self):
        os.makedirs(f"{self.dir}/data", exist_ok=True)
        with open(f"{self.dir}/data/myid", "w") as f:
            f.write(str(self.number))
        return f"initLimit={INIT_LIMIT}\nsyncLimit={SYNC_LIMIT}\nstandaloneEnabled=false\n{self.lines}"

    def mode(self):
        """leader, follower, or None when it does not serve."""
        return self.look("srvr").partition("Mode: ")[2].split("\n")[0] or None

    def start(self):
        self.spawn()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()


class Ensemble:
    """Three servers that vote; and an observer, which does not, if that is asked for."""

    def __init__(self, network, tick_ms, container_check_ms=CONTAINER_CHECK_MS, observed=False):
        self.tick_ms = tick_ms
        self.servers = [Server(n + 1, tick_ms, container_check_ms) for n in range(SIZE)]
        self.links = {}  # (follower, leader) -> the link between them
        for a in self.servers:
            for b in self.servers:
                if a is not b:
                    self.links[a, b] = network.link(b.quorum_port, patience_s=3)
                port = b.quorum_port if a is b else self.links[a, b].port
                a.lines += f"server.{b.number}=127.0.0.1:{port}:{b.election_port}\n"
        self.observer = Server(SIZE + 1, tick_ms, container_check_ms) if observed else None
        if observed:
            self.add_observer()
        self.copy = os.path.join(harness.fast_tmp("backup."), "version-2")
        self.start()
        self.wait_whole()

    @property
    def address(self):
        """Of all that vote."""
        return ",".join(s.address for s in self.servers)

    def add_observer(self):
        o = self.observer
        line = f"server.{o.number}=127.0.0.1:{o.quorum_port}:{o.election_port}:observer\n"
        for s in self.servers:
            s.lines += line
            o.lines += f"server.{s.number}=127.0.0.1:{s.quorum_port}:{s.election_port}\n"
        o.lines += line + "peerType=observer\n"

    def all(self):
        return [*self.servers, *([self.observer] if self.observer else [])]

    def start(self):
        for s in self.all():
            s.start()

    def kill(self):
        for s in self.servers:
            s.kill()

    def back_up(self):
        """A copy of what the leader has on its disk, as it is just now."""
        self.copy_data(f"{self.leader().dir}/data/version-2", self.copy)

    def restore(self):
        """Each server, while none runs, is given that copy."""
        for s in self.servers:
            self.copy_data(self.copy, f"{s.dir}/data/version-2")

    @staticmethod
    def copy_data(source, target):
        """Files of ZooKeeper's are mostly holes."""
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-r", "--sparse=always", source, target], check=True)

    def raise_epochs(self, epoch):
        """Of the servers, while none runs: the next leader's is above it."""
        for s in self.servers:
            for name in ("acceptedEpoch", "currentEpoch"):
                with open(f"{s.dir}/data/version-2/{name}", "w", encoding="ascii") as f:
                    f.write(f"{epoch}")

    def modes(self):
        return {s: s.mode() for s in self.servers}

    def _leader(self):
        return next((s for s, mode in self.modes().items() if mode == "leader"), None)

    def leader(self):
        """There is one: on a busy machine it may not say so at once."""
        return harness.wait_until(self._leader, "a leader")

    def wait_whole(self, patience=2 * harness.PATIENCE):
        """Until all servers serve, under one leader."""
        harness.wait_until(lambda: sorted(map(str, self.modes().values())) == ["follower", "follower", "leader"],
                           "the ensemble to be whole", patience)

    def wait_led(self, without=None):
        """Until the others have a leader with a quorum; returns how long it took, in seconds."""
        began = time.monotonic()
        others = [s for s in self.servers if s is not without]
        harness.wait_until(lambda: {"leader", "follower"} <= {s.mode() for s in others}, "a leader")
        return time.monotonic() - began

    def epoch(self):
        """Grows with every election; None when there is no leader."""
        leader = self._leader()
        try:
            return leader and leader.zxid() >> 32
        except (OSError, AttributeError):
            return None

    def end(self):
        for s in self.all():
            if s.process and s.process.poll() is None:
                s.signal(signal.SIGCONT)
            s.end()
        shutil.rmtree(os.path.dirname(self.copy), ignore_errors=True)


# ---- ending somebody else's session ----


def session_password(session):
    """ZooKeeper derives it from the id: java.util.Random(id ^ 0xB3415C00).nextBytes(16)."""
    mask = (1 << 48) - 1
    state = ((session ^ 0xB3415C00) ^ 0x5DEECE66D) & mask
    out = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & mask
        out += struct.pack("<I", (state >> 16) & 0xFFFFFFFF)
    return out


def receive(s):
    def exactly(count):
        data = b""
        while len(data) < count:
            more = s.recv(count - len(data))
            if not more:
                raise ConnectionResetError("the server hung up")
            data += more
        return data

    return exactly(struct.unpack(">i", exactly(4))[0])


def end_session(port, session):
    """Takes the session over and closes it, at once: its owner takes it back as soon as it has connected again."""
    hello = struct.pack(">iqiqi16s?", 0, 0, 10000, session - (1 << 64) if session >> 63 else session, 16,
                        session_password(session), False)
    close = struct.pack(">ii", 1, -11)
    while True:
        with socket.create_connection(("127.0.0.1", port), 1) as s:
            try:
                s.sendall(struct.pack(">i", len(hello)) + hello)
                if struct.unpack(">iiq", receive(s)[:16])[2] == 0:
                    return  # it is no more
                s.sendall(struct.pack(">i", len(close)) + close)
                receive(s)
            except OSError:
                pass  # its owner was quicker, or the server ended the session and did not say so
