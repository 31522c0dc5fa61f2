# SPDX-License-Identifier: Apache-2.0
"""The defaults and limits that documents name are those of the code.

tests/system/numbers.txt has the numbers: a line is an expression of constants of the sources and of keys of the
configuration, and each indented line below it is a page and words of this page, with # where the number stands. The words
may stand in the page several times. Backquotes, asterisks and macros of mdoc are left out before the words are compared."""

import functools
import os
import re
import subprocess

import pytest

import harness
from test_documents import documents

pytestmark = pytest.mark.plain_only("it is about the documents")

NAMES = "zero one two three four five six seven eight nine ten"
ORDINALS = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10, "twelfth": 12, "sixteenth": 16}
WORDS = ORDINALS | {name: i for i, name in enumerate(NAMES.split())}
NUMBER = rf"(2\^\d+|\d[\d,]*(?:\.\d+)?|\b(?i:{'|'.join(WORDS)})\b)"
UNITS = {"S": 10**9, "MS": 10**6, "US": 10**3, "KiB": 2**10, "MiB": 2**20, "MINUTE": 60 * 10**9}
FOLDERS = {"daemon": ".c .h", "protocol": ".c .h", "client-lib": ".c .h .py .java .go"}


def value_of(text):
    """Of a number as a document writes it, and the number of its decimals."""
    if text.lower() in WORDS:
        return WORDS[text.lower()], 0
    if text.startswith("2^"):
        return 2 ** int(text[2:]), 0
    return float(text.replace(",", "")), len(text.partition(".")[2])


# ---- the code ----


@functools.lru_cache(maxsize=None)
def definitions():
    """Of each constant of the sources its expressions, by file. C, Python, Java and Go write them much alike."""
    found = {}
    for top, suffixes in FOLDERS.items():
        for folder, _, files in os.walk(os.path.join(harness.SOURCE, top)):
            for name in sorted(name for name in files if name.endswith(tuple(suffixes.split()))):
                text = harness.read_source(os.path.relpath(os.path.join(folder, name), harness.SOURCE))
                text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
                defined = re.findall(r"^#define ([A-Z]\w+)[ \t]+([^\\\n]+)$", text, re.M)
                defined += re.findall(r"\b([A-Z][A-Z0-9_]+)\s*=\s*([^=,;}\n][^,;}\n]*)", text)
                defined += re.findall(r"^\t(\w+(?:Default|Max|First)) += (.+)$", text, re.M) if name.endswith(".go") else []
                for constant, expression in defined:
                    found.setdefault(constant, {}).setdefault(name, expression.strip())
    return found


@functools.lru_cache(maxsize=None)
def defaults():
    """The numbers among the defaults of the keys of the configuration."""
    printed = subprocess.run([harness.program("lockbrokerd"), "--print-config", "-c", "/dev/null"], capture_output=True,
                             text=True, check=True).stdout
    found = re.findall(r"^(\w+) = (\d+)$", printed, re.M)
    assert len(found) == len(dict(found)) > 30
    return {key: int(value) for key, value in found}


def number(expression, file=None):
    """The value of an expression: constants, or file:constant where several files define one, and keys."""
    def named(match):
        where, word = match.group(1) or file, match.group(2)
        places = definitions().get(word, {})
        likely = [place for place in places if not where or (place[-2:] in (".c", ".h")) == (where[-2:] in (".c", ".h"))]
        if where not in places and len({places[place] for place in likely}) == 1:
            where = likely[0]
        if word in UNITS and not places:
            return str(UNITS[word])
        if word in defaults() and not places:
            return str(defaults()[word])
        if word in ("max", "min"):
            return word
        assert where in places, f"{match.group(0)}: no such constant, or several: {list(places)}"
        return f"({number(places[where], where)})"

    text = re.sub(r"INT64_C\((.*?)\)|Duration\.ofSeconds\((.*?)\)", r"(\1\2)", expression)
    text = re.sub(r"\btime\.Second\b", str(UNITS["S"]), re.sub(r"\bClock\.", "", text))
    text = re.sub(r"\b(?:([\w.]+):)?([A-Za-z]\w*)\b", named, text)
    return eval(text, {"min": min, "max": max})  # pylint: disable=eval-used


# ---- the documents ----


@functools.lru_cache(maxsize=None)
def prose(page):
    """The text of a page in one line, without markup."""
    text = harness.read_source(page)
    if page[-1].isdigit():
        text = re.sub(r'^\.\\".*$', "", text, flags=re.M).replace("\\-", "-").replace("\\&", "").replace("\\(dq", '"')
        text = re.sub(r"^\.(.*)$", lambda m: " ".join(word for word in m.group(1).split() if not re.fullmatch("[A-Z][a-z]", word)),
                      text, flags=re.M)
        text = re.sub(r" ([.,;:)])(?=\s)", r"\1", text)
    else:
        text = re.sub(r"\*\*|`|(?<!\s)\*|\*(?!\s)|^> ", "", text, flags=re.M)
    return re.sub(r"\s+", " ", text)


@functools.lru_cache(maxsize=None)
def pages():
    """All but the history, and the pages about tests."""
    manuals = [os.path.join("client-lib/man", name) for name in os.listdir(os.path.join(harness.SOURCE, "client-lib/man"))]
    return sorted([page for page in documents() if not page.startswith(("CHANGELOG.md", "tests/"))] + manuals)


@functools.lru_cache(maxsize=None)
def table():
    """Of tests/system/numbers.txt: each expression, with a list of pages and words."""
    rows = []
    for line in harness.read_source("tests/system/numbers.txt").splitlines():
        if line.startswith("    "):
            rows[-1][1].append(line.strip().split(": ", 1))
        elif line and not line.startswith("#"):
            rows.append((line, []))
    return rows


