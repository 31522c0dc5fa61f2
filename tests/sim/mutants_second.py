# SPDX-License-Identifier: Apache-2.0
"""The claim that is second in line (second.h), without each condition under which it holds without a list."""

SECOND = [
    ("second: it is, although more are before it", [
        ("c->second = ahead.others == 1 &&", "c->second =")], 300),
    ("second: its own watch need not be answered", [
        ("return c->second && c->own_watch == CLAIM_STANDS &&", "return c->second && c->own_watch != CLAIM_UNSET &&")], 3000, "operator"),
    ("second: it needs no own watch", [
        ("return c->second && c->own_watch == CLAIM_STANDS &&", "return c->second &&")], 3000, "operator"),
    ("second: its own watch stands after its znode was written", [
        ("\t\tc->own_watch = CLAIM_UNSET; /* used up;",
         "\t\tif (type == ZK_WATCH_DELETED || c->state != CLAIM_WAITING)\n\t\t\tc->own_watch = CLAIM_UNSET; /* used up;")],
     3000, "operator"),
    ("second: its own watch stands after its znode was deleted", [
        ("\t\tc->own_watch = CLAIM_UNSET; /* used up;",
         "\t\tif (type != ZK_WATCH_DELETED)\n\t\t\tc->own_watch = CLAIM_UNSET; /* used up;")], 3000, "operator"),
    ("second: its own watch outlives the connection", [
        ("\tc->own_watch = CLAIM_UNSET;\n\tc->leave_op = 0;", "\tc->leave_op = 0;")], 3000, "operator"),
    ("second: it is when the one before its predecessor goes", [
        ("\tif (type == ZK_WATCH_DELETED)\n\t\tlist(c);", "\tif (type == ZK_WATCH_DELETED)\n\t\tc->second = true;")], 5000, "operator"),
    ("second: a znode of its host before it need not be gone", [
        ("c == d->claim && TAILQ_EMPTY(&d->leaving);", "c == d->claim;")], 5000),
    ("second: next is, too", [
        ("c->own_watch == CLAIM_STANDS && c == d->claim &&", "c->own_watch == CLAIM_STANDS &&")], 1000),
]
