/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/place.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"

static const int64_t PLACE_NS = 1000000000;

enum { UNIT_MAX = 4096 };

static uint64_t hash_of(const struct lock *lock, const struct account *a, struct slice value)
{
	const struct map *m = &lock->locks->attempted;

	return map_hash(m, value.data, value.len) + 3 * map_hash(m, lock->name.data, lock->name.len) +
	       5 * map_hash(m, a->unit, strlen(a->unit)) + 7 * a->uid;
}

/* ---- notes ---- */

static void forget(struct attempt *k)
{
	TAILQ_REMOVE(&k->locks->attempts, k, link);
	map_remove(&k->locks->attempted, &k->node);
	heap_unset(&k->locks->env->timers, &k->timer);
	charge_give_back(&k->charge, POOL_MEMORY);
	mem_free(k);
}

static struct attempt *note(struct locks *locks, struct account *a, uint64_t hash)
{
	struct attempt *k = mem_new(sizeof(*k));

	k->locks = locks;
	k->timer.kind = TIMER_ATTEMPT;
	charge_force(&k->charge, a, POOL_MEMORY, sizeof(*k));
	TAILQ_INSERT_TAIL(&locks->attempts, k, link);
	map_add(&locks->attempted, &k->node, hash);
	return k;
}

bool place_attempt(const struct lock *lock, const struct client *by, struct slice value)
{
	uint64_t hash = hash_of(lock, by->account, value);
	struct locks *locks = lock->locks;
	struct attempt *k;
	bool again = false;

	MAP_FOREACH(k, &locks->attempted, hash, node) {
		again = true;
		break;
	}
	if (!again && !account_may(by->account, POOL_MEMORY, sizeof(*k), by->privileged))
		return false;
	if (!again)
		k = note(locks, by->account, hash);
	heap_set(&locks->env->timers, &k->timer, locks->env->now_ns + PLACE_NS);
	return again;
}

void place_attempt_due(struct attempt *k)
{
	forget(k);
}

void place_forget_notes(struct locks *locks)
{
	while (!TAILQ_EMPTY(&locks->attempts))
		forget(TAILQ_FIRST(&locks->attempts));
}

/* ---- places ---- */

struct client *place_find(const struct lock *lock, const struct client *by, struct slice value)
{
	struct place *p;

	MAP_FOREACH(p, &lock->locks->places, hash_of(lock, by->account, value), node)
		if (p->lock == lock && client_is_own(by, p->bearer) &&
		    slice_eq(bytes_view(&p->bearer->bearer->value), value))
			return p->bearer;
	return NULL;
}

void place_enter(struct client *bearer, struct lock *lock)
{
	struct place *p = &bearer->bearer->place;

	if (!p->timer.place || p->lock)
		return;
	p->lock = lock;
	map_add(&lock->locks->places, &p->node, hash_of(lock, bearer->account, bytes_view(&bearer->bearer->value)));
}

/* Its user would be admitted with as much again: so what does not poll has half. */
static bool has_half(const struct client *bearer, enum pool_number pool)
{
	const struct account *a = bearer->account;

	return account_may(a, pool, a->used[pool] + 1, bearer->privileged);
}

static bool has_room(const struct client *bearer, const struct lock *lock)
{
	const char *why;

	return 2 * lock->request_count < lock->locks->env->conf->limits.requests_per_lock &&
	       has_half(bearer, POOL_REQUESTS) && has_half(bearer, POOL_MEMORY) && client_may_ask(bearer, false, &why);
}

bool place_begin(struct client *bearer, struct lock *lock)
{
	const struct request_terms terms = {
		.kind = KIND_LOCK,
		.mode = MODE_EXCLUSIVE,
		.wait_ns = -1,
		.lease_ns = PLACE_NS, /* there has to be one (bearer.h); place_granted() sets it */
	};

	if (!has_room(bearer, lock))
		return false;
	request_new(lock, bearer, &terms);
	place_renew(bearer);
	place_enter(bearer, lock);
	lock->locks->env->stats.places_total++;
	return true;
}

void place_renew(struct client *bearer)
{
	struct env *env = bearer->locks->env;

	heap_set(&env->timers, &bearer->bearer->place.timer, env->now_ns + PLACE_NS);
}

bool place_is_kept(const struct client *bearer)
{
	return bearer_has_place(bearer) && bearer->grant_count;
}

/* The lease is for a daemon that goes on after a kill; else the place ends before it. */
void place_granted(struct client *bearer)
{
	const struct place *p = &bearer->bearer->place;

	assert(place_is_kept(bearer));
	grant_renew(TAILQ_FIRST(&bearer->grants), p->timer.due_ns - bearer->locks->env->now_ns + 1);
}

void place_end(struct client *bearer)
{
	request_forget_ended(bearer);
	if (bearer->request)
		request_end(bearer->request);
	while (!TAILQ_EMPTY(&bearer->grants))
		grant_end(TAILQ_FIRST(&bearer->grants));
	bearer_free(bearer);
}

void place_take(struct client *bearer, const struct client *by)
{
	assert(place_is_kept(bearer));
	request_forget_ended(bearer); /* the place needs not be told that it has the lock */
	bearer_leave(bearer);
	bearer_adopt(bearer, by);
}

static void end_all(struct lock *lock)
{
	struct request *r, *after;

	TAILQ_FOREACH_SAFE(r, &lock->requests, link, after)
		if (r->client->bearer && bearer_has_place(r->client))
			place_end(r->client);
}

void place_due(struct place *p)
{
	bool unused = p->bearer->grant_count;
	struct lock *lock = p->lock;

	place_end(p->bearer);
	if (!unused)
		return;
	lock->locks->env->stats.places_unused_total++;
	end_all(lock);
}

/* ---- in a snapshot ---- */

void place_snapshot_notes(const struct locks *locks, struct bytes *out)
{
	const struct attempt *k;

	TAILQ_FOREACH(k, &locks->attempts, link) {
		struct entry_writer w = entry_begin(out, "knock");

		entry_number(&w, "uid", k->charge.account->uid);
		entry_text(&w, "unit", slice_of(k->charge.account->unit));
		entry_number(&w, "hash", (int64_t)k->node.hash);
		entry_due(&w, "due", &k->timer);
		entry_end(&w);
	}
}

bool place_restore_note(struct locks *locks, const struct entry *e)
{
	struct slice unit;
	struct account *a;
	struct attempt *k;
	int64_t uid, hash;

	if (!entry_get_number(e, "uid", 0, UINT32_MAX, &uid) || !entry_get_text(e, "unit", UNIT_MAX, &unit) ||
	    !entry_get_number(e, "hash", INT64_MIN, INT64_MAX, &hash))
		return false;
	a = account_enter(&locks->env->accounts, (uint32_t)uid, unit.data, unit.len);
	k = note(locks, a, (uint64_t)hash);
	account_leave(a);
	if (!entry_get_due(e, "due", &locks->env->timers, &k->timer))
		return false;
	return k->timer.place || entry_refuse(e, "it has no end");
}
