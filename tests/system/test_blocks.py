# SPDX-License-Identifier: Apache-2.0
"""Each block of code in a document, and each display in a manual, is one that a test takes out and runs (tests/system/pages.py), or says
why none can."""

import glob
import os
import re

import pytest

import harness
import pages
from test_documents import documents

pytestmark = pytest.mark.plain_only("it is about the documents")

NOT_RUN_MAX = 10
# How a line begins that is typed in.
COMMAND = re.compile(r"(?:> )? *(?:\$ |# )?(?:[A-Z_]+=\S+ )?(?:/usr/bin/|lockbroker |lockbrokerd --|systemctl |python3? |make\b|apt|sh |sudo |docker |podman |kubectl |redis-cli)")


def all_pages():
    return sorted(documents()) + sorted(os.path.relpath(path, harness.SOURCE)
                                        for path in glob.glob(f"{harness.SOURCE}/client-lib/man/*.[1-8]"))


def all_blocks():
    found = [block for page in all_pages() for block in pages.blocks(page)]
    assert len(found) > 90
    return found


def takers(test):
    """The source of the test, and of the modules beside it that it imports."""
    folders = {os.path.dirname(test), "tests/system"}
    text = harness.read_source(test)
    beside = [f"{folder}/{name}.py" for folder in folders for name in re.findall(r"^(?:import|from) (\w+)", text, re.M)]
    return [text] + [harness.read_source(path) for path in beside
                     if os.path.exists(os.path.join(harness.SOURCE, path)) and path != "tests/system/pages.py"]


def languages(test, page):
    """Those that the test takes out of the page; None: any."""
    found = set()
    path = f'"{test}"'
    for number, text in enumerate(takers(test)):
        named = {name: value for name, value in re.findall(r'^(\w+) = ("[^"\n]+\.md")$', text, re.M)}
        for where, by, language in re.findall(r'\bclaimed\(([\w"./-]+), ([\w"./-]+)(?:, ([\w"]+))?\)', text):
            if named.get(where, where) == f'"{page}"' and by in ("__file__" if number == 0 else path, path):
                found.add(language.strip('"') if language.startswith('"') else None)
    return found


def test_each_block_says_who_runs_it_or_why_nobody_can():
    assert not [str(block) for block in all_blocks() if not block.tests and not block.reason and not block.nothing]


def test_few_blocks_are_not_run():
    not_run = [block for block in all_blocks() if block.reason]
    assert 0 < len(not_run) <= NOT_RUN_MAX, [f"{block}: {block.reason}" for block in not_run]


def test_there_is_no_command_where_nothing_is_to_be_run():
    """Also in what is indented, as formulas are."""
    for block in all_blocks():
        assert not block.nothing or block.language in ("text", ""), f"{block}: {block.language}"
        assert not block.nothing or not any(COMMAND.match(line) for line in block.text.splitlines()), block
    for page in documents():
        text = re.sub(r"^( *(?:> ?)?)```.*?^ *(?:> ?)?```$", "", harness.read_source(page), flags=re.M | re.S)
        indented = re.findall(r"(?<=\n\n)(?:    .*\n)+", text)
        assert not [lines for lines in indented if any(COMMAND.match(line.strip()) for line in lines.splitlines())], page


def test_who_is_named_takes_the_block_out_of_the_page():
    for block in all_blocks():
        for test in block.tests:
            assert os.path.exists(os.path.join(harness.SOURCE, test)), f"{block}: {test}"
            if test.endswith(".sh"):
                assert block.page in harness.read_source(test), f"{block}: {test}"
            else:
                taken = languages(test, block.page)
                assert None in taken or block.language in taken, f"{block}: {test} takes {taken}"


def test_every_marked_line_is_in_front_of_a_block():
    """A mark that stands somewhere else would be none."""
    marks = sum(bool(pages.MARK.fullmatch(line)) for page in all_pages() for line in harness.read_source(page).split("\n"))
    assert marks == len([block for block in all_blocks() if block.tests or block.reason or block.nothing])


# ---- figures ----

# A sentence that says that something was measured, and how much it was.
MEASURED = re.compile(r"\bmeasured\b|\b20\d\d-\d\d-\d\d\b|\btook (?:at least |about |up to )?[\d.]")
FIGURE = re.compile(r"\d (?:us|ms|ns|s|[KMG]i?B|bytes|pairs|packets)\b")
MEASURES = re.compile(r"make (?:bench|fleet|steps|profile|containers|restarts)\b|bench\.py|--only|tests/bench/|build/tests/bench|test_\w+\.\w+::")


def test_what_was_measured_stands_in_a_section_that_names_its_command():
    found = 0
    for page in sorted(documents()):
        if page.startswith(("docs/", "tests/bench/", "protocol/")) or page in ("README.md", "SECURITY.md"):
            for section in re.split(r"\n(?=## )", harness.read_source(page)):
                paragraphs = [" ".join(text.split()) for text in re.split(r"\n\n|\n\* |\n\|", section)]
                measured = [text for text in paragraphs if MEASURED.search(text) and FIGURE.search(text)]
                found += len(measured)
                assert not measured or MEASURES.search(section), f"{page}: {measured[0]}"
    assert found > 15
