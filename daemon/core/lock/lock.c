/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lock.h"

#include <assert.h>

#include "core/lock/locks.h"

bool lock_in_use(const struct lock *lock)
{
	return lock->request_count || lock->grant_count || lock->claim_count || lock->operations ||
	       lock->observer_count || !TAILQ_EMPTY(&lock->lost);
}

bool lock_may_be(const struct lock *lock, enum kind kind)
{
	return lock->kind == kind || !(lock->request_count || lock->grant_count || lock->claim ||
				       lock->observer_count || !TAILQ_EMPTY(&lock->lost));
}

void lock_become(struct lock *lock, enum kind kind)
{
	if (lock->kind == kind)
		return;
	assert(lock_may_be(lock, kind));
	lock->kind = kind;
	lock->rule = lock->locks->rules[kind];
	/* Its directory was of the other kind: nothing is put into it before it was read again. */
	lock->directory.unverified = lock->directory.unverified || lock->directory.state != DIRECTORY_UNKNOWN;
	lock->directory.state = DIRECTORY_UNKNOWN;
}

void lock_remember(struct lock *lock, bool remembered)
{
	if (lock->remembered == remembered)
		return;
	lock->remembered = remembered;
	lock->locks->directories->remembered_count += remembered ? 1 : (size_t)-1;
}

void lock_verified(struct lock *lock)
{
	lock->verified_ns = lock->locks->env->now_ns;
	if (!lock->remembered)
		return;
	lock->locks->env->stats.relisted_total++;
	lock_remember(lock, false);
}

void lock_touch(struct lock *lock)
{
	if (lock->dirty)
		return;
	lock->dirty = true;
	TAILQ_INSERT_TAIL(&lock->locks->dirty, lock, dirty_link);
}

void lock_untouch(struct lock *lock)
{
	assert(lock->dirty);
	lock->dirty = false;
	TAILQ_REMOVE(&lock->locks->dirty, lock, dirty_link);
}

void lock_pause(struct lock *lock, int64_t pause_ns)
{
	lock->pause_until_ns = lock->locks->env->now_ns + pause_ns;
	lock_touch(lock);
}

const char *lock_state_word(const struct lock *lock)
{
	if (!lock)
		return "none";
	if (lock->locks->env->conf->standalone)
		return "local";
	if (lock->claim)
		return claim_state_word(lock->claim->state);
	return TAILQ_EMPTY(&lock->leaving) ? "none" : claim_state_word(CLAIM_LEAVING);
}
