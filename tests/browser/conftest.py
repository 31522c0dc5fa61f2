# SPDX-License-Identifier: Apache-2.0
"""Fixtures. One Chromium and one ZooKeeper server serve the whole run; each test has daemons and page servers of its own, and no test
may leave a complaint in the browser's log, or a request to anybody but these."""

import contextlib
import os
import secrets
import shutil
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

import harness  # noqa: E402
import chromium  # noqa: E402


def pytest_configure(config):
    config.pluginmanager.import_plugin("shared_fixtures")
    config.lockbroker_sweeper = harness.begin_run()


def missing():
    """Why there can be no browser; empty: there can be one."""
    programs = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if programs:
        return f"there is no {', no '.join(programs)}"
    return "" if chromium.webdriver else "there is no python3-selenium"


@pytest.fixture(scope="session")
def chrome():
    if missing():
        assert not os.environ.get("NEED_BROWSER"), missing()
        pytest.skip(missing())
    browser = chromium.Browser()
    yield browser
    browser.end()


@pytest.fixture(scope="session")
def zookeeper():
    server = harness.Zookeeper()
    yield server
    server.end()




@pytest.fixture
def standalone(daemons):
    return daemons(host="alpha")


@pytest.fixture
def two_hosts(daemons, zookeeper):
    root = f"/t{secrets.token_hex(6)}"
    return daemons(zookeeper, root, host="alpha"), daemons(zookeeper, root, host="beta")


@pytest.fixture
def commands():
    """Makes processes that lock: `lockbroker lock` with a command that ends when it is told to."""
    made = []

    def lock(daemon, name, *options):
        made.append(chromium.Command(daemon, name, *options))
        return made[-1]

    yield lock
    for command in made:
        command.release()
    for command in made:
        command.end()


@pytest.fixture
def hold(daemons):
    """Connects a client that holds these locks of a daemon until the end of the test."""
    with contextlib.ExitStack() as stack:

        def lock(daemon, *names):
            client = stack.enter_context(daemon.client())
            harness.lock_many(client, names)
            return client

        yield lock


@pytest.fixture
def pages(chrome):
    """Serves the page of a daemon, and shows it. Whatever a test does, the browser has nothing to complain of, and asks nobody else."""
    made = []

    def show(daemon, path="/"):
        made.append(chromium.Page(chrome, daemon))
        made[-1].show(path)
        return made[-1]

    chrome.begin()
    yield show
    try:
        chrome.close_windows()
        origins = {page.origin for page in made}
        complaints = [c for c in chrome.complaints() if not any(page.may_complain(c) for page in made)]
        assert not complaints, complaints
        strangers = [url for url in chrome.requests() if not url.startswith(tuple(f"{o}/" for o in origins))]
        assert not strangers, strangers
    finally:
        for page in made:
            page.end()
