# SPDX-License-Identifier: Apache-2.0
"""The places of a C source that may be mutated, found by its tokens.

Only what a function does is one: no declaration, though what it sets its names to; no preprocessor line, no comment, no string,
no assertion, and nothing that only goes to the log.
"""

import bisect
import re
from typing import NamedTuple

TOKEN = re.compile(r"""
    (?P<blank>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)
""", re.X | re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.M | re.S)

ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
PAIRS = {"(": ")", "[": "]", "{": "}"}
LOOPS = {"if", "while", "for", "switch"}
TYPES = {"const", "volatile", "struct", "union", "enum", "static", "extern", "register", "unsigned", "signed", "int", "char", "long",
         "short", "void", "bool", "float", "double", "_Atomic", "_Alignas", "__attribute__", "typedef"}
STATIC = {"static", "extern", "typedef"}
# Assertions, the log, and a text for a person that is no promise.
QUIET = re.compile(r"assert|static_assert|_Static_assert|log_(error|warning|info|debug|event|caused|text)|perror|LOG_\w+")
# What ends a program for want of memory is never executed; without va_end() or free() nothing changes that a test can see, unless it
# runs with sanitizers, which look for leaks.
STAYS = re.compile(r"abort|va_\w+|free\w*|mem_free|bytes_free|unreachable|__builtin_\w+")
DESCRIPTOR = re.compile(r"fd|\w+_fd")


class Place(NamedTuple):
    """One mutant: the text from `begin` to `end` is replaced. `operator` says what for; `line` and `column` are from 1 on; `body`
    is where its function begins and ends."""

    line: int
    column: int
    operator: str
    begin: int
    end: int
    after: str
    function: str
    body: tuple


class Token(NamedTuple):
    kind: str
    text: str
    begin: int
    end: int


def tokens(source):
    """Those that mean something. A directive becomes blanks, so that places stay where they are."""
    source = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), hide(source))
    return [Token(m.lastgroup, m[0], m.start(), m.end()) for m in TOKEN.finditer(source) if m.lastgroup != "blank"]


def hide(source):
    """Comments become blanks: a directive is found by the line's first character that is none."""
    def blank(m):
        return m[0] if m.lastgroup != "blank" else re.sub(r"[^\n]", " ", m[0])
    return TOKEN.sub(blank, source)


