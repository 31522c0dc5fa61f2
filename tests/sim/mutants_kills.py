# SPDX-License-Identifier: Apache-2.0
"""More of mutants_table.py: what a process must have written before it is killed, and what the next one does with it."""

# Replaced by calls that come with the next event.
LATE = "\tclient_ledger_all_told(&b->locks); /* what was given before is carried out */\n"

KILLS = [
    ("a loss is not written down", [
        ("\tif (loss != LOSS_LEASE)\n\t\tuncount(g);\n\tgrant_ledger_change(g);\n", "\tif (loss != LOSS_LEASE)\n\t\tuncount(g);\n")],
     100, "kills"),
    ("hand-offs are not written down", [
        ("\tlock_ledger_token(lock, token, mode);\n", "")], 100, "kills"),
    ("a directory is not written down before a znode is made in it", [
        ("claim.c", "\tdirectory_ledger_note(d);\n\tall->turns.breath = true;\n", "\tall->turns.breath = true;\n")], 100, "kills"),
    ("a claim is written down as long as its znode exists", [
        ("\tclaim_ledger_remove(c);\n\tc->state = CLAIM_LEAVING;\n", "\tc->state = CLAIM_LEAVING;\n")], 100, "kills"),
    ("what a client waits for is not written down as unknown", [
        ("\t\tset_flags(c, flags | (c->record->flags & LEDGER_TOLD));\n", "\t\tset_flags(c, c->record->flags);\n")], 100, "kills"),
    # ---- what is written, and when ----
    ("a grant is in the ledger only after its answer", [
        ("\tgrant_ledger_begin(g);\n", "\tif (!g->lock->locks->env->ledger || !g->lock->locks->env->ledger->arg)\n\t\tgrant_ledger_begin(g);\n"),
        ("\tgrant_ledger_end(g);\n", "\tif (g->record)\n\t\tgrant_ledger_end(g);\n"),
        ("broker.c", LATE, LATE + "\tfor (struct lock *lock = TAILQ_FIRST(&b->locks.used); lock; lock = TAILQ_NEXT(lock, link))\n"
         "\t\tfor (struct grant *g = TAILQ_FIRST(&lock->grants); g; g = TAILQ_NEXT(g, link)) {\n"
         "\t\t\tvoid *arg = b->env.ledger->arg;\n"
         "\t\t\tb->env.ledger->arg = 0;\n"
         "\t\t\tif (!g->record)\n\t\t\t\tgrant_ledger_write(g);\n"
         "\t\t\tb->env.ledger->arg = arg;\n\t\t}\n"),
        ("broker.c", "#include \"core/lock/client_ledger.h\"\n", "#include \"core/lock/client_ledger.h\"\n#include \"core/lock/lock_ledger.h\"\n")], 300, "kills, calm"),
    ("the ledger says that holders were told that all is well before it says that their session is over", [
        ("\tledger_session(b->env.ledger, 0);\n\trecovery_follow(b, session_lose(&b->ensemble));\n",
         "\trecovery_follow(b, session_lose(&b->ensemble));\n\tledger_session(b->env.ledger, 0);\n")], 1300, "delegations, kills"),
    ("the ledger gives back memory that a record is in", [
        ("->word) != LEDGER_NONE)\n\t\t\treturn false;\n", "->word) == LEDGER_TYPES)\n\t\t\treturn false;\n")], 300, "kills"),
    ("what the ledger gave back still reads as records", [
        ("\tledger_store(l, (uint64_t *)(void *)chunk, 0);\n", "")], 300, "kills"),
    ("cells that were given back are used", [
        ("\tremove_cells(cells, class, chunk);\n", "\t(void)remove_cells;\n")], 300, "kills"),
    ("a bearer's grant is noted before its lease", [
        ("\tif (r->lease_ns)\n\t\tgrant_renew(g, r->lease_ns);\n\tgrant_ledger_begin(g);\n",
         "\tgrant_ledger_begin(g);\n\tif (r->lease_ns)\n\t\tgrant_renew(g, r->lease_ns);\n"),
        ("\tr->lease_ns = g->lease.place ? g->lease.due_ns : LEDGER_NO_LEASE;\n\tr->granted_ns",
         "\tr->lease_ns = LEDGER_NO_LEASE;\n\tr->granted_ns")], 3000, "kills, anything standalone"),
    ("a bearer that goes on has another value", [
        ("\thave(c, value);\n\tlocks->bearer_count++;\n", "\thave(c, SLICE(\"v\"));\n\tlocks->bearer_count++;\n")], 300,
     "snapshots, anything standalone"),
    ("a bearer that goes on has no end", [
        ("\tif (!g->lost && !entry_get_due(e, \"lease\",", "\tif (!g->lost && !c->bearer && !entry_get_due(e, \"lease\",")], 300,
     "snapshots, anything standalone"),
    ("a directory is no longer noted while a list still shows an orphan of ours", [
        ("\tif (--d->claim_count == 0)\n\t\tdirectory_remember(d, false);\n",
         "\tif (--d->claim_count == 0) {\n\t\tdirectory_remember(d, false);\n\t\tdirectory_ledger_forget(d);\n\t}\n")], 3000, "kills, calm"),
    ("a ceiling is stored after its number was used", [
        ("\tledger_store(l, &l->head->ceilings[which], number + CEILING_STEP);\n",
         "\tledger_store(l, &l->head->ceilings[which], number - 1);\n")], 1000, "kills, calm"),
    ("a push was carried out before the adapter has it", [
        ("\tif (ledger_of(c) && c->record)\n\t\tmark_told(c, c->record->flags);\n", "")], 1000, "kills"),
    ("the end of a wait is told, and the ledger says before that nothing is to be told", [
        ("\t\tmark_told(c, flags);\n", "\t\tset_flags(c, flags);\n")], 3000, "kills, standalone"),
    ("what is pushed counts as carried out at the end of its event", [
        ("\tassert(TAILQ_EMPTY(&b->locks.outcomes));\n\tb->env.out = NULL;\n",
         "\tassert(TAILQ_EMPTY(&b->locks.outcomes));\n\tclient_ledger_all_told(&b->locks);\n\tb->env.out = NULL;\n")], 1000, "kills"),
    ("the ledger says that holders were told of jeopardy before they are", [
        ("\tif (changes & SESSION_CHANGED && b->ensemble.session.state == SESSION_LOST)\n",
         "\tif (changes & SESSION_CHANGED)\n"
         "\t\tledger_state(b->env.ledger, b->ensemble.session.epoch, b->ensemble.session.state == SESSION_JEOPARDY);\n"
         "\tif (changes & SESSION_CHANGED && b->ensemble.session.state == SESSION_LOST)\n")], 30000, "kills, readers"),
    ("that holders were told of jeopardy is not written down", [
        ("b->ensemble.session.epoch, b->ensemble.session.state == SESSION_JEOPARDY);\n\tif (changes & SESSION_GRANTS)",
         "b->ensemble.session.epoch, false);\n\tif (changes & SESSION_GRANTS)")], 1000, "kills"),
    ("a client that waits counts as bare", [
        ("\treturn c->request_count > (c->request != NULL) ||", "\treturn")], 300, "kills"),
    ("a leader counts as told before its push is marked", [
        ("\tclient_ledger_told(c);\n\twrite_notification(c, n);\n\te = reply_push(c);\n",
         "\twrite_notification(c, n);\n\te = reply_push(c);\n\tclient_ledger_told(c);\n")], 3000, "kills, standalone"),
    ("an observer of a standalone leader that it was not told of is told nothing", [
        ("\tif (w->standalone && p->watching_count)\n\t\twrite_leader(w, p);\n", "")], 3000, "kills, standalone"),
    ("who observes is forgotten with the process", [
        ("\twrite_observers(w, p);\n", "")], 1000, "kills, standalone"),
    ("the next process tells observers the leader that they know", [
        ("\tif (l)\n\t\tledger_store(l, &o->record->told, told(o));\n", "")], 1000, "kills, standalone"),
    ("an observer that has ended is still in the ledger", [
        ("\tif (l)\n\t\tledger_drop(l, &o->record->head);\n\to->record = NULL;\n", "\to->record = NULL;\n")], 300, "kills, standalone"),
    ("the session ends in the ledger after its claims", [
        ("\tledger_session(b->env.ledger, 0);\n\trecovery_follow(b,", "\trecovery_follow(b,")], 3000, "kills"),

    # ---- what the next process does ----
    ("ghosts are dropped at once", [
        ("\treturn !h->lost || is_back(w, client_at(w->v, h->client));\n", "\treturn is_back(w, client_at(w->v, h->client));\n"),
        ("\tif (!w->holds[i] && (c.ghost || c.bearer))\n", "\tif (c.ghost || (!w->holds[i] && c.bearer))\n")], 300, "kills, calm"),
    ("a ghost stays in its group", [
        ("\tif (!c->ghost)\n\t\tgroup_join(c, group);\n", "\tgroup_join(c, group);\n")], 1000, "kills, calm"),
    ("the czxid of a claim of a killed process is not looked at", [
        ("\t\tif (!is_same(c, event))\n\t\t\tclaim_vanished(c);\n", "")], 1000, "kills"),
    ("a claim of a killed process is granted on before it was looked at", [
        ("\tif (!c || c->state != CLAIM_HELD || c->salvaged)\n\t\treturn false;\n", "\tif (!c || c->state != CLAIM_HELD)\n\t\treturn false;\n")], 2000, "kills, readers"),
    ("what a killed process has left besides its claims stays", [
        ("\tfor (int i = 0; noted && i < (p->kept", "\tfor (int i = 0; false && i < (p->kept"),
        (".directory.remembered = own || p->kept }", ".directory.remembered = p->kept }")], 300, "kills, calm"),
    ("a join does not wait until what a killed process has left is gone", [
        ("\tUNKNOWN_ALONE = 2,\n", "\tUNKNOWN_ALONE = 1,\n")], 1000, "kills, readers"),
    ("permits that a killed process has left stay", [
        ("\tif (noted)\n\t\twrite_unknown(w, FLAVOUR_SLOTS);\n", ""),
        ("\tbool any = noted || (p->holds && p->claim_count);\n", "\tbool any = p->holds && p->claim_count;\n")], 1000, "kills, permits"),
    ("after a kill a list is trusted before a write was answered", [
        ("\tif (!d->directories->ensemble->session.proving) {\n\t\tdirectory_forget_watch(d);", "\tif (false) {\n\t\tdirectory_forget_watch(d);"),
        ("\tif (!all->ensemble->session.proving || !(*d = first_of(all, &turn)))", "\tif (!(*d = first_of(all, &turn)))")], 3000, "kills"),
    ("after a kill the numbers of hand-offs begin anew", [
        ("\tc->handoffs = (told ? latest : highest) & 1023;\n", "")], 300, "kills, calm"),
    ("losses are not told again after a kill", [
        ("\t\t.outcome.kind = h->lost ? OUTCOME_LOST : OUTCOME_NONE,\n", "")], 2000, "kills"),
    ("the text of a salvage has no ghosts", [
        ("\tFIELD_FLAG(struct client, \"ghost\", ghost),\n", "")], 300, "kills"),
    ("the text of a salvage has claims that were looked at", [
        ("\tFIELD_FLAG(struct claim, \"salvaged\", salvaged),\n", "")], 2000, "kills, readers"),
    ("the text of a salvage has grants without their mode", [
        ("\tFIELD_NUMBER(struct grant, \"mode\", mode, MODE_EXCLUSIVE, MODE_SHARED),\n", "")], 300, "kills, readers"),
    ("a key of the text of a salvage is misspelt", [
        ("\tentry_number(&w, \"untold\", g->outcome.kind", "\tentry_number(&w, \"unsaid\", g->outcome.kind")], 2000, "kills"),
    ("after a kill more is proven than was", [
        ("\ts->proof.safe_until_ns = s->proof.told_ns = given->safe_until_ns;\n",
         "\ts->proof.safe_until_ns = s->proof.told_ns = given->safe_until_ns + given->timeout_ns / 2;\n")], 300, "kills"),
    ("a grant without its claim stays", [
        ("\t\tif ((!w->standalone && !p->kept) || ledger_base(h->grant) != base)\n\t\t\tlose(h, LOSS_DELETED);\n", "")], 3000, "kills, operator"),
    ("a grant of a session that was never proven stays after a kill", [
        ("\tjudge_session(w);\n", "\t(void)judge_session;\n")], 5000, "kills, readers"),
    ("claim numbers of standalone mode are given again after a kill", [
        ("tokens_reserved(struct broker *b, int64_t limit)\n{\n", "tokens_reserved(struct broker *b, int64_t limit)\n{\n\tif (limit > 2000000) b->directories.token_next -= 1000;\n")], 300, "kills, standalone"),
    ("a kill loses what a kind keeps", [
        ("\tif (lock.rule->salvage)\n\t\tlock.rule->salvage(p->lock->kept, w->out);\n", "")], 300, "latch, kills"),
]
