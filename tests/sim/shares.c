/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users have of what they share (base/account.h): none more than its share of the total without the operators' reserve,
 * nor all together more than that. It is looked at in pools of which nothing changes its account.
 */
#include "world.h"

#include <inttypes.h>

#include "core/port/pools.h"
#include "core/state.h"

static const enum pool_number pools[] = { POOL_REQUESTS, POOL_GRANTS, POOL_OBSERVERS };

static bool is_of_operator(const struct host *h, const struct account *a)
{
	const struct client *c;

	TAILQ_FOREACH(c, &h->broker->locks.clients, link)
		if (c->account == a && c->privileged)
			return true;
	return false;
}

static void check_pool(const struct host *h, enum pool_number number)
{
	const struct accounts *all = &h->broker->env.accounts;
	const struct pool *pool = &all->pools[number];
	uint64_t least = ACCOUNT_PERCENT, used = 0; /* of an empty pool everybody may have one */
	const struct account *a;

	TAILQ_FOREACH(a, &all->list, link) {
		if (!a->used[number] || is_of_operator(h, a))
			continue;
		used += a->used[number];
		if (ACCOUNT_PERCENT * a->used[number] > (pool->weight > least ? pool->weight : least))
			world_fail(h->w, -1, "host %d: user %u has %" PRIu64 " of %" PRIu64 " in pool %d", h->index, a->uid,
				   a->used[number], pool->total, number);
	}
	if (used > pool->total - pool->reserve)
		world_fail(h->w, -1, "host %d: users have %" PRIu64 " of %" PRIu64 " in pool %d", h->index, used, pool->total,
			   number);
}

/* A limit that became smaller takes nothing away. */
void shares_check(struct host *h)
{
	if (h->w->mix->reload_every_ms)
		return;
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		check_pool(h, pools[i]);
}
