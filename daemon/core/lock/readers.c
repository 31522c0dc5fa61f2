/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/readers.h"

#include "base/container.h"
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

	return head && g && !mode_conflicts(g->mode, head->mode) && !readers_may_join(lock) && !batch_has(lock, head);
}

/* ---- a batch ---- */

bool batch_has(const struct lock *lock, const struct request *r)
{
	return lock->batch.until_ns && r->mode == MODE_SHARED && r->asked_ns <= lock->batch.until_ns;
}

bool batch_waits(const struct lock *lock)
{
	return lock->batch.work.worker && lock->grant_count;
}

size_t batch_piece(struct lock *lock)
{
	struct env *env = lock->locks->env;

	work_drop(&env->works, &lock->batch.work);
	if (env->conf->all_in_pieces)
		return 1;
	return lock->batch.until_ns ? WORK_TURN_STEPS / WORK_PUSH_STEPS : READERS_AT_ONCE;
}

void batch_begin(struct lock *lock, enum mode mode)
{
	lock->batch.until_ns = mode == MODE_SHARED ? lock->locks->env->now_ns : 0;
}

void batch_leave(struct lock *lock, const struct request *r)
{
	lock->batch.work.kind = WORK_BATCH;
	work_hurry(&lock->locks->env->works, &r->client->user->worker, &lock->batch.work);
}

void batch_end(struct lock *lock)
{
	lock->batch.until_ns = 0;
}

void batch_resume(struct lock *lock)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);

	if (head && lock->grant_count && batch_has(lock, head))
		batch_leave(lock, head);
}

void batch_turn(struct batch *b)
{
	struct lock *lock = container_of(b, struct lock, batch);

	work_drop(&lock->locks->env->works, &b->work);
	directory_touch(&lock->directory);
}

void batch_lacks(struct lock *lock, const struct request *r)
{
	if (lock->batch.work.worker == &r->client->user->worker)
		work_drop(&lock->locks->env->works, &lock->batch.work);
}
