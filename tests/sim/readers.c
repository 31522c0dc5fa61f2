/* SPDX-License-Identifier: Apache-2.0 */
/* Shared and exclusive requests: none waits for long without need. checks.c checks what must not be granted. */
#include "world.h"

enum { LOOK_EVERY_NS = 1500000000, ROOM_FOR_NEXT = 1000 };

static const int64_t WITHIN = 5 * SECOND;

/* What a client waits with, and who it is. */
struct front {
	const struct caller *caller; /* NULL: nobody waits, or it is not known who is first */
	const struct ask *ask;
};

/* The request that its host has to serve first. */
static struct front front(const struct host *h, int lock)
{
	struct front first = { 0 };
	int i;

	if (several_asked_by_any(h, lock))
		return first;
	for (i = 0; i < h->client_count; i++) {
		const struct caller *c = &h->clients[i];
		const struct ask *a = check_waiting_ask(c, lock);

		if (c->wait[lock].on && c->wait[lock].blind)
			return (struct front){ 0 };
		if (a && (!first.ask || a->order < first.ask->order))
			first = (struct front){ c, a };
	}
	return first;
}

/* It will go on waiting: no end of its own is near. */
static bool stays(struct front f, int64_t now)
{
	return f.caller->state == CLIENT_ON && !f.caller->half_closed && !check_resetting(f.caller) &&
	       (f.ask->wait_ms < 0 || f.ask->asked_at + f.ask->wait_ms * MS > now);
}

/* What the clients of a host hold of a lock. */
struct held {
	bool readers, writer, meddled;
	int64_t token;  /* of a reader */
	int64_t latest; /* nobody who reads was granted, or downgraded, after that */
};

static struct held held_of(const struct host *h, int lock)
{
	struct held held = { 0 };
	int i;

	for (i = 0; i < h->client_count; i++) {
		const struct holding *g = &h->clients[i].holding[lock];

		held.latest = g->held && g->since > held.latest ? g->since : held.latest;
		held.meddled = held.meddled || (g->held && holding_unsure(g));
		held.readers = held.readers || (g->held && !g->lost && g->shared);
		held.token = g->held && !g->lost && g->shared ? g->token : held.token;
		held.writer = held.writer || (g->held && !g->lost && !g->shared) || delegations_may_lose(&h->clients[i], lock);
	}
	return held;
}

/* Where nobody else is asked nothing keeps a reader from joining readers, nor where nobody else is known to wait. */
static bool may_join(struct host *h, int lock)
{
	struct held held = held_of(h, lock);

	return !h->stopping && held.readers && !held.writer && !held.meddled &&
	       (h->conf.standalone || known_open(h, lock, held.token));
}

void readers_check_together(struct host *h)
{
	struct world *w = h->w;
	int i, lock;

	/*
	 * Who stood behind somebody who goes in this very event was not at the front when its deadlines were applied; and
	 * whoever is to be closed stands there until it has gone.
	 */
	for (i = 0; i < h->client_count; i++)
		if (h->clients[i].going || h->clients[i].state == CLIENT_CLOSING)
			return;
	/* The rest of a batch may be left for a turn. */
	if (h->conf.all_in_pieces && broker_has_work(h->broker))
		return;
	for (lock = 0; lock < w->lock_count; lock++) {
		/* A writer has it: he came before, when the readers had gone in this very event. */
		bool free = !held_of(h, lock).writer, batch = free && h->read_at_step[lock] == w->sched.steps;
		int64_t before = free && may_join(h, lock) ? w->sched.now : batch ? h->batch[lock].at : 0;
		struct front f = before ? front(h, lock) : (struct front){ 0 };

		if (f.ask && f.ask->shared && f.ask->asked_at < before && stays(f, w->sched.now))
			world_fail(w, lock, "host %d: others read %s, and client %u, who is next, does not", h->index,
				   w->lock_name[lock], f.caller->conn);
	}
}

