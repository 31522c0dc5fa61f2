/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/delegated.h"

#include <assert.h>

#include "base/mem.h"
#include "base/minmax.h"
#include "core/lock/lock_ledger.h"
#include "core/lock/locks.h"
#include "core/lock/take_back.h"

struct delegation_slot *delegated_slot(const struct grant *g)
{
	struct delegations *d = g->client->delegations;

	return d ? &d->page->slots[g->slot - 1] : NULL;
}

enum { ROOM_SLOTS = 4 }; /* that are made at a time: most clients hold few locks */

void delegated_enter(struct delegations *d, struct grant *g)
{
	size_t count = (size_t)min64((g->slot + ROOM_SLOTS - 1) / ROOM_SLOTS * ROOM_SLOTS, DELEGATION_SLOTS);

	if (count > d->slot_count) {
		d->slots = mem_resize(d->slots, count * sizeof(*d->slots));
		memset(d->slots + d->slot_count, 0, (count - d->slot_count) * sizeof(*d->slots));
		d->slot_count = (uint32_t)count;
	}
	d->slots[g->slot - 1].grant = g;
}

/* The grant becomes an ordinary one, or is about to end. */
void delegated_leave(struct grant *g)
{
	struct locks *locks = g->lock->locks;
	struct delegations *d = g->client->delegations;

	g->delegated = false;
	LIST_REMOVE(g, delegated_link);
	g->lock->delegability.count--;
	locks->delegated_count--;
	if (--d->count)
		return;
	heap_unset(&locks->env->timers, &d->idle);
	TAILQ_REMOVE(&g->client->user->delegations, d, link);
}

/* ---- the page ---- */

enum { PAGE_BYTES = DELEGATION_PAGE_BYTES + sizeof(struct delegations) + DELEGATION_SLOTS * sizeof(struct delegated) };

bool delegated_may_begin(const struct client *c, const char **why)
{
	if (account_may(c->account, POOL_MEMORY, PAGE_BYTES, c->privileged))
		return true;
	*why = pools_refusal(c->locks->env, c->account, POOL_MEMORY, c->privileged);
	return false;
}

void delegated_begin(struct client *c, struct delegation_page *page)
{
	struct grant *g;

	/* These slots were in a page that was lost with another process. */
	TAILQ_FOREACH(g, &c->grants, client_link) {
		g->slot = 0;
		grant_ledger_change(g);
	}
	delegated_go_on(c, page);
}

void delegated_go_on(struct client *c, struct delegation_page *page)
{
	struct delegations *d = mem_new(sizeof(*d));

	assert(!c->delegations);
	d->client = c;
	d->page = page;
	d->idle.kind = TIMER_DELEGATIONS;
	d->work.kind = WORK_DELEGATIONS;
	charge_force(&d->charge, c->account, POOL_MEMORY, PAGE_BYTES);
	c->delegations = d;
	c->locks->page_count++;
}

size_t delegated_memory(void)
{
	return PAGE_BYTES;
}

void delegated_abandon(struct client *c)
{
	struct grant *g;

	if (!c->delegations)
		return;
	TAILQ_FOREACH(g, &c->grants, client_link)
		if (g->delegated)
			delegated_leave(g);
	delegated_end(c);
}

void delegated_end(struct client *c)
{
	struct delegations *d = c->delegations;

	if (!d)
		return;
	assert(!d->count);
	heap_unset(&c->locks->env->timers, &d->idle);
	work_drop(&c->locks->env->works, &d->work);
	charge_give_back(&d->charge, POOL_MEMORY);
	c->delegations = NULL;
	c->locks->page_count--;
	mem_free(d->slots);
	mem_free(d);
}

/* ---- it begins ---- */

/* The client, or readers together, got as many grants in a row as the lock needs before it is delegated. */
static bool is_calm(const struct delegability *l)
{
	return l->streak >= (l->need ? l->need : 1);
}

/*
 * A delegated lock counts as used while nobody holds it. So an eighth of each total stays free in every account: otherwise
 * delegations that nobody uses could cause requests for other locks to be refused.
 */
static bool leaves_room(const struct account *payer)
{
	static const enum pool_number pools[] = { POOL_LOCKS, POOL_PATHS, POOL_WATCHES };

	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		if (!account_may(payer, pools[i], payer->all->pools[pools[i]].total / 8, false))
			return false;
	return true;
}

/* With ZooKeeper: only while it is known that no other host waits, and only if an unused claim lingers. */
static bool may_be_kept(const struct lock *lock)
{
	const struct env *env = lock->locks->env;
	const struct claim *c = lock->directory.claim;

	if (!env->conf->delegation || delegated_is_wanted(lock) || lock->observer_count || !leaves_room(lock->directory.payer))
		return false;
	if (env->conf->standalone)
		return true;
	return env->conf->linger_ns > 0 && lock->directory.watch == WATCH_UNCONTENDED && !lock->directory.next &&
	       c->handoffs < CLAIM_NEXT_FROM;
}

/* Of the session page; without one there is no text. */
static void read_id(const char *text, uint8_t *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SESSION_PAGE_ID_BYTES && text[2 * i]; i++)
		ret[i] = (uint8_t)((strchr(digits, text[2 * i]) - digits) << 4 | (strchr(digits, text[2 * i + 1]) - digits));
}

