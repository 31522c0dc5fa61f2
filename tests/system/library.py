# SPDX-License-Identifier: Apache-2.0
"""The library for the tests: programs linked with it, and one that does what the tests tell it."""

import os
import re
import subprocess

import harness


def compile_with_library(source, program, *options):
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra",
                    "-Wno-unused-parameter", "-Werror", "-g", *harness.sanitizer_options(),
                    f"-I{harness.SOURCE}/client-lib", str(source), "-o", str(program), *options], check=True)
    return str(program)


def compile_shim(text, folder):
    """A library to be loaded first, of that source."""
    source, shim = folder / "shim.c", folder / "shim.so"
    source.write_text(text)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    return str(shim)


class Program:
    """The program of library_test.c: do() gives a line and gets one."""

    def __init__(self, path, daemon_socket, under=()):
        self.process = harness.spawn([*under, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True, bufsize=1, env=os.environ | {"LOCKBROKER_SOCKET": daemon_socket})

    def open(self, handles=1):
        """So many of them, from 0 on; returns the program."""
        for number in range(handles):
            assert self.do(f"open {number}") == "OK 0"
        return self

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def hear(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return line.rstrip("\n")

    def do(self, line):
        self.tell(line)
        return self.hear()

    def end(self):
        """Its end: it must have been a clean one, for a sanitizer too."""
        if self.process.poll() is None:
            try:
                _, complaints = self.process.communicate(timeout=harness.PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
            assert (self.process.returncode, complaints) == (0, ""), (self.process.returncode, complaints)


def build_driver(directory):
    return compile_with_library(os.path.join(harness.HERE, "library_test.c"), directory / "driver",
                                harness.program("liblockbroker.a"))


def token_of(answer):
    assert re.fullmatch(r"OK \d+", answer), answer
    return int(answer.split()[1])
