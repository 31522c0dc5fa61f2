# SPDX-License-Identifier: Apache-2.0
"""conf/lockbroker.nft keeps local users from the servers' port: tried between network namespaces, with real connections."""

import collections
import os
import re
import shutil
import signal
import subprocess

import pytest

import harness
import pages

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="takes networks of its own, and other users"),
              pytest.mark.plain_only("nothing of this project runs here")]
PORT, OTHER_PORT = 2181, 2182
BROKER, STRANGER = 64001, 64002
# The host has an address on either side.
Addresses = collections.namedtuple("Addresses", "host server from_container container bits forwarding")
FAMILIES = {"ipv4": Addresses("10.9.1.1", "10.9.1.2", "10.9.2.1", "10.9.2.2", 24, "ipv4/ip_forward"),
            "ipv6": Addresses("fd00:0:0:1::1", "fd00:0:0:1::2", "fd00:0:0:2::1", "fd00:0:0:2::2", 64,
                              "ipv6/conf/all/forwarding")}


def run(*argv, text=None):
    done = harness.run(argv, input=text)
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

    def join(self, other, own_address, other_address, bits, name):
        """By a cable."""
        run("ip", "link", "add", name, "netns", str(self.process.pid), "type", "veth", "peer", "name", name, "netns",
            str(other.process.pid))
        for network, address in ((self, own_address), (other, other_address)):
            # Nobody else has it: it need not be asked for first, as IPv6 does.
            network.run("ip", "address", "add", f"{address}/{bits}", "dev", name, *(["nodad"] if ":" in address else []))
            network.run("ip", "link", "set", name, "up")

    def reaches(self, address, port, uid):
        return subprocess.run(self.inside("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "nc", "-z", "-w",
                                          "5", address, str(port)), capture_output=True, check=False).returncode == 0

    def end(self):
        harness.end(self.process, signal.SIGKILL)


@pytest.fixture(params=FAMILIES)
def networks(request):
    """The host, with a server on one side, which listens on two ports, and a container on the other, whose way it is."""
    for argv in (["unshare", "--net", "nft", "list", "ruleset"], ["unshare", "--net", "ip", "link"]):
        if not shutil.which(argv[2]) or subprocess.run(argv, capture_output=True, check=False).returncode:
            pytest.skip(f"not possible here: {' '.join(argv)}")
    at, made, listening = FAMILIES[request.param], [], []
    try:
        made += [Network() for _ in range(3)]
        host, server, container = made
        try:
            host.join(server, at.host, at.server, at.bits, "tests0")
            host.join(container, at.from_container, at.container, at.bits, "tests1")
            host.run("sh", "-c", f"echo 1 > /proc/sys/net/{at.forwarding}")
        except AssertionError as error:
            pytest.skip(f"not possible here: {error}")
        for network, via in (server, at.host), (container, at.from_container):
            network.run("ip", "-6" if ":" in via else "-4", "route", "add", "default", "via", via)
        listening += [harness.spawn(network.inside("nc", "-lk", address, str(port)), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL)
                      for network, address, port in ((server, at.server, PORT), (server, at.server, OTHER_PORT),
                                                     (host, at.host, OTHER_PORT))]
        for network, address, port in ((host, at.server, PORT), (host, at.server, OTHER_PORT),
                                       (server, at.host, OTHER_PORT)):
            harness.wait_until(lambda n=network, a=address, p=port: n.reaches(a, p, 0), "the listener")
        yield host, server, container, at
    finally:
        for process in listening:
            harness.end(process, signal.SIGKILL)
        for network in made:
            network.end()


def rules():
    """As they are shipped, with a number for the user, who may not exist here."""
    text = harness.read_source("conf/lockbroker.nft")
    assert "{ root, lockbroker }" in text
    return text.replace("{ root, lockbroker }", f"{{ root, {BROKER} }}")


def test_the_manual_has_the_rules_of_the_file():
    """But for its comments, and the lines that remove an older table."""
    (shown,) = pages.claimed("client-lib/man/lockbrokerd.8", __file__)
    file = harness.read_source("conf/lockbroker.nft")
    for name, value in re.findall(r"^define (\w+) = (.*)$", file, re.M):
        file = file.replace(f"${name}", "2181" if value == "{ 2181 }" else value)
    table = re.sub(r"^\s*#.*\n", "", file[file.index("table inet lockbroker {"):], flags=re.M)
    assert [line.strip() for line in table.splitlines() if line.strip()] == [line.strip() for line in shown.splitlines()]


def test_only_the_broker_and_root_reach_the_servers(networks):
    host, server, container, at = networks
    assert host.reaches(at.server, PORT, STRANGER) and container.reaches(at.server, PORT, STRANGER), "the danger"
    for _ in range(2):  # loading it again changes nothing
        host.run("nft", "-f", "-", text=rules())
    assert host.reaches(at.server, PORT, BROKER) and host.reaches(at.server, PORT, 0)
    assert not host.reaches(at.server, PORT, STRANGER)
    assert not container.reaches(at.server, PORT, BROKER) and not container.reaches(at.server, PORT, 0)
    assert host.reaches(at.server, OTHER_PORT, STRANGER) and container.reaches(at.server, OTHER_PORT, STRANGER)
    assert server.reaches(at.host, OTHER_PORT, STRANGER), "what comes in is not concerned"


def test_users_do_not_match_what_a_container_sends(networks):
    """Why there is a chain for what is forwarded: without it, anybody in a container reaches the servers."""
    host, _, container, at = networks
    text, count = re.subn(r"\n\tchain forward \{.*?\n\t\}", "", rules(), flags=re.S)
    assert count == 1
    host.run("nft", "-f", "-", text=text)
    assert not host.reaches(at.server, PORT, STRANGER) and container.reaches(at.server, PORT, STRANGER)
