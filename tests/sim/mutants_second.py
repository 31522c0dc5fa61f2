# SPDX-License-Identifier: Apache-2.0
"""The claim that is second in line (second.h), without each condition under which it holds without a list."""

SECOND = [
    ("second: it is, although more are before it", [
        ("others > UINT8_MAX ? 0 : (uint8_t)others;", "others > UINT8_MAX ? 0 : 1;")], 300),
    ("second: its own watch need not be answered", [
        ("return c->second.before == 1 && c->own_watch == CLAIM_STANDS &&", "return c->second.before == 1 && c->own_watch != CLAIM_UNSET &&")], 3000, "operator"),
    ("second: it needs no own watch", [
        ("return c->second.before == 1 && c->own_watch == CLAIM_STANDS &&", "return c->second.before == 1 &&")], 3000, "operator"),
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
        ("\tif (s->before != 2 || !s->writers) {\n", "\tif (!s->writers) {\n")], 5000, "operator"),
    ("second: a znode of its host before it need not be gone", [
        ("c == d->claim && TAILQ_EMPTY(&d->leaving);", "c == d->claim;")], 5000),
    ("second: next is, too", [
        ("c->own_watch == CLAIM_STANDS && c == d->claim &&", "c->own_watch == CLAIM_STANDS &&")], 1000),
]
