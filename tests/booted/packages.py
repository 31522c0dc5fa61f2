# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of these sources, those of a version after them, and a folder from which apt installs them."""

import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess

import harness

NAMES = ["liblockbroker-java", "liblockbroker1", "liblockbroker-dev", "lockbroker", "lockbrokerd", "python3-lockbroker"]
NEXT = "99.0"
REPOSITORY = "/var/packages"


def version():
    return re.match(r"lockbroker \((.*?)\)", harness.read_source("debian/changelog")).group(1)


def sources():
    """The files that packages are made of, more or less."""
    for folder, folders, files in os.walk(harness.SOURCE):
        folders[:] = [name for name in folders if name not in (".git", "build", "tests", "__pycache__")]
        yield from (os.path.join(folder, name) for name in files)


def build(other_version=None):
    """The paths of the packages by their names, built fast. What was built of these sources already, by `make deb` for
    one, is not built again. Processes take turns."""
    number = other_version or version()
    own = os.path.join(harness.build_dir(), "booted", f"deb-{number}")
    os.makedirs(os.path.dirname(own), exist_ok=True)
    with open(f"{own}.lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return build_in_turn(number, own, other_version)


def build_in_turn(number, own, other_version):
    newest = max(map(os.path.getmtime, sources()))
    for folder in (os.path.join(harness.build_dir(), "deb"), own):
        built = glob.glob(f"{folder}/lockbroker_{number}+*.changes")
        if built and os.path.getmtime(built[0]) > newest:
            break
    else:
        folder = own
        done = subprocess.run(["sh", "tests/deb.sh", own, harness.build_dir(), *([number] if other_version else [])],
                              cwd=harness.SOURCE, env=os.environ | {"DEB_BUILD_OPTIONS": "nocheck noautodbgsym noopt"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return in_folder(folder)


def in_folder(folder):
    """The paths of those there by their names."""
    return {name: glob.glob(f"{folder}/{name}_*.deb")[0] for name in NAMES}


def put(root, packages, names=("lockbroker", "lockbrokerd")):
    """Copies those of these names there; their paths below it."""
    folder = f"{root}{REPOSITORY}"
    os.makedirs(folder, exist_ok=True)
    return [os.path.join(REPOSITORY, os.path.basename(shutil.copy(packages[name], folder)))
            for name in names]


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def offer(root, packages):
    """They are what apt knows of, and what a host that upgrades itself takes."""
    shutil.rmtree(f"{root}{REPOSITORY}", ignore_errors=True)
    index = ""
    for path in put(root, packages):
        fields = subprocess.run(["dpkg-deb", "-f", f"{root}{path}"], check=True, capture_output=True, text=True).stdout
        index += (f"{fields}Filename: ./{os.path.basename(path)}\nSize: {os.path.getsize(root + path)}\n"
                  f"SHA256: {sha256(root + path)}\n\n")
    digest = hashlib.sha256(index.encode()).hexdigest()
    release = f"Origin: lockbroker\nSuite: stable\nSHA256:\n {digest} {len(index)} Packages\n"
    for path, text in ((f"{REPOSITORY}/Packages", index), (f"{REPOSITORY}/Release", release),
                       ("/etc/apt/sources.list", f"deb [trusted=yes] file:{REPOSITORY} ./\n"),
                       ("/etc/apt/apt.conf.d/90tests", 'Unattended-Upgrade::Origins-Pattern { "origin=lockbroker"; };\n')):
        with open(f"{root}{path}", "w") as f:
            f.write(text)