class Source:
    def __init__(self, text):
        self.text, self.all = text, tokens(text)
        self.partner = self.match()
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.places, self.function, self.body = [], "", (0, 0)
        self.quiet = set()  # tokens that stay as they are

    def match(self):
        partner, open_ones = {}, []
        for i, t in enumerate(self.all):
            if t.kind != "sign":
                continue
            if t.text in PAIRS:
                open_ones.append(i)
            elif t.text in PAIRS.values() and open_ones:
                partner[i] = open_ones.pop()
                partner[partner[i]] = i
        return partner

    def word(self, i):
        return self.all[i].text if 0 <= i < len(self.all) else ""

    def is_text(self, i, word):
        return self.word(i) == word and self.all[i].kind in ("sign", "name")

    # ---- what is where ----

    def bodies(self):
        """The functions' names, and their bodies' first and last token: a brace outside of all others, behind a parenthesis."""
        i = 0
        while i < len(self.all):
            if self.is_text(i, "{") and i in self.partner:
                if self.word(i - 1) == ")":
                    yield self.word(self.partner[i - 1] - 1), i, self.partner[i]
                i = self.partner[i]
            i += 1

    def end_of(self, i, ends):
        """The next token that is one of `ends`, outside of pairs of parentheses that open on the way."""
        while i < len(self.all) and not (self.all[i].kind == "sign" and self.word(i) in ends):
            i = self.partner[i] + 1 if self.word(i) in PAIRS and i in self.partner else i + 1
        return i

    def is_declaration(self, i, end):
        first = self.all[i]
        if first.text in TYPES or first.kind == "name" and first.text.endswith("_t"):
            return True
        if first.kind != "name":
            return False
        j = i + 1
        while self.word(j) == "*":
            j += 1
        return j < end and self.all[j].kind == "name" and (j == i + 1 or self.word(j + 1) in ("=", ";", ",", "["))

    def declaration(self, i, end):
        """Only what names are set to may be changed, and nothing of what is made once."""
        keep = list(range(i, end))
        if not STATIC & {self.word(j) for j in keep[:3]}:
            j = i
            while j < end:
                j = self.end_of(j, {"=", ";"})
                until = self.end_of(j, {",", ";"})
                keep = [k for k in keep if not j < k < until]
                j = until + 1
        self.quiet.update(keep)

    def statement(self, i, end):
        if self.is_declaration(i, end):
            self.declaration(i, end)
            return
        name = self.word(i)
        if self.all[i].kind != "name" and name not in ("++", "--", "*"):
            return
        calls = self.word(end - 1) == ")"
        assigns = any(self.end_of(i, {word}) < end for word in ASSIGN | {"++", "--"})
        if (calls or assigns) and not (calls and not assigns and (QUIET.fullmatch(name) or STAYS.fullmatch(name))):
            self.add("delete", i, end - 1, "")

    def statements(self, i, last):
        """Each statement of a body: what is nested follows, so that one walk sees all."""
        while i < last:
            word = self.word(i)
            if word in ("{", "}", ";", "else", "do"):
                i += 1
            elif word in LOOPS:
                i = self.partner[i + 1] + 1
            elif word == "case":
                self.quiet.update(range(i, self.end_of(i, {":"})))
                i = self.end_of(i, {":"}) + 1
            elif self.all[i].kind == "name" and self.word(i + 1) == ":":
                i += 2
            elif word in ("return", "break", "continue", "goto"):
                i = self.end_of(i, {";"}) + 1
            else:
                end = self.end_of(i, {";"})
                after = self.partner[i + 1] + 1 if self.word(i + 1) == "(" and i + 1 in self.partner else end
                if after < end and (self.word(after) == "{" or self.all[after].kind == "name"):
                    i = after  # a macro that repeats what follows
                    continue
                self.statement(i, end)
                i = end + 1

    # ---- operators ----

    def add(self, operator, first, last, after=None):
        """A mutant of the tokens from `first` to `last`."""
        begin, end = self.all[first].begin, self.all[last].end
        if any(i in self.quiet for i in (first, last)):
            return
        if after is None:
            after = "!(" + self.text[begin:end] + ")"
        line = bisect.bisect_right(self.lines, begin)
        place = Place(line, begin - self.lines[line - 1] + 1, operator, begin, end, after, self.function, self.body)
        if place not in self.places:
            self.places.append(place)

    def operand(self, i, step, ends):
        """The furthest token of the operand that begins beside token `i`."""
        i += step
        while self.word(i) not in ends or self.all[i].kind not in ("sign", "name"):
            other = self.partner.get(i)
            if other is not None:
                if (other < i) != (step < 0):
                    break
                i = other
            i += step
        return i - step

    def conditions(self, first, last):
        ends = ASSIGN | {",", ";", "?", ":", "return", "case", "{", "}"}
        for i in range(first, last):
            word = self.word(i)
            if self.all[i].kind not in ("sign", "name") or i in self.quiet:
                continue
            if word in ("if", "while") and self.word(i + 1) == "(":
                self.add("negate", i + 2, self.partner[i + 1] - 1)
            elif word == "for" and self.word(i + 1) == "(":
                begin = self.end_of(i + 2, {";"}) + 1
                end = self.end_of(begin, {";"})
                if end > begin:
                    self.add("negate", begin, end - 1)
            elif word == "?":
                self.add("negate-choice", self.operand(i, -1, ends), i - 1)
            elif word in ("&&", "||"):
                self.add("negate-part", self.operand(i, -1, ends | {"&&", "||"}), i - 1)
                self.add("negate-part", i + 1, self.operand(i, 1, ends | {"&&", "||"}))

    def is_no_descriptor(self, i):
        """Of `fd < 0`, `fd >= 0` and `fd = -1`, the number: descriptor 0 is the standard input's, and all below are none."""
        compared = self.word(i) == "0" and self.word(i - 1) in ("<", ">=") and DESCRIPTOR.fullmatch(self.word(i - 2))
        none = self.word(i) == "1" and self.word(i - 1) == "-" and self.word(i - 2) == "=" and DESCRIPTOR.fullmatch(self.word(i - 3))
        return compared or none

    def constants(self, first, last):
        for i in range(first, last):
            t = self.all[i]
            if i in self.quiet:
                continue
            for operator, after in others(t):
                if operator != "constant+1" or not self.is_no_descriptor(i):
                    self.add(operator, i, i, after)

    def find(self):
        for self.function, first, last in self.bodies():
            self.body = (self.all[first].begin, self.all[last].end)
            for i in range(first, last):
                # What is below sizeof is not evaluated.
                if self.all[i].kind == "name" and (QUIET.fullmatch(self.word(i)) or self.word(i) == "sizeof") and self.word(i + 1) == "(":
                    self.quiet.update(range(i, self.partner[i + 1] + 1))
            self.statements(first + 1, last)
            self.conditions(first + 1, last)
            self.constants(first + 1, last)
        return sorted(self.places)


def others(token):
    """What a constant may become."""
    if token.kind == "name" and token.text in ("true", "false"):
        return [("constant", "false" if token.text == "true" else "true")]
    if token.kind == "char" and re.fullmatch(r"'[^\\]'", token.text):
        return [("constant+1", f"'{chr(ord(token.text[1]) + 1)}'")] if token.text[1] not in "&[" else []
    number = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", token.text)
    if token.kind != "number" or not number:
        return []
    digits, suffix = number.groups()
    octal = re.fullmatch(r"0\d+", digits)
    value = int(digits, 8 if octal else 0)

    def written(n):
        return (f"0{n:o}" if octal else f"{n:#x}" if digits[:2] in ("0x", "0X") else str(n)) + suffix
    return [("constant+1", written(value + 1))] + ([("constant-1", written(value - 1))] if value else [])


def places(text):
    return Source(text).find()
