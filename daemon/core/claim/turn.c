/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/turn.h"

#include <assert.h>

#include "core/hosts/audit.h"
#include "core/hosts/inbox.h"
#include "core/hosts/query.h"
#include "core/state.h"

enum {
	OLD_PART = 12, /* of T */
	FAIR_EVERY = 8,
};

void turn_init(struct broker *b)
{
	for (int i = 0; i < TURNS; i++)
		TAILQ_INIT(&b->turns.queues[i]);
}

static bool has_room(const struct broker *b, enum turn turn)
{
	int64_t oldest_ns = operation_oldest_ns(b);

	if (!window_has_room(&b->operations.window))
		return false;
	return turn == TURN_DELETE || oldest_ns == INT64_MAX || b->now_ns - oldest_ns < b->session.timeout_ns / OLD_PART;
}

/* Somebody waits who goes before a lock that wants this turn. */
static bool is_behind(const struct lock *lock, enum turn turn)
{
	const struct turns *t = &lock->broker->turns;

	if (t->served == lock)
		return false;
	for (int i = 0; i <= (int)turn; i++)
		if (!TAILQ_EMPTY(&t->queues[i]))
			return true;
	return false;
}

void turn_wait(struct lock *lock, enum turn turn)
{
	struct turns *t = &lock->broker->turns;

	if (lock->waits[turn])
		return;
	lock->waits[turn] = true;
	TAILQ_INSERT_TAIL(&t->queues[turn], lock, turn_links[turn]);
	t->waiting++;
}

static void leave(struct lock *lock, enum turn turn)
{
	struct turns *t = &lock->broker->turns;

	if (!lock->waits[turn])
		return;
	lock->waits[turn] = false;
	TAILQ_REMOVE(&t->queues[turn], lock, turn_links[turn]);
	t->waiting--;
}

void turn_forget(struct lock *lock)
{
	for (int i = 0; i < TURNS; i++)
		leave(lock, (enum turn)i);
}

bool turn_may(struct lock *lock, enum turn turn)
{
	const struct broker *b = lock->broker;

	if (b->turns.breath)
		return true;
	if (turn != TURN_DELETE && lock->waits[TURN_DELETE])
		return false; /* its turn for that is one for this, too */
	if (has_room(b, turn) && !is_behind(lock, turn))
		return true;
	turn_wait(lock, turn);
	return false;
}

/* Whose turn it is; NULL: nobody's. */
static struct lock *first_of(const struct broker *b, enum turn *turn)
{
	const struct turns *t = &b->turns;
	unsigned int from = (t->count + 1) % FAIR_EVERY == 0 ? t->count / FAIR_EVERY : 0;

	for (unsigned int i = 0; i < TURNS; i++) {
		*turn = (enum turn)((from + i) % TURNS);
		if (!TAILQ_EMPTY(&t->queues[*turn]) && has_room(b, *turn))
			return TAILQ_FIRST(&t->queues[*turn]);
	}
	return NULL;
}

static void serve_questions(struct broker *b)
{
	b->turns.questions = true;
	inbox_continue(b);
	query_continue(b);
	audit_continue(b);
	b->turns.questions = false;
}

static void serve(struct lock *lock, enum turn turn)
{
	struct broker *b = lock->broker;

	leave(lock, turn);
	leave(lock, TURN_DELETE);
	b->turns.served = lock;
	lock_send_deletes(lock);
	if (turn == TURN_RECOVER && lock->claim_count && !claim_recover(lock))
		turn_wait(lock, TURN_RECOVER); /* its deletes have taken the room */
	lock_touch(lock);
	broker_settle(b);
	b->turns.served = NULL;
}

void turn_serve(struct broker *b)
{
	struct turns *t = &b->turns;
	struct lock *lock;
	enum turn turn;

	while (b->session.proving && (lock = first_of(b, &turn))) {
		if (++t->count % FAIR_EVERY == FAIR_EVERY / 2)
			serve_questions(b);
		else
			serve(lock, turn);
	}
}

bool turn_of_questions(const struct broker *b)
{
	return (!b->turns.waiting || b->turns.questions) && has_room(b, TURN_LOOK);
}
