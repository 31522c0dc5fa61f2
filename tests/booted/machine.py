# SPDX-License-Identifier: Apache-2.0
"""A machine with a booted systemd: a minimal Debian in a container of systemd-nspawn, with this build installed.

The packages come from Debian's mirror once, into a file of the build directory; each machine unpacks it for itself. Any
number of machines run side by side, those of other runs as well. A machine shares the network of the host, so that a
ZooKeeper of the tests is at the same address inside. It ends with the process that started it, however that one ends.
"""

import itertools
import os
import platform
import re
import shutil
import signal
import socket
import subprocess

import cgroup
import harness

# A machine does nothing but what a test asks for.
MASKED = ["apt-daily.timer", "apt-daily-upgrade.timer"]
LEFT_OUT = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"]
CGROUP = "lockbroker-booted."
numbers = itertools.count(1)  # of the machines of this process

# In a cgroup of its own, so that no two machines have the same one; /run keeps nothing of it on the host.
START = """
for cgroup in $1; do echo $$ > "$cgroup/cgroup.procs" || exit; done
shift
mount -t tmpfs tmpfs /run || exit
exec "$@"
"""


def script(*argv, **env):
    """What a script of tests/ prints."""
    done = subprocess.run(["sh", os.path.join(harness.SOURCE, "tests", argv[0]), *argv[1:]], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=os.environ | env)
    if done.returncode != 0:
        raise RuntimeError(f"the machine's root cannot be made:\n{done.stderr[-4000:]}")
    return done.stdout.strip()


def image(release=None):
    """The tar file of the root, made once for each list of packages. With a release of Debian, what lockbrokerd needs is not in it."""
    names = script("deps.sh", "boot" if release else "machine", LIST=release or platform.freedesktop_os_release()["VERSION_CODENAME"])
    return script("root.sh", os.path.join(harness.build_dir(), "booted"), *([f"--release={release}"] if release else []),
                  "--variant=essential", f"--include={','.join(names.split())}",
                  *[f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT])


def cgroup_parents():
    """The folders of this process in the hierarchies that systemd uses: the unified one, and in a mixed setup its own."""
    own = {}
    for line in open("/proc/self/cgroup"):
        _, name, path = line.rstrip("\n").split(":", 2)
        own[name] = path
    found = []
    for line in open("/proc/self/mountinfo"):
        place, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        name = "" if kind == "cgroup2" else "name=systemd"
        if kind in ("cgroup", "cgroup2") and name in own and name in options:
            found.append(place.split()[4] + own[name].rstrip("/"))
    return found


def unpack(release=None):
    """A new root; the caller removes the folder above it."""
    tar = image(release)
    root = os.path.join(harness.fast_tmp("lockbroker-machine."), "root")
    os.chmod(os.path.dirname(root), 0o755)
    os.mkdir(root)
    subprocess.run(["tar", "-C", root, "--numeric-owner", "-xpf", tar], check=True)
    for unit in MASKED:
        os.symlink("/dev/null", f"{root}/etc/systemd/system/{unit}")
    return root


def reach_mirrors(root):
    """The network is that of the host, and so is the way of apt to its mirrors."""
    for path in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(path, f"{root}{path}")
    said = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True).stdout
    with open(f"{root}/etc/apt/apt.conf.d/00network", "w") as f:
        f.writelines(re.findall(r"^Acquire::(?:https?|Retries|ForceIPv[46])\b.*\n", said, re.M))


class Machine:
    """Runs from begin to end(). What it is told it does as root, inside. It has this build, unless a test installs it. A machine
    with a release of Debian has that, nothing of ours, and the mirrors of the host."""

    def __init__(self, installed=True, release=None):
        self.root = unpack(release)
        self.dir = os.path.dirname(self.root)
        self.log_path = os.path.join(self.dir, "console")
        self.process = None
        if release:
            reach_mirrors(self.root)
        elif installed:
            self.install()
        self.number, self.cgroups = next(numbers), []
        for parent in cgroup_parents():
            for entry in os.listdir(parent):  # of runs that were killed
                if entry.startswith(CGROUP) and not harness.runs(entry.removeprefix(CGROUP).partition(".")[0]):
                    cgroup.remove(os.path.join(parent, entry))
            self.cgroups.append(f"{parent}/{CGROUP}{os.getpid()}.{self.number}")
            os.mkdir(self.cgroups[-1])
        self.boot()

    def install(self):
        """As a package would, before the first boot or over what runs."""
        root = f"/proc/{self.leader}/root" if self.process else self.root
        subprocess.run(["make", "-s", "-C", harness.SOURCE, f"BUILD={harness.build_dir()}", "PREFIX=/usr",
                        f"DESTDIR={root}", "install"], check=True, stdout=subprocess.DEVNULL)

    def boot(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, open(self.log_path, "a") as log:
            notify.bind(os.path.join(self.dir, "notify"))
            notify.settimeout(harness.PATIENCE)
            self.process = harness.spawn(
                ["unshare", "--mount", "sh", "-c", START, "sh", " ".join(self.cgroups),
                 "systemd-nspawn", "--quiet", "--boot", "--keep-unit", "--register=no", "--notify-ready=yes",
                 "--console=pipe", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
                 # Its first process outlives nspawn, but not who sweeps up after a run.
                 f"--setenv=LOCKBROKER_RUN={os.environ['LOCKBROKER_RUN']}",
                 f"--machine=lockbroker-{os.getpid()}-{self.number}", f"--directory={self.root}"],
                env=os.environ | {"NOTIFY_SOCKET": notify.getsockname()}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            said = ""
            while "READY=1" not in said.splitlines():
                try:
                    said += notify.recv(4096).decode() + "\n"
                except TimeoutError:
                    raise RuntimeError(f"the machine did not boot:\n{open(self.log_path).read()[-8000:]}") from None
        self.leader = int(re.search(r"^X_NSPAWN_LEADER_PID=(\d+)$", said, re.M).group(1))

    def inside(self, *argv):
        return ["nsenter", "-t", str(self.leader), "-a", "--", *map(str, argv)]

    def run(self, *argv, status=0):
        """What it wrote, standard error as well. `status` None: whatever it ends with."""
        done = subprocess.run(self.inside(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=2 * harness.PATIENCE)
        assert status in (None, done.returncode), f"{argv} ended with {done.returncode}: {done.stdout}{self.journal()}"
        return done.stdout

    def start(self, *argv):
        """A process inside that the test goes on with."""
        return harness.spawn(self.inside(*argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def show(self, name, unit="lockbrokerd.service"):
        """One property of a unit."""
        return self.run("systemctl", "show", "--value", "-p", name, unit).strip()

    def journal(self, unit="lockbrokerd.service"):
        return subprocess.run(self.inside("journalctl", "-o", "cat", "--no-pager", "-u", unit), capture_output=True,
                              text=True).stdout

    def write(self, path, text):
        place = f"/proc/{self.leader}/root{path}"
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w") as f:
            f.write(text)

    def read(self, path):
        return harness.read_source(f"/proc/{self.leader}/root{path}")

    def end(self):
        if self.process:
            os.kill(self.leader, signal.SIGKILL)
            self.process.wait(harness.PATIENCE)
        for path in self.cgroups:
            harness.wait_until(lambda path=path: cgroup.remove(path), "the processes of the machine to end")
        shutil.rmtree(self.dir)
