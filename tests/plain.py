#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences that leave their reader to guess the noun are printed; then the status is 1.

plain.py            compares the findings of each file with tests/plain.counts
plain.py --all      prints every finding, also those that tests/plain.counts still allows
plain.py --count    prints the number of findings of each file
plain.py --lower    writes lower numbers into tests/plain.counts; it never raises one

Only prose is read: paragraphs, list items and table cells of Markdown, manuals, help and messages in C, comments of headers.
Headings, questions, links, code and quotations are left out. Each of those is replaced by a word of the same length, which
counts as a noun. tests/plain.allowed lists the sentences that are right as they are, each with its reason.
"""

import collections
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
COUNTS = os.path.join(HERE, "plain.counts")
ALLOWED = os.path.join(HERE, "plain.allowed")
ALLOWED_MAX = 30
FILES = ("*.md", "docs/**/*.md", "protocol/*.md", "tests/**/*.md", "client-lib/**/*.md", "client-lib/man/*",
         "client-lib/**/*.[ch]", "daemon/**/*.[ch]", "protocol/*.[ch]")

Paragraph = collections.namedtuple("Paragraph", "line shown masked")  # Both texts have the same length and lines.
Finding = collections.namedtuple("Finding", "line name sentence")

# An indirect question has one of these verbs before its word: "the page says who holds it".
ASKING = r"(?:say|said|ask|know|known|knew|decide|explain|describe|see|seen|saw|tell|show|shown|understand|wonder|learn|guess|" \
    r"find out|found out|look up|matter|unclear|clear|question)(?:s|ed|d|es|ing)?"
# Words before which no noun stands: a clause that begins behind one of them has no head.
OPENING = r"of|to|from|for|by|with|at|on|in|into|as|than|like|about|against|between|beside|besides|without|until|after|before|" \
    r"behind|but|if|that|so|because|when|while|where|not|only|also|even|both|either"
MODAL = r"would|could|might|must|should|will|can|may"
BE = r"is|are|was|were"
DO = BE + r"|has|have|had|does|do|did|can|may|will|would|could"
END = r"(?=\s*(?:[,.;:)?!]|$))"
WH = re.compile(r"\b" + ASKING + r"\b[^.;]*\b(?:who|what|why|where|when|whether|how|which)\b", re.I)


def indirect(before):
    """Whether the word behind this beginning of a sentence opens an indirect question."""
    if re.search(r"\b" + ASKING + r"\b(?:\s+(?:\w+\s+){0,2}(?:of|about|to|at|in|from)\s+(?:\w+\s+){0,3})?\W*$", before, re.I):
        return True
    if re.search(r"\b" + ASKING + r"(?:\s+\w+){1,2}\s+$", before, re.I):
        return True
    return bool(re.search(r"(?:\band|\bor|\bbut|[,:])\s+(?:\w+\s+)?$", before)) and bool(WH.search(before))


def opens(before):
    """Whether the word behind this beginning of a sentence has no noun before it."""
    return bool(re.search(r"(?:^|[.:;(|-])\W*$", before) or re.search(r"\b(?:" + OPENING + r")\W+$", before, re.I)
                or re.search(r"\b(?:and|or)\s+$", before))


def headless_what(before):
    return not indirect(before) and not re.search(r"\bno matter\s+$", before, re.I)


def headless_who(before):
    return opens(before) and not indirect(before)


def passive(before):
    return not re.search(r"\b(?:has|have|had|having)(?:\s+(?:not|already|just|ever|never))?\s+$", before, re.I) and \
        not re.search(r"\b(?:it|they|he|she|we|I|who)\s+$", before)


def always(before):
    del before
    return True


def not_so_that(before):
    return not re.search(r"\bso\s+$", before, re.I)


def not_somebody(before):
    return not re.search(r"\b(?:any|every|some|no)(?:body|one|thing)\s+$|\bwho\s+$|\bnothing\s+$", before, re.I)


# name, pattern, whether a match counts (by the sentence up to it), what to write instead
RULES = [(name, re.compile(pattern, re.I), counts, advice) for name, pattern, counts, advice in (
    ("what", r"\bwhat\b(?!=|\s+(?:if|about)\b)", headless_what, "name the noun: not \"what all share\" but \"shared resources\""),
    ("what all", r"\bwhat all\b", always, "name the noun: \"shared resources\""),
    ("who", r"\bwho\b", headless_who, "name the noun: not \"who waits\" but \"a client that waits\""),
    ("whoever", r"\bwho(?:m?ever|soever|so)\b", always, "name the noun: \"a client that\", \"a user who\""),
    ("those that", r"\bthose (?:that|of|which|who|whose|with|without|for|in|from|on|to|are|is|where)\b", always,
     "repeat the noun: not \"those of the host\" but \"the locks of the host\""),
    ("that of", r"\bthat (?:of|which)\b", always, "repeat the noun: not \"that of the host\" but \"the limit of the host\""),
    ("that one", r"\b(?:that|this|these|those) ones?\b" + r"(?:" + END + r"|(?=\s+(?:is|was|were|and|or|in|on|for|to|as|with|"
     r"from|by|at|too|alone|only)\b))", not_so_that, "repeat the noun: not \"that one\" but \"that lock\""),
    ("the one that", r"\bthe (?:one|ones) (?:that|which|who|whose|of|with|in|from|for|on)\b", always, "name the noun"),
    ("told", r"\btold\b(?! apart\b)", passive, "use the standard verb: notify, report, show, refuse, ask"),
    ("tells", r"\btells?\b(?:" + END + r"|(?=\s+(?:of|so)\b))", always, "use the standard verb: notify, report, show"),
    ("meanwhile", r"\bmeanwhile\b|\bin the meantime\b", always, "say \"while X happens\""),
    ("by then", r"\bby then\b", always, "name the event: \"before the session ends\""),
    ("would else", r"\b(?:" + MODAL + r") else\b|\belse (?:" + MODAL + r")\b", not_somebody, "say \"otherwise\", or \"without X\""),
    ("so it is", r"\bso (?:it|they|he|this|that) (?:" + DO + r")(?:" + END + r"|(?=\s+(?:too|also)\b))|"
     r"\b(?:that|this|it) (?:is|was) so\b(?!\s+\w+\s+that\b)" + END + r"|(?:^|[,.;:]|\band)\s*so (?:" + DO + r")\b(?! not\b)|"
     r"\b(?:does|do|did|done|did|is|are|was) so\b" + END, always, "repeat the verb and its object"),
    ("nothing is", r"^\W*(?:[\w'%]+\s+){1,3}?(?:" + DO + r")(?:\s+not)?\s*[.]\W*$", always, "complete the sentence: subject, verb, object"),
    ("namespace of", r"\bnamespaces? of (?:users?|processes|mounts?|time|networks?)\b", always,
     "the standard term is \"user namespace\", \"PID namespace\", ..."),
    ("bounds", r"\b(?:at (?:most|least)|up to|no more than)\b.*\b(?:at (?:most|least)|up to|no more than)\b.*"
     r"\b(?:at (?:most|least)|up to|no more than)\b", always, "one bound a sentence; more of them are a table or a formula"),
)]


def noun(text):
    """A word of the same length, on the same lines."""
    return re.sub(r"\S", "X", text)


def blank(text):
    return re.sub(r"\S", " ", text)


def masked_prose(text):
    text = re.sub(r"<!--.*?-->", lambda m: blank(m.group()), text, flags=re.S)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda m: noun(m.group()), text, flags=re.S)
    text = re.sub(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\([^)\s]*\)", lambda m: noun(m.group()), text, flags=re.S)
    text = re.sub(r"(?<!\w)\"[^\"]*\"|“[^”]*”", lambda m: noun(m.group()), text, flags=re.S)
    # A heading within its paragraph: "**What it is not.** There are no ..."
    text = re.sub(r"\*\*(?:What|Who|Why|How|When|Where)(?:\s+\w+){0,4}\.\*\*", lambda m: noun(m.group()), text)
    return text.replace("*", " ")


def split_blocks(numbered):
    """Paragraphs of (line number, text); None ends one."""
    block, begin = [], 0
    for number, text in numbered:
        if text is None:
            if block:
                yield begin, "\n".join(block)
            block = []
            continue
        if not block:
            begin = number
        block.append(text)
    if block:
        yield begin, "\n".join(block)


def markdown(text):
    lines, cells, fence = [], [], None
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r"^(\s*>)+ ?", "", line)
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = None if fence and line.strip().startswith(fence) else fence or mark.group(1)
            lines.append((number, None))
        elif fence:
            continue
        elif not line.strip() or line.startswith(("#", "    ")) and not (lines and lines[-1][1]):
            lines.append((number, None))
        elif line.lstrip().startswith("|"):
            lines.append((number, None))
            if re.fullmatch(r"[ |:-]+", line):
                cells = [cell for cell in cells if cell[0] != number - 1]  # The line before was the table's heading.
                continue
            code = re.sub(r"`[^`]*`", lambda m: m.group().replace("|", "X"), line).replace("\\|", "XX")
            begin = 0
            for end in [i for i, c in enumerate(code) if c == "|"] + [len(code)]:
                if line[begin:end].strip(" -:|"):
                    cells.append((number, line[begin:end]))
                begin = end + 1
        else:
            if re.match(r"\s*(?:[-*+]|\d+\.)\s", line):
                lines.append((number, None))
                line = re.sub(r"^(\s*)([-*+]|\d+\.)(?=\s)", lambda m: m.group(1) + blank(m.group(2)), line)
            lines.append((number, line))
    for number, block in list(split_blocks(lines)) + cells:
        yield Paragraph(number, block, masked_prose(block))


BREAKS = ("Pp", "Bl", "El", "Ed", "Sh", "Ss", "It", "Bd", "Dl", "D1", "Dd", "Dt", "Os", "Nd", "Rs", "Re", "br", "sp", "TS", "TE")


def manual(text):
    lines, shown, literal = [], {}, False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\.Bd\b.*-(?:literal|unfilled)", line):
            literal = True
        macro = re.match(r"[.']\s*(\w+)?\s*(.*)", line)
        if macro and macro.group(1) in BREAKS or not line.strip():
            if macro and macro.group(1) == "Ed":
                literal = False
            lines.append((number, None))
        elif not literal and macro and macro.group(1):
            words = re.findall(r'"[^"]*"|\S+', macro.group(2))
            closing = "".join(word for word in words if re.fullmatch(r"[.,;:)?!]", word))
            kept = " ".join(word for word in words if not re.fullmatch(r"[.,;:)?!(]", word) and word != "Ns")
            shown[number] = (kept or macro.group(1)) + closing
            lines.append((number, noun(kept.replace(" ", "_") or macro.group(1)) + closing))
        elif not literal and not macro:
            shown[number] = line
            lines.append((number, line))
    for number, block in split_blocks(lines):
        words = "\n".join(shown[number + i] for i in range(block.count("\n") + 1))
        yield Paragraph(number, words, masked_prose(block))


STRING = r'"(?:\\.|[^"\\\n])*"'
TOKENS = re.compile(r"(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<include>^#\s*include[^\n]*)|"
                    r"(?P<text>" + STRING + r"(?:\s*(?:\\\n\s*)?(?:[A-Z]\w*\s*)?" + STRING + r")*)|'(?:\\.|[^'\\\n])'", re.S | re.M)


def message(number, text):
    """The literals of a text, as one line for each line of the source."""
    text = re.sub(STRING, lambda m: " " + m.group()[1:-1] + " ", text)
    text = re.sub(r"  (?=\s*\n\s* )", "", text)
    if len(re.findall(r"[A-Za-z]{2,}", text)) < 3:
        return
    text = text.replace("\\t", "  ").replace('\\"', ' "')
    text = re.sub(r"%[-+ #0-9.*]*(?:hh|h|ll|l|j|z|t)?[a-zA-Z]", lambda m: noun(m.group()), text)
    for part in text.split("\\n"):
        if not re.match(r"\s*(?:lockbroker|\$|#|>) ", part):
            part = re.sub(r"[ \t]+", " ", part)
            yield Paragraph(number, part, masked_prose(part))
        number += part.count("\n")


def comment(number, text):
    text = re.sub(r"^/\*+|\*/$|^//", lambda m: blank(m.group()), text)
    lines = []
    for i, line in enumerate(text.split("\n")):
        line = re.sub(r"^\s*\*(?=\s|$)", "", line)
        lines.append((number + i, line if line.strip() else None))
    for begin, block in split_blocks(lines):
        yield Paragraph(begin, block, masked_prose(block))


def source(text, is_header):
    for token in TOKENS.finditer(text):
        number = text.count("\n", 0, token.start()) + 1
        if token.group("text"):
            yield from message(number, token.group())
        elif token.group("comment") and is_header:
            yield from comment(number, token.group())


def paragraphs(name, text):
    if name.endswith(".md"):
        return markdown(text)
    if name.endswith((".c", ".h")):
        return source(text, name.endswith(".h"))
    return manual(text)


def sentences(masked):
    begin = 0
    for end in re.finditer(r"[.!?][)\"']*(?=\s+[^\sa-z]|\s*$)|$", masked):
        if masked[begin:end.end()].strip():
            yield begin, end.end()
        begin = end.end()


def findings(name, text):
    for paragraph in paragraphs(name, text):
        for begin, end in sentences(paragraph.masked):
            sentence = paragraph.masked[begin:end]
            if sentence.rstrip().endswith("?"):
                continue
            seen = set()
            for rule, pattern, counts, _ in RULES:
                for found in pattern.finditer(re.sub(r"\s", " ", sentence)):
                    if counts(sentence[:found.start()]) and found.start() not in seen:
                        seen.add(found.start())
                        line = paragraph.line + paragraph.masked.count("\n", 0, begin + found.start())
                        yield Finding(line, rule, " ".join(paragraph.shown[begin:end].split()).lstrip("* "))


def names():
    found = {os.path.relpath(file, TOP) for pattern in FILES for file in glob.glob(os.path.join(TOP, pattern), recursive=True)}
    return sorted(name for name in found if os.path.isfile(os.path.join(TOP, name)))


def read_counts():
    with open(COUNTS, encoding="utf-8") as table:
        rows = [line.split() for line in table if line.strip() and not line.startswith("#")]
    return {name: int(count) for count, name in rows}


def read_allowed():
    """Of each sentence "file: sentence" the reason, which stands on the next line, indented."""
    with open(ALLOWED, encoding="utf-8") as table:
        lines = [line.rstrip("\n") for line in table if line.strip() and not line.startswith("#")]
    allowed = {}
    for sentence, reason in zip(lines[::2], lines[1::2]):
        if sentence.startswith("\t") or not reason.startswith("\t"):
            sys.exit(f"plain.py: {ALLOWED}: a sentence is followed by its reason behind a tab: {sentence}")
        allowed[sentence] = reason.strip()
    if len(lines) % 2 or len(allowed) > ALLOWED_MAX:
        sys.exit(f"plain.py: {ALLOWED}: {len(allowed)} sentences, and {ALLOWED_MAX} at most; each has a reason")
    return allowed


def lower(counts, found):
    with open(COUNTS, encoding="utf-8") as table:
        head = [line for line in table if line.startswith("#")]
    with open(COUNTS, "w", encoding="utf-8") as table:
        table.writelines(head)
        for name in sorted(counts):
            count = min(counts[name], len(found.get(name, ())))
            if count:
                table.write(f"{count:4} {name}\n")


def main(argument):
    allowed, counts, used, found = read_allowed(), read_counts(), set(), {}
    for name in names():
        with open(os.path.join(TOP, name), encoding="utf-8") as file:
            for finding in findings(name, file.read()):
                key = f"{name}: {finding.sentence}"
                if key in allowed:
                    used.add(key)
                else:
                    found.setdefault(name, []).append(finding)
    if argument == "--lower":
        lower(counts, found)
        return 0
    if argument == "--count":
        for name in sorted(found):
            print(f"{len(found[name]):4} {name}")
        print(f"{sum(len(all_of) for all_of in found.values()):4}")
        return 0
    advice = {name: text for name, _, _, text in RULES}
    status = 0
    for name in sorted(set(found) | set(counts)):
        here = found.get(name, [])
        if len(here) > counts.get(name, 0) or argument == "--all":
            for finding in here:
                print(f"{name}:{finding.line}: {finding.name}: {finding.sentence}\n\t{advice[finding.name]}")
            print(f"{name}: {len(here)} findings, {counts.get(name, 0)} allowed by tests/plain.counts")
            status = 1
        elif len(here) < counts.get(name, 0):
            print(f"{name}: {len(here)} findings, fewer than tests/plain.counts allows: python3 tests/plain.py --lower")
            status = 1
    for key in sorted(set(allowed) - used):
        print(f"tests/plain.allowed: no finding is in this sentence any longer, take it out: {key}")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
