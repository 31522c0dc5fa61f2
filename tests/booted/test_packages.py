# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: what is in them, what their scripts do, and that an upgrade costs nobody a lock."""

import os
import re
import shutil
import subprocess

import pytest

import harness
import machine as machines
import packages
import pages
from holders import Holders, install, serving, start_job

UNIT = "lockbrokerd.service"
METRICS, PAGE = "lockbroker-http.service", "lockbroker-page.service"
CONF = "/etc/lockbroker.conf"
DROP_IN = f"/run/systemd/system/{UNIT}.d/standalone.conf"
STANDALONE = f"[Service]\nExecStart=\nExecStart=/usr/sbin/lockbrokerd --standalone -c {CONF}\n"
OUTDATED = "/run/systemd/system/outdated.service"
SCRIPTS = "/var/lib/dpkg/info/lockbrokerd."
MAINTSCRIPT = "DPKG_MAINTSCRIPT_PACKAGE=lockbrokerd DPKG_MAINTSCRIPT_NAME"

# Of the time when the service was root's, as far as it matters.
ROOTS = f"/run/systemd/system/{UNIT}"
ROOTS_UNIT = """[Service]
Type=notify
NotifyAccess=all
KillMode=mixed
ExecStart=/usr/sbin/lockbrokerd -c /etc/lockbroker.conf
ExecStop=/bin/sh -c '[ -z "$MAINPID" ] || ! systemctl list-jobs --no-legend %n | grep -q " restart " || kill -USR1 "$MAINPID"'
FileDescriptorStoreMax=4
Restart=always
RuntimeDirectory=lockbroker
RuntimeDirectoryPreserve=yes
StateDirectory=lockbroker
"""

# ---- a root in which nothing runs ----


@pytest.fixture
def root():
    path = machines.unpack()
    yield path
    shutil.rmtree(os.path.dirname(path))


