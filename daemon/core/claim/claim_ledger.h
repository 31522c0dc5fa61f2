/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories and claims in the ledger (port/ledger.h): where a znode of ours may exist, and the claims that grants
 * rest on. Not in standalone mode, and nothing without a ledger. The record of a claim has fields of an entry
 * "claim", as a snapshot has them (snapshot.h).
 */
#pragma once

#include "core/claim/directories.h"

/* A claim as fields of an entry, but for its place. False: the entry is refused. */
void claim_entry_write(const struct claim *c, struct entry_writer *w);
bool claim_entry_read(struct claim *c, const struct entry *e);

/* The bit of LEDGER_NOTED_* for this directory of its lock. */
uint64_t claim_ledger_note(const struct directory *d);
/* Before a znode is made in it; and when none of ours is in it any longer. */
void directory_ledger_note(struct directory *d);
void directory_ledger_forget(struct directory *d);
/* Something rests on it, or its place was taken over without a gap. The mutex of a semaphore bears nothing. */
bool claim_ledger_wants(const struct claim *c);
void claim_ledger_write(struct claim *c);
void claim_ledger_drop(struct claim *c);
/* Another claim follows it. */
void claim_ledger_withhold(struct claim *c);

/* Something will rest on the claim, which is HELD. */
static inline void claim_ledger_add(struct claim *c)
{
	const struct env *env = c->directory->directories->env;

	if (env->ledger && !env->conf->standalone && !c->record)
		claim_ledger_write(c);
}

/* Nothing rests on it any longer. */
static inline void claim_ledger_remove(struct claim *c)
{
	if (c->record)
		claim_ledger_drop(c);
}
