# SPDX-License-Identifier: Apache-2.0
"""The blocks of code of the documents, and the displays of the manuals. The line in front of each says which test takes it out
and runs it, or compares it with what a daemon says:

    <!-- tested by tests/system/test_x.py, tests/booted/test_y.py -->
    <!-- not run: why no test can -->
    <!-- nothing to run: a drawing -->          it has no command: a drawing, a formula, a table

In a manual the same words stand in a comment of roff. A test gets the blocks that name it, by claimed(): so the mark and the
test cannot say different things. tests/system/test_blocks.py checks all marks."""

import dataclasses
import os
import re

import harness

FENCE = re.compile(r"(?P<indent> *(?:> ?)?)```(?P<language>\w*)")
MARK = re.compile(r' *(?:> ?)?(?:<!-- |\.\\" )(?P<kind>tested by|not run:|nothing to run:) (?P<rest>.*?)(?: -->)?')
DISPLAY = re.compile(r"\.(?:Bd -literal.*|Dl (?P<line>.*))")
ESCAPES = (("\\-", "-"), ("\\(aq", "'"), ("\\e", "\\"))


@dataclasses.dataclass
class Block:
    """`tests` are paths in the sources; `reason`: nobody runs it; `nothing`: what it is instead of commands."""
    page: str
    line: int
    language: str
    text: str
    tests: list = dataclasses.field(default_factory=list)
    reason: str = ""
    nothing: str = ""

    def __str__(self):
        return f"{self.page}:{self.line}"

    def mark(self, line):
        found = MARK.fullmatch(line)
        if found:
            kind, rest = found["kind"], found["rest"]
            self.tests = rest.split(", ") if kind == "tested by" else []
            self.reason = rest if kind == "not run:" else ""
            self.nothing = rest if kind == "nothing to run:" else ""
        return self


def in_document(page, lines):
    number = 0
    while number < len(lines):
        fence = FENCE.fullmatch(lines[number])
        if fence:
            first, indent = number + 1, len(fence["indent"])
            number = next(i for i in range(first, len(lines)) if lines[i].strip(" >") == "```")
            text = "".join(line[indent:] + "\n" for line in lines[first:number])
            yield Block(page, first, fence["language"], text).mark(lines[first - 2])
        number += 1


def in_manual(page, lines):
    for number, line in enumerate(lines):
        display = DISPLAY.fullmatch(line)
        if display:
            end = lines.index(".Ed", number) if display["line"] is None else number
            text = "".join(line + "\n" for line in lines[number + 1:end]) or display["line"] + "\n"
            for escape, character in ESCAPES:
                text = text.replace(escape, character)
            yield Block(page, number + 1, "", text).mark(lines[number - 1])


def blocks(page):
    lines = harness.read_source(page).split("\n")
    return list((in_document if page.endswith(".md") else in_manual)(page, lines))


def claimed(page, test, language=None):
    """The texts of those that name the test, whose __file__ or path in the sources this is."""
    path = os.path.relpath(os.path.join(harness.SOURCE, test), harness.SOURCE)
    found = [block.text for block in blocks(page) if path in block.tests and language in (None, block.language)]
    assert found, f"no block of {page} says that {path} tests it"
    return found
