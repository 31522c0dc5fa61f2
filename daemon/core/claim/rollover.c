/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/rollover.h"

#include <assert.h>

#include "core/claim/claim.h"
#include "core/claim/claim_ledger.h"
#include "core/claim/directories.h"

void rollover_follow(struct directory *d)
{
	struct claim *c = d->claim;

	assert(c->state == CLAIM_HELD && d->next->state == CLAIM_WAITING && claim_before(d->next) == c);
	d->claim = d->next;
	d->next = NULL;
	c->state = CLAIM_LEAVING;
	c->salvaged = false; /* the list that let it be followed showed it */
	c->spent = c->withheld = true;
	claim_ledger_withhold(c);
	d->claim->follows = true;
	d->claim->followed = c->seq;
	d->claim->says_held = c->says_held; /* the data of `c` are read as long as it exists */
	TAILQ_INSERT_TAIL(&d->leaving, c, link);
	claim_held(d->claim);
}

size_t rollover_count(const struct directory *d)
{
	const struct claim *c;
	size_t count = 0;

	TAILQ_FOREACH(c, &d->leaving, link)
		count += c->spent && (c->withheld || c->leave_op);
	return count;
}

bool rollover_keeps_out(const struct directory *d, struct slice name)
{
	const struct claim *c = d->claim;
	struct contender seen;

	if (!c || !directory_is_ours(d, name))
		return false;
	/* A number is not used twice while a znode of ours exists. */
	return slice_eq(name, slice_of(c->name)) ||
	       (c->follows && contender_parse(name, d->flavour, &seen) && seen.seq == c->followed);
}
