# SPDX-License-Identifier: Apache-2.0
"""More of mutants_table.py: locks that stay with the processes that took them last."""

TAKE_BACK = ("\tif (delegation_recall(delegated_slot(g)) == DELEGATION_HELD)\n\t\tgo_on(g);\n\telse\n"
             "\t\tgrant_end(g);\n}\n")

DELEGATIONS = [
    ("delegation: a delegated lock that its client is inside of counts as free", [
        (TAKE_BACK, "\tdelegation_recall(delegated_slot(g));\n\tgrant_end(g);\n}\n")], 300, "delegations, standalone"),
    ("delegation: a delegated lock is looked at, and taken back later", [
        (TAKE_BACK, "\tif (delegation_look(delegated_slot(g)).state == DELEGATION_HELD)\n\t\tgo_on(g);\n\telse\n\t\tgrant_end(g);\n}\n")], 300,
     "delegations, standalone"),
    ("delegation: a free delegated lock holds back who asks for it", [
        (TAKE_BACK, "\tdelegation_recall(delegated_slot(g));\n\tgo_on(g);\n}\n")], 300, "delegations, standalone"),
    ("delegation: another host that waits does not end a delegation", [
        ("\tif (!LIST_EMPTY(&lock->delegated))\n\t\ttake_back(lock);\n", "\t(void)take_back;\n")], 1000,
     "delegations"),
    ("delegation: a lock is delegated while somebody may wait elsewhere", [
        (" && lock->directory.watch == WATCH_UNCONTENDED && !lock->directory.next &&\n", " && !lock->directory.next &&\n"),
        ("\treturn c->rivals || c->tried || c->says_held || lock->directory.watch == WATCH_FIRED ||\n"
         "\t       lock->directory.watch == WATCH_CONTENDED;\n", "\treturn false;\n")], 1000, "delegations"),
    ("delegation: the loss of a free delegated lock is told", [
        ("\treturn delegation_lose(slot) == DELEGATION_HELD || !delegated;\n", "\tdelegation_lose(slot);\n\treturn true;\n")], 8000,
     "delegations"),
    ("delegation: the word of a grant that has ended stays", [
        ("\tdelegation_end(delegated_slot(g));\n\t/* A grant of another", "\t/* A grant of another")], 1000,
     "delegations, standalone"),
    ("delegation: what was delegated by a killed process is not taken back", [
        ("\t\tif (g->slot && take_over(g) != DELEGATION_HELD)\n\t\t\tgrant_end(g);\n", "\t\tif (!take_over)\n\t\t\tgrant_end(g);\n")],
     1000, "delegations, kills"),
    ("delegation: what was delegated by a killed process counts as free", [
        ("\t\tif (g->slot && take_over(g) != DELEGATION_HELD)\n", "\t\tif (g->slot && (take_over(g), true))\n")],
     3000, "delegations, kills"),
    ("delegation: the slot of a grant is not read from the ledger", [
        ("\t\t.slot = (uint8_t)(r->flags / LEDGER_SLOT),\n", "")], 1000, "delegations, kills"),
    ("delegation: what nobody uses stays delegated", [
        ("\tif (d->all || (view.state != DELEGATION_HELD && view.uses == slot->uses)) {\n", "\tif (d->all) {\n")], 1000, "delegations, calm"),
    ("delegation: a client that asks for what it keeps is told that it holds it", [
        ("\t\tif (call->lock && table[command].named == OWN)\n\t\t\tdelegated_take_back_own(call->lock, call->client);\n", "")],
     300,
     "delegations, standalone"),
    ("delegation: a client that asks for several is told that it holds what it keeps", [
        ("\tif (lock)\n\t\tdelegated_take_back_own(lock, c);\n"
         "\treturn lock && !lock->slots", "\treturn lock && !lock->slots")], 3000, "delegations, standalone"),
    ("delegation: a client that keeps a lock may not say whose it is", [
        ("\tif (c->delegations)\n\t\tdelegated_take_back_all(c);\n\tif (!group_join", "\tif (!group_join")], 3000,
     "delegations, standalone"),
    ("delegation: an old page says that the grants are still the session's", [
        ("\tif (g->slot && !delegated_lose(g)) {\n\t\tgrant_end(g);\n\t\treturn;\n\t}\n", "")], 1000, "delegations"),
    ("delegation: a page that could not be made is there", [
        ("\tif (event->page.page)\n\t\tdelegated_begin(c, event->page.page);\n", "\tdelegated_begin(c, event->page.page);\n")], 300,
     "anything standalone"),
    ("delegation: a page that came again is looked at after what time has done", [
        ("\tif (b->restored)\n\t\tresume_delegations(b);\n", ""),
        ("\tif (b->restored)\n\t\tresume(b);\n", "\tif (b->restored) {\n\t\tresume_delegations(b);\n\t\tresume(b);\n\t}\n")],
     3000, "delegations, kills"),
    ("delegation: a delegation goes on in a stopping daemon", [
        ("\tdelegated_take_back(lock, true);\n\tTAILQ_FOREACH(g, &lock->grants, link) {",
         "\tTAILQ_FOREACH(g, &lock->grants, link) {"),
        ("\tif (env_halts(env) || lock->request_count)\n\t\treturn true;\n", "\tif (lock->request_count)\n\t\treturn true;\n")], 1000,
     "delegations"),
    ("delegation: whoever looks takes a delegation back", [
        ("\t\tif (call->lock && table[command].named == OWN)\n\t\t\tdelegated_take_back_own(call->lock, call->client);\n",
         "\t\tif (call->lock)\n\t\t\tdelegated_give_way(call->lock, call->client, MODE_EXCLUSIVE);\n")], 300, "delegations, standalone"),
    ("delegation: a free delegated lock is shown as held", [
        ("\treturn delegated_is_free(g) ? VIEW_KEPT : VIEW_ROW;\n", "\treturn VIEW_ROW;\n")], 300, "delegations, calm"),
    ("delegation: a delegated lock is shown as free", [
        ("\treturn delegated_is_free(g) ? VIEW_KEPT : VIEW_ROW;\n", "\treturn g->delegated ? VIEW_KEPT : VIEW_ROW;\n")], 300,
     "delegations, calm"),
    ("delegation: a delegated lock is shown as held since it was delegated", [
        ("here(g->lock, g->client, delegated_since_ns(g))", "here(g->lock, g->client, g->granted_ns)")], 1000,
     "delegations, calm"),
    ("delegation: what was taken back while it was held is shown as held since it was delegated", [
        ("\tg->asked_ns = g->granted_ns = said_since_ns(g);\n", "\tg->asked_ns = g->granted_ns;\n")], 3000,
     "delegations, standalone"),
    ("delegation: a lock that its client keeps and does not hold is valid", [
        ("\treturn g && delegated_is_free(g) ? NULL : g;\n", "\treturn g;\n")], 1000, "delegations, calm"),
    ("delegation: of the readers that keep a lock only one makes way for a writer", [
        ("\twhile ((g = LIST_FIRST(&lock->delegated)))\n\t\trecall(g, why);\n", "\tg = LIST_FIRST(&lock->delegated);\n\trecall(g, why);\n")],
     300, "delegations, readers, standalone"),
    ("delegation: readers that are inside by their words count as gone when a writer asks", [
        (TAKE_BACK, "\tif (delegation_recall(delegated_slot(g)) == DELEGATION_HELD && g->mode == MODE_EXCLUSIVE)\n"
                    "\t\tgo_on(g);\n\telse\n\t\tgrant_end(g);\n}\n")], 300, "delegations, readers, standalone"),
    ("delegation: readers keep their words while another one has to wait", [
        ("\tif (!head || !rwlock_may_serve(lock, c, head) || !may_be_next(lock, c, head))\n",
         "\tif (!head || head->mode == MODE_EXCLUSIVE)\n")], 1000, "delegations, readers"),
    ("delegation: readers that keep a lock count as holders to who asks for it", [
        ("\tif (g && mode_conflicts(g->mode, mode))\n", "\tif (g && g->mode == MODE_EXCLUSIVE)\n")], 3000,
     "delegations, readers, standalone"),
    ("delegation: a reader that asks for what it keeps is told that it holds it", [
        ("\tif (g && g->delegated)\n\t\ttake_back(g, FOR_ITS_CLIENT);\n", "\t(void)g;\n")], 300,
     "delegations, readers, standalone"),
    ("delegation: a reload takes only the first piece back", [
        ("\tif (d->at < d->slot_count && d->count)\n\t\treturn max64(done, steps);\n", "")], 1000, "delegations, reloads"),
    ("delegation: a reload takes nothing back", [
        ("\t\t\tdelegated_take_back_later(c);\n", "\t\t\t;\n")], 1000, "delegations, reloads"),
    ("a drain goes over the first locks only", [
        ("\t\tdone += go_over(lock);\n\t}\n\treturn max64(done, steps);\n", "\t\tdone += go_over(lock);\n\t}\n\tend_pass(locks);\n"
         "\treturn max64(done, steps);\n")], 3000, "delegations, standalone"),
    ("a drain that was under way does not go on in the next process", [
        ("\thalt_resume(&b->locks);\n", "")], 3000, "snapshots, anything standalone"),
    ("delegation: a reader keeps a lock that is a writer's", [
        ("\tif (!d || (slot <= d->slot_count &&", "\tg->mode = MODE_SHARED;\n"
         "\tif (!d || (slot <= d->slot_count &&")], 300, "delegations, readers, standalone"),
]