def inside(root, *argv, status=0):
    done = subprocess.run(["chroot", root, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    assert done.returncode == status, done.stdout
    return done.stdout


def files(root):
    """With their modes; all but what dpkg and its hooks write, and users and groups, which a purge leaves."""
    written = [word for path in ("/var/lib/dpkg", "/var/log", "/var/cache", "/run", packages.REPOSITORY)
               for word in ("-path", path, "-prune", "-o")]
    return {line for line in inside(root, "find", "/", "-xdev", *written, "-printf", "%M %p\\n").splitlines()
            if not re.search("/etc/(group|gshadow|passwd|shadow)-?$", line)}


def test_the_packages_put_files_where_they_belong_and_a_purge_leaves_nothing(root, current):
    before = files(root)
    inside(root, "dpkg", "-i", *packages.put(root, current))
    added = files(root) - before
    for line in ("-rwxr-xr-x /usr/sbin/lockbrokerd", "-rwxr-xr-x /usr/bin/lockbroker", f"-rw-r--r-- {CONF}",
                 f"-rw-r--r-- /lib/systemd/system/{UNIT}", "-rw-r--r-- /lib/systemd/system/lockbrokerd.socket",
                 "-rw-r--r-- /lib/systemd/system/lockbrokerd@.service", "-rw-r--r-- /usr/lib/systemd/user/lockbrokerd.socket",
                 "-rw-r--r-- /usr/lib/sysusers.d/lockbrokerd.conf", "-rw-r--r-- /usr/lib/tmpfiles.d/lockbrokerd.conf",
                 f"lrwxrwxrwx /etc/systemd/system/multi-user.target.wants/{UNIT}"):
        assert line.replace(" /lib/", " /usr/lib/") in {one.replace(" /lib/", " /usr/lib/") for one in added}
    assert not [line for line in added if "sockets.target.wants" in line or "/etc/systemd/user/" in line], "one unit is enabled"
    assert inside(root, "lockbrokerd", "--version") == f"lockbrokerd {packages.version()}\n"
    assert inside(root, "getent", "group", "lockbroker").startswith("lockbroker:")
    assert re.fullmatch(r"lockbroker:x:\d+:\d+:.*:/:/usr/sbin/nologin\n", inside(root, "getent", "passwd", "lockbroker"))
    said = inside(root, "dpkg", "--purge", "lockbrokerd", "lockbroker")
    assert "tokens" not in said, "there was no counter"
    assert files(root) == before


def test_the_configuration_is_kept_until_a_purge_which_says_that_tokens_begin_anew(root, current, following):
    inside(root, "dpkg", "-i", *packages.put(root, current))
    with open(f"{root}{CONF}", "a") as f:
        f.write("# mine\n")
    os.makedirs(f"{root}/var/lib/lockbroker")
    open(f"{root}/var/lib/lockbroker/tokens", "w").close()
    inside(root, "dpkg", "-i", *packages.put(root, following))
    inside(root, "dpkg", "--remove", "lockbrokerd")
    assert open(f"{root}{CONF}").read().endswith("# mine\n") and os.path.exists(f"{root}/var/lib/lockbroker/tokens")
    said = inside(root, "dpkg", "--purge", "lockbrokerd")
    assert "tokens begin anew" in said
    assert not os.path.exists(f"{root}{CONF}") and not os.path.exists(f"{root}/var/lib/lockbroker")


def test_each_script_may_run_twice(root, current):
    """dpkg calls them again after a failure, and in each of these ways."""
    inside(root, "dpkg", "-i", *packages.put(root, current))
    before = files(root)
    for _ in range(2):
        for call in ("postinst configure", f"postinst configure {packages.version()}", "postinst abort-upgrade 1",
                     "postinst abort-remove", "postinst abort-deconfigure", "prerm upgrade 1", "prerm failed-upgrade 1",
                     "prerm remove", "prerm deconfigure", "postrm upgrade 1", "postrm failed-upgrade 1",
                     "postrm abort-install", "postrm abort-upgrade 1", "postrm disappear", "postrm remove"):
            inside(root, "sh", "-ec", f"export {MAINTSCRIPT}={call.split()[0]}; exec {SCRIPTS}{call}")
    assert files(root) == before
    shutil.copy(f"{root}{SCRIPTS}postrm", f"{root}/tmp/postrm")
    inside(root, "dpkg", "--purge", "lockbrokerd")
    inside(root, "sh", "-ec", f"export {MAINTSCRIPT}=postrm; exec /tmp/postrm purge")


def test_a_program_is_built_with_the_library_s_packages(root, current):
    """The example of docs/CLIENTS.md, with nothing else of ours."""
    for name in ("liblockbroker1", "liblockbroker-dev"):
        subprocess.run(["dpkg", "-x", current[name], root], check=True)
    (source,) = pages.claimed("docs/CLIENTS.md", __file__, "c")
    with open(f"{root}/settle.c", "w") as f:
        f.write(source)
    triplet = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "lockbroker"], check=True, capture_output=True, text=True,
                           env=os.environ | {"PKG_CONFIG_LIBDIR": f"{root}/usr/lib/{triplet}/pkgconfig",
                                             "PKG_CONFIG_SYSROOT_DIR": root, "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1",
                                             "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}).stdout.split()
    subprocess.run(["gcc", f"{root}/settle.c", "-o", f"{root}/settle", *flags], check=True)
    assert "lockbroker.sock" in inside(root, "/settle", status=1), "it runs, and finds no daemon"


def test_python_finds_the_library_s_package_and_a_purge_leaves_nothing(root, current):
    before = files(root)
    inside(root, "dpkg", "-i", *packages.put(root, current, ["python3-lockbroker"]))
    added = [line for line in files(root) - before if "/usr/share/doc/" not in line]
    assert all(" /usr/lib/python3/dist-packages/lockbroker" in line for line in added)
    assert [line for line in added if line.endswith("/py.typed")] and [line for line in added if line.endswith(".pyc")]
    said = inside(root, "python3", "-c", "import lockbroker; lockbroker.lock('a').acquire()", status=1)
    assert "lockbroker.sock: No such file or directory" in said, "it runs, and finds no daemon"
    inside(root, "dpkg", "--purge", "python3-lockbroker")
    assert files(root) == before


def test_java_and_maven_find_the_library_s_package(current, tmp_path):
    """Not on the machine, which has no Java."""
    subprocess.run(["dpkg", "-x", current["liblockbroker-java"], tmp_path], check=True)
    (tmp_path / "Lock.java").write_text("""public class Lock {
        public static void main(String[] args) { lockbroker.LockBroker.open("/none"); } }""")
    done = subprocess.run(["java", "-cp", f"{tmp_path}/usr/share/java/lockbroker.jar", f"{tmp_path}/Lock.java"],
                          capture_output=True, text=True)
    assert "NotAvailable: No lockbrokerd is serving /none" in done.stderr, "it runs, and finds no daemon"
    repository = tmp_path / "usr/share/maven-repo/lockbroker/lockbroker"
    for version in (packages.version(), "debian"):
        assert f"<version>{version}</version>" in (repository / version / f"lockbroker-{version}.pom").read_text()
        assert os.readlink(repository / version / f"lockbroker-{version}.jar").endswith(f"java/lockbroker-{packages.version()}.jar")
    assert (tmp_path / "usr/share/doc/liblockbroker-java/javadoc/index.html").exists()


# ---- a booted machine ----


@pytest.fixture(scope="session")
def fresh(current):
    """The machine, and what a first installation leaves it as: no ensemble, nothing configured."""
    made = machines.Machine(installed=False)
    inside_of = f"/proc/{made.leader}/root"
    made.said = made.run("dpkg", "-i", *packages.put(inside_of, current))
    made.first = {key: made.show(key) for key in ("ActiveState", "UnitFileState", "NRestarts")}
    made.off = {(made.show("ActiveState", unit), made.show("UnitFileState", unit)) for unit in (METRICS, PAGE)}
    made.conf = made.read(CONF)
    made.first_socket = made.run("stat", "-c", "%a %G", "/run/lockbroker/lockbroker.sock")
    made.write("/etc/needrestart/conf.d/tests.conf", "$nrconf{kernelhints} = 0; $nrconf{ucodehints} = 0;\n")
    yield made
    made.end()


@pytest.fixture(params=["standalone", "zookeeper"])
def service(request, fresh, current):
    """The first version of the packages, running without locks, of either kind."""
    servers = request.getfixturevalue("zk").address if request.param == "zookeeper" else "127.0.0.1:2181"
    fresh.run("systemctl", "stop", UNIT, "lockbrokerd.socket")
    fresh.run("systemctl", "reset-failed", status=None)
    fresh.run("systemctl", "stop", "outdated.service", "job.service", status=None)
    fresh.run("rm", "-f", DROP_IN, OUTDATED)
    if request.param == "standalone":
        fresh.write(DROP_IN, STANDALONE)
    fresh.write(CONF, re.sub(r"^servers =.*$", f"servers = {servers}", fresh.conf, flags=re.M))
    install(fresh, current)
    fresh.run("systemctl", "start", UNIT)
    if request.param == "zookeeper":
        harness.wait_until(lambda: "session_state:safe" in fresh.run("lockbroker", "info", "session"), "the session")
    assert serving(fresh) == packages.version()
    return fresh


@pytest.fixture
def hold(service):
    """Makes them."""
    made = []
    yield lambda: made.append(Holders(service)) or made[0]
    service.run("systemctl", "stop", "job.service", status=None)
    for process in (made[0].command, made[0].raw, *made[0].waiters) if made else ():
        process.stdin.close()


@pytest.fixture
def holders(hold):
    return hold()


def test_a_first_installation_without_an_ensemble_starts_cleanly(fresh):
    assert fresh.first == {"ActiveState": "active", "UnitFileState": "enabled", "NRestarts": "0"}
    assert fresh.off == {("inactive", "disabled")}, "metrics and page are for those who enable them"
    assert fresh.first_socket == "1660 lockbroker\n", "the group may connect"
    assert not re.search("fail|error|warning", fresh.said, re.I)
    assert fresh.run("systemctl", "--failed", "--no-legend") == ""


def test_an_upgrade_and_a_downgrade_cost_nobody_a_lock(service, holders, current, following):
    said = install(service, following)
    assert f"lockbrokerd {packages.NEXT} serves now" in said
    assert serving(service) == packages.NEXT
    holders.check()
    install(service, current)
    assert serving(service) == packages.version()
    holders.release()


@pytest.mark.parametrize("service", ["standalone"], indirect=True)
def test_an_upgrade_restarts_the_page_that_runs_and_nothing_that_was_stopped(service, following):
    service.write(f"/run/systemd/system/{PAGE}.d/port.conf", f"[Service]\nEnvironment=LISTEN=127.0.0.1:{harness.free_port()}\n")
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "enable", METRICS)
    service.run("systemctl", "enable", "--now", PAGE)
    try:
        before = service.show("MainPID", PAGE)
        install(service, following)
        pid = service.show("MainPID", PAGE)
        assert pid not in (before, "0") and service.show("ActiveState", PAGE) == "active"
        assert "deleted" not in service.run("readlink", f"/proc/{pid}/exe")
        assert service.show("ActiveState", METRICS) == "inactive"
        service.run("systemctl", "stop", PAGE)
        install(service, following)
        assert service.show("ActiveState", PAGE) == "inactive"
    finally:
        service.run("systemctl", "disable", "--now", METRICS, PAGE)


@pytest.fixture
def roots(service):
    """The service as it was before it had a user: root's, and so is every file of it."""
    service.run("systemctl", "stop", UNIT)
    service.run("rm", "-rf", "/run/lockbroker", "/var/lib/lockbroker")
    service.write(ROOTS, ROOTS_UNIT)
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "start", UNIT)
    service.run("lockbroker", "lock", "a", "--", "true")
    assert user_of_the_daemon(service) == "0"
    yield service
    service.run("rm", "-f", ROOTS)
    service.run("systemctl", "daemon-reload")


