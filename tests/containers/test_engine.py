# SPDX-License-Identifier: Apache-2.0
"""docs/CONTAINERS.md and conf/kubernetes with a real engine: the image of Containerfile, the daemon in a container, and clients
in others."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import pytest
import yaml

import cgroup
import harness
import page
import pages
from saved import Saved

CLIENT = ("podman run --network none --user 1000 --group-add 61000 --volume /run/lockbroker:/run/lockbroker:ro "
          "--entrypoint lockbroker")


class Broker:
    """A daemon in a container that is called lockbrokerd."""

    def __init__(self, host, line):
        self.host, self.line, self.dir = host, line, f"/proc/{host.first}/root/run/lockbroker"
        host.run(line)
        self.await_answer()

    def await_answer(self):
        def answers():
            try:
                with self.client() as c:
                    return c.call("PING") == "PONG"
            except (OSError, harness.Closed):
                assert self.host.inspect("lockbrokerd")["State"]["Running"], self.host.run("podman logs lockbrokerd 2>&1").stdout
                return False

        harness.wait_until(answers, "the daemon")

    def client(self):
        """An operator outside of all containers."""
        return harness.Client(f"{self.dir}/operator.sock")

    def call(self, *words):
        with self.client() as c:
            return c.call(*words)

    def safe(self):
        return harness.parse_info(self.call("INFO", "session"))["session_state"] == "safe"

    def await_safe(self):
        harness.wait_until(self.safe, "the session")

    def held(self, name):
        return self.call("HOLDERS", name)


def serve(host, options="--standalone", podman="--pid host"):
    """With what else podman and the daemon are to be told."""
    return Broker(host, f"podman run --detach --name lockbrokerd {podman} --network host --volume /run/lockbroker:/run/lockbroker "
                        f"lockbroker {options}")


def serve_as_the_page(host, zookeeper):
    text = page.block("install -d")
    assert text.count(page.SERVERS) == 1
    return Broker(host, text.replace(page.SERVERS, zookeeper.address))


def client(host, *words, options="--rm"):
    return host.begin(f"{CLIENT} {options} lockbroker {shlex.join(words)}")


def ended(process):
    """(status, output, error)"""
    out, error = process.communicate(timeout=harness.PATIENCE)
    return process.returncode, out, error


def status(host, name):
    return host.inspect(name)["State"]["ExitCode"]


def test_the_commands_of_the_page_work(host, zookeeper):
    """All of them, in their order."""
    texts = page.blocks()
    assert len(texts) == 5 and "buildah bud" in texts[0], "the image is built by the fixture"
    serve_as_the_page(host, zookeeper).await_safe()
    outputs = [host.out(text) for text in texts[2:]]
    assert outputs[0] == "I have the lock"
    assert re.search(r"session_state:? *safe", outputs[1])
    assert "Nothing is held any longer." in outputs[2] and host.out("podman ps --all --quiet") == ""


def test_the_image_has_what_the_page_says(host):
    image = json.loads(host.out("podman image inspect lockbroker"))[0]["Config"]
    assert image["User"] == "lockbroker" and image["StopSignal"] == "SIGTERM" and image["Entrypoint"] == ["/usr/sbin/lockbrokerd"]
    run = "podman run --rm --network none --entrypoint"
    assert host.out(f"{run} id lockbroker") == "uid=61000(lockbroker) gid=61000(lockbroker) groups=61000(lockbroker)"
    assert host.run(f"{run} sh lockbroker -c 'command -v cc make'", check=False).returncode != 0
    assert harness.read_source("VERSION").strip() in host.out(f"{run} lockbroker lockbroker --version")
    host.run(f"{run} lockbroker lockbroker http --help")


@pytest.mark.parametrize("namespace, sees", [("--pid host --cgroupns host", True), ("--pid host --cgroupns private", True),
                                             ("", False)], ids=["host", "private", "no_pid_host"])
def test_two_containers_of_one_user_are_two_accounts(host, namespace, sees):
    """With what the daemon sees of processes and control groups; each client has what the engine gives by itself."""
    broker = serve(host, podman=namespace, options="--standalone -o limits.by_unit=1000")
    clients = [client(host, "lock", name, "sleep", "1000", options=f"--rm --name {name}") for name in "ab"]
    for name in "ab":
        harness.wait_until(lambda name=name: broker.held(name), "a lock")
    units = {row["account"] for row in broker.call("ACCOUNTS") if row["account"].startswith("user 1000")}
    pids = [broker.held(name)[0]["pid"] for name in "ab"]
    commands = [broker.held(name)[0]["command"] for name in "ab"]
    if sees:
        assert units == {f"user 1000 (unit libpod-{host.inspect(name)['Id']})" for name in "ab"}
        assert commands == ["lockbroker"] * 2 and 0 not in pids
        refused = host.run("podman exec a lockbroker revoke b please", check=False)
        assert refused.returncode != 0, "it is another one's"
    else:
        assert units == {"user 1000 (unit unknown)"} and pids == [0, 0] and commands == ["", ""]
    host.run("podman kill a b")
    for process in clients:
        assert ended(process)[0] == 137
    harness.wait_until(lambda: not broker.held("a") and not broker.held("b"), "the locks to end with their containers")


def test_as_process_1_it_outlives_a_crash_and_leaves_no_zombies(host):
    broker = serve(host, podman="", options="--standalone --foreground")
    worker = int(host.out("podman exec lockbrokerd sh -c \"grep -l worker /proc/[0-9]*/cmdline\"").split("/")[2])
    assert "keeper" in host.out("podman exec lockbrokerd cat /proc/1/cmdline") and worker != 1
    holder = client(host, "lock", "a", "sleep", "1000", options="--rm --name holder")
    token = harness.wait_until(lambda: broker.held("a"), "the lock")[0]["token"]
    left = Saved(broker)
    harness.wait_until(lambda: any(kept and holds and not busy for busy, kept, holds, *_ in left.conns().values()), "the holder to be kept")
    host.run("podman exec lockbrokerd sh -c '(sleep 0.1 &) ; :'")
    host.run(f"podman exec lockbrokerd sh -c 'kill -KILL {worker}'")

    def states():
        """number -> (name, state), of the processes of the container that were not there for a moment only"""
        lines = host.out("podman exec lockbrokerd sh -c 'cat /proc/[0-9]*/stat 2>/dev/null'").splitlines()
        return {int(line.split()[0]): re.search(r"\((.*)\) (\w)", line).groups() for line in lines}

    def settled():
        now = states()
        return worker not in now and not [name for name, state in now.values() if state == "Z"]

    harness.wait_until(settled, "the worker's end, and no zombie")
    broker.await_answer()
    assert [h["token"] for h in broker.held("a")] == [token]
    assert holder.poll() is None and host.inspect("lockbrokerd")["RestartCount"] == 0
    host.run("podman stop holder lockbrokerd")
    assert ended(holder)[0] == 128 + 15


# The first one releases when it is asked to.
GIVES = ("lock", "--on-revoke", "TERM", "b", "sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.05; done")
KEEPS = ("lock", "a", "sleep", "1000")


def test_a_stop_waits_for_holders_that_release(host):
    broker = serve(host, options="--standalone -o daemon.stop_timeout_ms=3600000")
    holder = client(host, *GIVES)
    harness.wait_until(lambda: broker.held("b"), "the lock")
    host.run("podman stop --time 3600 lockbrokerd")
    assert status(host, "lockbrokerd") == 0
    assert ended(holder)[0] == 5, "its command ended by itself, under the lock"


def test_a_stop_is_over_before_the_engine_kills(host):
    broker = serve(host, options="--standalone -o daemon.stop_timeout_ms=500")
    holder = client(host, *KEEPS)
    harness.wait_until(lambda: broker.held("a"), "the lock")
    host.run("podman stop --time 3600 lockbrokerd")
    assert status(host, "lockbrokerd") == 0, "not 137"
    code, _, error = ended(holder)
    assert code == 79 and "lost" in error


def test_an_upgrade_tells_holders_and_waiters_go_on(host, zookeeper, capsys):
    """As the page does it: a stop and a start, with the same directory."""
    broker = serve_as_the_page(host, zookeeper)
    broker.await_safe()
    keeps, gives = client(host, *KEEPS), client(host, *GIVES)
    for name in "ab":
        harness.wait_until(lambda name=name: broker.held(name), "the lock")
    waiters = {name: client(host, "lock", "--connect", "3600", name, "date", "+%s.%N") for name in "ab"}
    for name in "ab":
        harness.wait_until(lambda name=name: broker.call("QUEUE", name), "the waiter")
    before = time.time()
    host.run("podman stop --time 3600 lockbrokerd")
    stopped = time.time()
    host.run("podman rm lockbrokerd")
    broker = serve_as_the_page(host, zookeeper)
    serves = time.time()
    code, _, error = ended(keeps)
    assert code == 79 and "lost" in error
    assert ended(gives)[0] == 5
    granted = {}
    for name, waiter in waiters.items():
        code, out, error = ended(waiter)
        assert code == 0, error
        granted[name] = float(out)
    with capsys.disabled():
        print(f"\nan upgrade in a container: the stop took {stopped - before:.1f} s, with a holder that keeps its lock; the new daemon served "
              f"{serves - stopped:.1f} s later; a lock that was released was granted {granted['b'] - stopped:.1f} s after the stop, and the one "
              f"that was kept {granted['a'] - stopped:.1f} s after it")


def test_health_is_about_zookeeper_and_liveness_is_not(host, zookeeper):
    """Nobody serves at that address."""
    serve(host, options="-o zookeeper.servers=127.0.0.1:1 -o zookeeper.host=a")
    assert host.run("podman healthcheck run lockbrokerd", check=False).returncode == 1
    host.run("podman exec lockbrokerd lockbroker call PING")
    host.run("podman rm --force --time 0 lockbrokerd")
    serve(host, options=f"-o zookeeper.servers={zookeeper.address} -o zookeeper.host=a -o zookeeper.root=/health").await_safe()
    host.run("podman healthcheck run lockbrokerd")


def test_a_client_that_is_process_1_passes_sigterm_on(host):
    """Its command would not see it otherwise, and the engine would kill both when its patience is over."""
    broker = serve(host)
    p = client(host, "lock", "a", "sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.05; done", options="--name c")
    harness.wait_until(lambda: broker.held("a"), "the lock")
    host.run("podman stop --time 3600 c")
    assert ended(p)[0] == 9 and status(host, "c") == 9
    harness.wait_until(lambda: not broker.held("a"), "the lock to be released")
    p = client(host, *KEEPS, options="--name d")
    harness.wait_until(lambda: broker.held("a"), "the lock")
    waiter = client(host, "lock", "a", "true", options="--name e")
    harness.wait_until(lambda: broker.call("QUEUE", "a"), "the waiter")
    host.run("podman stop --time 3600 e d")
    assert [ended(waiter)[0], ended(p)[0]] == [128 + 15] * 2


def test_a_client_in_a_user_namespace_needs_the_group_outside(host):
    broker = serve(host)
    maps = "--uidmap 0:100000:65536 --gidmap 0:100000:65536"
    code, _, error = ended(client(host, "lock", "a", "true", options=f"--rm {maps}"))
    assert code == 77 and "This user may not use lockbrokerd" in error
    maps = "--uidmap 0:100000:65536 --gidmap 0:100000:61000 --gidmap 61000:61000:1"
    p = client(host, *KEEPS, options=f"--rm --name c {maps}")
    holder = harness.wait_until(lambda: broker.held("a"), "the lock")[0]
    assert holder["uid"] == 101000
    host.run("podman stop c")
    ended(p)


def test_to_a_daemon_in_a_user_namespace_all_others_are_nobody(host):
    host.run("chown 161000:161000 /run/lockbroker")
    broker = serve(host, podman="--pid host --uidmap 0:100000:65536 --gidmap 0:100000:65536",
                    options="--standalone -o daemon.socket_mode=0666 -o limits.by_unit=1000")
    p = client(host, *KEEPS, options="--rm --name c")
    assert harness.wait_until(lambda: broker.held("a"), "the lock")[0]["uid"] == 65534
    host.run("podman stop c")
    ended(p)


# ---- conf/kubernetes ----

FILE = "conf/kubernetes/daemonset.yaml"


def documents():
    return {document["kind"]: document for document in yaml.safe_load_all(harness.read_source(FILE))}


def daemonset():
    return documents()["DaemonSet"]["spec"]


def containers():
    pod = daemonset()["template"]["spec"]
    return {c["name"]: c for c in pod["initContainers"] + pod["containers"]}


def test_the_daemonset_is_whole():
    found, spec = documents(), daemonset()
    pod, broker = spec["template"]["spec"], containers()["lockbrokerd"]
    assert set(found) == {"Namespace", "ConfigMap", "DaemonSet"}
    name = found["Namespace"]["metadata"]["name"]
    assert all(found[kind]["metadata"]["namespace"] == name for kind in ("ConfigMap", "DaemonSet"))
    labels = spec["selector"]["matchLabels"].items()
    assert labels and labels <= spec["template"]["metadata"]["labels"].items()
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["configuration"]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    for c in containers().values():
        assert {mount["name"] for mount in c["volumeMounts"]} <= set(volumes)
        assert c["securityContext"]["capabilities"]["drop"] == ["ALL"] and not c["securityContext"]["allowPrivilegeEscalation"]
    # What runs before SIGTERM and what comes after it end before the kill.
    timeout = broker["lifecycle"]["preStop"]["exec"]["command"]
    assert timeout[0] == "timeout"
    stop = int(re.search(r"stop_timeout_ms = (\d+)", harness.read_source("conf/lockbroker.conf"))[1]) // 1000
    assert int(timeout[1]) + stop < pod["terminationGracePeriodSeconds"]
    assert pod["hostPID"] and spec["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_what_the_daemonset_names_is_in_the_containerfile_and_the_manuals():
    image = harness.read_source("Containerfile")
    pod = daemonset()["template"]["spec"]
    (number,) = re.findall(r"^ARG ID=(\d+)$", image, re.M)
    assert {pod["securityContext"][key] for key in ("runAsUser", "runAsGroup")} == {int(number)}
    assert number in containers()["directory"]["command"] and number in harness.read_source("docs/CONTAINERS.md")
    for volume in pod["volumes"]:
        assert "hostPath" not in volume or f'"$ID" {volume["hostPath"]["path"]} ' in image
    ports = [port["containerPort"] for c in containers().values() for port in c.get("ports", [])]
    assert ports and all(f"port {port}" in harness.read_source("client-lib/man/lockbroker.1") for port in ports)
    memory = containers()["lockbrokerd"]["resources"]["limits"]["memory"]
    assert f"MemoryMax={memory.removesuffix('i')}\n" in harness.read_source("systemd/lockbrokerd.service")


def test_the_pod_of_the_page_is_the_client_of_the_page():
    """Which runs with podman: the same user, group and mount."""
    (pod,) = map(yaml.safe_load, pages.claimed("docs/CONTAINERS.md", __file__, "yaml"))
    words = shlex.split(page.block("podman run --rm").replace("\\\n", ""))
    option = dict(zip(words, words[1:]))
    assert pod["securityContext"] == {"runAsNonRoot": True, "runAsUser": int(option["--user"]),
                                      "supplementalGroups": [int(option["--group-add"])]}
    (volume,), (mount,) = pod["volumes"], pod["containers"][0]["volumeMounts"]
    assert volume["name"] == mount["name"] and volume["hostPath"]["type"] == "Directory" and mount["readOnly"] is True
    assert f"{volume['hostPath']['path']}:{mount['mountPath']}:ro" == option["--volume"]


def in_podman(host, name, fields, servers):
    """The options of `podman run`, and the words behind the image, as a kubelet would have them."""
    pod, c = daemonset()["template"]["spec"], containers()[name]
    security = {**pod["securityContext"], **c["securityContext"]}
    options = ["--name", name, "--network", "host", "--user", f"{security['runAsUser']}:{security['runAsGroup']}"]
    options += ["--pid", "host"] * pod["hostPID"] + ["--read-only", "--read-only-tmpfs=false"] * security["readOnlyRootFilesystem"]
    options += [word for capability in security["capabilities"]["drop"] for word in ("--cap-drop", capability)]
    options += [word for capability in security["capabilities"].get("add", []) for word in ("--cap-add", capability)]
    options += ["--security-opt", "no-new-privileges"]
    environment = {e["name"]: fields[e["valueFrom"]["fieldRef"]["fieldPath"]] for e in c.get("env", [])}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for mount in c["volumeMounts"]:
        volume = volumes[mount["name"]]
        if "configMap" in volume:
            path = os.path.join(host.dir, mount["name"])
            os.makedirs(path, exist_ok=True)
            for file, text in documents()["ConfigMap"]["data"].items():
                with open(os.path.join(path, file), "w") as f:
                    f.write(text.replace(page.SERVERS, servers))
        else:
            path = volume["hostPath"]["path"]
        options += ["--volume", f"{path}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}"]
    words = [re.sub(r"\$\((\w+)\)", lambda m: environment[m[1]], word) for word in c.get("command", []) + c.get("args", [])]
    if "command" in c:
        options += ["--entrypoint", json.dumps(words[:1])]
        words = words[1:]
    return f"{shlex.join(options)} {c['image']} {shlex.join(words)}"


def test_the_containers_of_the_daemonset_run(host, zookeeper):
    port = harness.free_port()
    fields = {"spec.nodeName": "node1", "status.podIP": "127.0.0.1"}
    os.chmod(host.dir, 0o755)
    # As the kubelet makes it (DirectoryOrCreate).
    host.run("rm -r /run/lockbroker; mkdir -m 755 /run/lockbroker")
    host.run(f"podman run --rm {in_podman(host, 'directory', fields, zookeeper.address)}")
    assert host.out("stat -c '%u %g %a' /run/lockbroker") == "61000 61000 755"
    broker = Broker(host, f"podman run --detach {in_podman(host, 'lockbrokerd', fields, zookeeper.address)}")
    broker.await_safe()
    for row in broker.call("HOSTS"):
        assert row["host"] == "node1", row
    c = containers()["lockbrokerd"]
    for probe in ("readinessProbe", "livenessProbe"):
        host.run(f"podman exec lockbrokerd {shlex.join(c[probe]['exec']['command'])}")
    line = in_podman(host, "metrics", fields, zookeeper.address)
    assert ":9764" in line
    host.run(f"podman run --detach {line.replace(':9764', f':{port}')}")

    def metrics():
        done = host.run(f"exec 2>&1; curl --silent --fail http://127.0.0.1:{port}/metrics || podman logs metrics", check=False)
        return done.stdout if "lockbroker_" in done.stdout else None

    assert harness.wait_until(metrics, "the metrics")
    taken = ended(client(host, "lock", "a", "echo", "mine"))
    assert taken[:2] == (0, "mine\n")
    host.run(f"podman exec lockbrokerd {shlex.join(c['lifecycle']['preStop']['exec']['command'])}")
    host.run("podman stop --time 3600 lockbrokerd metrics")
    assert status(host, "lockbrokerd") == 0


# ---- the host of these tests ----

KILLED = """
import sys
sys.path[:0] = sys.argv[1:3]
import engine, harness
sweeper, host = harness.begin_run(), engine.Host()
host.run("mkdir -p " + sys.argv[3])
job = host.begin("echo $$ >" + sys.argv[3] + "/cgroup.procs; exec sleep 1000")
print(host.dir, flush=True)
job.wait()
"""


def test_nothing_is_left_of_a_run_that_is_killed():
    if os.geteuid() != 0 or not cgroup.hierarchy():
        pytest.skip("control groups cannot be made here")
    group = os.path.join(cgroup.hierarchy(), "libpod_parent", f"libpod-test{os.getpid()}")
    p = harness.spawn(["env", "-u", "LOCKBROKER_RUN", sys.executable, "-B", "-c", KILLED, harness.HERE, os.path.dirname(__file__), group],
                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    folder = p.stdout.readline().strip()
    (pid,) = harness.wait_until(lambda: pathlib.Path(group, "cgroup.procs").read_text().split(), "a process in the group")
    p.kill()
    p.communicate()
    harness.wait_until(lambda: not harness.runs(pid) and not os.path.exists(group) and not os.path.exists(folder), "all to be gone")
