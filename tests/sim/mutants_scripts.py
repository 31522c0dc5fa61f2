# SPDX-License-Identifier: Apache-2.0
"""The core without what makes a script act for its own value only (mutants_table.py)."""

SCRIPTS = [
    ("scripts: the value is not compared", [
        ("cmd_script.c", "\t\t*ret = SCRIPT_THEIRS;", "\t\t*ret = SCRIPT_OURS;")], 300, "anything standalone"),
    ("scripts: of several, each is released, whatever its value", [
        ("return bearer_grant_of(lock_find(r->client->locks, name), r->client, r->value);",
         "return bearer_grant(lock_find(r->client->locks, name), r->client);")], 300, "anything standalone"),
    ("scripts: several are extended though one is not its own", [
        ("\t\tif (is != SCRIPT_OURS) {\n\t\t\tanswer(r, is);\n\t\t\treturn false;\n\t\t}\n", "")], 300, "anything standalone"),
    ("scripts: a lease that is extended by some time begins anew", [
        ("add && g->lease.place ? grant_lease_rest_ns(g) : 0;", "add && g->lease.place ? LIMIT_MS_MAX * NS_PER_MS : 0;")], 2000, "anything standalone"),
    # ---- what another host has granted (core/hosts/forward.h) ----
    ("forward: the host that is asked does not compare the value", [
        ("return slice_eq(slice_of(hash), sha256) ? g : NULL;", "return sha256.len ? g : NULL;")], 1000, "anything"),
    ("forward: the host that is asked does not compare the user", [
        ("|| g->client->uid != uid)", "|| uid < 0)")], 1000, "anything"),
    ("forward: what is released elsewhere is only said to be", [
        ("\tif (act == FORWARD_RELEASE)\n\t\tbid_release(g);\n", "\tif (act == FORWARD_RELEASE)\n\t\treturn FORWARD_OURS;\n")],
     1000, "anything"),
    ("forward: a host that has read the letter is waited for without end", [
        ("\t\theap_set(&env->timers, &f->timer, env->now_ns + LETTER_PATIENCE_NS);\n", "\t\t(void)env;\n")], 3000, "anything"),
    ("forward: a lost connection leaves it waiting", [
        ("\tforward_suspended(h);\n", "")], 1000, "snapshots, anything"),
    ("forward: who has the lock by now counts, and not what was done", [
        ("\tg = lock && !fact ? ", "\tg = lock ? ")], 5000, "anything"),
    # ---- a lock is reported free only by a fresh list (core/hosts/query.h) ----
    ("fresh: a lock is reported free by the first list", [
        ("lookup.c", "\tif (q->fresh || q->partial || q->refused || holder(q))\n\t\ttold(q);\n\telse\n\t\tquery_refresh(q);\n",
         "\ttold(q);\n")], 1000, "anything"),
    ("fresh: a list is fresh without a write", [
        ("\t\tif (q->fresh && !q->wrote)\n\t\t\twrite_first(q);\n", "\t\t(void)write_first;\n")], 5000, "anything"),
    ("bid: grants of an unfinished bid are found by value", [
        ("\treturn !bearer_has_place(bearer) && !bearer->bid;\n", "\treturn !bearer_has_place(bearer);\n")], 5000, "anything"),
]
