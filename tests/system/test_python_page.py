# SPDX-License-Identifier: Apache-2.0
"""docs/PYTHON.md: its examples run, and its tables name what there is. And the sources are what the oldest Python takes."""

import ast
import glob
import inspect
import os
import re
import subprocess
import sys

import pytest

import harness
import pages
from python_library import FOLDER, is_free, lockbroker

pytestmark = pytest.mark.plain_only("it is about a document")
PAGE = harness.read_source("docs/PYTHON.md")


def examples(language):
    return pages.claimed("docs/PYTHON.md", __file__, language)


@pytest.mark.parametrize("number", range(len(examples("python"))))
def test_an_example_runs(standalone, number):
    done = subprocess.run([sys.executable, "-B", "-W", "error", "-c", examples("python")[number]], capture_output=True,
                          text=True, timeout=harness.PATIENCE,
                          env=os.environ | {"PYTHONPATH": FOLDER, "LOCKBROKER_SOCKET": standalone.socket})
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    for name in "orders/42", "accounts/7", "encoder", "scheduler", "nightly", "import_all":
        assert is_free(standalone, name)


def test_there_are_examples_of_each_part():
    assert len(examples("python")) >= 10
    for part in "redis-py's Lock", "Celery's recipe":
        assert examples("python")[-1] in PAGE.split("## From redis-py's Lock")[1]
        assert f"## From {part}" in PAGE
    for before in examples("py"):
        ast.parse(before)


def test_the_example_of_celery_leaves_out_what_runs_elsewhere(standalone, clients):
    """Once somebody else has the lock."""
    (example,) = [e for e in examples("python") if "def import_feed" in e]
    space = {"__name__": "example"}
    os.environ["LOCKBROKER_SOCKET"] = standalone.socket
    try:
        exec(compile(example, "example", "exec"), space)  # pylint: disable=exec-used
        with lockbroker.lock("import_feed/" + space["hashlib"].sha256(b"x").hexdigest()):
            assert space["import_feed"]("x") is None
        assert space["import_feed"]("x").startswith("imported x with token ")
    finally:
        del os.environ["LOCKBROKER_SOCKET"]


def test_the_table_of_exceptions_is_whole():
    table = PAGE.split("## Exceptions")[1].split("##")[0]
    named = {word for row in re.findall(r"^\| (`.*?) \|", table, re.M) for word in re.findall(r"`(\w+)`", row)}
    there = {name for name in lockbroker.__all__
             if isinstance(getattr(lockbroker, name), type) and issubclass(getattr(lockbroker, name), Exception)}
    assert named == there


def test_the_table_of_options_is_whole():
    table = PAGE.split("| option |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)=", table, re.M)) == set(inspect.signature(lockbroker.lock).parameters) - {"name"}


def test_every_code_of_the_protocol_is_an_exception():
    codes = re.findall(r"^\| `([A-Z]+)` \|", harness.read_source("protocol/PROTOCOL.md").split("<!-- errors -->")[1], re.M)
    assert set(codes) == set(lockbroker._errors.OF_CODE)
    assert isinstance(lockbroker._errors.of_reply("NEWCODE something new"), lockbroker.Refused)


def test_threads_and_tasks_have_the_same():
    """In signatures, word for word."""
    for name in "lock", "lock_all", "semaphore", "election", "ask", "leader", "observe":
        assert (list(inspect.signature(getattr(lockbroker, name)).parameters.values())
                == list(inspect.signature(getattr(lockbroker.aio, name)).parameters.values())), name
    public = [{n for n in vars(held) if not n.startswith("_")} for held in (lockbroker.Held, lockbroker.aio.Held)]
    assert public[0] == public[1]


def test_the_sources_are_those_of_the_oldest_python_and_typed():
    sources = glob.glob(os.path.join(FOLDER, "lockbroker", "*.py"))
    assert len(sources) > 5 and os.path.exists(os.path.join(FOLDER, "lockbroker", "py.typed"))
    for path in sources:
        with open(path, encoding="utf-8") as f:
            tree = ast.parse(f.read(), path, feature_version=(3, 9))
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                arguments = [a for a in function.args.args + function.args.kwonlyargs if a.arg not in ("self", "cls")]
                assert function.returns and all(a.annotation for a in arguments), f"{path}: {function.name}"