/* The lock's znodes, in the truth, as one host sees them. */
struct queue {
	int own, own_writers;
	bool entitled;       /* one of its own covers the mode, and nothing keeps that from being entitled */
	bool others;         /* somebody else conflicts with its first */
	bool turn;           /* the first is a reader's, and so is one that has its turn, too */
};

static struct queue queue_of(const struct host *h, const struct znode *dir, bool shared)
{
	struct queue q = { 0 };
	const struct znode *n, *first = NULL;

	TAILQ_FOREACH(n, &dir->children, sibling) {
		bool own = n->session && n->session == h->zk->session;

		if (!n->view[FAKEZK_TRUTH].exists)
			continue;
		first = first || !own ? first : n;
		q.own += own;
		q.own_writers += own && !check_is_reader(n);
		q.entitled = q.entitled || (own && (shared || !check_is_reader(n)) && !check_ahead_of(h->w, n));
		q.turn = q.turn || (own && n != first && check_is_reader(first) && check_is_reader(n) && !check_ahead_of(h->w, n));
	}
	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->view[FAKEZK_TRUTH].exists && n->session != h->zk->session && first &&
		    !(check_is_reader(n) && check_is_reader(first)))
			q.others = true;
	return q;
}

/* Of one who waits behind readers of its host: a writer on their shared claim; a reader because others wait elsewhere. */
static bool lacks_next(const struct host *h, const struct queue *q, struct held held, bool shared)
{
	const struct world *w = h->w;

	/* The directory of one near its wrap takes no more; an operator who deletes next is noticed late. */
	if (!held.readers || h->conf.limits.session_path_bytes <= ROOM_FOR_NEXT || w->mix->near_wrap ||
	    w->mix->operator_every_ms)
		return false;
	return shared ? q->own == 1 && q->others : q->own && !q->own_writers;
}

static bool moved(const struct world *w, const struct znode *dir, int lock, int64_t since)
{
	const struct znode *n;

	if (w->deleted_at[lock] > since)
		return true;
	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->created_at > since)
			return true;
	return false;
}

static void look_at(struct host *h, int lock)
{
	struct world *w = h->w;
	int64_t since = w->sched.now - WITHIN - w->slow_ns;
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	const struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH);
	struct front f = front(h, lock);
	struct held held = held_of(h, lock);
	struct queue q;

	if (f.ask && f.ask->order != h->front_order[lock]) {
		h->front_order[lock] = f.ask->order;
		h->front_at[lock] = w->sched.now;
	}
	if (!f.ask || !dir || !h->broker || h->stopping || !stays(f, w->sched.now) || f.ask->asked_at > since)
		return;
	if (w->last_fault > since || held.meddled || held.writer || moved(w, dir, lock, since))
		return;
	q = queue_of(h, dir, f.ask->shared);
	if (f.ask->shared && h->front_at[lock] > since && held.readers)
		return;
	if (lacks_next(h, &q, held, f.ask->shared))
		world_fail(w, lock, "host %d: client %u waits for %s behind its host's claim, and next is not queued", h->index,
			   f.caller->conn, w->lock_name[lock]);
	if (held.readers && !f.ask->shared)
		return;
	if (q.entitled && (held.readers ? (!q.others || q.turn) && held.latest <= since : h->moved_at[lock] <= since))
		world_fail(w, lock, "host %d: nothing keeps client %u from being granted %s, and it waits", h->index, f.caller->conn,
			   w->lock_name[lock]);
}

static void look(void *world, uint64_t argument)
{
	struct world *w = world;
	int h, lock;

	(void)argument;
	if (!w->mix->standalone)
		for (h = 0; h < w->host_count; h++)
			for (lock = 0; lock < w->lock_count; lock++)
				look_at(&w->hosts[h], lock);
	sched_at(&w->sched, w->sched.now + LOOK_EVERY_NS, look, w, 0);
}

void readers_start(struct world *w)
{
	look(w, 0);
}
