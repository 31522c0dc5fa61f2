# SPDX-License-Identifier: Apache-2.0
"""A host of containers: podman and buildah with runc, for this run alone. It has processes, mounts and /run of its own, its
storage is below the folder of the run, and no registry can be reached, so no image is fetched. All that it started ends with
the process that began it, however that one ends.

What runs here has no CAP_SYS_RESOURCE at some places, and no systemd: so containers get the limits that are there, and control
groups are made by the engine itself (cgroupfs)."""

import json
import os
import resource
import subprocess

import harness

BASE = "docker.io/library/debian:12-slim"  # what Containerfile names
LEFT_OUT = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"]
NAMESPACES = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]

# The first process inside. Containers that still run when this ends are killed with it, and leave their control groups.
INSIDE = """
names=$(cat /etc/resolv.conf)
mount -t tmpfs -o mode=755 tmpfs /run || exit
resolv=$(readlink -m /etc/resolv.conf)
mkdir -p "${resolv%/*}" && { [ -e "$resolv" ] || echo "$names" >"$resolv"; }
exec 3<&0
cat <&3 >/dev/null &
echo >"$1"
wait $!
sed -n 's,^[^/]*/\\(libpod_parent/.*\\),\\1,p' /proc/[0-9]*/cgroup | sort -u
"""
# It sweeps up when they have ended, so it is killed by nobody. What all hosts of this machine share goes with the last one.
OUTSIDE = """
inside=$1 ready=$2
shift 2
exec 3<&0 9</sys/fs/cgroup
flock --shared 9
left=$("$@" sh -c "$inside" sh "$ready" <&3 9<&-)
for try in 1 2 3 4 5; do
	found=
	for group in $left; do
		for folder in /sys/fs/cgroup/"$group" /sys/fs/cgroup/*/"$group"; do
			[ ! -d "$folder" ] || rmdir "$folder" 2>/dev/null || found=1
		done
	done
	[ "$found" ] || break
	sleep 0.2
done
if flock --nonblock 9; then
	for group in libpod_parent/conmon libpod_parent; do
		rmdir /sys/fs/cgroup/"$group" /sys/fs/cgroup/*/"$group" 2>/dev/null
	done
fi
"""


def base_image():
    """The path of a minimal root, as a tar file that is made once."""
    return subprocess.run(["sh", os.path.join(harness.SOURCE, "tests", "root.sh"), os.path.join(harness.build_dir(), "containers"),
                           "--variant=apt", *[f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def first_inside(pid):
    """The process of that family that is the first of another namespace of processes."""
    for child in harness.children(pid):
        if os.readlink(f"/proc/{child}/ns/pid") != os.readlink("/proc/self/ns/pid"):
            return child
        found = first_inside(child)
        if found:
            return found
    return None


class Host:
    def __init__(self):
        self.dir = harness.fast_tmp("containers.")
        hard = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1] for name in ("nofile", "nproc")}
        limits = ", ".join(f'"{name}={n}:{n}"' for name, n in hard.items())
        self.configuration = {
            "CONTAINERS_CONF": f'[containers]\ndefault_ulimits = [{limits}]\n[engine]\nruntime = "runc"\n'
                               f'cgroup_manager = "cgroupfs"\nevents_logger = "none"\nlock_type = "file"\ntmp_dir = "/run/libpod"\n',
            "CONTAINERS_STORAGE_CONF": f'[storage]\ndriver = "vfs"\ngraphroot = "{self.dir}/graph"\nrunroot = "/run/storage"\n',
            "CONTAINERS_REGISTRIES_CONF": 'unqualified-search-registries = []\n[[registry]]\nlocation = "docker.io"\nblocked = true\n',
        }
        self.env = {**os.environ, "TMPDIR": self.dir}
        for name, text in self.configuration.items():
            self.env[name] = os.path.join(self.dir, name)
            with open(self.env[name], "w") as f:
                f.write(text)
        ready = os.path.join(self.dir, "ready")
        # Not one of those that are killed at the end of a run (harness.begin_run).
        env = {name: value for name, value in os.environ.items() if name != "LOCKBROKER_RUN"}
        self.process = subprocess.Popen(["sh", "-c", OUTSIDE, "sh", INSIDE, ready, *NAMESPACES], stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, env=env, start_new_session=True)
        harness.wait_until(lambda: os.path.exists(ready) or self.process.poll() is not None, "the host")
        self.first = first_inside(self.process.pid)

    def remove_containers(self):
        """The engine fails where a container that has just ended is being removed already."""
        harness.wait_until(lambda: self.run("podman rm --all --force --time 0", check=False).returncode == 0, "the containers to go")

    def end(self):
        try:
            if self.first and self.process.poll() is None:
                self.remove_containers()
        finally:
            self.process.stdin.close()
            self.process.wait(harness.PATIENCE)

    def argv(self, line):
        return ["nsenter", f"--target={self.first}", "--mount", "--pid", "--", "sh", "-ec", f"cd '{harness.SOURCE}'\n{line}"]

    def run(self, line, check=True, patience=harness.PATIENCE):
        """Lines of a shell; their output is shown when they fail."""
        done = subprocess.run(self.argv(line), env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience)
        assert not check or done.returncode == 0, f"{line}\nended with {done.returncode}:\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
        return done

    def out(self, line):
        return self.run(line).stdout.strip()

    def begin(self, line, **options):
        return harness.spawn(self.argv(line), env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, **options)

    def inspect(self, name):
        return json.loads(self.out(f"podman container inspect {name}"))[0]
