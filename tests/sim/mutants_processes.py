# SPDX-License-Identifier: Apache-2.0
"""The core without what makes a lock end with its process, and only then (mutants_table.py)."""

PROCESSES = [
    ("processes: it is granted before the process is watched", [
        ("\t\tlifeline_wait(c, &b->wait);\n\t\tbegin_tied(b);\n",
         "\t\tlifeline_wait(c, &b->wait);\n\t\tb->wait.lifeline->state = LIFELINE_WATCHED;\n\t\tstep(b);\n")],
     300, "anything standalone"),
    ("processes: the end of one is not told to what waits", [
        ("\tTAILQ_FOREACH(w, &l->waits, link)\n\t\twork_add(&locks->env->works, &l->user->worker, w->work);\n", "")],
     300, "anything standalone"),
    ("processes: who cannot be watched waits for ever", [
        ("\t\tno = refusal_of(ERROR_LIMIT, \"%s; or give a time with PX\", bytes_view(&l->why));\n\t\trefuse(b, &no);\n",
         "\t\t(void)no;\n")], 300, "anything standalone"),
    ("processes: what is tied stays when the process has ended", [
        ("\tl->state = LIFELINE_ENDED;\n\tif (!TAILQ_EMPTY(&l->bearers))\n", "\tl->state = LIFELINE_ENDED;\n\tif (false)\n")],
     300, "anything standalone"),
    ("processes: only one lock of a process is released", [
        ("\t\tmore = TAILQ_NEXT(bearer->bearer, link) != NULL;\n",
         "\t\tmore = false;\n\t\twork_drop(&l->locks->env->works, &l->work);\n")], 1000, "anything standalone"),
    ("processes: the number is all that tells them", [
        ("l->pid == c->pid && l->started == c->started && l->user == c->user", "l->pid == c->pid && l->user == c->user")],
     2000, "anything standalone"),
    ("processes: the next process of the daemon watches none", [
        ("\tb->restored = false;\n\tlifelines_resume(&b->locks);\n", "\tb->restored = false;\n")], 300, "snapshots, anything standalone"),
    ("processes: that it is tied is in no snapshot", [
        ("\t\tentry_number(w, \"tied\", c->bearer->lifeline != NULL);\n", "\t\tentry_number(w, \"tied\", false);\n")], 300, "snapshots, anything standalone"),
    ("processes: that it is tied is not in the ledger", [
        ("\t\tentry_number(w, \"tied\", c->bearer->lifeline != NULL);\n", "\t\tentry_number(w, \"tied\", false);\n")],
     1000, "kills, anything standalone"),
    ("processes: what has a time ends with the process, too", [
        ("\tgrant_renew(g, min64(lease_ns + left_ns, LIMIT_MS_MAX * NS_PER_MS));\n\tbearer_untie(g->client);\n", "\tgrant_renew(g, min64(lease_ns + left_ns, LIMIT_MS_MAX * NS_PER_MS));\n")],
     300, "anything standalone"),
    ("processes: that it is not tied any longer is in the ledger before its lease", [
        ("\tgrant_renew(g, min64(lease_ns + left_ns, LIMIT_MS_MAX * NS_PER_MS));\n\tbearer_untie(g->client);\n", "\tbearer_untie(g->client);\n\tgrant_renew(g, min64(lease_ns + left_ns, LIMIT_MS_MAX * NS_PER_MS));\n")], 8000, "kills, anything standalone"),
    ("processes: a descriptor stays when nothing needs it", [
        ("\tif (l->asked && locks->env->out) {\n", "\tif (false) {\n")], 300, "anything standalone"),
    ("processes: one that a kill leaves with both ends keeps both", [
        ("\tif (c->bearer && g->lease.place)\n\t\tlifeline_untie(c);\n", "")], 8000, "kills, anything standalone"),
]
