# SPDX-License-Identifier: Apache-2.0
"""TLS to ZooKeeper, through a local stunnel: the client library of ZooKeeper has none. As lockbrokerd(8) says."""

import re
import shutil
import socket
import struct
import subprocess

import pytest

import harness
import pages
from harness import FAST_TICK_MS
from tools import need

# What Debian's zookeeper.jar does not name among what it needs, and Netty does.
NETTY = "/usr/share/java/netty-codec.jar"
PASSWORD = "secret"

STUNNEL, OURS, SERVERS, PROPERTIES = pages.claimed("client-lib/man/lockbrokerd.8", __file__)


def section():
    """The first one of the manual's stunnel.conf."""
    return re.search(r"^\[zookeeper-1\]\n.*?(?=^$)", STUNNEL, re.M | re.S).group(0)


def run(*argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_the_sections_of_the_manual_differ_in_their_number_alone(tmp_path):
    """The tests use the first one. The broker is given the addresses at which they accept."""
    sections = re.findall(r"^\[zookeeper-\d\]\n(?:\S.*\n)+", STUNNEL, re.M)
    assert len(sections) == 3
    for number, text in enumerate(sections, 1):
        assert text == section().replace("zookeeper-1", f"zookeeper-{number}").replace(":21811", f":2181{number}").replace("zk1", f"zk{number}")
    (tmp_path / "conf").write_text(OURS)
    printed = subprocess.run([harness.program("lockbrokerd"), "--print-config", "-c", str(tmp_path / "conf")], check=True, capture_output=True,
                             text=True).stdout
    assert f"\nservers = {','.join(re.findall(r'^accept = (.*)$', STUNNEL, re.M))}\n" in printed


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """zookeeper-ca.pem and host.pem for the hosts; server.p12 and trust.p12 for the server."""
    need("openssl", "version")
    need("stunnel4", "-version")
    d = tmp_path_factory.mktemp("keys")
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    authority = ["-CA", f"{d}/zookeeper-ca.pem", "-CAkey", f"{d}/ca.key"]
    run(*new, "-subj", "/CN=authority", "-keyout", f"{d}/ca.key", "-out", f"{d}/zookeeper-ca.pem")
    for who, name in (("server", "zk1.example.net"), ("host", "host1.example.net")):
        run(*new, *authority, "-subj", f"/CN={who}", "-addext", f"subjectAltName=DNS:{name}",
            "-keyout", f"{d}/{who}.key", "-out", f"{d}/{who}.crt")
    with open(f"{d}/host.pem", "w") as f:
        for part in ("host.key", "host.crt"):
            f.write((d / part).read_text())
    run("openssl", "pkcs12", "-export", "-in", f"{d}/server.crt", "-inkey", f"{d}/server.key", "-name", "server",
        "-passout", f"pass:{PASSWORD}", "-out", f"{d}/server.p12")
    run("keytool", "-importcert", "-noprompt", "-alias", "authority", "-file", f"{d}/zookeeper-ca.pem",
        "-keystore", f"{d}/trust.p12", "-storetype", "PKCS12", "-storepass", PASSWORD)
    return d


class SecureZookeeper(harness.Zookeeper):
    """Wants a certificate it trusts on its secure port. The plain one is for looking at it."""

    def __init__(self, keys):
        self.secure_port = harness.free_port()
        tls = {"keyStore.location": f"{keys}/server.p12", "keyStore.password": PASSWORD,
               "trustStore.location": f"{keys}/trust.p12", "trustStore.password": PASSWORD, "clientAuth": "need"}
        super().__init__(FAST_TICK_MS, [
            "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            *[f"-Dzookeeper.ssl.{key}={value}" for key, value in tls.items()]])
        assert set(re.findall(r"zookeeper\.[\w.]+(?:=\S+)?", PROPERTIES)) == {
            "zookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            *(f"zookeeper.ssl.{key}" + "=need" * (key == "clientAuth") for key in tls)}

    def more_conf(self):
        return SERVERS.replace("2281", str(self.secure_port)) + "secureClientPortAddress=127.0.0.1\n"


class Stunnel:
    tick_ms = FAST_TICK_MS

    def __init__(self, keys, zookeeper, text):
        self.port = harness.free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.dir = harness.fast_tmp("lockbroker-tls.")
        with open(f"{self.dir}/stunnel.conf", "w") as f:
            text = text.replace("/etc/stunnel", str(keys)).replace("127.0.0.1:21811", self.address)
            f.write("foreground = yes\npid =\n")
            f.write(text.replace("zk1.example.net:2281", f"127.0.0.1:{zookeeper.secure_port}"))
        self.start()

    def start(self):
        """Returns when it listens."""
        with open(f"{self.dir}/log", "a") as log:
            self.process = harness.spawn(["stunnel4", f"{self.dir}/stunnel.conf"], stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=log)

        def listens():
            assert self.process.poll() is None, self.log()
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0

        harness.wait_until(listens, "stunnel")

    def log(self):
        with open(f"{self.dir}/log") as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.kill()
        shutil.rmtree(self.dir)


@pytest.fixture
def secure(keys, monkeypatch, ending):
    monkeypatch.setattr(harness, "JARS", f"{harness.JARS}:{NETTY}")
    return ending(SecureZookeeper(keys))


@pytest.fixture
def stunnel(keys, secure, ending):
    return lambda text: ending(Stunnel(keys, secure, text))


def handshake(port):
    """What a server answers to a ZooKeeper client; empty: it hangs up."""
    hello = struct.pack(">iqiqi16s?", 0, 0, 10000, 0, 16, bytes(16), False)
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        try:
            s.sendall(struct.pack(">i", len(hello)) + hello)
            return s.recv(1024)
        except ConnectionError:
            return b""


def test_locks_through_tls(secure, stunnel, daemons, clients):
    d = daemons(stunnel(section()))
    c = clients(d)
    token = c.call("LOCK", "a")
    assert isinstance(token, int) and c.call("UNLOCK", "a") == 0
    assert c.call("LOCK", "a") > token
    ((_, paths),) = secure.sessions().items()
    assert any(p.startswith("/t/a/") for p in paths)
    assert len([line for line in secure.ask("cons").splitlines() if "sid=0x" in line]) == 0, "not on the plain port"


def some_attempts(tunnel):
    harness.wait_until(lambda: tunnel.log().count("accepted connection from") > 3, "some attempts")


def test_who_speaks_no_tls_or_shows_no_certificate_is_not_let_in(secure, stunnel, daemons):
    assert len(handshake(secure.port)) > 4, "the plain port"
    assert handshake(secure.secure_port)[:1] in (b"", b"\x15"), "nothing, or an alert of TLS"
    without = stunnel(re.sub(r"(?m)^cert = .*", "", section()))
    d = daemons(without, has_session=False)
    some_attempts(without)
    assert d.info("zookeeper")["connected"] == "0"
    with d.client() as c:
        assert c.call("LOCK", "a", "WAIT", 200).code == "UNAVAILABLE"
    assert secure.sessions() == {}


def test_a_server_of_another_name_is_not_believed(stunnel, daemons):
    tunnel = stunnel(section().replace("checkHost = zk1", "checkHost = zk2"))
    d = daemons(tunnel, has_session=False)
    some_attempts(tunnel)
    assert d.info("zookeeper")["connected"] == "0"


def test_a_restart_of_stunnel_is_jeopardy_and_safe_again(stunnel, daemons, clients):
    tunnel = stunnel(section())
    d = daemons(tunnel, zookeeper__session_timeout_ms=30000)
    c = clients(d)
    token = c.call("LOCK", "a")
    tunnel.kill()
    assert c.push()[0] == "jeopardy"
    tunnel.start()
    assert c.push()[0] == "safe"
    assert c.call("LOCK", "a", "REENTER") == token
    assert d.info("stats")["losses_total"] == "0"
