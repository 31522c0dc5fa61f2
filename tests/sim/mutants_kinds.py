# SPDX-License-Identifier: Apache-2.0
"""A request for a name as another kind (ask.h), without each rule under which it is set aside, queued or refused.

Two rules have no mutant. In the simulator the data of each directory tell its kind, so a wait may confirm a kind before it is
known for whom it waits (test_core_kind.c::a_wait_confirms_a_kind_when_it_is_known_for_whom_it_waits). And that no request passes
those that are set aside is a matter of fairness (test_core_kind.c::a_mistake_waits_behind_who_is_set_aside)."""

KINDS = [
    ("kinds: a request that nothing confirms refuses others", [
        ("\treturn lock->grant_count || !TAILQ_EMPTY(&lock->lost) || (fits", "\treturn true || (fits")], 300, "kinds"),
    ("kinds: a claim in a directory that may be of another kind confirms one", [
        ("(fits && (stands || lock->observer_count))", "stands || lock->observer_count")], 1500, "kinds"),
    ("kinds: a directory that is known confirms a kind without a claim", [
        ("(fits && (stands || lock->observer_count))", "fits")], 300, "kinds"),
    ("kinds: who is set aside is not looked at again", [
        ("\t\tturn(lock);\n", "\t\t;\n")], 300, "kinds"),
    ("kinds: who is set aside hears nothing when the kind is confirmed", [
        (" && (request_kind(r) == lock->rule->kind || lock_is_confirmed(lock)))", " && request_kind(r) == lock->rule->kind)")],
     300, "kinds"),
    ("kinds: who is queued after it was set aside closes no deadlock", [
        ("\tif (r->client->asking)\n\t\tdeadlock_look_at(r->client);", "\t;")], 6000, "kinds"),
    ("kinds: a time that ran out before is forgotten", [
        ("\tif (r->expired)\n\t\trequest_mark_expired(r);\n\tif (lock->rule->begun)", "\tif (lock->rule->begun)")], 300, "kinds"),
    ("kinds: a snapshot forgets who is set aside", [
        ("\tTAILQ_FOREACH(r, &lock->aside, link)\n\t\trequest_snapshot(r, out);\n", "")], 300, "kinds"),
    ("kinds: a snapshot forgets that a request is set aside", [
        ("\tFIELD_NUMBER(struct request, \"aside\", aside, 0, KINDS_MAX),\n", "")], 300, "kinds"),
]
