/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lock.h"

#include <assert.h>

#include "core/lock/locks.h"

bool lock_in_use(const struct lock *lock)
{
	const struct directory *d;

	LOCK_DIRECTORIES(d, lock)
		if (d->claim_count || d->operations)
			return true;
	return lock->request_count || lock->grant_count || lock->observer_count || !TAILQ_EMPTY(&lock->lost);
}

bool lock_is_tried(const struct lock *lock)
{
	return lock->rule->marks_tries && lock->request_count && lock->expired_count == lock->request_count;
}

/* Claims that are LEAVING do not count. */
static bool is_used(const struct lock *lock)
{
	return lock->request_count || lock->grant_count || lock->directory.claim || lock->observer_count ||
	       !TAILQ_EMPTY(&lock->lost);
}

/* A lock with two directories never becomes a lock with one, nor the other way round: a new lock is made instead. */
bool lock_refuses(const struct lock *lock, enum kind kind)
{
	bool apart;

	if (lock->rule->kind == kind)
		return false;
	apart = lock->rule->rest || lock->locks->rules[kind]->rest;
	return apart ? !lock->idle : is_used(lock);
}

void lock_become(struct lock *lock, enum kind kind)
{
	if (lock->rule->kind == kind)
		return;
	assert(!lock_refuses(lock, kind));
	lock->directory.kind = kind;
	lock->rule = lock->locks->rules[kind];
	lock->directory.data_bytes = lock->rule->data_bytes;
	/* Its directory was of the other kind: nothing is put into it before its data are read again. */
	lock->directory.unverified = lock->directory.unverified || lock->directory.state != DIRECTORY_UNKNOWN;
	lock->directory.state = DIRECTORY_UNKNOWN;
}

void lock_touch_waiting(struct locks *locks)
{
	struct lock *lock;

	TAILQ_FOREACH(lock, &locks->used, link)
		if (lock->request_count)
			directory_touch(&lock->directory);
}

void lock_take_turn(struct directory *d, enum turn turn)
{
	const struct lock *lock = d->lock;

	claim_send_deletes(d);
	if (turn == TURN_RECOVER && d->claim_count && !claim_recover(d, lock->grant_count && !lock->request_count))
		turn_wait(d, TURN_RECOVER); /* its deletes have filled the window */
	directory_touch(d);
}

const char *lock_state_word(const struct lock *lock)
{
	if (!lock)
		return "none";
	if (lock->locks->env->conf->standalone)
		return "local";
	if (lock->directory.claim)
		return claim_state_word(lock->directory.claim->state);
	return TAILQ_EMPTY(&lock->directory.leaving) ? "none" : claim_state_word(CLAIM_LEAVING);
}
