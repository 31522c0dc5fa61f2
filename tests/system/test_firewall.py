# SPDX-License-Identifier: Apache-2.0
"""conf/lockbroker.nft keeps local users from the servers' port: tried between network namespaces, with real connections."""

import os
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="takes networks of its own, and other users"),
              pytest.mark.plain_only("nothing of this project runs here")]
PORT, OTHER_PORT = 2181, 2182
BROKER, STRANGER = 64001, 64002
HOST, SERVER, FROM_CONTAINER, CONTAINER = "10.9.1.1", "10.9.1.2", "10.9.2.1", "10.9.2.2"


def run(*argv, text=None):
    done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"


class Network:
    """A network namespace: a host, a server, a container. It ends with its process."""

    def __init__(self):
        self.process = harness.spawn(["unshare", "--net", "sleep", "infinity"])
        own = os.readlink("/proc/self/ns/net")
        harness.wait_until(lambda: os.readlink(f"/proc/{self.process.pid}/ns/net") != own, "the namespace")
        self.run("ip", "link", "set", "lo", "up")

    def inside(self, *argv):
        return ["nsenter", "-t", str(self.process.pid), "--net", *argv]

    def run(self, *argv, text=None):
        run(*self.inside(*argv), text=text)

    def join(self, other, own_address, other_address, name):
        """By a cable."""
        run("ip", "link", "add", name, "netns", str(self.process.pid), "type", "veth", "peer", "name", name, "netns",
            str(other.process.pid))
        for network, address in ((self, own_address), (other, other_address)):
            network.run("ip", "address", "add", f"{address}/24", "dev", name)
            network.run("ip", "link", "set", name, "up")

    def reaches(self, address, port, uid):
        return subprocess.run(self.inside("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "nc", "-z", "-w",
                                          "5", address, str(port)), capture_output=True, check=False).returncode == 0

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def networks():
    """The host, with a server on one side, which listens on two ports, and a container on the other, whose way it is."""
    for argv in (["unshare", "--net", "nft", "list", "ruleset"], ["unshare", "--net", "ip", "link"]):
        if not shutil.which(argv[2]) or subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip(f"not possible here: {' '.join(argv)}")
    made, listening = [], []
    try:
        made += [Network() for _ in range(3)]
        host, server, container = made
        try:
            host.join(server, HOST, SERVER, "tests0")
            host.join(container, FROM_CONTAINER, CONTAINER, "tests1")
            host.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        except AssertionError as error:
            pytest.skip(f"not possible here: {error}")
        server.run("ip", "route", "add", "default", "via", HOST)
        container.run("ip", "route", "add", "default", "via", FROM_CONTAINER)
        listening += [harness.spawn(server.inside("nc", "-lk", address, str(port)), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL)
                      for address, port in ((SERVER, PORT), (SERVER, OTHER_PORT))]
        listening.append(harness.spawn(host.inside("nc", "-lk", HOST, str(OTHER_PORT)), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL))
        for network, address, port in ((host, SERVER, PORT), (host, SERVER, OTHER_PORT), (server, HOST, OTHER_PORT)):
            harness.wait_until(lambda n=network, a=address, p=port: n.reaches(a, p, 0), "the listener")
        yield host, server, container
    finally:
        for process in listening:
            process.kill()
            process.wait()
        for network in made:
            network.end()


def rules():
    """As they are shipped, with a number for the user, who may not exist here."""
    text = harness.read_source("conf/lockbroker.nft")
    assert "{ root, lockbroker }" in text
    return text.replace("{ root, lockbroker }", f"{{ root, {BROKER} }}")


def test_only_the_broker_and_root_reach_the_servers(networks):
    host, server, container = networks
    assert host.reaches(SERVER, PORT, STRANGER) and container.reaches(SERVER, PORT, STRANGER), "the danger"
    for _ in range(2):  # loading it again changes nothing
        host.run("nft", "-f", "-", text=rules())
    assert host.reaches(SERVER, PORT, BROKER) and host.reaches(SERVER, PORT, 0)
    assert not host.reaches(SERVER, PORT, STRANGER)
    assert not container.reaches(SERVER, PORT, BROKER) and not container.reaches(SERVER, PORT, 0)
    assert host.reaches(SERVER, OTHER_PORT, STRANGER) and container.reaches(SERVER, OTHER_PORT, STRANGER)
    assert server.reaches(HOST, OTHER_PORT, STRANGER), "what comes in is not concerned"


def test_users_do_not_match_what_a_container_sends(networks):
    """Why there is a chain for what is forwarded: without it, anybody in a container reaches the servers."""
    host, _, container = networks
    text, count = re.subn(r"\n\tchain forward \{.*?\n\t\}", "", rules(), flags=re.S)
    assert count == 1
    host.run("nft", "-f", "-", text=text)
    assert not host.reaches(SERVER, PORT, STRANGER) and container.reaches(SERVER, PORT, STRANGER)
