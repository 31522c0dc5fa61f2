/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/view.h"

#include "base/mem.h"
#include "core/hosts/hosts.h"

/* So many comparisons, or looks at flags, take as long as a step. */
enum { LOOKS_A_STEP = 32 };

static bool of_permits(const struct query *q)
{
	return q->part != QUERY_LOCK;
}

const struct lock *view_lock(const struct query *q)
{
	const struct lock *lock = lock_find(q->hosts->locks, bytes_view(&q->name));

	return lock && of_permits(q) == (lock->slots != NULL) ? lock : NULL;
}

static void enter(struct view *v, enum view_stage stage)
{
	walk_end(v->query->hosts->locks, &v->walk);
	v->stage = stage;
	v->entered = false;
}

/* ---- who holds ---- */

static bool belong_together(const struct participant *a, const struct participant *b)
{
	return a->host.len && a->session == b->session && a->its_client == b->its_client && a->since == b->since;
}

static void add_permit(struct view *v, const struct participant *one)
{
	size_t i = 0;

	while (i < v->other_count && !belong_together(&v->others[i], one))
		i++;
	if (i == v->other_count) {
		v->others[v->other_count++] = *one;
		v->others[i].mode = MODE_SHARED; /* as permits of this host are shown */
	}
	v->others[i].depth++;
}

/* The leases, or the children of the lock's directory. */
static const struct query_child *holding(const struct query *q, size_t *ret_count)
{
	bool over = q->part == QUERY_MUTEX;

	if (!of_permits(q))
		*ret_count = q->unread ? q->answered : query_entitled(q);
	else
		*ret_count = over ? q->holder_count : q->part == QUERY_SLOTS ? q->answered : 0;
	return over ? q->holders : q->children;
}

static void gather_one(struct view *v, const struct query_child *child, int64_t *steps)
{
	const struct query *q = v->query;
	struct participant one;

	if (!query_is_elsewhere(child) || (v->permits && !query_is_held(q, child, v->at)))
		return;
	one = participant_elsewhere(q->hosts, child);
	*steps += VIEW_READ_STEPS + (int64_t)v->other_count / LOOKS_A_STEP;
	if (v->permits)
		add_permit(v, &one);
	else
		v->others[v->other_count++] = one;
}

static enum view_step gather(struct view *v, int64_t *steps)
{
	size_t count;
	const struct query_child *children = holding(v->query, &count);

	if (!v->entered) {
		v->at = 0;
		v->others = mem_new((count + 1) * sizeof(*v->others));
		v->entered = true;
	}
	if (v->at == count) {
		enter(v, VIEW_ELSEWHERE);
		v->at = 0;
		return VIEW_NO_ROW;
	}
	gather_one(v, &children[v->at], steps);
	v->at++;
	return VIEW_NO_ROW;
}

static enum view_step show_grant(struct view *v, struct participant *ret)
{
	const struct lock *lock = view_lock(v->query);
	const struct grant *g;

	if (!v->entered && lock)
		walk_begin_grants(&v->walk, lock);
	v->entered = true;
	g = walk_grant(&v->walk);
	if (!g) {
		enter(v, VIEW_GATHERING);
		return VIEW_NO_ROW;
	}
	*ret = participant_holder(g);
	return delegated_is_free(g) ? VIEW_KEPT : VIEW_ROW;
}

static enum view_step show_other(struct view *v, struct participant *ret)
{
	if (v->at == v->other_count) {
		enter(v, VIEW_OVER);
		return VIEW_NO_ROW;
	}
	*ret = v->others[v->at++];
	return VIEW_ROW;
}

/* ---- who waits: for permits, in the mutex ---- */

/* With room among the leases the holder of the mutex does not count: nobody waits there, or it is served now. */
static size_t first_waiting(const struct query *q)
{
	if (q->part == QUERY_LOCK)
		return query_entitled(q);
	return q->part == QUERY_MUTEX && q->count && q->permits && !q->crowded ? 1 : 0;
}

