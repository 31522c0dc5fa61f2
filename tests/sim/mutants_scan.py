# SPDX-License-Identifier: Apache-2.0
"""LOCKS ... ALL without its rules (mutants_table.py)."""

SCAN = [
    ("scan: only the first holder of a lock is shown", [
        ("if (is == VIEW_ROW && !is_over(s, &p)) {", "if (is == VIEW_ROW && !is_over(s, &p) && !s->holder_count) {")], 1000),
    ("scan: the last name of a page is left out", [
        ("return s->at < s->count;", "return s->at + 1 < s->count;")], 300),
    ("scan: what other hosts have written is not read", [
        ("size_t entitled = q->scan ? query_entitled(q) : q->count;", "size_t entitled = q->scan ? 0 : q->count;")], 300),
    ("scan: the paths of prefixes are left out", [
        ("if (!conf->standalone && root_find(conf, s->root.number + 1, &s->root)) {", "if (false) {")], 300),
    ("scan: the first name that is looked at is taken for one that was there", [
        ("if (at < s->count && slice_eq(bytes_view(&s->names[at]), name))", "if (at < s->count)")], 300),
    ("scan: one that is left for later is forgotten", [
        ("\t\twork_add(&env->works, worker, &c->query->scan->work);\n", "\t\t(void)worker;\n")], 300),
    ("scan: what is asked for is forgotten at a hand-over", [
        ("begin(q, pattern, after, most);\n\treturn true;", "begin(q, SLICE(\"?\"), after, most);\n\treturn true;")], 3000, "snapshots"),
    ("scan: a lost connection is no error", [
        ("\tq->partial = code == ZK_UNKNOWN;\n\ts->state", "\ts->state"),
        ("return s->refused || s->query->partial || s->root_refused", "return s->refused || s->root_refused")], 3000),
]
