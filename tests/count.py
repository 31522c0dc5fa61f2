#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many lines of code each folder has: those that are neither blank nor comments.

count.py [COMMIT]

With a commit, how many more or fewer than there were then.
"""

import collections
import io
import pathlib
import re
import subprocess
import sys
import tarfile

# The longest that fits is the folder of a file. What stands in none is no code of ours: manuals, pages, recorded seeds.
FOLDERS = ("protocol", "daemon", "daemon/base", "daemon/core", "daemon/io", "daemon/keeper", "client-lib", "client-lib/cli",
           "client-lib/http", "client-lib/top", "client-lib/python", "tests", "tests/bench", "tests/fuzz", "tests/sim", "tests/system",
           "tests/torture", "tests/unit")
C_COMMENTS = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.S)
# A string that is a statement is a comment, and so is what follows a number sign at the beginning of a line.
PYTHON_COMMENTS = re.compile(r'^[ \t]*(?:"""(?:\\.|[^\\])*?"""|#[^\n]*)[ \t]*$', re.S | re.M)
SHELL_COMMENTS = re.compile(r"^[ \t]*#[^\n]*$", re.M)
COMMENTS = {".c": C_COMMENTS, ".h": C_COMMENTS, ".py": PYTHON_COMMENTS, ".sh": SHELL_COMMENTS}


def code_of(name, data):
    """None: it is no source."""
    comments = COMMENTS.get(pathlib.PurePath(name).suffix)
    return comments and comments.sub(lambda found: found.group(1) if found.lastindex else "", data.decode())


def count(files):
    """Files and lines by folder."""
    found = collections.Counter(), collections.Counter()
    for name, data in files:
        folder = max((f for f in FOLDERS if name.startswith(f + "/")), key=len, default=None)
        code = code_of(name, data) if folder else None
        if code is not None:
            found[0][folder] += 1
            found[1][folder] += sum(bool(line.strip()) for line in code.splitlines())
    return found


def present():
    names = subprocess.run(["git", "ls-files", "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")
    return ((name, pathlib.Path(name).read_bytes()) for name in names if name and pathlib.Path(name).is_file())


def at(commit):
    archive = subprocess.run(["git", "archive", commit], check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isfile():
                yield member.name, tar.extractfile(member).read()


def main():
    files, lines = count(present())
    files_then, lines_then = count(at(sys.argv[1])) if sys.argv[1:] else (files, lines)
    print(f"{'':20}{'files':>14}{'lines':>18}")

    def show(title, folders):
        row = [sum(counted[f] for f in folders) for counted in (files, files_then, lines, lines_then)]
        changes = [f"{row[i] - row[i + 1]:+}" if sys.argv[1:] else "" for i in (0, 2)]
        print(f"{title:20}{row[0]:8}{changes[0]:>6}{row[2]:10}{changes[1]:>8}")

    for folder in FOLDERS:
        show(folder, [folder])
    show("product", [f for f in FOLDERS if not f.startswith("tests")])
    show("tests, all", [f for f in FOLDERS if f.startswith("tests")])


if __name__ == "__main__":
    main()
