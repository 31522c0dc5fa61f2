/* SPDX-License-Identifier: Apache-2.0 */
/* What port/pools.h says is charged, counted again from what there is. */
#include "core/accounts_check.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/claim/charge.h"
#include "core/client/bid.h"
#include "core/client/mlock.h"
#include "core/command/list.h"
#include "core/hosts/census.h"
#include "core/hosts/inquiry.h"
#include "core/kind/observe.h"
#include "core/kind/payer.h"
#include "core/lock/bearer.h"
#include "core/state.h"

struct count {
	const struct account *account;
	uint64_t used[POOLS];
};

struct recount {
	struct count *counts;
	size_t count;
};

static int by_account(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t)((const struct count *)a)->account, y = (uintptr_t)((const struct count *)b)->account;

	return (x > y) - (x < y);
}

static void add(struct recount *r, const struct account *a, enum pool_number pool, size_t amount)
{
	const struct count key = { .account = a };
	struct count *found = bsearch(&key, r->counts, r->count, sizeof(key), by_account);

	if (found)
		found->used[pool] += amount;
}

static void add_client(struct recount *r, const struct client *c)
{
	const struct notification *n;
	const struct request *q;
	const struct grant *g;

	TAILQ_FOREACH(q, &c->requests, client_link) {
		add(r, c->account, POOL_REQUESTS, 1);
		add(r, c->account, POOL_GRANTS, 1);
		if (q->queued)
			add(r, c->account, POOL_MEMORY, POOL_EVENT_BYTES + q->lock->name.len);
	}
	TAILQ_FOREACH(g, &c->grants, client_link)
		add(r, c->account, POOL_GRANTS, g->counted);
	TAILQ_FOREACH(n, &c->notifications, link)
		if (notification_counts(n->type))
			add(r, c->account, POOL_MEMORY, notification_bytes(n));
	add(r, c->account, POOL_OBSERVERS, c->observer_count);
	if (c->bearer)
		add(r, c->account, POOL_MEMORY, bearer_memory(bytes_view(&c->bearer->value)));
	if (c->bid && !c->bearer)
		add(r, c->account, POOL_MEMORY, bid_memory(c->bid));
	if (c->inquiry)
		add(r, c->account, POOL_MEMORY, inquiry_memory(c->inquiry));
	if (c->mlock)
		add(r, c->account, POOL_MEMORY, mlock_memory(c->mlock));
	if (c->delegations)
		add(r, c->account, POOL_MEMORY, delegated_memory());
	if (c->list)
		add(r, c->account, POOL_MEMORY, list_memory(c->list));
	if (c->query && c->query->census)
		add(r, c->account, POOL_MEMORY, census_memory(c->query->census));
}

/* The mutex of a semaphore is for the request that gathers. */
static const struct account *payer_of_directory(const struct lock *lock, const struct directory *d,
						const struct account *payer)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);

	return lock->slots && d == &lock->directory && head ? head->client->account : payer;
}

static void add_directory(struct recount *r, const struct lock *lock, const struct directory *d,
			  const struct account *payer)
{
	const struct account *whose = payer_of_directory(lock, d, payer), *permit;
	struct payer_permits permits = { 0 };
	const struct claim *c;

	if (d == lock->slots)
		permits = payer_permits(lock);
	add(r, whose, POOL_WATCHES, charge_watches(d));
	if (d->directories->env->conf->standalone)
		return;
	CLAIM_FOREACH(c, d) {
		permit = d == lock->slots && c->state != CLAIM_LEAVING ? payer_of_next(&permits) : NULL;
		if (d == lock->slots)
			add(r, permit ? permit : c->path.account, POOL_PATHS, charge_path(d));
		else
			add(r, whose, POOL_PATHS, charge_path(d));
	}
}

static void add_lock(struct recount *r, const struct lock *lock)
{
	const struct account *payer = payer_of(lock);
	const struct directory *d;

	if (!payer)
		payer = lock->charge.account;
	add(r, payer, POOL_LOCKS, 1);
	LOCK_DIRECTORIES(d, lock)
	add_directory(r, lock, d, payer);
}

static const char *compare(const struct recount *r, const struct accounts *all)
{
	for (size_t pool = 0; pool < POOLS; pool++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < r->count; i++) {
			if (r->counts[i].used[pool] != r->counts[i].account->used[pool])
				return pools_words[pool].noun;
			sum += r->counts[i].used[pool];
		}
		if (sum != all->pools[pool].used)
			return "the sum of a pool";
	}
	return NULL;
}

const char *accounts_wrong(const struct broker *b)
{
	const struct accounts *all = &b->env.accounts;
	const struct names *names = &b->directories.names;
	struct recount r = { .count = 1 };
	const struct account *a;
	const struct letter *l;
	const struct client *c;
	const struct knock *k;
	const struct lasting *lasting;
	const struct lifeline *line;
	const struct lock *lock;
	const char *wrong;
	size_t i = 0;

	TAILQ_FOREACH(a, &all->list, link)
		r.count++;
	r.counts = mem_new_array(r.count, sizeof(*r.counts));
	r.counts[i++].account = &all->nobody;
	TAILQ_FOREACH(a, &all->list, link)
		r.counts[i++].account = a;
	qsort(r.counts, r.count, sizeof(r.counts[0]), by_account);
	TAILQ_FOREACH(c, &b->locks.clients, link)
		add_client(&r, c);
	TAILQ_FOREACH(line, &b->locks.lifelines, link)
		add(&r, line->charge.account, POOL_MEMORY, sizeof(*line));
	TAILQ_FOREACH(lock, &b->locks.used, link)
		add_lock(&r, lock);
	TAILQ_FOREACH(l, &b->hosts.letters, link) {
		add(&r, l->room.account, POOL_LETTERS, 1);
		add(&r, l->path_charge.account, POOL_PATHS, l->path.len);
	}
	TAILQ_FOREACH(k, &b->locks.knocks, link)
		add(&r, k->charge.account, POOL_MEMORY, sizeof(*k));
	for (size_t name = 0; name < names->count; name++)
		add(&r, names->made[(names->first + name) % names->cap].account, POOL_NAMES, 1);
	TAILQ_FOREACH(lasting, &b->directories.lasting, link)
		add(&r, lasting->charge.account, POOL_LASTING, lasting->charge.amount);
	wrong = compare(&r, all);
	mem_free(r.counts);
	return wrong;
}
