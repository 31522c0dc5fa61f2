# SPDX-License-Identifier: Apache-2.0
"""Fixtures. One machine serves the whole run; each test brings the service into the state from which it begins."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import packages  # noqa: E402


def pytest_configure(config):
    if os.geteuid() != 0:
        pytest.exit("a machine can be booted by root only", 1)
    config.lockbroker_sweeper = harness.begin_run()


@pytest.fixture(scope="session")
def machine():
    made = machines.Machine()
    yield made
    made.end()


@pytest.fixture(scope="session")
def zk():
    server = harness.Zookeeper()
    yield server
    server.end()


@pytest.fixture(scope="session")
def current():
    return packages.build()


@pytest.fixture(scope="session")
def following():
    """A later version: another program."""
    return packages.build(packages.NEXT)
