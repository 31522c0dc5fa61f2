/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/deadlock_permits.h"

#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

struct wait {
	struct request *request; /* NULL in the first: the request that is checked */
	const struct lock *lock;
	enum mode mode;
	int64_t limit, count;
	bool tied;
};

struct knot {
	const struct client *client; /* the one that asks */
	uint64_t number;
	size_t count, looks;
	bool cut;
	struct wait waits[DEADLOCK_PERMITS_WAITS_MAX];
};

static bool looked(struct knot *k)
{
	k->cut = k->cut || ++k->looks > DEADLOCK_PERMITS_LOOKS_MAX;
	return !k->cut;
}

static const struct request *one_before(const struct wait *w)
{
	return w->request ? TAILQ_PREV(w->request, request_list, link) : TAILQ_LAST(&w->lock->requests, request_list);
}

static bool conflicts(const struct wait *w, enum mode mode)
{
	return w->lock->slots || mode_conflicts(w->mode, mode);
}

/* ---- those that it may depend on ---- */

static void add(struct knot *k, const struct client *c)
{
	struct request *r = c->request;

	if (!looked(k) || !r || r->expired || r->deadlock == k->number)
		return;
	if (k->count == DEADLOCK_PERMITS_WAITS_MAX) {
		k->cut = true;
		return;
	}
	r->deadlock = k->number;
	k->waits[k->count++] = (struct wait){ .request = r, .lock = r->lock, .mode = r->mode, .limit = r->limit,
					      .count = r->count, .tied = true };
}

static void add_group(struct knot *k, const struct client *c)
{
	const struct client *one;

	if (c->group)
		TAILQ_FOREACH(one, &c->group->clients, group_link)
			add(k, one);
	else
		add(k, c);
}

static void add_all(struct knot *k, const struct wait *w)
{
	const struct request *r;
	const struct grant *g;

	for (r = one_before(w); r && looked(k); r = TAILQ_PREV(r, request_list, link))
		if (conflicts(w, r->mode))
			add_group(k, r->client);
	TAILQ_FOREACH(g, &w->lock->grants, link)
		if (looked(k) && conflicts(w, g->mode))
			add_group(k, g->client);
}

/* ---- who can go on ---- */

static bool client_tied(struct knot *k, const struct client *c)
{
	looked(k);
	if (c == k->client)
		return k->waits[0].tied;
	return c->request && c->request->deadlock == k->number;
}

static bool group_tied(struct knot *k, const struct client *c)
{
	const struct client *one;

	if (!c->group)
		return client_tied(k, c);
	TAILQ_FOREACH(one, &c->group->clients, group_link)
		if (client_tied(k, one))
			return true;
	return false;
}

/* 0: not known. A request with another limit than the semaphore's is refused in any case. */
static int64_t limit_of(const struct knot *k, const struct lock *lock)
{
	int64_t limit = lock->semaphore->limit;

	return !limit && k->waits[0].lock == lock ? k->waits[0].limit : limit;
}

static bool permits_tied(struct knot *k, const struct wait *w)
{
	int64_t left = w->limit;
	const struct request *r;
	const struct grant *g;

	if (left != limit_of(k, w->lock))
		return false;
	for (r = one_before(w); r; r = TAILQ_PREV(r, request_list, link)) {
		if (client_tied(k, r->client))
			return true;
		if (group_tied(k, r->client)) /* by another wait: it will get its permits and keep them */
			left -= r->count;
	}
	TAILQ_FOREACH(g, &w->lock->grants, link)
		if (group_tied(k, g->client))
			left -= g->depth;
	return left < w->count;
}

static bool lock_tied(struct knot *k, const struct wait *w)
{
	const struct request *r;
	const struct grant *g;

	for (r = one_before(w); r; r = TAILQ_PREV(r, request_list, link))
		if (conflicts(w, r->mode) && group_tied(k, r->client))
			return true;
	TAILQ_FOREACH(g, &w->lock->grants, link)
		if (conflicts(w, g->mode) && group_tied(k, g->client))
			return true;
	return false;
}

/* True when a wait left the set. */
static bool untie(struct knot *k)
{
	bool any = false;

	for (size_t i = 0; i < k->count && !k->cut; i++) {
		struct wait *w = &k->waits[i];

		if (!w->tied || (w->lock->slots ? permits_tied(k, w) : lock_tied(k, w)))
			continue;
		any = true;
		w->tied = false;
		if (w->request)
			w->request->deadlock = 0;
	}
	return any;
}

bool deadlock_permits_tie(const struct client *c, const struct lock *lock, const struct request_terms *terms,
			  uint64_t number, bool *ret_cut)
{
	struct knot k;

	k.client = c;
	k.number = number;
	k.looks = 0;
	k.cut = false;
	k.waits[0] = (struct wait){ .lock = lock, .mode = terms->mode, .limit = terms->limit, .count = terms->count,
				    .tied = true };
	k.count = 1;
	for (size_t i = 0; i < k.count && !k.cut; i++)
		add_all(&k, &k.waits[i]);
	while (k.waits[0].tied && untie(&k))
		;
	*ret_cut = k.cut;
	return k.waits[0].tied && !k.cut;
}
