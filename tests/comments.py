#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A comment in C that names a function or a file which does not exist is printed; then the status is 1.

comments.py FILE...

A function is what has a pair of parentheses behind it, a file what ends in .c or .h. What code of these files uses, exists.
"""

import os
import re
import sys

COMMENTS_AND_TEXTS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
NAMES = re.compile(r"\b([a-z_]\w*)\(\)|\b([\w/-]+\.[ch])\b")


def main():
    known = {os.path.basename(file) for file in sys.argv[1:]}
    comments = []
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as source:
            text = source.read()
        for found in COMMENTS_AND_TEXTS.finditer(text):
            if found.group().startswith("/"):
                comments.append((file, text.count("\n", 0, found.start()) + 1, found.group()))
        code = COMMENTS_AND_TEXTS.sub(lambda found: "" if found.group().startswith("/") else found.group(), text)
        known.update(re.findall(r"\w+", code))
    stale = 0
    for file, line, comment in comments:
        for found in NAMES.finditer(comment):
            if (found.group(1) or os.path.basename(found.group(2))) not in known:
                print(f"{file}:{line + comment.count(chr(10), 0, found.start())}: {found.group()}")
                stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
