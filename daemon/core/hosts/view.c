/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/view.h"

#include "base/mem.h"
#include "core/hosts/hosts.h"
#include "core/hosts/query.h"
#include "core/kind/semaphore.h"

/* ---- who holds ---- */

static bool belong_together(const struct participant *a, const struct participant *b)
{
	return a->host.len && a->session == b->session && a->its_client == b->its_client && a->since == b->since;
}

static void add_permit(struct view *v, size_t from, const struct query_child *lease)
{
	struct participant one = participant_elsewhere(v->query->hosts, lease);
	size_t i = from;

	one.mode = MODE_SHARED; /* as permits of this host are shown */
	while (i < v->holder_count && !belong_together(&v->holders[i], &one))
		i++;
	if (i == v->holder_count)
		v->holders[v->holder_count++] = one;
	v->holders[i].depth++;
	v->permits_held++;
}

static void gather_holders(struct view *v)
{
	const struct query *q = v->query;
	bool over = q->part == QUERY_MUTEX;
	const struct query_child *children = over ? q->holders : q->children;
	size_t count = !v->permits ? query_entitled(q) : over ? q->holder_count : q->part == QUERY_SLOTS ? q->answered : 0;
	size_t here = v->lock ? v->lock->grant_count : 0;
	const struct grant *g;

	v->holders = mem_new((here + count + 1) * sizeof(*v->holders));
	if (v->lock)
		TAILQ_FOREACH(g, &v->lock->grants, link) {
			v->holders[v->holder_count++] = participant_holder(q->hosts, g);
			v->permits_held += g->depth;
		}
	for (size_t i = 0; i < count; i++)
		if (query_is_elsewhere(&children[i]) && !v->permits)
			v->holders[v->holder_count++] = participant_elsewhere(q->hosts, &children[i]);
		else if (query_is_elsewhere(&children[i]) && query_is_held(q, &children[i], i))
			add_permit(v, here, &children[i]);
}

/* ---- who waits: for permits, in the mutex ---- */

/* With room among the leases the holder of the mutex does not count: nobody waits there, or it is served now. */
static size_t first_waiting(const struct query *q)
{
	if (q->part == QUERY_LOCK)
		return query_entitled(q);
	return q->part == QUERY_MUTEX && q->count && q->permits && !q->crowded ? 1 : 0;
}

static void add_hosts(struct view *v, size_t from, size_t end)
{
	const struct query *q = v->query;

	for (size_t i = from; i < end; i++)
		if (query_is_elsewhere(&q->children[i]))
			v->waiters[v->waiter_count++] = participant_elsewhere(q->hosts, &q->children[i]);
}

static void add_requests(struct view *v)
{
	const struct request *r;
	int64_t position = 0;

	if (v->lock)
		TAILQ_FOREACH(r, &v->lock->requests, link) {
			v->waiters[v->waiter_count++] = participant_waiter(v->query->hosts, r);
			position++;
			if (r->client != v->query->client || v->own)
				continue;
			v->own = r;
			v->position = position;
		}
}

static void gather_waiters(struct view *v)
{
	const struct query *q = v->query;
	size_t end = q->part == QUERY_LOCK || q->part == QUERY_MUTEX ? q->count : 0;
	size_t first = first_waiting(q), own = first, here = v->lock ? v->lock->request_count : 0;

	if (!v->lock || !v->lock->directory.claim || v->lock->directory.claim->state != CLAIM_HELD)
		while (own < end && !q->children[own].ours)
			own++;
	v->waiters = mem_new((here + end + 1) * sizeof(*v->waiters));
	add_hosts(v, first, own);
	v->hosts_before = v->waiter_count;
	for (size_t i = 0; i < first && !v->permits; i++)
		v->hosts_before += query_is_elsewhere(&q->children[i]);
	add_requests(v);
	add_hosts(v, own, end);
	v->hosts_waiting = v->waiter_count - here;
}

struct view view_gather(const struct query *q)
{
	struct view v = { .query = q, .permits = q->part != QUERY_LOCK };
	const struct lock *lock = lock_find(q->hosts->locks, bytes_view(&q->name));

	if (lock && v.permits == (lock->slots != NULL))
		v.lock = lock;
	gather_holders(&v);
	gather_waiters(&v);
	for (size_t i = 0; i < v.holder_count; i++)
		participant_veil(&v.holders[i], q->client, bytes_view(&q->name));
	for (size_t i = 0; i < v.waiter_count; i++)
		participant_veil(&v.waiters[i], q->client, bytes_view(&q->name));
	return v;
}

void view_free(struct view *v)
{
	mem_free(v->holders);
	mem_free(v->waiters);
}
