# SPDX-License-Identifier: Apache-2.0
"""The claim that is second in line (claim.h), without each condition under which it holds without a list.

Two conditions have no mutant, because no seed of the simulator fails without them. Unit tests show both: somebody else has
made a znode of the claim's name (test_core_second.c::lists_when_its_own_znode_is_another_ones), and others wait behind it
(test_core_second.c::holds_when_the_one_before_goes_and_lists_nothing)."""

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
    ("second: a reader before it does not count", [
        ("\t\tahead.others += !is_known(c->directory, other.name);\n",
         "\t\tahead.others += other.mode == MODE_EXCLUSIVE && !is_known(c->directory, other.name);\n")], 3000, "readers"),
    ("second: a write to its predecessor counts as the end", [
        ("\t\tif (type == ZK_WATCH_DELETED)\n\t\t\tpred_gone(c);\n\t\telse\n\t\t\tc->pred_watch = false;",
         "\t\tif (true)\n\t\t\tpred_gone(c);\n\t\telse\n\t\t\tc->pred_watch = false;")], 3000, "operator"),
    ("second: the end of any watched znode counts as its predecessor's", [
        ("c->state == CLAIM_WAITING && c->pred.len && slice_eq(child, bytes_view(&c->pred))) {",
         "c->state == CLAIM_WAITING && c->pred.len) {")], 5000, "readers"),
    ("second: the end of a former predecessor counts", [
        ("if (c->state != CLAIM_WAITING || event->zk_answered.op != c->pred_op)", "if (c->state != CLAIM_WAITING)")], 5000, "operator"),
    ("second: a write to the znode before its predecessor counts as the end", [
        ("\tif (type == ZK_WATCH_DELETED)\n\t\tahead_deleted(c);\n\telse\n", "\tif (true)\n\t\tahead_deleted(c);\n\telse\n")],
     5000, "operator"),
    ("second: the end of any watched znode counts as that of the one before its predecessor", [
        ("!s->ahead.len || !slice_eq(child, bytes_view(&s->ahead)))", "!s->ahead.len)")], 5000, "operator"),
]
