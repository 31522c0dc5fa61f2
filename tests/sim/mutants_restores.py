# SPDX-License-Identifier: Apache-2.0
"""More of mutants_table.py: an older state of the ensemble is restored."""

RESTORES = [
    ("restored: no more is demanded than what this host has seen", [
        ("past.c", "\tdemand(zk, above_others(max64(zk->past.seen, zk->past.floor)));\n", "\tdemand(zk, zk->past.seen + 0 * above_others(0));\n")],
     300, "restores"),
    ("restored: only a heartbeat shows it", [
        ("recovery.c", "past_answered(zk, op->flight.write, &event->zk_answered.stat);",
         "past_answered(zk, op->kind == OPERATION_BEAT, &event->zk_answered.stat);")], 1000, "restores"),
    ("restored: the number of a write does not show it", [
        ("past.c", "\tif (own && own <= zk->past.seen &&", "\tif (false && own <= zk->past.seen &&")], 3000, "restores"),
    ("restored: the host does not compare its own znode", [
        ("past.c", "\tif (mzxid < zk->past.own)\n", "\tif (false && mzxid < zk->past.own)\n")], 1000, "restores"),
    ("restored: a former session is ended before the host has looked at its znode", [
        ("former.c", "zk->env->now_ns >= f->not_before_ns && past_may_end(zk))", "zk->env->now_ns >= f->not_before_ns)")],
     1000, "restores"),
    ("restored: a claim that was made before the host had looked is granted", [
        ("recovery.c", "\tif (zk->past.floor != floor)\n", "\tif (false && zk->past.floor != floor)\n")], 6000, "restores"),
    ("restored: what a connection shows before the host has looked counts as seen before the restore", [
        ("past.c", "past_looked(zk) ? &zk->past.seen : &zk->past.fresh;", "past_looked(zk) ? &zk->past.seen : &zk->past.seen;")],
     3000, "restores"),
    ("restored: after a kill the host does not know its own znode", [
        ("salvage.c", "past.own = (int64_t)w->v->head->own;", "past.own = 0;")], 6000, "restores, kills"),
]
