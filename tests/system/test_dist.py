# SPDX-License-Identifier: Apache-2.0
"""The archive of the sources: the same bytes whenever it is made, all that is committed, and nothing else."""

import os
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.plain_only("it is about the sources")


def run(*argv, cwd, status=0, **env):
    done = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=os.environ | env)
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.fixture
def clone(tmp_path):
    if not shutil.which("git") or not os.path.exists(os.path.join(harness.SOURCE, ".git")):
        pytest.skip("there is no git, or these sources are no clone")
    run("git", "clone", "-q", "--depth", "1", f"file://{harness.SOURCE}", str(tmp_path / "clone"), cwd="/")
    return tmp_path / "clone"


def archive(clone, **env):
    """The path of the archive of a clone, in a folder that was not there."""
    shutil.rmtree(clone / "build", ignore_errors=True)
    run("sh", "tests/dist.sh", "build/dist", cwd=clone, **env)
    folder = clone / "build" / "dist"
    (path,) = folder.glob("*.tar.gz")
    assert run("sha256sum", "-c", f"{path.name}.sha256", cwd=folder) == f"{path.name}: OK\n"
    return path


def test_an_archive_of_the_sources_has_the_same_bytes_in_each_run(clone, tmp_path):
    version = harness.read_source("VERSION").strip()
    first = archive(clone)
    assert first.name == f"lockbroker-{version}.tar.gz"
    before = first.read_bytes()
    (clone / "not-committed").write_text("mine")
    run("git", "config", "tar.umask", "0077", cwd=clone)
    assert archive(clone, TZ="Asia/Tokyo", LC_ALL="C", GZIP_OPT="-1").read_bytes() == before

    run("tar", "-xf", str(clone / "build" / "dist" / first.name), cwd=tmp_path)
    unpacked = tmp_path / first.name.removesuffix(".tar.gz")
    committed = set(run("git", "ls-files", cwd=clone).split())
    assert {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if not path.is_dir()} == committed
    said = run("sh", "tests/dist.sh", "build/dist", cwd=unpacked, status=1)
    assert "needs git and a clone" in said and not list(unpacked.rglob("*.tar.gz"))
