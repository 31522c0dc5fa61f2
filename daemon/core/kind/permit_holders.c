/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/permit_holders.h"

#include "base/minmax.h"
#include "core/lock/holder_data.h"
#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

static const int64_t LOOK_AFTER_NS = 1000000000;
static const int64_t EVERY_NS = 1000000000;
static const int64_t YOUNG_NS = 100000000; /* most grants end before anybody asks */

void permit_holders_listed(struct semaphore *s, size_t children)
{
	const struct claim *c;
	int64_t others = (int64_t)children;

	TAILQ_FOREACH(c, &s->slots.slots, link)
		others -= c->state == CLAIM_WAITING;
	s->holders.seen = s->limit && others > s->limit;
	if (s->holders.seen)
		directory_touch(&s->slots);
}

static bool waits_elsewhere(const struct semaphore *s)
{
	const struct lock *mutex = s->lock;

	if (!s->gathering)
		return s->holders.seen;
	return mutex->directory.claim && (mutex->directory.claim->rivals || mutex->directory.watch == WATCH_CONTENDED);
}

static void wake(struct semaphore *s, int64_t due_ns)
{
	heap_set_by(&s->locks->env->timers, &s->slots.timer, due_ns);
}

static void look(struct semaphore *s)
{
	const struct grant *oldest = TAILQ_FIRST(&s->lock->grants);
	int64_t due_ns;

	if (!oldest || directory_watches(&s->slots))
		return;
	due_ns = max64(oldest->granted_ns + LOOK_AFTER_NS, s->holders.looked_ns + EVERY_NS);
	if (due_ns > s->locks->env->now_ns) {
		wake(s, due_ns);
		return;
	}
	s->holders.looked_ns = s->locks->env->now_ns;
	directory_arm(&s->slots);
}

/* The grant that the lease's data describe, or NULL. Both lists are mostly in one order: the search begins at `from`. */
static struct grant *told_of(const struct semaphore *s, const struct claim *c, struct grant *from)
{
	struct grant *g = from ? from : TAILQ_FIRST(&s->lock->grants), *end = g;

	if (!c->holder_client || !g)
		return NULL;
	do {
		if (g->client->id == c->holder_client && g->granted_ns == c->holder_token)
			return g;
		g = TAILQ_NEXT(g, link);
		if (!g)
			g = TAILQ_FIRST(&s->lock->grants);
	} while (g != end);
	return NULL;
}

/* A lease whose data describe a grant that is gone, or that has fewer permits now, is free to describe another. */
static void count_told(struct semaphore *s)
{
	struct grant *g, *last = NULL;
	struct claim *c;

	TAILQ_FOREACH(g, &s->lock->grants, link)
		g->told = 0;
	TAILQ_FOREACH(c, &s->slots.slots, link) {
		g = told_of(s, c, last);
		if (g && g->told < g->depth) {
			g->told++;
			last = g;
		} else {
			c->holder_client = 0;
		}
	}
}

static struct claim *next_free(struct claim *c)
{
	while (c && (c->state != CLAIM_HELD || c->holder_client))
		c = TAILQ_NEXT(c, link);
	return c;
}

static void write_one(struct semaphore *s, struct claim *c, struct grant *g)
{
	holder_data_permits(g);
	c->holder_client = g->client->id;
	c->holder_token = g->granted_ns;
	c->holder_ns = s->holders.told_ns = s->locks->env->now_ns;
	claim_write(c, OPERATION_HOLDER);
	g->told++;
}

static void tell(struct semaphore *s)
{
	struct locks *locks = s->locks;
	struct claim *free = TAILQ_FIRST(&s->slots.slots);
	struct grant *g;

	s->holders.checked_ns = locks->env->now_ns;
	count_told(s);
	TAILQ_FOREACH(g, &s->lock->grants, link) {
		if (g->told < g->depth && g->granted_ns + YOUNG_NS > locks->env->now_ns) {
			wake(s, g->granted_ns + YOUNG_NS);
			continue;
		}
		while (g->told < g->depth && turn_of_questions(locks->directories) && (free = next_free(free)))
			write_one(s, free, g);
	}
	if (!turn_of_questions(locks->directories))
		wake(s, locks->env->now_ns + EVERY_NS);
}

void permit_holders_continue(struct semaphore *s)
{
	int64_t due_ns = max64(s->holders.checked_ns + YOUNG_NS, s->holders.told_ns + EVERY_NS);

	look(s);
	if (!waits_elsewhere(s) || TAILQ_EMPTY(&s->lock->grants))
		return;
	if (due_ns <= s->locks->env->now_ns)
		tell(s);
	else
		wake(s, due_ns);
}
