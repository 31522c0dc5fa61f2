/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lasting directories: directories of flavour kazoo, and all of them where the server has no containers, are persistent
 * znodes (directory_lasts()), so they stay when nobody uses them any longer. POOL_LASTING bounds the number that this host
 * has made and does not know to be gone.
 *
 *   directory.maker | means                                         | event -> next
 *   NULL            | no charge is known to be for this directory   | the host is about to make it: charged -> an account
 *   an account      | the account is charged for the directory; the | somebody else has made it, or it is gone: the charge
 *                   |   directory holds a reference to the account  |   is given back -> NULL; the lock is forgotten: the
 *                   |                                               |   charge stays -> NULL
 *
 * A create without an answer stays charged: ZooKeeper may have carried it out. A directory that somebody else removes, and
 * its maker makes again, is charged once. If this host removes a directory whose maker it has forgotten, it gives a charge
 * of the first account in the list back: then at least the sum is right. A kill keeps only the sum, which the next process
 * charges to the account `nobody`.
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

/* The lasting directories that one account has made. */
struct lasting {
	struct charge charge; /* at least 1 */
	TAILQ_ENTRY(lasting) link;
};

TAILQ_HEAD(lasting_list, lasting);

void lasting_init(struct directories *all);
void lasting_deinit(struct directories *all);
uint64_t lasting_count(const struct directories *all);
/* NULL: the directory may be made. Otherwise its payer has made too many, and this is the sentence of pools_refusal(). */
const char *lasting_refusal(const struct directory *d);
void lasting_make(struct directory *d);    /* the host is about to make it */
void lasting_gone(struct directory *d);    /* this host has not made it, or somebody else has removed it */
void lasting_removed(struct directory *d); /* this host has removed it */
void lasting_forget(struct directory *d);  /* the struct ends, and with it the knowledge of its maker */
void lasting_salvage(struct directories *all, uint64_t count); /* `count`: made by a killed process */
void lasting_snapshot(const struct directories *all, struct bytes *out);
bool lasting_restore(struct directories *all, const struct entry *e);
/* The maker is written into the directory's entry. */
void lasting_write_maker(const struct directory *d, struct entry_writer *w);
bool lasting_read_maker(struct directory *d, const struct entry *e);
