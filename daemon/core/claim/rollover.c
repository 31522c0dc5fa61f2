/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/rollover.h"

#include "core/lock/lock.h"
#include "core/lock/locks.h"

void rollover_follow(struct lock *lock)
{
	struct claim *c = lock->claim;

	lock->claim = lock->next;
	lock->next = NULL;
	c->state = CLAIM_LEAVING;
	c->spent = c->withheld = true;
	lock->claim->follows = true;
	lock->claim->followed = c->seq;
	lock->claim->says_held = c->says_held; /* whose data are read as long as it stands */
	TAILQ_INSERT_TAIL(&lock->leaving, c, link);
	claim_held(lock->claim);
}

void rollover_release(struct lock *lock)
{
	struct claim *c;

	TAILQ_FOREACH(c, &lock->leaving, link) {
		if (!c->withheld)
			continue;
		c->withheld = false;
		claim_send_delete(c);
	}
}

size_t rollover_count(const struct lock *lock)
{
	const struct claim *c;
	size_t count = 0;

	TAILQ_FOREACH(c, &lock->leaving, link)
		count += c->spent && (c->withheld || c->leave_op);
	return count;
}

bool rollover_keeps_out(const struct lock *lock, struct slice name)
{
	const struct claim *c = lock->claim;
	struct contender seen;

	if (!c || !contender_of_session(name, lock->flavour, lock->locks->ensemble->session.id))
		return false;
	/* Numbers are not used twice while one of ours stands. */
	return slice_eq(name, slice_of(c->name)) ||
	       (c->follows && contender_parse(name, lock->flavour, &seen) && seen.seq == c->followed);
}