static size_t end_waiting(const struct query *q)
{
	return q->part == QUERY_LOCK || q->part == QUERY_MUTEX ? q->count : 0;
}

static size_t own_place(const struct query *q)
{
	const struct lock *lock = view_lock(q);
	size_t own = first_waiting(q), end = end_waiting(q);

	if (!lock || !lock->directory.claim || lock->directory.claim->state != CLAIM_HELD)
		while (own < end && !q->children[own].ours)
			own++;
	return own;
}

void view_hosts(const struct query *q, size_t *ret_before, size_t *ret_waiting)
{
	size_t first = first_waiting(q), own = own_place(q), end = end_waiting(q);

	*ret_before = *ret_waiting = 0;
	for (size_t i = of_permits(q) ? first : 0; i < end; i++) {
		if (!query_is_elsewhere(&q->children[i]))
			continue;
		*ret_before += i < own;
		*ret_waiting += i >= first;
	}
}

static enum view_step show_host(struct view *v, struct participant *ret, enum view_stage after, int64_t *steps)
{
	const struct query *q = v->query;
	const struct query_child *child;

	if (!v->entered && v->stage == VIEW_BEFORE) {
		v->at = first_waiting(q);
		v->own = own_place(q);
		*steps += (int64_t)v->own / LOOKS_A_STEP;
	}
	v->entered = true;
	if (v->at >= (v->stage == VIEW_BEFORE ? v->own : end_waiting(q))) {
		enter(v, after);
		return VIEW_NO_ROW;
	}
	child = &q->children[v->at++];
	if (!query_is_elsewhere(child))
		return VIEW_NO_ROW;
	*ret = participant_elsewhere(q->hosts, child);
	*steps += VIEW_READ_STEPS;
	return VIEW_ROW;
}

static enum view_step show_request(struct view *v, struct participant *ret)
{
	const struct lock *lock = view_lock(v->query);
	const struct request *r;

	if (!v->entered && lock)
		walk_begin_requests(&v->walk, lock);
	v->entered = true;
	r = walk_request(&v->walk);
	if (!r) {
		enter(v, VIEW_BEHIND);
		return VIEW_NO_ROW;
	}
	*ret = participant_waiter(r);
	return VIEW_ROW;
}

/* ---- steps ---- */

static enum view_step step(struct view *v, struct participant *ret, int64_t *steps)
{
	switch (v->stage) {
	case VIEW_HERE:
		return show_grant(v, ret);
	case VIEW_GATHERING:
		return gather(v, steps);
	case VIEW_ELSEWHERE:
		return show_other(v, ret);
	case VIEW_BEFORE:
		return show_host(v, ret, VIEW_WAITING, steps);
	case VIEW_WAITING:
		return show_request(v, ret);
	case VIEW_BEHIND:
		return show_host(v, ret, VIEW_OVER, steps);
	case VIEW_OVER:
		break;
	}
	return VIEW_LAST;
}

enum view_step view_step(struct view *v, struct participant *ret, int64_t *steps)
{
	const struct query *q = v->query;
	enum view_step is = step(v, ret, steps);

	++*steps;
	if (is != VIEW_ROW && is != VIEW_KEPT)
		return is;
	*steps += VIEW_ROW_STEPS - 1;
	participant_veil(ret, q->client, bytes_view(&q->name));
	return is;
}

static void begin(struct view *v, const struct query *q, enum view_stage stage)
{
	*v = (struct view){ .query = q, .permits = of_permits(q), .stage = stage };
}

void view_begin_holders(struct view *v, const struct query *q)
{
	begin(v, q, VIEW_HERE);
}

void view_begin_waiters(struct view *v, const struct query *q)
{
	begin(v, q, VIEW_BEFORE);
}

void view_end(struct view *v)
{
	walk_end(v->query->hosts->locks, &v->walk);
	mem_free(v->others);
	v->others = NULL;
}
