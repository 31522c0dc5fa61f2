/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/readers.h"

#include "core/lock/lock.h"
#include "core/lock/locks.h"

static bool lacks_tokens(const struct claim *c)
{
	return c->handoffs >= CLAIM_HANDOFFS_MAX && mode_conflicts(c->granted_mode, MODE_SHARED);
}

/* All contenders before it have gone; those behind it came later. */
static bool next_has_its_turn(const struct lock *lock)
{
	return lock->directory.next && lock->directory.next->state == CLAIM_HELD &&
	       lock->directory.next->mode == MODE_SHARED;
}

bool readers_may_join(const struct lock *lock)
{
	const struct locks *locks = lock->locks;

	if (lacks_tokens(lock->directory.claim))
		return false;
	if (locks->env->conf->standalone || next_has_its_turn(lock))
		return true;
	return locks->ensemble->session.connected ? lock->directory.watch == WATCH_UNCONTENDED
						  : lock->directory.was_uncontended;
}

bool readers_are_closed(const struct lock *lock)
{
	return lacks_tokens(lock->directory.claim) || lock->directory.watch == WATCH_CONTENDED;
}

bool readers_hold_back(const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	const struct request *head = TAILQ_FIRST(&lock->requests);

	return head && g && !mode_conflicts(g->mode, head->mode) && !readers_may_join(lock);
}
