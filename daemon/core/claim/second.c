/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/second.h"

#include "core/claim/charge.h"
#include "core/claim/claim.h"
#include "core/claim/directories.h"
#include "core/znode/holder.h"

/* The answers to the deletes tell when the host's own earlier znodes are gone. */
bool second_is_first(const struct claim *c)
{
	const struct directory *d = c->directory;

	return c->second && c->own_watch == CLAIM_STANDS && c == d->claim && TAILQ_EMPTY(&d->leaving);
}

/* A try has gone before that pays, a semaphore is listed in any case, and a full session needs its room for others. */
bool second_wants_watch(const struct claim *c)
{
	return c->second && c->own_watch == CLAIM_UNSET && !c->tries && !c->directory->part && charge_fits_own(c);
}

/* Its predecessor holds the lock: whether nobody else is before it is asked now, and not when its turn comes. */
void second_read(struct claim *c, struct slice data)
{
	struct directory *d = c->directory;

	if (c->second || c->next_listed || c->tries || d->seen.mode != MODE_EXCLUSIVE || !holder_tells(data))
		return;
	c->next_listed = true;
	directory_list(d, false);
}
