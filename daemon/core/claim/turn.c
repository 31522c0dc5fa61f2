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

void turn_init(struct locks *locks)
{
	for (int i = 0; i < TURNS; i++)
		TAILQ_INIT(&locks->directories->turns.queues[i]);
}

static bool has_room(const struct locks *locks, enum turn turn)
{
	int64_t oldest_ns = operation_oldest_ns(locks->ensemble);

	if (!window_has_room(&locks->ensemble->operations.window))
		return false;
	return turn == TURN_DELETE || oldest_ns == INT64_MAX ||
	       locks->env->now_ns - oldest_ns < locks->ensemble->session.timeout_ns / OLD_PART;
}

/* Somebody waits who goes before a lock that wants this turn. */
static bool is_behind(const struct lock *lock, enum turn turn)
{
	const struct turns *t = &lock->locks->directories->turns;

	if (t->served == lock)
		return false;
	for (int i = 0; i <= (int)turn; i++)
		if (!TAILQ_EMPTY(&t->queues[i]))
			return true;
	return false;
}

void turn_wait(struct lock *lock, enum turn turn)
{
	struct turns *t = &lock->locks->directories->turns;

	if (lock->waits[turn])
		return;
	lock->waits[turn] = true;
	TAILQ_INSERT_TAIL(&t->queues[turn], lock, turn_links[turn]);
	t->waiting++;
}

static void leave(struct lock *lock, enum turn turn)
{
	struct turns *t = &lock->locks->directories->turns;

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
	const struct locks *locks = lock->locks;

	if (locks->directories->turns.breath)
		return true;
	if (turn != TURN_DELETE && lock->waits[TURN_DELETE])
		return false; /* its turn for that is one for this, too */
	if (has_room(locks, turn) && !is_behind(lock, turn))
		return true;
	turn_wait(lock, turn);
	return false;
}

/* Whose turn it is; NULL: nobody's. */
static struct lock *first_of(const struct locks *locks, enum turn *turn)
{
	const struct turns *t = &locks->directories->turns;
	unsigned int from = (t->count + 1) % FAIR_EVERY == 0 ? t->count / FAIR_EVERY : 0;

	for (unsigned int i = 0; i < TURNS; i++) {
		*turn = (enum turn)((from + i) % TURNS);
		if (!TAILQ_EMPTY(&t->queues[*turn]) && has_room(locks, *turn))
			return TAILQ_FIRST(&t->queues[*turn]);
	}
	return NULL;
}

static void serve_questions(struct locks *locks)
{
	locks->directories->turns.questions = true;
	inbox_continue(&locks->broker->hosts);
	query_continue(&locks->broker->hosts);
	audit_continue(&locks->broker->hosts);
	locks->directories->turns.questions = false;
}

static void serve(struct lock *lock, enum turn turn)
{
	struct locks *locks = lock->locks;

	leave(lock, turn);
	leave(lock, TURN_DELETE);
	locks->directories->turns.served = lock;
	lock_send_deletes(lock);
	if (turn == TURN_RECOVER && lock->claim_count && !claim_recover(lock))
		turn_wait(lock, TURN_RECOVER); /* its deletes have taken the room */
	lock_touch(lock);
	broker_settle(locks->broker);
	locks->directories->turns.served = NULL;
}

void turn_serve(struct locks *locks)
{
	struct turns *t = &locks->directories->turns;
	struct lock *lock;
	enum turn turn;

	while (locks->ensemble->session.proving && (lock = first_of(locks, &turn))) {
		if (++t->count % FAIR_EVERY == FAIR_EVERY / 2)
			serve_questions(locks);
		else
			serve(lock, turn);
	}
}

bool turn_of_questions(const struct locks *locks)
{
	return (!locks->directories->turns.waiting || locks->directories->turns.questions) && has_room(locks, TURN_LOOK);
}