def user_of_the_daemon(machine):
    return re.search(r"^Uid:\t(\d+)", machine.read(f"/proc/{machine.show('MainPID')}/status"), re.M).group(1)


def test_an_upgrade_to_a_service_without_privilege_costs_nobody_a_lock(roots, hold, following):
    """The hand-over keeps the process's user; so systemd restarts it after that."""
    holders = hold()
    roots.run("rm", ROOTS)
    install(roots, following)
    assert serving(roots) == packages.NEXT
    assert user_of_the_daemon(roots) == roots.run("id", "-u", "lockbroker").strip()
    holders.check()
    owners = roots.run("find", "/run/lockbroker", "/var/lib/lockbroker", "-printf", "%u:%g\n").split()
    assert set(owners) == {"lockbroker:lockbroker"}
    roots.run("systemctl", "restart", UNIT)
    holders.release()


@pytest.mark.parametrize("service", ["standalone"], indirect=True)
def test_a_secret_that_the_user_cannot_read_leaves_root_s_daemon_running_and_says_so(roots, hold, following):
    holders, conf = hold(), roots.read(CONF)
    roots.run("rm", ROOTS)
    roots.write("/etc/secret", "broker:s3cret")
    roots.run("chmod", "600", "/etc/secret")
    roots.write(CONF, re.sub(r"^auth_file =.*$", "auth_file = /etc/secret", conf, flags=re.M))
    assert "Run: chown lockbroker /etc/secret && systemctl restart lockbrokerd.service" in install(roots, following)
    assert serving(roots) == packages.NEXT and user_of_the_daemon(roots) == "0"
    holders.check()
    roots.run("chown", "lockbroker", "/etc/secret")
    roots.run("systemctl", "restart", UNIT)
    assert user_of_the_daemon(roots) != "0"
    holders.release()


