/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/turn.h"


#include "core/claim/directories.h"

enum {
	OLD_PART = 12, /* of T */
	FAIR_EVERY = 8,
};

void turn_init(struct directories *all)
{
	for (int i = 0; i < TURNS; i++)
		TAILQ_INIT(&all->turns.queues[i]);
}

static bool has_room(const struct directories *all, enum turn turn)
{
	int64_t oldest_ns = operation_oldest_ns(all->ensemble);

	if (!window_has_room(&all->ensemble->operations.window))
		return false;
	return turn == TURN_DELETE || oldest_ns == INT64_MAX ||
	       all->env->now_ns - oldest_ns < all->ensemble->session.timeout_ns / OLD_PART;
}

/* A directory waits that goes before this one. */
static bool is_behind(const struct directory *d, enum turn turn)
{
	const struct turns *t = &d->directories->turns;

	if (t->served == d)
		return false;
	for (int i = 0; i <= (int)turn; i++)
		if (!TAILQ_EMPTY(&t->queues[i]))
			return true;
	return false;
}

void turn_wait(struct directory *d, enum turn turn)
{
	struct turns *t = &d->directories->turns;

	if (d->waits[turn])
		return;
	d->waits[turn] = true;
	TAILQ_INSERT_TAIL(&t->queues[turn], d, turn_links[turn]);
	t->waiting++;
}

static void leave(struct directory *d, enum turn turn)
{
	struct turns *t = &d->directories->turns;

	if (!d->waits[turn])
		return;
	d->waits[turn] = false;
	TAILQ_REMOVE(&t->queues[turn], d, turn_links[turn]);
	t->waiting--;
}

void turn_forget(struct directory *d)
{
	for (int i = 0; i < TURNS && d->directories->turns.waiting; i++)
		leave(d, (enum turn)i);
}

bool turn_is_free(const struct directories *all)
{
	return all->ensemble->session.connected && !all->turns.waiting && window_has_room(&all->ensemble->operations.window);
}

bool turn_may(struct directory *d, enum turn turn)
{
	const struct directories *all = d->directories;

	if (all->turns.breath || (!all->turns.waiting && operation_oldest_ns(all->ensemble) == INT64_MAX))
		return true;
	if (turn != TURN_DELETE && d->waits[TURN_DELETE])
		return false; /* its turn for that is one for this, too */
	if (has_room(all, turn) && !is_behind(d, turn))
		return true;
	turn_wait(d, turn);
	return false;
}

/* The directory that has waited longest of those that may send now; NULL: none may. */
static struct directory *first_of(const struct directories *all, enum turn *turn)
{
	const struct turns *t = &all->turns;
	unsigned int from = (t->count + 1) % FAIR_EVERY == 0 ? t->count / FAIR_EVERY : 0;

	for (unsigned int i = 0; i < TURNS; i++) {
		*turn = (enum turn)((from + i) % TURNS);
		if (!TAILQ_EMPTY(&t->queues[*turn]) && has_room(all, *turn))
			return TAILQ_FIRST(&t->queues[*turn]);
	}
	return NULL;
}

enum turn turn_next(struct directories *all, struct directory **d)
{
	struct turns *t = &all->turns;
	enum turn turn;

	t->served = NULL;
	t->questions = false;
	if (!all->ensemble->session.proving || !(*d = first_of(all, &turn)))
		return TURN_NONE;
	t->questions = ++t->count % FAIR_EVERY == FAIR_EVERY / 2;
	if (t->questions)
		return TURN_QUESTIONS;
	leave(*d, turn);
	leave(*d, TURN_DELETE);
	t->served = *d;
	return turn;
}

bool turn_of_questions(const struct directories *all)
{
	return (!all->turns.waiting || all->turns.questions) && has_room(all, TURN_LOOK);
}
