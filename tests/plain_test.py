#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks tests/plain.py by texts that have findings, and by texts that must have none; the status is 1 if it errs.

Each pattern of plain.py has a text here that only this pattern finds.
"""

import sys

import plain

# Kind of file, text, the findings in it.
TEXTS = (
    ("a.md", "The limit counts what all share.\n", ["what"]),
    ("a.md", "It closes what it has opened, and keeps\nwhat others use.\n", ["what", "what"]),
    ("a.md", "* What was held is lost.\n", ["what"]),
    ("a.md", "> What was held is lost.\n", ["what"]),
    ("a.md", "| key | meaning |\n| --- | --- |\n| `a` | what it may use |\n", ["what"]),
    ("a.md", "This is about what all know.\n", ["what"]),
    ("a.md", "It shows what all share.\n", ["what all"]),
    ("a.md", "Then who waits is served.\n\nWho waits is served.\n", ["who"]),
    ("a.md", "It is taken from who has it.\n", ["who"]),
    ("a.md", "Whoever reaches the port is a client.\n", ["whoever"]),
    ("a.md", "The locks of this host, and those of others.\n", ["those that"]),
    ("a.md", "It has that which is missing.\n", ["that of"]),
    ("a.md", "The exit status is that of the command.\n", ["that of"]),
    ("a.md", "Do not mount that one.\n", ["that one"]),
    ("a.md", "It is the one that serves.\n", ["the one that"]),
    ("a.md", "A holder is told before the lock is granted.\n", ["told"]),
    ("a.md", "Any difference that `make abi` tells, breaks them.\n", ["tells"]),
    ("a.md", "Nobody else uses it meanwhile.\n", ["meanwhile"]),
    ("a.md", "The grant is void by then.\n", ["by then"]),
    ("a.md", "The lock would else be lost.\n", ["would else"]),
    ("a.md", "If it ends, so does the lock.\n", ["so it is"]),
    ("a.md", "So it is, too, for a lock.\n", ["so it is"]),
    ("a.md", "Everything is left to it. Nothing is.\n", ["nothing is"]),
    ("a.md", "A namespace of users hides it.\n", ["namespace of"]),
    ("a.md", "It has at most 3 of a, at least 2 of b and up to 7 of c.\n", ["bounds"]),
    ("a.1", ".Sh WHAT IT IS\nIt shows\n.Nm lockbroker\nwhat is held.\n.Pp\nIt keeps what is held.\n", ["what"]),
    ("a.1", ".It Cm keeper_stays\nIt could not.\n", ["nothing is"]),
    ("a.c", 'say("the lock of %s is lost, and "\n\t"what was held with it\\n");\n', ["what"]),
    ("a.h", "/*\n * What a client has asked for.\n */\n", ["what"]),
    # Good English.
    ("a.md", "# What it is\n\n**What it is not.** It has no queue.\n\nWhat is it? It is a lock.\n", []),
    ("a.md", "The page says who holds the lock, and what it waits for.\n", []),
    ("a.md", "Nobody knows what it was, who waits, or what is left.\n", []),
    ("a.md", "A client who waits is served. The user, who has a share, is refused.\n", []),
    ("a.md", "[what it is](a.md) `what it is` and \"what is that?\" stay.\n\n```\nwhat is held\n```\n\n    what is held\n", []),
    ("a.md", "The kernel tells the daemon which user connected. It has told them. They can be told apart.\n", []),
    ("a.md", "It is known that one host has it, so that one host is left.\n", []),
    ("a.md", "Either you wait, or else it is lost. So it does not wait. It cannot write, so do not mount it.\n", []),
    ("a.md", "A file that nobody else may read. Somebody else may be using it.\n", []),
    ("a.c", 'log("cannot read the file %s  event=cannot_use what=%s path=%s");\n', []),
    ("a.md", "| who | what it does |\n| --- | --- |\n| root | it never does |\n", []),
    ("a.1", ".Bd -literal\nwhat is held\n.Ed\n.Dl what is held\n.It Cm what\nThe name.\n.Cm what is held ,\nonly.\n", []),
    ("a.c", '/* What it is. */\nsay("lockbroker what is held");\n', []),
)


def main():
    status = 0
    for name, text, expected in TEXTS:
        found = [finding.name for finding in plain.findings(name, text)]
        if found != expected:
            print(f"tests/plain_test.py: {found}, and not {expected}, in {text!r}")
            status = 1
    untested = {name for name, *_ in plain.RULES} - {name for *_, expected in TEXTS for name in expected}
    if untested:
        print(f"tests/plain_test.py: patterns without a text: {sorted(untested)}")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
