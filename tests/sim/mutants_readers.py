# SPDX-License-Identifier: Apache-2.0
"""Shared locks: who is granted beside whom, batches, and downgrades, without each rule."""

READERS = [
    ("a reader passes a waiting writer of its host", [
        ("TAILQ_INSERT_TAIL(r->aside ? &r->lock->aside : &r->lock->requests, r, link);",
         "if (r->mode == MODE_SHARED)\n"
         "\t\tTAILQ_INSERT_HEAD(r->aside ? &r->lock->aside : &r->lock->requests, r, link);\n\telse\n"
         "\t\tTAILQ_INSERT_TAIL(r->aside ? &r->lock->aside : &r->lock->requests, r, link);")], 100),
    ("a reader after readers is no hand-off", [
        ("if (together || !locks->ensemble->session.connected || nobody_waits(lock))",
         "if (together || !locks->ensemble->session.connected || nobody_waits(lock) ||\n\t    !mode_conflicts(c->granted_mode, mode))"),
        ("\tif (!c->granted)\n\t\treturn true;\n",
         "\tif (!c->granted || !mode_conflicts(c->granted_mode, mode))\n\t\treturn true;\n")], 1000),
    ("a reader is granted beside a writer", [
        ("return g && mode_conflicts(g->mode, mode);",
         "return g && mode_conflicts(g->mode, mode) && mode == MODE_EXCLUSIVE;")], 100),
    ("a writer is granted beside readers", [
        ("return g && mode_conflicts(g->mode, mode);", "return g && g->mode == MODE_EXCLUSIVE;"),
        ("mode_covers(c->mode, r->mode) && session_grants(lock->locks->ensemble) &&", "session_grants(lock->locks->ensemble) &&")], 100),
    ("a writer is granted on a shared claim", [
        ("mode_covers(c->mode, r->mode) && session_grants(lock->locks->ensemble) &&", "session_grants(lock->locks->ensemble) &&")], 100),
    ("each reader has an n of its own", [
        ("\tif (mode_conflicts(c->granted_mode, mode))\n\t\tc->handoffs++;", "\tc->handoffs++;")], 300),
    ("who reads after a writer shares its token", [
        ("\tif (mode_conflicts(c->granted_mode, mode))\n\t\tc->handoffs++;",
         "\tif (mode == MODE_EXCLUSIVE)\n\t\tc->handoffs++;")], 100),
    ("who joins a downgraded grant shares its token", [
        ("\tg->mode = MODE_SHARED;\n",
         "\tg->mode = MODE_SHARED;\n\tg->lock->directory.claim->granted_mode = MODE_SHARED;\n")], 300),
    ("a downgrade changes the token", [
        ("\tg->mode = MODE_SHARED;\n", "\tg->mode = MODE_SHARED;\n\tg->token++;\n")], 100),
    ("a downgraded grant stays exclusive", [
        ("\tg->mode = MODE_SHARED;\n", "")], 300),
    ("nobody hears of a downgrade", [
        ("\tgrant_downgrade(g);\n\tdirectory_touch(&g->lock->directory);\n", "\tgrant_downgrade(g);\n")], 1000),
    ("an upgrade waits", [
        ("else if (g && !adds && !mode_covers(g->mode, terms->mode))", "else if (false)"),
        ("else if (call->grant && kind == KIND_LOCK)",
         "else if (call->grant && kind == KIND_LOCK && mode_covers(call->grant->mode, terms.mode))")], 100),
    ("an upgrade is a re-entry", [
        ("else if (g && !adds && !mode_covers(g->mode, terms->mode))", "else if (false)")], 100),
    ("readers at the front count one by one", [
        ("\tif (batch_has(lock, r))\n\t\treturn true;\n", ""),
        ("if (together || !locks->ensemble->session", "if (!locks->ensemble->session")], 300),
    ("the rest of a batch is left for ever", [
        ("\t\t\tbatch_leave(lock, r);\n\t\t\tbreak;\n", "\t\t\tbreak;\n")], 300),
    ("who comes while a batch is granted is of it", [
        (" && r->asked_ns <= lock->batch.until_ns;", ";")], 3000, "readers"),
    ("the rest of a batch waits for its turn though nobody holds the lock", [
        ("return lock->batch.work.worker && lock->grant_count;", "return lock->batch.work.worker;")], 300, "readers"),
    ("a batch has the turns of a user who has left", [
        ("\tif (lock->batch.work.worker == &r->client->user->worker)\n", "\tif (false)\n")], 3000, "readers"),
    ("a batch goes on when its claim is lost", [
        ("\tif (!head || !c || c->state != CLAIM_HELD || !batch_has(lock, head))\n\t\tbatch_end(lock);\n", "")], 10000, "readers"),
    ("who else reads elsewhere counts as somebody who waits", [
        ("\t\t\tif (mode_conflicts(mode, other))\n\t\t\t\tnote_other(", "\t\t\tif (true)\n\t\t\t\tnote_other(")], 40000, "readers"),
    ("a reader waits for readers of other hosts", [
        ("\t\tif (!mode_conflicts(c->mode, other.mode))\n\t\t\tcontinue;\n", "")], 300),
    ("a reader does not wait for writers of other hosts", [
        ("if (!mode_conflicts(c->mode, other.mode))",
         "if (c->mode == MODE_SHARED || !mode_conflicts(c->mode, other.mode))")], 300),
    ("a reader held back never looks again whether somebody waits", [
        ("\tif (readers_hold_back(lock))\n\t\tdirectory_arm(&lock->directory);\n", "")], 3000, "ensemble"),
    ("a reader joins although something has changed since nobody waited", [
        ("? lock->directory.watch == WATCH_UNCONTENDED",
         "? lock->directory.watch == WATCH_UNCONTENDED || lock->directory.watch == WATCH_FIRED")], 300),
    ("a reader joins while it is not known whether somebody waits", [
        ("? lock->directory.watch == WATCH_UNCONTENDED", "? lock->directory.watch != WATCH_CONTENDED")], 300),
    ("a reader joins past who is known to wait", [
        ("? lock->directory.watch == WATCH_UNCONTENDED",
         "? lock->directory.watch == WATCH_UNCONTENDED || lock->directory.watch == WATCH_CONTENDED")], 1000),
    ("a reader joins whoever waits behind an exclusive claim", [
        ("\treturn locks->ensemble->session.connected ?",
         "\tif (lock->directory.claim->mode == MODE_EXCLUSIVE)\n\t\treturn true;\n\treturn locks->ensemble->session.connected ?")], 1000),
    ("what is known when a list comes is not for those who wait", [
        ("listing.c", "#include \"core/claim/directories.h\"\n", "#include \"core/claim/directories.h\"\n#include \"core/lock/lock.h\"\n"),
        ("d->watch = somebody ? WATCH_CONTENDED", "d->watch = somebody || d->lock->request_count ? WATCH_CONTENDED")], 1000),
    ("each reader asks for a list of its own", [
        ("\tif (!directory_watches(d))\n\t\tdirectory_list(d, true);",
         "\tif (!is_armed(d))\n\t\tdirectory_list(d, true);")], 100),
    ("without a connection every reader joins", [
        (": lock->directory.was_uncontended;", ": true;")], 1000),
    ("a watch that had fired before the connection went stood quiet", [
        ("bool quiet = d->watch == WATCH_UNCONTENDED;",
         "bool quiet = d->watch == WATCH_UNCONTENDED || d->watch == WATCH_FIRED;")], 10000),
    ("no next for a reader whom somebody elsewhere keeps from joining", [
        ("\treturn lock->directory.watch == WATCH_CONTENDED && readers_hold_back(lock);", "\treturn false;")], 10000),
    ("a reader whose place among the hosts has come waits for those who came later", [
        ("locks->env->conf->standalone || next_has_its_turn(lock))", "locks->env->conf->standalone)")], 20000, "readers"),
    ("a reader has its turn as soon as its next is queued", [
        ("lock->directory.next->state == CLAIM_HELD &&", "lock->directory.next->state != CLAIM_JOINING &&")], 1000),
    ("a reader after readers passes who is known to wait", [
        ("\tif (!mode_conflicts(c->granted_mode, mode) && somebody_waits(lock))\n\t\treturn false;\n", "")], 1000),
    ("a writer behind its host's shared claim queues next only when that goes back", [
        ("\tif (!mode_covers(c->mode, mode) || c->handoffs >= CLAIM_NEXT_FROM)\n",
         "\tif (c->handoffs >= CLAIM_NEXT_FROM)\n")], 1000),
]
