# SPDX-License-Identifier: Apache-2.0
"""What the next process of a hand-over goes on with: a snapshot without each part."""

SNAPSHOTS = [
    ("a snapshot forgets when leases end", [
        ("\tentry_due(&w, \"lease\", &g->lease);\n", "")], 300, "snapshots"),
    ("a snapshot forgets when waits end", [
        ("lock_snapshot.c", "\tentry_due(&w, \"due\", &r->timer);\n", "")], 300, "snapshots"),
    ("a snapshot loses the order of the requests", [
        ("\tTAILQ_FOREACH(r, &lock->requests, link)\n\t\trequest_snapshot(r, out);\n",
         "\tTAILQ_FOREACH_REVERSE(r, &lock->requests, request_list, link)\n\t\trequest_snapshot(r, out);\n")], 300, "snapshots"),
    ("a snapshot loses the order of what a client was granted", [
        ("\tif (!sort_list(&m->grants) ||", "\tif (true)\n\t\treturn sort_list(&m->grants);\n\tif (!sort_list(&m->grants) ||")], 1000, "snapshots, standalone"),
    ("a deadline is later after a snapshot", [
        ("\theap_set(timers, t, v->integer);\n", "\theap_set(timers, t, v->integer + 1000000);\n")], 100, "snapshots"),
    ("after a snapshot hand-offs are counted anew", [
        ("\tFIELD_NUMBER(struct claim, \"handoffs\", handoffs, 0, CLAIM_HANDOFFS_MAX),\n", "")], 300, "snapshots"),
    ("after a snapshot numbers of claims are given again", [
        ("\tFIELD_NUMBER(struct broker, \"token\", directories.token_next, 0, INT64_C(1) << 52),\n", "")], 300, "snapshots, standalone"),
    ("after a snapshot a nonce may be used again", [
        ("\tFIELD_NUMBER(struct broker, \"nonce\", directories.last_nonce, 0, INT64_MAX - 1),\n", "")], 300, "snapshots"),
    ("a snapshot forgets what a client has not read", [
        ("\tTAILQ_FOREACH(n, &c->notifications, link)\n\t\tnotification_snapshot(c, n, out);\n", "\t(void)n;\n\t(void)notification_snapshot;\n")], 300, "snapshots"),
    ("a snapshot forgets that an observer was told", [
        ("\tFIELD_FLAG(struct observer, \"told\", told),\n", "")], 1000, "snapshots"),
    ("a snapshot forgets an MLOCK", [
        ("\tif (c->mlock)\n\t\tmlock_snapshot(c->mlock, out);\n", "\t(void)mlock_snapshot;\n")], 300, "snapshots"),
    ("a snapshot forgets what other hosts are asked", [
        ("\t\tif (!q->client->lookup)\n\t\t\tquery_snapshot(q, out);\n", "\t\t(void)query_snapshot;\n")], 300, "snapshots"),
    ("a snapshot forgets which limit is to be set", [
        ("\tFIELD_NUMBER(struct query, \"limit\", limit, 0, LIMIT_PERMITS_MAX),\n", "")], 1000, "snapshots, permits"),
    ("a snapshot forgets who waits for an audit", [
        ("\tTAILQ_FOREACH(c, &h->audit.queued, audit_link) {\n", "\tc = NULL;\n\twhile (c) {\n")], 1000, "snapshots"),
    ("after a snapshot a search for holders is a question", [
        ("\telse if (fits && is_revocation(command))\n", "\telse if (false)\n")], 1000, "snapshots"),
    ("a snapshot forgets a waiting create of unknown outcome", [
        ("\t\tassert(c->state != CLAIM_JOINING);\n", "\t\tif (c->state == CLAIM_UNSURE)\n\t\t\tcontinue;\n")], 1000, "snapshots"),
    ("the next process does not ask for a session again", [
        ("\t\teffects_add(zk->env->out, EFFECT_ZK_OPEN);\n\tfor (", "\t\t(void)zk;\n\tfor (")], 3000, "snapshots"),
]
