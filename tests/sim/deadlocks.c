/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits inside a host, by the model and in another way than the broker's: a matrix and its closure. There are two
 * matrices, because clients do not know everything yet: one of the waits that may be, one of those that are certain.
 */
#include "world.h"

enum { NODES = CLIENTS_MAX + 1 };

/* Of the waits of a host: those that can never end, as far as is known. */
struct ties {
	const struct host *h;
	bool certain;
	const struct ask *ask[NODES]; /* NULL: it does not wait, or can go on */
};

struct graph {
	bool edge[NODES][NODES];
};

/* Its LOCK waits, and will for a while. An MLOCK does, but for which of its locks is not certain. */
static const struct ask *blocking(const struct caller *c)
{
	const struct ask *a = &c->current;

	if (c->state != CLIENT_ON || !c->asking || c->half_closed || a->wait_ms == 0)
		return NULL;
	if (a->command != COMMAND_LOCK && a->command != COMMAND_MLOCK && a->command != COMMAND_ACQUIRE)
		return NULL;
	return a->wait_ms < 0 || a->asked_at + a->wait_ms * MS > c->host->w->sched.now ? a : NULL;
}

static bool conflicts(bool shared, const struct ask *a)
{
	return !shared || !a->shared;
}

/* The client of `a` waits for the other: for what it holds, or asked for before. */
static bool waits_for(const struct ask *a, const struct caller *other, bool certain)
{
	const struct holding *g = &other->holding[a->lock];
	const struct wait *wait = &other->wait[a->lock];
	const struct ask *earlier = check_waiting_ask(other, a->lock);

	if (g->held && !g->lost && conflicts(g->shared, a) && (!certain || !holding_unsure(g)))
		return true;
	if (!certain && delegations_may_lose(other, a->lock))
		return true;
	if (!certain && several_asked(other, a->lock) && conflicts(other->current.shared, a))
		return true;
	/* It may be gone, and its host not know it yet. */
	if (!certain && other->asking && other->current.command == COMMAND_LOCK && other->current.lock == a->lock &&
	    other->current.order < a->order && conflicts(other->current.shared, a))
		return true;
	/* It may be a grant by now, and come from before or after; or have run out, and end only when more is known. */
	if (wait->on && !certain && conflicts(wait->ask.shared, a))
		return true;
	if (wait->on && wait->blind)
		return false;
	return earlier && earlier->order < a->order && conflicts(earlier->shared, a);
}

static bool one_group(const struct caller *a, const struct caller *b)
{
	return a == b || (a->owner && a->owner == b->owner && a->conn % 2 == b->conn % 2);
}

static void add_lock_edges(struct graph *g, const struct caller *c, const struct ask *a, bool certain)
{
	const struct host *h = c->host;
	int i, j;

	for (i = 0; i < h->client_count; i++) {
		if (&h->clients[i] == c || !waits_for(a, &h->clients[i], certain))
			continue;
		for (j = 0; j < h->client_count; j++)
			if (one_group(&h->clients[i], &h->clients[j]))
				g->edge[c->conn][j] = true;
	}
}

/* The requests of an MLOCK are made when those before are granted: later than what was asked for meanwhile. */
static void add_edges(struct graph *g, const struct caller *c, const struct ask *a, bool certain)
{
	struct ask one = *a;

	if (!a->several) {
		add_lock_edges(g, c, a, certain);
		return;
	}
	one.order = UINT64_MAX;
	for (one.lock = 0; one.lock < c->host->w->lock_count; one.lock++)
		if (a->several & 1U << one.lock)
			add_lock_edges(g, c, &one, certain);
}

/* Where it holds the others already, an MLOCK is a LOCK of one. */
static bool is_for_one(const struct caller *c, struct ask *a)
{
	int lock, count = 0;

	for (lock = 0; lock < c->host->w->lock_count; lock++)
		if (a->several & 1U << lock && !c->holding[lock].held) {
			a->lock = lock;
			count++;
		}
	a->several = 0;
	return count == 1;
}

static void fill(struct graph *g, const struct host *h, bool certain)
{
	int i;

	for (i = 0; i < h->client_count; i++) {
		const struct ask *a = blocking(&h->clients[i]);
		struct ask one = a ? *a : (struct ask){ 0 };

		if (a && !a->permits && (!certain || !a->several || is_for_one(&h->clients[i], &one)))
			add_edges(g, &h->clients[i], &one, certain);
	}
}

static void close_over(struct graph *g, const struct host *h)
{
	int i, j, k;

	for (k = 0; k < h->client_count; k++)
		for (i = 0; i < h->client_count; i++)
			for (j = 0; j < h->client_count; j++)
				g->edge[i][j] = g->edge[i][j] || (g->edge[i][k] && g->edge[k][j]);
}

/* ---- permits: who waits for some goes on as soon as enough are given back, by whomever ---- */

static bool one_group_tied(const struct ties *t, const struct caller *c)
{
	int i;

	for (i = 0; i < t->h->client_count; i++)
		if (t->ask[i] && one_group(c, &t->h->clients[i]))
			return true;
	return false;
}

/* By another wait its owner may be tied, when it has got them. */
static bool waits_for_permits(const struct ties *t, const struct caller *c)
{
	return c->asking && c->current.command == COMMAND_ACQUIRE && (!t->certain || blocking(c));
}

