# SPDX-License-Identifier: Apache-2.0
"""The C library as programs see it: in an event loop, from C++, and as programs that were built before expect it."""

import os
import re
import shutil
import subprocess

import pytest

import harness
from library import compile_with_library
from mishaps import stopped
from tools import need

CLIENT_LIB = os.path.join(harness.SOURCE, "client-lib")


# ---- client-lib/examples/loop.c ----


class Loop:
    """The program; what it says comes in lines."""

    def __init__(self, program, daemon):
        self.process = harness.spawn([program, "a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True, bufsize=1, env=os.environ | {"LOCKBROKER_SOCKET": daemon.socket})

    def until(self, wanted):
        """The lines up to the first one that begins so; the last one is that one."""
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith(wanted):
                return lines
        raise AssertionError(f"no {wanted} after {lines}: {self.process.stderr.read()}")

    def answers(self, word):
        """At once, whatever it waits for. What else it says up to then is returned, without the steps of its work."""
        self.process.stdin.write(word + "\n")
        return [line for line in self.until(f"heard {word}")[:-1] if line != "step"]

    def held(self):
        return int(self.until("held ")[-1].split()[1])


@pytest.fixture(scope="module")
def loop_program(tmp_path_factory):
    return compile_with_library(os.path.join(CLIENT_LIB, "examples", "loop.c"), tmp_path_factory.mktemp("loop") / "loop",
                                harness.program("liblockbroker.a"), "-levent_core")


@pytest.fixture
def loops(loop_program, daemons):
    def end(loop):
        _, complaints = loop.process.communicate(timeout=harness.PATIENCE)
        assert (loop.process.returncode, complaints) == (0, "")

    yield from harness.each_ends(lambda daemon: Loop(loop_program, daemon), end)


def test_a_loop_goes_on_while_its_lock_is_waited_for(broker, clients, loops):
    c = clients(broker)
    first = c.call("LOCK", "a")
    loop = loops(broker)
    loop.until("waiting")
    assert loop.answers("one") == loop.answers("two") == []
    c.call("UNLOCK", "a")
    assert loop.held() > first
    assert loop.answers("three") == []
    loop.until("step")


@pytest.mark.parametrize("lines", ["", "one\ntwo\n"], ids=["nothing", "a file"])
def test_a_loop_ends_with_an_input_that_nobody_can_wait_for(standalone, loop_program, tmp_path, lines):
    (tmp_path / "lines").write_text(lines)
    for path in [tmp_path / "lines"] + ["/dev/null"] * (not lines):
        with open(path) as text:
            done = harness.run([loop_program, "a"], stdin=text, env=os.environ | {"LOCKBROKER_SOCKET": standalone.socket})
        assert (done.returncode, done.stderr) == (0, "") and ("heard one\ntwo" in done.stdout) == bool(lines)


def test_a_loop_is_told_of_a_loss_and_asks_again(standalone, clients, loops):
    loop, operator = loops(standalone), clients(standalone, operator=True)
    first = loop.held()
    assert operator.call("FORCEUNLOCK", "a") == 1
    loop.until("lost forced")
    assert "step" not in loop.until("held ")
    assert operator.call("REVOKE", "a", "please") == 1
    loop.until("released: please")
    assert loop.held() > first


def test_a_loop_goes_on_without_a_broker_and_with_the_next_one(standalone, loops):
    loop = loops(standalone)
    first = loop.held()
    standalone.kill()
    loop.until("lost connection")
    loop.until("again soon: ")
    assert not [line for line in loop.answers("nobody serves") if not line.startswith("again soon: ")]
    standalone.start()
    assert loop.held() > first


def test_a_loop_loses_its_lock_with_the_session(own_zk, daemons, loops):
    zk = own_zk(tick_ms=harness.FAST_TICK_MS)
    loop = loops(daemons(zk, **harness.FAST))
    first = loop.held()
    with stopped(zk):
        loop.until("lost session")
        loop.answers("still here")
    assert loop.held() > first


# ---- C++ ----


@pytest.mark.plain_only("a header is the same for all builds")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("library", ["liblockbroker.a", "liblockbroker.so.1"])
def test_a_cxx_program_uses_the_header(standalone, tmp_path, compiler, library):
    need(compiler, "--version")
    program = str(tmp_path / "program")
    subprocess.run([compiler, "-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{CLIENT_LIB}",
                    os.path.join(harness.HERE, "header_test.cc"), harness.program(library), f"-Wl,-rpath,{harness.build_dir()}",
                    "-o", program], check=True)
    done = subprocess.run([program], env=os.environ | {"LOCKBROKER_SOCKET": standalone.socket}, capture_output=True, text=True)
    version = harness.read_source("VERSION").strip()
    assert re.fullmatch(rf"\d+ by a header of {re.escape(version)}\n", done.stdout) and done.stderr == ""


# ---- the ABI ----


def abi(library, header):
    return subprocess.run(["sh", "tests/abi.sh", str(library), str(header)], cwd=harness.SOURCE, capture_output=True, text=True)


def recorded():
    """It is, for this kind of machine, and there are the programs that compare."""
    need("abidw", "--version")
    path = os.path.join(harness.SOURCE, "tests", "abi", f"liblockbroker.so.1.{os.uname().machine}.abi")
    if not os.path.exists(path):
        pytest.skip(f"nothing is recorded for {os.uname().machine}")


@pytest.mark.plain_only("it is about the library's types")
def test_the_library_is_the_one_that_programs_were_built_against():
    recorded()
    done = abi(harness.program("liblockbroker.so.1"), "client-lib/lockbroker.h")
    assert done.returncode == 0, done.stderr


@pytest.mark.release_only("it builds the library for each sentence of a tool")
@pytest.mark.plain_only("it is about the library's types")
@pytest.mark.parametrize("file, old, new, said", [
    ("liblockbroker.map", "\tlb_try;\n", "", "(lb_try() is gone)"),
    ("lockbroker.h", "\tint64_t lease_ms;\n", "\tint64_t lease_ms;\n\tint64_t more;\n", "(struct lb_options has changed)"),
    ("lockbroker.h", "\tLB_LOST,  ", "\tLB_MORE,\n\tLB_LOST,  ", "(enum lb_result has changed)"),
    ("lockbroker.h", "\tint64_t ms; ", "\tint32_t ms; ", "(struct lb_event has changed)"),
    ("lockbroker.h", "void lb_set_deferred(struct lb *lb, int on);", "int lb_added(void);\nvoid lb_set_deferred(struct lb *lb, int on);",
     "(lb_added() is new)"),
], ids=["removed", "member", "enumerator", "type", "added"])
def test_what_is_not_recorded_is_told_in_a_sentence(tmp_path, file, old, new, said):
    recorded()
    for folder in ("client-lib", "protocol"):
        shutil.copytree(os.path.join(harness.SOURCE, folder), tmp_path / folder)
    path = tmp_path / "client-lib" / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    sources = sorted(str(p) for folder in ("client-lib", "protocol") for p in (tmp_path / folder).glob("*.c"))
    if "lb_added" in new:
        sources.append(str(tmp_path / "added.c"))
        (tmp_path / "added.c").write_text('#include "client-lib/lockbroker.h"\nint lb_added(void)\n{\n\treturn 0;\n}\n')
        versions = tmp_path / "client-lib" / "liblockbroker.map"
        versions.write_text(versions.read_text() + "LOCKBROKER_1.1 {\nglobal:\n\tlb_added;\n} LOCKBROKER_1;\n")
    library = str(tmp_path / "liblockbroker.so.1")
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE", "-w", "-g", "-fPIC", "-shared", "-I.",
                    "-Wl,-soname,liblockbroker.so.1", "-Wl,--version-script=client-lib/liblockbroker.map", *sources, "-o", library],
                   cwd=tmp_path, check=True)
    done = abi(library, tmp_path / "client-lib" / "lockbroker.h")
    first = done.stderr.splitlines()[0]
    assert done.returncode == 1 and first.startswith("abi: liblockbroker.so.1 is not as tests/abi/") and said in first
    assert "CONTRIBUTING.md" in first
