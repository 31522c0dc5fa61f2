# SPDX-License-Identifier: Apache-2.0
"""Fixtures. One ZooKeeper server serves the whole run, whatever the number of workers; every test has a root of its
own below it, and daemons of its own that must end well and without a complaint of a sanitizer."""

import contextlib
import os
import re
import secrets
import sys

import kazoo.client
import kazoo.exceptions
import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402

# Four fifths of what each worker needs to find the tests goes into their assertions, which pytest writes anew: once is enough.
if "LOCKBROKER_PYCACHE" in os.environ:
    sys.pycache_prefix = os.environ["LOCKBROKER_PYCACHE"]
    sys.dont_write_bytecode = False

import library  # noqa: E402

sys.path.append(os.path.join(harness.SOURCE, "tests", "torture"))

import ensemble  # noqa: E402


class Shared:
    """The server of the run, as a test sees it: its port is all that crosses to the workers."""

    tick_ms = 2000
    ask = harness.Zookeeper.ask
    sessions = harness.Zookeeper.sessions

    def __init__(self, port):
        self.port = port
        self.address = f"127.0.0.1:{port}"


@contextlib.contextmanager
def kazoo_of(server, **options):
    client = kazoo.client.KazooClient(hosts=server.address, **options)
    try:
        client.start(harness.PATIENCE)
        yield client
    finally:
        client.stop()
        client.close()


def archive_classes():
    """Of a server with a client, which ends well. Each server of the run then needs a quarter less of the processor to start."""
    server = harness.Zookeeper(jvm=[f"-XX:ArchiveClassesAtExit={harness.archive()}"])
    with kazoo_of(server) as client:
        client.create("/a", ephemeral=True)
    server.process.terminate()
    server.process.wait(harness.PATIENCE)
    server.end()


def pytest_configure(config):
    config.pluginmanager.import_plugin("shared_fixtures")
    config.addinivalue_line("markers", "plain_only(why): without sanitizers, which cannot run it, or find nothing in it")
    config.addinivalue_line("markers", "release_only(why): takes long and seldom finds what others do not: a check leaves it out")
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.lockbroker_sweeper = harness.begin_run()
        archive_classes()
        config.lockbroker_zookeeper = harness.Zookeeper()


def has_a_twin(item, names):
    """Another test differs from this one in its daemon only, which ZooKeeper serves. Tests of the Python client are no twins: without
    ZooKeeper, some of them execute a line of it that no other test does."""
    test, bracket, ids = item.nodeid.partition("[")
    return "standalone" in ids and not item.path.name.startswith("test_python_") and test + bracket + ids.replace("standalone", "zookeeper", 1) in names


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """With sanitizers, tests that are marked plain_only are left out, whatever their folder. Of two twins, a check runs the one with
    ZooKeeper: by the map of `make mutate`, other tests execute each line that the one without it executes."""
    names = {item.nodeid for item in items}
    for item in items:
        if has_a_twin(item, names):
            item.add_marker(pytest.mark.release_only("its twin has a server"))
    left_out = [item for item in items if item.get_closest_marker("plain_only")] if harness.sanitizer_options() else []
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["lockbroker_port"] = node.config.lockbroker_zookeeper.port


def pytest_unconfigure(config):
    server = getattr(config, "lockbroker_zookeeper", None)
    if server:
        server.end()


@pytest.fixture(scope="session")
def zk(request):
    config = request.config
    if hasattr(config, "lockbroker_zookeeper"):
        yield Shared(config.lockbroker_zookeeper.port)
    elif "lockbroker_port" in config.workerinput:
        yield Shared(config.workerinput["lockbroker_port"])
    else:  # the run was started from a directory above, and its controller does not know this file
        server = harness.Zookeeper()
        yield Shared(server.port)
        server.end()


@pytest.fixture(scope="session")
def spare_servers():
    """Servers that a test has returned and that are as new: one for each tick."""
    spare = {}
    yield spare
    for server in spare.values():
        server.end()


def is_as_new(server):
    """Makes the server so, if it runs and no client is connected: ends the sessions of clients that were killed, and deletes all znodes."""
    if (server.process.poll() is not None or "T" in harness.thread_states(server.process.pid) or
            re.search("sid=0x[1-9a-f]", server.ask("cons"))):
        return False
    for session in set(re.findall("0x[1-9a-f][0-9a-f]*", server.ask("dump"))):
        ensemble.end_session(server.port, int(session, 16))
    try:
        with kazoo_of(server) as client:
            for name in set(client.get_children("/")) - {"zookeeper"}:
                client.delete(f"/{name}", recursive=True)
        return True
    except kazoo.exceptions.KazooException:
        return False


