/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/look.h"

#include "core/lock/lock.h"
#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

static const int64_t LONG_WAIT_NS = 30000000000;

void look_later(struct claim *c)
{
	struct locks *locks = c->lock->locks;

	c->look_ns = locks->env->now_ns + LONG_WAIT_NS - random_below(&locks->env->random, LONG_WAIT_NS / 3);
}

static bool is_own(const struct claim *c)
{
	const struct lock *lock = c->lock;

	return contender_of_session(bytes_view(&c->pred), lock->flavour, lock->locks->ensemble->session.id);
}

static bool must_list(const struct claim *c)
{
	const struct lock *lock = c->lock;
	const struct request *head = TAILQ_FIRST(&lock->requests);

	if (c->looks + 1 >= LOOKS_MAX || lock->semaphore || lock->directory.state != DIRECTORY_FITS)
		return true;
	return !c->pred.len || is_own(c) || !head || flavour_claim_mode(lock->flavour, head->mode) != c->mode;
}

static void list(struct claim *c)
{
	struct lock *lock = c->lock;

	c->looks = 0;
	directory_list(lock, false);
	if (lock->semaphore)
		directory_list(lock->semaphore->slots, false);
}

void look_continue(struct claim *c)
{
	if (!c->listed || c->lock->locks->env->now_ns < c->look_ns || !turn_may(c->lock, TURN_LOOK))
		return;
	look_later(c);
	if (must_list(c)) {
		list(c);
		return;
	}
	c->looks++;
	claim_read(c, OPERATION_LOOK_OWN, slice_of(c->name));
	claim_read(c, OPERATION_LOOK_PRED, bytes_view(&c->pred));
}

static bool is_as_it_was(const struct claim *c, const struct operation *op, const struct event *event)
{
	if (event->zk_answered.code != ZK_OK)
		return false;
	return op->kind == OPERATION_LOOK_PRED || (event->zk_answered.stat.owner == c->lock->locks->ensemble->session.id &&
						   event->zk_answered.stat.czxid == c->czxid);
}

void look_answered(struct claim *c, const struct operation *op, const struct event *event)
{
	if (c->state == CLAIM_WAITING && event->zk_answered.code != ZK_UNKNOWN && !is_as_it_was(c, op, event))
		list(c);
}