@functools.lru_cache(maxsize=None)
def full(page):
    """The path of a page of the table, which names a page by its name where that is enough."""
    (path,) = [path for path in pages() if path == page or path.endswith("/" + page) and page != "README.md"]
    return path


def found_in(page, words):
    """The numbers at these words of that page: matches, of which group 1 is the number."""
    return list(re.finditer(re.escape(words).replace(r"\#", NUMBER).replace(r"\ ", " "), prose(full(page))))


def test_limits_that_documents_name_are_those_of_the_code():
    wrong, checked = [], 0
    for expression, page, words in [(expression, *place) for expression, places in table() for place in places]:
        found = found_in(page, words)
        wrong += [] if found else [f"{page} no longer says: {words}"]
        for said, decimals in [value_of(match.group(1)) for match in found if expression != "-"]:
            value, checked = number(expression), checked + 1
            if round(value, decimals) != said:
                wrong.append(f"{page}: {words.replace('#', f'{said:g}')} (in the code: {expression} = {value:g})")
    assert not wrong, "\n" + "\n".join(wrong)
    assert len(table()) > 160 and checked > 250


BOUND = r"(?i:at most|up to|the first|the last|than|within|after|every) (?:the |a |an )?"


def test_every_bound_that_a_page_names_is_in_the_table():
    """So that a new one is compared with the code, too. Pages of figures, and about other services, have other numbers.

    A fraction in words, one and zero are left out: most of them are no bounds."""
    unknown = []
    for page in pages():
        if os.path.basename(page) in ("SIZING.md", "TAKEOVER.md", "NEIGHBOURS.md", "PEERS.md", "PERFORMANCE.md", "FEATURES.md", "CONTRIBUTING.md"):
            continue
        text = re.sub(r"## Tests \|.*?(?= ## |$)", lambda tests: " " * len(tests.group(0)), prose(page))
        known = {match.start(1) for _, places in table() for name, words in places if full(name) == page
                 for match in found_in(name, words)}
        unknown += [f"{page}: {text[max(0, match.start() - 60):match.end() + 40]}"
                    for match in re.finditer(BOUND + NUMBER + "(?= ?[a-zA-Z%])", text)
                    if match.start(1) not in known and match.group(1) not in ORDINALS and value_of(match.group(1))[0] not in (0, 1)]
    assert not unknown, "in tests/system/numbers.txt there is no line for\n" + "\n".join(unknown)


def test_the_manual_has_the_bounds_of_every_key():
    """As the error says that refuses a value out of bounds."""
    manual = harness.read_source("client-lib/man/lockbroker.conf.5").replace("\\-", "-")
    sections = re.split(r"^\.Ss \[(\S+)\]", manual, flags=re.M)[1:]
    keys = [(section, *key) for section, text in zip(sections[::2], sections[1::2])
            for key in re.findall(r"^\.It Cm (\w+) Pq default [^;\n]*; (?:auto, )?(\d+)(?:\.\.| to )(\d+)(, octal)?", text, re.M)]
    named = {f"{section.replace('prefix:...', 'prefix:x')}.{key}" for section, key, *_ in keys}
    assert len(named) == len(keys) > 30
    assert set(defaults()) <= {key.partition(".")[2] for key in named}
    for section, key, low, high, octal in keys:
        base = 8 if octal else 10
        name = f"{section.replace('prefix:...', 'prefix:x')}.{key}"
        for value in (int(low, base) - 1, int(high, base) + 1):
            text = f"{value:o}" if octal else str(value)
            done = subprocess.run([harness.program("lockbrokerd"), "--check-config", "-c", "/dev/null", "-o", f"{name}={text}"],
                                  capture_output=True, text=True)
            bounds = "or off, 1 or 0" if high == "1" else f" from {low} to {high}"
            assert done.returncode == 2 and bounds in done.stderr, f"{name}={text}: {done.stderr}"


def spellings(key, value):
    """All that a document may write for the default of that key: of milliseconds also seconds, of bytes also KiB."""
    scales = {"_ms": (1, 1000), "bytes": (1, 2**10, 2**20)}
    return {value / scale for scale in next((scales[end] for end in scales if key.endswith(end)), (1,))}


def test_sentences_about_a_default_have_the_default():
    """Wherever a number stands in brackets behind a key, and in a sentence that names a key, "default" and numbers."""
    wrong, seen = [], set()
    for page, key in ((page, key) for page in pages() for key in defaults()):
        for sentence in re.split(r"(?<=[.:;|]) ", prose(page)):
            right = spellings(key, defaults()[key])
            told = [{value_of(text)[0]} for text in re.findall(
                rf"(?<![\w.])(?:\w+\.)?{key},? ?(?:percent )?\(?(\d[\d,]*\.?\d*)(?: ?[\w%]+)?(?:\)| by default)", sentence)]
            if re.search(r"\bdefaults?\b", sentence) and re.search(rf"\.{key}\b" if "_" not in key else rf"\b{key}\b", sentence):
                told.append({float(text.replace(",", "")) for text in re.findall(r"(?<![\w.,])\d[\d,]*\.?\d*(?![\w.])", sentence)})
            for numbers in filter(None, told):
                seen.add((page, key))
                wrong += [f"{page}: {sentence} (in the code: {key} = {defaults()[key]})"] if not numbers & right else []
    assert not wrong, "\n" + "\n".join(wrong)
    assert len(seen) > 30, len(seen)
