/*
 * Who waits for whom inside a host, by the model and in another way than the broker's: a matrix and its closure. What
 * clients do not know of yet makes two of them: what may be, and what is for certain.
 */
#include "world.h"

enum { NODES = CLIENTS_MAX + 1 };

struct graph {
	bool edge[NODES][NODES];
};

/* Its LOCK waits, and will for a while. An MLOCK does, but for which of its locks is not certain. */
static const struct ask *blocking(const struct caller *c)
{
	const struct ask *a = &c->current;

	if (c->state != CLIENT_ON || !c->asking || c->half_closed || a->wait_ms == 0)
		return NULL;
	if (a->command != COMMAND_LOCK && a->command != COMMAND_MLOCK)
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

	if (g->held && !g->lost && conflicts(g->shared, a) && (!certain || !ask_unsure(g)))
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

static bool one_owner(const struct caller *a, const struct caller *b)
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
			if (one_owner(&h->clients[i], &h->clients[j]))
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

		if (a && (!certain || !a->several || is_for_one(&h->clients[i], &one)))
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

void deadlock_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct host *h = c->host;
	struct graph g = { 0 };

	h->w->stats->deadlocks++;
	c->asking = a->command == COMMAND_MLOCK; /* others wait for what it has taken */
	fill(&g, h, false);
	add_edges(&g, c, a, false);
	close_over(&g, h);
	c->asking = false;
	/* That it half-closes may not be known to its host yet: then its wait is no try. */
	if (g.edge[c->conn][c->conn] && h->conf.deadlock_detection && a->wait_ms != 0)
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
	if (!waiting || !h->conf.deadlock_detection)
		return;
	fill(&g, h, true);
	close_over(&g, h);
	for (i = 0; i < h->client_count; i++)
		if (g.edge[i][i])
			world_fail(h->w, h->clients[i].current.lock, "host %d: client %d waits for itself", h->index,
				   i);
}

void deadlock_owner_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	bool may_hold = c->permits.count, holds = permits_valid(c), done = slice_eq(reply, SLICE("+OK\r\n"));
	int i;

	for (i = 0; i < LOCKS_MAX; i++) {
		const struct holding *g = &c->holding[i];

		may_hold = may_hold || (g->held && !g->lost) || c->wait[i].on;
		holds = holds || (g->held && !g->lost && !ask_unsure(g)) || (c->wait[i].on && !c->wait[i].blind);
	}
	if (done ? holds : !may_hold || reply.len < 4 || memcmp(reply.data, "-ERR", 4) != 0)
		world_fail(c->host->w, -1, "host %d client %u: OWNER is for who neither holds nor waits: %.*s", c->host->index,
			   c->conn, (int)reply.len, reply.data);
	if (done)
		c->owner = a->owner;
}
