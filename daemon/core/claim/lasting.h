/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lasting directories: those of flavour kazoo are persistent, so what a user has made there stays when nobody uses it any
 * longer. How many of them this host has made, as far as it knows not gone again, is bounded (POOL_LASTING).
 *
 *   directory.maker | means                                             | event -> next
 *   NULL            | nothing is charged that this host knows to be for | about to be made, charged -> an account
 *                   |   it                                              |
 *   an account      | it is charged for it, and has one more reference  | made by somebody else, or gone -> NULL, given
 *                   |                                                   |   back; the lock is forgotten -> NULL, it stays
 *                   |                                                   |   charged
 *
 * A create without an answer stays charged: ZooKeeper may have carried it out. A directory that somebody else has removed is
 * charged once, however often its maker makes it again. If this host removes one whose maker it has forgotten, that is given
 * back to who comes first in the list: the sum is right, and a kill leaves only a sum, charged to nobody's account.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/queue.h"

struct bytes;
struct directories;
struct directory;
struct entry;
struct entry_writer;

/* What one account has made. */
struct lasting {
	struct charge charge; /* at least 1 */
	TAILQ_ENTRY(lasting) link;
};

TAILQ_HEAD(lasting_list, lasting);

void lasting_init(struct directories *all);
void lasting_deinit(struct directories *all);
uint64_t lasting_count(const struct directories *all);
/* Why it may not be made, as pools_refusal() has it: its payer has made too many. NULL: it may. */
const char *lasting_refusal(const struct directory *d);
void lasting_make(struct directory *d);    /* it is about to be made */
void lasting_gone(struct directory *d);    /* it was not made after all, or somebody else has removed it */
void lasting_removed(struct directory *d); /* this host has removed it */
void lasting_forget(struct directory *d);  /* the struct ends: nobody knows any longer whose it is */
void lasting_salvage(struct directories *all, uint64_t count); /* what a killed process had made */
void lasting_snapshot(const struct directories *all, struct bytes *out);
bool lasting_restore(struct directories *all, const struct entry *e);
/* The maker, with the fields of the directory. */
void lasting_write_maker(const struct directory *d, struct entry_writer *w);
bool lasting_read_maker(struct directory *d, const struct entry *e);