static bool permits_tied(const struct ties *t, const struct ask *a)
{
	int64_t left = t->certain ? t->h->w->permits_most : a->limit;
	int i;

	for (i = 0; i < t->h->client_count; i++) {
		const struct caller *o = &t->h->clients[i];

		if (t->ask[i] && t->ask[i]->command == COMMAND_ACQUIRE && t->ask[i]->order < a->order)
			return true;
		if (waits_for_permits(t, o) && o->current.order < a->order && one_group_tied(t, o))
			left -= o->current.token;
		if (t->certain ? permits_valid(o) : o->permits.count > 0)
			left -= one_group_tied(t, o) ? o->permits.count : 0;
	}
	return left < a->token;
}

static bool locks_tied(const struct ties *t, const struct caller *c, const struct ask *a)
{
	int i;

	for (i = 0; i < t->h->client_count; i++)
		if (&t->h->clients[i] != c && waits_for(a, &t->h->clients[i], t->certain) && one_group_tied(t, &t->h->clients[i]))
			return true;
	return false;
}

static bool is_tied(const struct ties *t, const struct caller *c, const struct ask *a)
{
	struct ask one = *a;

	if (a->command == COMMAND_ACQUIRE)
		return permits_tied(t, a);
	if (!a->several)
		return locks_tied(t, c, a);
	if (t->certain)
		return is_for_one(c, &one) && locks_tied(t, c, &one);
	one.order = UINT64_MAX;
	for (one.lock = 0; one.lock < c->host->w->lock_count; one.lock++)
		if (a->several & 1U << one.lock && locks_tied(t, c, &one))
			return true;
	return false;
}

static void untie(struct ties *t)
{
	bool again = true;
	int i;

	while (again) {
		again = false;
		for (i = 0; i < t->h->client_count; i++)
			if (t->ask[i] && !is_tied(t, &t->h->clients[i], t->ask[i])) {
				t->ask[i] = NULL;
				again = true;
			}
	}
}

static struct ties ties_of(const struct host *h, bool certain)
{
	struct ties t = { .h = h, .certain = certain };
	int i;

	for (i = 0; i < h->client_count; i++)
		t.ask[i] = blocking(&h->clients[i]);
	return t;
}

static bool may_be_tied(const struct caller *c, const struct ask *a)
{
	struct ties t = ties_of(c->host, false);

	t.ask[c->conn] = a;
	untie(&t);
	return t.ask[c->conn];
}

static void check_ties(struct host *h)
{
	struct ties t = ties_of(h, true);
	int i;

	untie(&t);
	for (i = 0; i < h->client_count; i++)
		if (t.ask[i])
			world_fail(h->w, t.ask[i]->lock, "host %d: client %d waits, and can never be served", h->index, i);
}

void deadlock_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct host *h = c->host;
	struct graph g = { 0 };
	bool tied;

	h->w->stats->deadlocks++;
	/* Deadlines come before the event: then the one that leaves was there yet. */
	if (h->loses_one)
		return;
	c->asking = true; /* others wait for what it has taken; and behind it, if it was set aside for a while */
	fill(&g, h, false);
	if (!a->permits)
		add_edges(&g, c, a, false);
	close_over(&g, h);
	tied = g.edge[c->conn][c->conn] || may_be_tied(c, a);
	c->asking = false;
	/* That it half-closes may not be known to its host yet: then its wait is no try. */
	if (tied && h->conf.deadlock_detection && a->wait_ms != 0)
		return;
	world_fail(h->w, a->lock, "host %d client %u: nobody waits in a circle: %.*s", h->index, c->conn,
		   (int)reply.len, reply.data);
}

void deadlock_check(struct host *h)
{
	struct graph g = { 0 };
	int i, waiting = 0;

	for (i = 0; i < h->client_count; i++)
		waiting += blocking(&h->clients[i]) != NULL;
	/* Who is set aside is queued, and searched for, in later events, which come right after this one. */
	if (!waiting || !h->conf.deadlock_detection || broker_has_work(h->broker))
		return;
	fill(&g, h, true);
	close_over(&g, h);
	for (i = 0; i < h->client_count; i++)
		if (g.edge[i][i])
			world_fail(h->w, h->clients[i].current.lock, "host %d: client %d waits for itself", h->index,
				   i);
	/* Who asked with another limit than its host knew, or before it was known, may wait for what nobody saw. */
	if (h->w->permits_limit && !h->w->limits_asked && !h->w->limit_overwritten)
		check_ties(h);
}

void deadlock_owner_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	bool may_hold = c->permits.count, holds = permits_valid(c), done = slice_eq(reply, SLICE("+OK\r\n"));
	int i;

	for (i = 0; i < LOCKS_MAX; i++) {
		const struct holding *g = &c->holding[i];

		may_hold = may_hold || (g->held && !g->lost) || c->wait[i].on || delegations_may_lose(c, i);
		holds = holds || (g->held && !g->lost && !holding_unsure(g)) || (c->wait[i].on && !c->wait[i].blind);
	}
	if (done ? holds : !may_hold || reply.len < 4 || memcmp(reply.data, "-ERR", 4) != 0)
		world_fail(c->host->w, -1, "host %d client %u: OWNER is for who neither holds nor waits: %.*s", c->host->index,
			   c->conn, (int)reply.len, reply.data);
	if (done)
		c->owner = a->owner;
}
