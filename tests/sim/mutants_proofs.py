# SPDX-License-Identifier: Apache-2.0
"""Until when the session is proven, and when that is tried, without each rule.

What the leader is known to have seen (session.h) makes the other rules about time a second line of defence: those
mutants break both.
"""

PROOFS = [
    ("a throttled answer proves the session", [
        ("\treturn code <= ZK_BADVERSION;", "\treturn code <= ZK_BADVERSION || code == ZK_BUSY;")], 2000, "throttled"),
    ("a throttled create fails who waits", [
        ("\t} else if (code == ZK_BUSY) {\n\t\tdirectory_retry(c->directory);\n\t\tclaim_free(c); /* the",
         "\t} else if (false) {\n\t\tdirectory_retry(c->directory);\n\t\tclaim_free(c); /* the")], 100, "throttled"),
    ("a throttled list fails who waits", [
        ("\tif (code == ZK_BUSY) {\n\t\tdirectory_retry(d);\n\t\treturn;\n\t}\n\tdirectory_pause(d);",
         "\tdirectory_pause(d);")], 100, "throttled"),
    ("what a refused list was to show is not asked again", [
        ("d->relist = d->relist || has_unlisted(d, !watch);", "d->relist = d->relist || has_unlisted(d, false);"),
        ("(c->state == CLAIM_WAITING && !c->pred.len)", "(c->state == CLAIM_WAITING && !c->listed)")], 500, "throttled"),
    ("a refused list forgets the watch that a later one sets", [
        ("bool watch = d->watch_op == event->zk_answered.op;", "bool watch = op->watch;")], 5000, "throttled"),
    ("deadline from the last read, whatever the leader saw", [
        ("if (op->flight.write && proves(event->zk_answered.code))", "if (proves(event->zk_answered.code))"),
        (
         "min64(w->sent_ns + timeout_ns / 3 * 2, w->seen_ns + timeout_ns / 50 * 49)",
         "w->sent_ns + timeout_ns / 3 * 2")], 2000),
    ("10/12 of T, whatever the leader saw", [
        (
         "min64(w->sent_ns + timeout_ns / 3 * 2, w->seen_ns + timeout_ns / 50 * 49)",
         "w->sent_ns + timeout_ns / 12 * 10")], 3000),
    ("2/3 of T, whatever the leader saw", [
        (
         "min64(w->sent_ns + timeout_ns / 3 * 2, w->seen_ns + timeout_ns / 50 * 49)",
         "w->sent_ns + timeout_ns / 3 * 2")], 5000),
    ("the leader has seen what was answered just now", [
        ("w->seen_ns + timeout_ns / 50 * 49)", "p->answers_ns[0] + timeout_ns)")], 5000),
    ("a handshake is as young as its answer", [
        ("proof_connected(&s->proof, event->zk_connected.asked_ns, s->timeout_ns);",
         "proof_connected(&s->proof, zk->env->now_ns, s->timeout_ns);")], 5000),
    ("no rule for a standstill, and 10/12 of T", [
        ("if (zk->env->now_ns - before_ns > s->timeout_ns / STALL_PART)", "if (false)"),
        (
         "min64(w->sent_ns + timeout_ns / 3 * 2, w->seen_ns + timeout_ns / 50 * 49)",
         "w->sent_ns + timeout_ns / 12 * 10")], 2000),
    ("a late answer proves, whatever the leader saw", [
        ("if (now_ns - w->sent_ns > timeout_ns / PROOF_ANSWER_PART)", "if (false)"),
        (
         "min64(w->sent_ns + timeout_ns / 3 * 2, w->seen_ns + timeout_ns / 50 * 49)",
         "now_ns + timeout_ns / 3 * 2")], 2000),
    ("no heartbeat while idle, whatever the leader saw", [
        (
         "\t\tdue = min64(due, beat_due(s));\n",
         "\t\tif (zk->env->accounts.pools[POOL_PATHS].used)\n\t\t\tdue = min64(due, beat_due(s));\n"),
        (
         "if (zk->env->now_ns >= beat_due(s) ||",
         "if ((zk->env->accounts.pools[POOL_PATHS].used && zk->env->now_ns >= beat_due(s)) ||"),
        ("\t\tdue = min64(due, s->announced_ns + T / ANNOUNCE_PART);\n", ""),
        ("\t    zk->env->now_ns - s->announced_ns >= s->timeout_ns / ANNOUNCE_PART ||\n", ""),
        (
         "min64(w->sent_ns + timeout_ns / 3 * 2, w->seen_ns + timeout_ns / 50 * 49)",
         "w->sent_ns + timeout_ns / 3 * 2")], 2000),
    ("the heartbeat is a read", [
        (
         "operation_send(zk, zk->session.announced ? EFFECT_ZK_SET : EFFECT_ZK_CREATE, &r);",
         "operation_send(zk, zk->session.announced ? EFFECT_ZK_GET : EFFECT_ZK_CREATE, &r);\n\tzk->session.write_ns = zk->env->now_ns;")], 300),
]
