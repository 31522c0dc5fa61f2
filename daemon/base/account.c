/* SPDX-License-Identifier: Apache-2.0 */
#include "base/account.h"

#include <assert.h>
#include <string.h>

#include "base/container.h"
#include "base/mem.h"
#include "protocol/slice.h"

void accounts_init(struct accounts *all, size_t pool_count, uint64_t key0, uint64_t key1)
{
	assert(pool_count <= ACCOUNT_POOLS_MAX);
	*all = (struct accounts){ .share = ACCOUNT_PERCENT, .pool_count = pool_count };
	map_init(&all->map, key0, key1);
	TAILQ_INIT(&all->list);
	all->nobody.all = all;
	all->nobody.references = 1;
}

static bool is_empty(const struct account *a)
{
	for (size_t pool = 0; pool < ACCOUNT_POOLS_MAX; pool++)
		if (a->used[pool])
			return false;
	return true;
}

void accounts_deinit(struct accounts *all)
{
	assert(TAILQ_EMPTY(&all->list) && all->nobody.references == 1 && is_empty(&all->nobody));
	for (size_t pool = 0; pool < all->pool_count; pool++)
		assert(!all->pools[pool].used);
	map_deinit(&all->map);
}

static void weigh(struct accounts *all, struct pool *p)
{
	p->weight = all->share * (p->total - p->reserve);
	p->easy = p->weight / ACCOUNT_PERCENT;
}

void accounts_set_share(struct accounts *all, unsigned int percent)
{
	assert(percent >= 1 && percent <= ACCOUNT_PERCENT);
	all->share = percent;
	for (size_t pool = 0; pool < all->pool_count; pool++)
		weigh(all, &all->pools[pool]);
}

void accounts_set_total(struct accounts *all, size_t pool, uint64_t total)
{
	struct pool *p = &all->pools[pool];

	assert(pool < all->pool_count);
	p->total = total;
	p->reserve = total / ACCOUNT_RESERVE_PART;
	weigh(all, p);
}

void accounts_set_by_unit(struct accounts *all, const uint32_t *uids, size_t count)
{
	all->by_unit = uids;
	all->by_unit_count = count;
}

bool accounts_has_units(const struct accounts *all, uint32_t uid)
{
	for (size_t i = 0; i < all->by_unit_count; i++)
		if (all->by_unit[i] == uid)
			return true;
	return uid == 0;
}

/* "": the user has one account for all that it runs. */
static struct slice unit_of(const struct accounts *all, uint32_t uid, const char *unit, size_t len)
{
	return len && accounts_has_units(all, uid) ? (struct slice){ unit, len } : SLICE("");
}

static uint64_t hash_of(const struct accounts *all, uint32_t uid, struct slice unit)
{
	return map_hash(&all->map, unit.data, unit.len) + uid;
}

static struct account *find(const struct accounts *all, uint32_t uid, struct slice unit)
{
	struct account *a;

	MAP_FOREACH(a, &all->map, hash_of(all, uid, unit), node)
		if (a->uid == uid && slice_eq(unit, slice_of(a->unit)))
			return a;
	return NULL;
}

struct account *account_find(const struct accounts *all, uint32_t uid, const char *unit, size_t unit_len)
{
	return find(all, uid, unit_of(all, uid, unit, unit_len));
}

struct account *account_enter(struct accounts *all, uint32_t uid, const char *unit, size_t unit_len)
{
	struct slice own = unit_of(all, uid, unit, unit_len);
	struct account *a = find(all, uid, own);

	if (a) {
		a->references++;
		return a;
	}
	a = mem_new(sizeof(*a));
	a->all = all;
	a->uid = uid;
	a->unit = mem_text_part(own.data, own.len);
	a->references = 1;
	map_add(&all->map, &a->node, hash_of(all, uid, own));
	TAILQ_INSERT_TAIL(&all->list, a, link);
	return a;
}

void account_leave(struct account *a)
{
	assert(a->references);
	if (!--a->references)
		account_free(a);
}

void account_keeps(struct account *a, size_t pool, const char *text, size_t len)
{
	mem_free(a->kept[pool]);
	a->kept[pool] = len ? mem_text_part(text, len) : NULL;
}

void account_free(struct account *a)
{
	assert(!a->references && is_empty(a));
	map_remove(&a->all->map, &a->node);
	TAILQ_REMOVE(&a->all->list, a, link);
	for (size_t pool = 0; pool < ACCOUNT_POOLS_MAX; pool++)
		mem_free(a->kept[pool]);
	mem_free(a->unit);
	mem_free(a);
}

uint64_t account_allowed(const struct account *a, size_t pool, bool privileged)
{
	const struct pool *p = &a->all->pools[pool];
	uint64_t others = p->used - a->used[pool], taken = a->all->share * others;

	if (privileged)
		return p->total > others ? p->total - others : 0;
	if (!p->used)
		return p->total - p->reserve;
	return p->weight > taken ? (p->weight - taken) / ACCOUNT_PERCENT : 0;
}

bool account_is_admitted(const struct account *a, size_t pool, uint64_t more, bool privileged)
{
	const struct pool *p = &a->all->pools[pool];
	uint64_t mine = a->used[pool], others = p->used - mine;

	if (privileged && p->used + more <= p->total)
		return true;
	if (ACCOUNT_PERCENT * (mine + more) + a->all->share * others <= p->weight)
		return true;
	return !p->used && more <= p->total - p->reserve;
}