static struct delegation_terms terms_of(struct delegations *d, const struct grant *g)
{
	const struct locks *locks = g->lock->locks;
	struct delegation_terms terms = { .token = g->token, .grant_min_ns = locks->env->conf->grant_min_ns };
	int64_t us = locks->env->now_ns / 1000;
	struct session_view view;

	/* Larger than every generation that an earlier process gave. */
	d->generation = (uint64_t)max64((int64_t)d->generation + 1, us) & ((UINT64_C(1) << 48) - 1);
	session_view(locks->ensemble, &view);
	terms.generation = d->generation;
	terms.epoch = view.epoch;
	read_id(locks->env->conf->session_page_id, terms.page_id);
	return terms;
}

static void begin(struct delegations *d, struct grant *g, uint8_t slot)
{
	struct delegation_terms terms = terms_of(d, g);
	struct lock *lock = g->lock;

	g->slot = slot;
	g->delegated = true;
	LIST_INSERT_HEAD(&lock->delegated, g, delegated_link);
	lock->delegability.count++;
	lock->locks->delegated_count++;
	lock->locks->env->stats.delegations_total++;
	delegated_enter(d, g);
	d->slots[slot - 1].first = d->slots[slot - 1].uses = delegation_look(delegated_slot(g)).uses;
	if (!d->count++) {
		heap_set(&lock->locks->env->timers, &d->idle, lock->locks->env->now_ns + DELEGATED_IDLE_NS);
		TAILQ_INSERT_TAIL(&g->client->user->delegations, d, link);
	}
	grant_ledger_change(g);
	delegation_grant(delegated_slot(g), &terms, DELEGATION_HELD);
}

/* Kept apart from request_grant(), which then needs no room for it. */
__attribute__((noinline)) void delegated_offer(struct grant *g, uint8_t slot)
{
	struct delegations *d = g->client->delegations;
	struct lock *lock = g->lock;

	if (!d || (slot <= d->slot_count && d->slots[slot - 1].grant) || g->depth > 1 || g->lease.place || g->data.len)
		return;
	if (is_calm(&lock->delegability) && lock->delegability.count < SHARED_DELEGATIONS_MAX && may_be_kept(lock))
		begin(d, g, slot);
}

/* ---- whether it goes on ---- */

bool delegated_is_wanted(const struct lock *lock)
{
	const struct claim *c = lock->directory.claim;
	const struct env *env = lock->locks->env;

	if (env_halts(env) || lock->request_count)
		return true;
	if (env->conf->standalone)
		return false;
	return c->rivals || c->tried || c->says_held || lock->directory.watch == WATCH_FIRED ||
	       lock->directory.watch == WATCH_CONTENDED;
}

bool delegated_is_free(const struct grant *g)
{
	return g->delegated && delegation_look(delegated_slot(g)).state != DELEGATION_HELD;
}

size_t delegated_free_count(const struct client *c)
{
	size_t count = 0;

	for (size_t i = 0; c->delegations && c->delegations->count && i < c->delegations->slot_count; i++) {
		const struct grant *g = c->delegations->slots[i].grant;

		count += g && delegated_is_free(g);
	}
	return count;
}

static int64_t said_since_ns(const struct grant *g)
{
	int64_t now_ns = g->lock->locks->env->now_ns;

	return max64(min64(delegation_look(delegated_slot(g)).held_since_ns, now_ns), g->granted_ns);
}

int64_t delegated_since_ns(const struct grant *g)
{
	return g->delegated ? said_since_ns(g) : g->granted_ns;
}

size_t delegated_free_of(const struct lock *lock)
{
	const struct grant *g;
	size_t count = 0;

	LIST_FOREACH(g, &lock->delegated, delegated_link)
		count += delegated_is_free(g);
	return count;
}

int64_t delegated_takings(const struct grant *g)
{
	return (int64_t)(delegation_look(delegated_slot(g)).uses - g->client->delegations->slots[g->slot - 1].first + 1);
}

struct grant *delegated_holder(const struct lock *lock)
{
	struct grant *g;

	TAILQ_FOREACH(g, &lock->grants, link)
		if (!delegated_is_free(g))
			return g;
	return NULL;
}

void delegated_hold(struct grant *g)
{
	g->asked_ns = g->granted_ns = said_since_ns(g);
	grant_ledger_write(g);
}

bool delegated_lose(struct grant *g)
{
	struct delegation_slot *slot = delegated_slot(g);
	bool delegated = g->delegated;

	if (!slot)
		return true;
	if (delegated) {
		delegated_leave(g);
		delegated_hold(g);
		g->lock->locks->env->stats.delegations_lost_total++;
	}
	/* A recalled grant is held until UNLOCK, whatever its client writes into the word. */
	return delegation_lose(slot) == DELEGATION_HELD || !delegated;
}

void delegated_forget(struct grant *g)
{
	struct delegations *d = g->client->delegations;

	if (g->delegated)
		delegated_leave(g);
	if (!d)
		return;
	delegation_end(delegated_slot(g));
	/* A grant of another process has not been entered before delegated_resume(). */
	if (g->slot <= d->slot_count)
		d->slots[g->slot - 1].grant = NULL;
}
