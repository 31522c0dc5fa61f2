/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/take_back.h"

#include "base/cold.h"
#include "base/minmax.h"
#include "core/lock/hold.h"
#include "core/lock/lock_ledger.h"
#include "core/lock/locks.h"

enum { TAKE_BACK_STEPS = 8 }; /* of one delegation: it ends, and the lock is settled */

enum why { FOR_ITS_CLIENT, FOR_OTHERS, UNUSED };

static void note(struct delegability *l, enum why why)
{
	uint32_t need = l->need ? l->need : 1;

	l->streak = 0;
	if (why == FOR_OTHERS)
		l->need = (uint32_t)min64(2 * need, DELEGATED_NEED_MAX);
	else if (why == UNUSED)
		l->need = need / 2;
}

/* The client holds the lock: since the instant at which it last took it by the word. */
static void go_on(struct grant *g)
{
	delegated_hold(g);
	if (!g->recalled) /* else a process before this one has said that it lasts */
		hold_watch(g);
	g->recalled = true;
}

/* Its client is told nothing: it sends UNLOCK for a lock that it holds, and LOCK for one that it finds taken back. */
static void recall(struct grant *g, enum why why)
{
	struct stats *stats = &g->lock->locks->env->stats;

	stats->delegations_recalled_total += why == FOR_OTHERS;
	stats->delegations_idle_total += why == UNUSED;
	hold_say(g, LOG_EVENT_delegated, NULL, 1);
	delegated_leave(g);
	if (delegation_recall(delegated_slot(g)) == DELEGATION_HELD)
		go_on(g);
	else
		grant_end(g);
}

static void take_back(struct grant *g, enum why why)
{
	/* If other clients have the lock delegated as well, this says nothing about how long the lock stays delegated. */
	if (g->lock->delegability.count == 1)
		note(&g->lock->delegability, why);
	recall(g, why);
}

COLD void delegated_take_back(struct lock *lock, bool disturbed)
{
	const enum why why = disturbed ? FOR_OTHERS : FOR_ITS_CLIENT;
	struct grant *g;

	if (LIST_EMPTY(&lock->delegated))
		return;
	note(&lock->delegability, why);
	while ((g = LIST_FIRST(&lock->delegated)))
		recall(g, why);
}

void delegated_give_way(struct lock *lock, const struct client *c, enum mode mode)
{
	const struct grant *g = LIST_FIRST(&lock->delegated);

	if (g && mode_conflicts(g->mode, mode))
		delegated_take_back(lock, g->client != c || LIST_NEXT(g, delegated_link));
}

void delegated_take_back_own(struct lock *lock, const struct client *c)
{
	struct grant *g = LIST_EMPTY(&lock->delegated) ? NULL : grant_find(lock, c);

	if (g && g->delegated)
		take_back(g, FOR_ITS_CLIENT);
}

void delegated_take_back_all(struct client *c)
{
	for (size_t i = 0; i < c->delegations->slot_count; i++) {
		struct grant *g = c->delegations->slots[i].grant;

		if (g && g->delegated)
			take_back(g, FOR_ITS_CLIENT);
	}
}

/* False: the client has no free delegation, or no more words may be read. */
static bool give_free(struct delegations *d, size_t *looks)
{
	for (size_t i = 0; i < d->slot_count && *looks; i++) {
		struct grant *g = d->slots[i].grant;

		if (!g || !g->delegated)
			continue;
		--*looks;
		if (!delegated_is_free(g))
			continue;
		take_back(g, FOR_ITS_CLIENT);
		return true;
	}
	return false;
}

/* A client without a free delegation goes to the end of the list, so that the next search begins with others. */
bool delegated_make_room(struct client *c, bool own, size_t *looks)
{
	struct delegations_list *all = &c->user->delegations;
	struct delegations *d;

	if (own)
		return c->delegations && give_free(c->delegations, looks);
	while (*looks && (d = TAILQ_FIRST(all))) {
		if (give_free(d, looks))
			return true;
		TAILQ_REMOVE(all, d, link);
		TAILQ_INSERT_TAIL(all, d, link);
	}
	return false;
}

/* If the session or the claim was lost meanwhile, the client has to see in the word that the grant is lost. */
static enum delegation_state take_over(struct grant *g)
{
	return g->lost ? delegation_lose(delegated_slot(g)) : delegation_recall(delegated_slot(g));
}

/* A slot without a grant in the other process is cleared. */
void delegated_resume(struct delegations *d)
{
	struct grant *g, *after;

	TAILQ_FOREACH(g, &d->client->grants, client_link)
		if (g->slot)
			delegated_enter(d, g);
	for (size_t i = 0; i < DELEGATION_SLOTS; i++)
		if (i >= d->slot_count || !d->slots[i].grant)
			delegation_end(&d->page->slots[i]);
	TAILQ_FOREACH_SAFE(g, &d->client->grants, client_link, after)
		if (g->slot && take_over(g) != DELEGATION_HELD)
			grant_end(g);
		else if (g->slot && !g->lost)
			go_on(g);
}

/* ---- passes ---- */

static void pass(struct delegations *d, bool all)
{
	d->all = all || (d->work.worker && d->all);
	d->at = 0;
	work_add(&d->client->locks->env->works, &d->client->user->worker, &d->work);
}

void delegated_look(struct delegations *d)
{
	pass(d, false);
}

void delegated_take_back_later(struct client *c)
{
	if (c->delegations && c->delegations->count)
		pass(c->delegations, true);
}

/* Returns the number of steps. */
static int64_t look_at(struct delegations *d, size_t i)
{
	struct delegated *slot = &d->slots[i];
	struct grant *g = slot->grant;
	struct delegation_view view;

	if (!g || !g->delegated)
		return 0;
	view = delegation_look(&d->page->slots[i]);
	if (d->all || (view.state != DELEGATION_HELD && view.uses == slot->uses)) {
		take_back(g, d->all ? FOR_ITS_CLIENT : UNUSED);
		return TAKE_BACK_STEPS;
	}
	slot->uses = view.uses;
	return 1;
}

int64_t delegated_continue(struct delegations *d, int64_t steps)
{
	struct env *env = d->client->locks->env;
	int64_t most = env->conf->all_in_pieces ? 1 : steps, done = 0;

	for (; d->at < d->slot_count && d->count && done < most; d->at++)
		done += look_at(d, d->at);
	if (d->at < d->slot_count && d->count)
		return max64(done, steps);
	work_drop(&env->works, &d->work);
	if (d->count)
		heap_set(&env->timers, &d->idle, env->now_ns + DELEGATED_IDLE_NS);
	return done + 1;
}