@pytest.fixture
def own_zk(spare_servers):
    """Makes private servers, for tests that hurt them or count what they do. The start of a JVM takes most of such a test, so
    a server with options of its own, or `fresh`, is a new one, and any other may be one that an earlier test had."""
    servers = []

    def make(tick_ms=2000, jvm=None, fresh=False):
        server = None if jvm or fresh else spare_servers.pop(tick_ms, None)
        # Empty directories go in tests that say so: otherwise a minute after the start one would go in any test.
        server = server or harness.Zookeeper(tick_ms, jvm or ["-Dznode.container.checkIntervalMs=86400000"])
        servers.append((server, bool(jvm or fresh)))
        return server

    yield make
    for server, one_of_its_own in servers:
        if one_of_its_own or server.tick_ms in spare_servers or not is_as_new(server):
            server.end()
        else:
            spare_servers[server.tick_ms] = server


@pytest.fixture
def root():
    return f"/t{secrets.token_hex(6)}"


@pytest.fixture
def clients(daemons, request):
    """Connects; all connections are closed before the daemons end. A test file that says OPERATORS = True asks for what
    only operators may have: its clients come through their socket."""
    def connect(daemon, version=3, operator=getattr(request.module, "OPERATORS", False)):
        return daemon.client(version, operator)

    yield from harness.each_ends(connect, harness.Client.close)


@pytest.fixture
def launch(daemons):
    """Starts a daemon that the test has made with wait=False; it ends as those of `daemons` do."""

    def start(daemon, **options):
        daemons.list.append(daemon)
        daemon.start(**options)
        return daemon

    return start


@pytest.fixture
def fresh(launch, tmp_path):
    """Makes a daemon that runs from a place of its own, where harness.install() can put another program."""

    def make(*args, **options):
        d = harness.Daemon(*args, **options, wait=False)
        d.program = str(tmp_path / "lockbrokerd")
        harness.install(d)
        return launch(d)

    return make


@pytest.fixture
def locked(clients):
    """Has a client of a daemon lock `a`: the client, and the token."""

    def lock(daemon):
        client = clients(daemon)
        token = client.call("LOCK", "a")
        assert isinstance(token, int), token
        return client, token

    return lock


@pytest.fixture
def kazoo_client():
    """Connects kazoo to a server, to look at znodes and to change them; closed with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda zk, **options: stack.enter_context(kazoo_of(zk, **options))


@pytest.fixture
def secret(tmp_path):
    """A file that zookeeper.auth_file may name."""
    path = tmp_path / "secret"
    path.write_text("broker:s3cret\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def conf(tmp_path):
    """A file for the configuration, without any yet."""
    path = tmp_path / "conf"
    path.touch()
    return path


@pytest.fixture
def standalone(daemons):
    return daemons()


@pytest.fixture(params=["standalone", "zookeeper"])
def broker(request, daemons, root):
    """A daemon of either kind: what is true of both is tested on both."""
    if request.param == "standalone":
        return daemons()
    return daemons(request.getfixturevalue("zk"), root)


@pytest.fixture
def alone(standalone, monkeypatch):
    """The broker that the Python library finds."""
    monkeypatch.setenv("LOCKBROKER_SOCKET", standalone.socket)
    return standalone


@pytest.fixture
def here(broker, monkeypatch):
    """The broker that the Python library finds: of either kind."""
    monkeypatch.setenv("LOCKBROKER_SOCKET", broker.socket)
    return broker


@pytest.fixture(params=["page", "no page"])
def page(request, monkeypatch):
    """Where the page cannot be mapped, as in a container that has only the socket, the Python library asks the broker."""
    if request.param == "no page":
        monkeypatch.setattr("lockbroker._page.find", lambda *_: None)
    return request.param == "page"


@pytest.fixture
def two_hosts(daemons, zk, root):
    return daemons(zk, root, host="alpha"), daemons(zk, root, host="beta")


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    return library.build_driver(tmp_path_factory.mktemp("library"))


@pytest.fixture
def programs(driver, daemons):
    """Makes programs that use the library; they must end well, too."""
    yield from harness.each_ends(lambda daemon_socket: library.Program(driver, daemon_socket), library.Program.end)
