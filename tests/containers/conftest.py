# SPDX-License-Identifier: Apache-2.0
"""Fixtures. One host of containers and one ZooKeeper server serve the whole run; each test begins without a container, and with
an empty directory for the socket."""

import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

import harness  # noqa: E402
import engine  # noqa: E402
import page  # noqa: E402


def pytest_configure(config):
    config.lockbroker_sweeper = harness.begin_run()


def missing():
    """Why there can be no host; empty: there can be one."""
    if os.geteuid() != 0:
        return "not root"
    programs = [name for name in ("podman", "buildah", "runc", "mmdebstrap") if not shutil.which(name)]
    return f"there is no {', no '.join(programs)}" if programs else ""


@pytest.fixture(scope="session")
def image():
    """A host that has the image of Containerfile, built as docs/CONTAINERS.md says, from a base that is made here."""
    if missing():
        assert not os.environ.get("NEED_CONTAINERS"), missing()
        pytest.skip(missing())
    host = engine.Host()
    try:
        host.run(f"podman import '{engine.base_image()}' {engine.BASE}")
        host.run(page.block("buildah bud"), patience=30 * harness.PATIENCE)
        yield host
    finally:
        host.end()


@pytest.fixture
def host(image):
    image.remove_containers()
    image.run("rm -rf /run/lockbroker; install -d -o 61000 -g 61000 /run/lockbroker")
    return image


@pytest.fixture(scope="session")
def zookeeper():
    server = harness.Zookeeper()
    yield server
    server.end()
