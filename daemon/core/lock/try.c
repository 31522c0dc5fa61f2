/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/try.h"

#include "core/lock/locks.h"

bool try_only(const struct lock *lock)
{
	return lock->rule->marks_tries && lock->request_count && lock->expired_count == lock->request_count;
}

bool try_seen_taken(const struct lock *lock, enum mode mode)
{
	const struct seen *seen = &lock->directory.seen;

	if (!seen->by.len || !seen->in_use || lock->locks->env->now_ns >= seen->until_ns ||
	    (lock->directory.claim && lock->directory.claim->state == CLAIM_HELD))
		return false;
	return mode_conflicts(seen->mode, flavour_claim_mode(lock->directory.flavour, mode));
}

bool try_taken(const struct claim *c, enum mode mode)
{
	if (c->readers_ahead && mode == MODE_SHARED)
		return false;
	return c->contested || c->in_use || (c->taken_ns && c->directory->directories->env->now_ns >= c->taken_ns);
}
