# SPDX-License-Identifier: Apache-2.0
"""A booted release of Debian, whichever the host has, on which nothing of ours is: the first lock and the repository as
docs/INSTALL.md has them. The packages are those that tests/debian.sh has left."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading

import pytest

import harness
import machine as machines
import packages
import pages
from holders import Holders, serving

RELEASE = os.environ.get("LOCKBROKER_DEBIAN")
FOLDER = os.path.join(harness.build_dir(), str(RELEASE))
UNIT = "lockbrokerd.service"
CONF = "/etc/lockbroker.conf"
SOURCES = "/etc/apt/sources.list.d/lockbroker.sources"

pytestmark = pytest.mark.skipif(not RELEASE, reason="make bookworm and make trixie run it")


# The commands of the page, without their comments: the first lock, what a repository is used by, and how it is published.
FIRST_LOCK, REPOSITORY, PUBLISH = ([re.sub(r" +#.*", "", line) for line in text.splitlines()]
                                   for text in pages.claimed("docs/INSTALL.md", __file__, "sh"))


@pytest.fixture(scope="session")
def machine():
    made = machines.Machine(release=RELEASE)
    made.run("useradd", "alice")
    made.run("apt-get", "update")
    yield made
    made.end()


@pytest.fixture
def blank(machine):
    """The machine, without our packages again after the test."""
    yield machine
    machine.run("systemctl", "stop", "job.service", status=None)
    machine.run("dpkg", "--purge", "lockbrokerd", "lockbroker")
    machine.run("rm", "-f", SOURCES)


def type_in(machine, command, folder="/"):
    """As a person does who says yes."""
    done = subprocess.run(machine.inside("sh", "-c", f"cd {folder} && {command}"), input="y\n", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=2 * harness.PATIENCE,
                          env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}{machine.journal()}"
    return done.stdout


def connect(machine, zk):
    machine.run("sed", "-i", f"s/^servers =.*/servers = {zk.address}/", CONF)
    machine.run("systemctl", "restart", UNIT)
    harness.wait_until(lambda: "session_state:safe" in machine.run("lockbroker", "info", "session"), "the session")


def test_the_first_lock_as_readme_has_it_a_restart_keeps_locks_and_a_purge_leaves_nothing(blank, zk):
    make, *rest = FIRST_LOCK
    assert make == "make deb", "tests/debian.sh has done that"
    shutil.copytree(f"{FOLDER}/deb", f"/proc/{blank.leader}/root/srv/build/deb")
    for command in rest:
        said = type_in(blank, command.replace("zk1:2181,zk2:2181,zk3:2181", zk.address), "/srv")
    assert said == "I have the lock\n"
    assert "lockbroker" in blank.run("id", "-nG", "alice").split()

    holders, before = Holders(blank), blank.show("MainPID")
    blank.run("systemctl", "restart", UNIT)
    assert blank.show("MainPID") != before
    holders.release()

    blank.run("apt-get", "purge", "-y", "lockbroker", "lockbrokerd")
    assert blank.show("LoadState") == "not-found" and blank.show("ActiveState") == "inactive"
    assert blank.run("find", "/", "-xdev", "-path", "/srv", "-prune", "-o", "-path", "/var/log", "-prune", "-o", "-path", "/proc", "-prune",
                     "-o", "-iname", "*lockbroker*", "-print") == ""


# ---- the repository ----


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Repository:
    """Signed by a key that is thrown away, and served at an address of this host."""

    def __init__(self, folder):
        self.folder, self.home = os.path.join(folder, "repo"), os.path.join(folder, "gnupg")
        os.mkdir(self.home, 0o700)
        self.env = os.environ | {"GNUPGHOME": self.home}
        subprocess.run(["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "tests", "ed25519", "sign", "never"],
                       check=True, env=self.env, stdin=subprocess.DEVNULL, capture_output=True)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=self.folder))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def publish(self, folder):
        *_, sign = PUBLISH
        assert sign == "make repo KEY=releases@..."
        done = subprocess.run(["make", "-s", "-C", harness.SOURCE, "repo", "KEY=tests", f"URL={self.url}", f"REPO={self.folder}",
                               f"PACKAGES={folder}"], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        subprocess.run(["gpgconf", "--kill", "all"], check=True, env=self.env)


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path)
    yield made
    made.end()


def follow_install(machine, repository):
    """Its two commands, with another address."""
    assert len(REPOSITORY) == 2 and "https://packages.lockbroker.invalid" in REPOSITORY[0]
    for line in REPOSITORY:
        type_in(machine, line.replace("https://packages.lockbroker.invalid", repository.url))


def test_what_is_published_is_built_by_steps_of_a_release():
    """This very test runs in one of them."""
    steps = subprocess.run(["make", "-n", "-C", harness.SOURCE, "release"], check=True, capture_output=True, text=True).stdout
    built = [line.removeprefix("make ").split() for line in PUBLISH[:-1]]
    assert sum(built, []) == ["bookworm", "trixie", "bookworm-arm64", "trixie-arm64"]
    assert set(sum(built, [])) <= set(steps.split())


def test_two_commands_install_a_service_from_the_repository(blank, repository, zk):
    repository.publish(f"{FOLDER}/deb")
    follow_install(blank, repository)
    assert blank.show("ActiveState") == "active" and serving(blank) == packages.version()
    connect(blank, zk)
    assert blank.run("lockbroker", "lock", "hello", "echo", "I have the lock") == "I have the lock\n"


def test_an_upgrade_through_the_repository_costs_nobody_a_lock(blank, repository, zk):
    if not os.path.isdir(f"{FOLDER}/last"):
        pytest.skip("no history: the commit that tests/last-release names is not there")
    repository.publish(f"{FOLDER}/last")
    follow_install(blank, repository)
    connect(blank, zk)
    before, holders = serving(blank), Holders(blank)
    repository.publish(f"{FOLDER}/deb")
    # A configuration that was edited is kept, also where a new one comes with the packages.
    blank.run("sh", "-c", "apt-get update && apt-get -o Dpkg::Options::=--force-confold upgrade -y")
    assert serving(blank) == packages.version() != before
    holders.check()
    blank.run("systemctl", "restart", UNIT)
    holders.release()