def outdated(machine):
    """The services that needrestart would restart."""
    return re.findall(r"^NEEDRESTART-SVC: (\S+)$", machine.run("needrestart", "-b", "-l"), re.M)


def replace(machine, path):
    """By a new file with the same content, as an upgrade of its package does."""
    machine.run("sh", "-ec", f"path=$(echo {path}); cp -p $path $path.new; mv $path.new $path")


def test_a_host_that_upgrades_and_restarts_by_itself_costs_nobody_a_lock(service, holders, following):
    """unattended-upgrades has apt call needrestart, which restarts what is outdated."""
    packages.offer(f"/proc/{service.leader}/root", following)
    service.run("apt-get", "update")
    service.write(OUTDATED, "[Service]\nType=exec\nExecStart=/usr/bin/sleep infinity\n")
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "restart", "outdated.service")
    replace(service, "/usr/bin/sleep")
    said = service.run("env", "NEEDRESTART_MODE=a", "unattended-upgrade", "-v")
    assert "systemctl restart outdated.service\n" in said, "needrestart was there"
    assert serving(service) == packages.NEXT
    holders.release()


def test_needrestart_restarts_the_service_for_a_library_and_nobody_loses_a_lock(service, holders):
    before = service.show("MainPID")
    replace(service, "/usr/lib/*-linux-gnu/libevent_core-2.1.so.7.*")
    assert outdated(service) == [UNIT]
    service.run("needrestart", "-r", "a", "-l")
    assert service.show("MainPID") != before and service.show("ActiveState") == "active"
    assert outdated(service) == []
    holders.release()


