/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/work.h"

static void enter(struct work_ring *ring, struct work_user *worker, struct work_item *item)
{
	if (TAILQ_EMPTY(&worker->items))
		TAILQ_INSERT_TAIL(ring, worker, link);
	item->worker = worker;
}

void work_add(struct work_ring *ring, struct work_user *worker, struct work_item *item)
{
	if (item->worker)
		return;
	enter(ring, worker, item);
	TAILQ_INSERT_TAIL(&worker->items, item, link);
}

void work_hurry(struct work_ring *ring, struct work_user *worker, struct work_item *item)
{
	if (item->worker)
		return;
	enter(ring, worker, item);
	TAILQ_INSERT_HEAD(&worker->items, item, link);
}

void work_drop(struct work_ring *ring, struct work_item *item)
{
	struct work_user *worker = item->worker;

	if (!worker)
		return;
	item->worker = NULL;
	TAILQ_REMOVE(&worker->items, item, link);
	if (TAILQ_EMPTY(&worker->items))
		TAILQ_REMOVE(ring, worker, link);
}

static void pass(struct work_ring *ring, struct work_user *worker)
{
	TAILQ_REMOVE(ring, worker, link);
	TAILQ_INSERT_TAIL(ring, worker, link);
}

struct work_item *work_next(struct work_ring *ring)
{
	struct work_user *worker;

	while ((worker = TAILQ_FIRST(ring))) {
		if (!TAILQ_NEXT(worker, link))
			worker->debt = 0;
		if (worker->debt < WORK_TURN_STEPS)
			return TAILQ_FIRST(&worker->items);
		worker->debt -= WORK_TURN_STEPS;
		pass(ring, worker);
	}
	return NULL;
}

void work_turn_over(struct work_ring *ring, struct work_user *worker, int64_t steps)
{
	worker->debt += steps > WORK_TURN_STEPS ? steps - WORK_TURN_STEPS : 0;
	if (!TAILQ_EMPTY(&worker->items))
		pass(ring, worker);
}