def test_needrestart_does_not_stop_a_daemon_that_could_not_start_again(service, holders):
    before, conf = service.show("MainPID"), service.read(CONF)
    replace(service, "/usr/lib/*-linux-gnu/libevent_core-2.1.so.7.*")
    service.write(CONF, conf + "[locks]\nlinger = 5\n")
    assert "lockbrokerd is not restarted" in service.run("needrestart", "-r", "a", "-l")
    assert service.show("MainPID") == before
    holders.check()
    service.write(CONF, conf)
    service.run("needrestart", "-r", "a", "-l")
    assert service.show("MainPID") != before
    holders.release()


def test_needrestart_restarts_what_the_command_has_started_for_a_reason_of_its_own(service, holders, following):
    """But not for an upgrade of the command."""
    install(service, following)
    harness.wait_until(lambda: outdated(service) == [], "all processes of the service to run what was installed")
    holders.release()
    start_job(service)
    replace(service, "/usr/bin/sleep")
    assert outdated(service) == ["job.service"]


def test_a_configuration_with_an_error_leaves_the_former_version_running(service, holders, following):
    conf = service.read(CONF)
    service.write(CONF, conf + "[locks]\nlinger = 5\n")
    said = install(service, following)
    assert "locks.linger: unknown key" in said and "the process of the former version goes on" in said
    assert serving(service) == packages.version()
    holders.check()
    service.write(CONF, conf)
    service.run("lockbroker", "restart")
    assert serving(service) == packages.NEXT
    holders.release()


def test_an_upgrade_of_systemd_costs_nobody_a_lock(service, holders):
    """It runs itself anew."""
    service.run("systemctl", "daemon-reexec")
    holders.check()
    service.run("systemctl", "restart", UNIT)
    holders.release()


def test_an_upgrade_keeps_the_socket_of_systemd(service, hold, following):
    service.run("systemctl", "stop", UNIT)
    service.run("systemctl", "start", "lockbrokerd.socket")
    holders = hold()
    install(service, following)
    assert serving(service) == packages.NEXT
    holders.release()
    assert service.show("ActiveState", "lockbrokerd.socket") == "active"


def test_a_daemon_that_cannot_be_asked_is_restarted_by_systemd_and_nobody_loses_a_lock(service, hold, following):
    """It serves other sockets than the configuration says."""
    start = re.search(r"argv\[\]=(.*?) ;", service.show("ExecStart")).group(1)
    service.write(DROP_IN, f"[Service]\nExecStart=\nExecStart={start} -o daemon.socket=/run/lockbroker/lockbroker.sock "
                  "-o daemon.operator_socket=/run/lockbroker/operator.sock\n")
    conf = re.sub(r"^socket =.*$", "socket = /run/lockbroker/other", service.read(CONF), flags=re.M)
    service.write(CONF, re.sub(r"^operator_socket =.*$", "operator_socket = /run/lockbroker/others", conf, flags=re.M))
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "restart", UNIT)
    before, holders = service.show("MainPID"), hold()
    install(service, following)
    assert serving(service) == packages.NEXT and service.show("MainPID") != before
    holders.release()


def test_a_removal_stops_the_service_and_a_new_installation_starts_it(service, current):
    service.run("dpkg", "--remove", "lockbrokerd")
    assert service.show("ActiveState") == "inactive" and not os.path.exists(f"/proc/{service.leader}/root{SCRIPTS}postinst")
    install(service, current)
    assert service.show("ActiveState") == "active"


def test_policy_of_the_administrator_defers_the_hand_over(service, holders, following):
    service.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
    service.run("chmod", "755", "/usr/sbin/policy-rc.d")
    try:
        install(service, following)
    finally:
        service.run("rm", "/usr/sbin/policy-rc.d")
    assert serving(service) == packages.version()
    holders.release()
