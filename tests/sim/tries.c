/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a try is answered that the lock is taken, another contender held it, waited for it or tried to acquire it, or
 * the time that an idle claim has for its release has passed. And a request that waits has a znode that other hosts
 * count.
 */
#include "world.h"

#include "core/znode/contender.h"

#include <inttypes.h>

enum { LOOK_EVERY_NS = 1700000000 };

/* What has ended is known everywhere by then, where nothing is broken. */
static const int64_t KNOWN_WITHIN = 600 * MS, WITHIN = 5 * SECOND;

/* Who holds it, or asks for it; two stand for all who hold. */
static int interested(const struct host *h, int lock, const struct caller *but)
{
	int i, count = 0;

	for (i = 0; i < h->client_count; i++) {
		const struct caller *c = &h->clients[i];

		if (c == but)
			continue;
		count += check_waiting_ask(c, lock) || c->wait[lock].on || several_asked(c, lock);
		count += c->holding[lock].held || delegations_may_lose(c, lock) ? 2 : 0;
	}
	return count;
}

void tries_before(struct host *h)
{
	int lock;

	for (lock = 0; lock < h->w->lock_count; lock++) {
		int count = interested(h, lock, NULL);

		if (count > 0)
			h->busy_at[lock] = h->w->sched.now;
		if (count > 1)
			h->crowded_at[lock] = h->w->sched.now;
	}
}

/* Of no host that is there, or an operator has overwritten its data: it is taken for one of other software. */
static bool is_strange(struct world *w, const struct znode *n)
{
	size_t i;

	for (i = 0; i < w->overwritten_count && i < OVERWRITTEN_MAX; i++)
		if (w->overwritten[i] == n->czxid)
			return true;
	return n->session && (!check_host_of(w, n->session) || stray_is(n));
}

void tries_deleted(struct world *w, int lock, const struct znode *n)
{
	if (is_strange(w, n))
		w->strange_at[lock] = w->sched.now;
}

static const struct znode *dir_of(struct world *w, int lock)
{
	return fakezk_find(&w->zk, (struct slice){ w->lock_path[lock], w->lock_path_len[lock] }, FAKEZK_TRUTH);
}

static bool was_busy(struct world *w, const struct caller *c, int lock, int64_t since)
{
	const struct znode *dir = dir_of(w, lock), *n;
	int h;

	for (h = 0; h < w->host_count; h++) {
		const struct host *host = &w->hosts[h];

		if (interested(host, lock, c) || (host == c->host ? host->crowded_at : host->busy_at)[lock] >= since)
			return true;
	}
	if (w->strange_at[lock] >= since)
		return true;
	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && is_strange(w, n))
				return true;
	return false;
}

void tries_answered(struct caller *c, const struct ask *a)
{
	struct world *w = c->host->w;
	int64_t now = w->sched.now;

	if (c->host->conf.standalone || now - a->asked_at >= c->host->least_try_ns ||
	    w->last_fault > now - WITHIN - w->slow_ns)
		return;
	if (c->unblocked_at >= a->asked_at)
		return; /* somebody has ended it */
	if (!was_busy(w, c, a->lock, now - KNOWN_WITHIN - w->slow_ns))
		world_fail(w, a->lock,
			   "host %d client %u: %s is said to be taken after %" PRId64 " ms, and nobody wants it",
			   c->host->index, c->conn, w->lock_name[a->lock], (now - a->asked_at) / MS);
}

bool tries_says_held(const struct znode *n)
{
	const struct zdata *data = n->view[FAKEZK_TRUTH].data;

	return data && memmem(data->bytes, data->len, "\nheld=1\n", 8);
}

bool tries_is_one(const struct world *w, int lock, const struct znode *n)
{
	return contender_tries((struct slice){ n->path + n->name_at, n->len - n->name_at }, w->lock_flavour[lock]);
}

static bool somebody_stays(const struct host *h, int lock)
{
	int64_t now = h->w->sched.now;
	int i;

	for (i = 0; i < h->client_count; i++) {
		const struct ask *a = check_waiting_ask(&h->clients[i], lock);

		if (a && h->clients[i].state == CLIENT_ON && !h->clients[i].half_closed &&
		    a->asked_at < now - WITHIN - h->w->slow_ns &&
		    (a->wait_ms < 0 || a->asked_at + a->wait_ms * MS > now))
			return true;
	}
	return false;
}

static void look_at(struct host *h, int lock)
{
	struct world *w = h->w;
	const struct znode *dir = dir_of(w, lock), *n, *tries = NULL;

	if (!dir || !h->broker || w->last_fault > w->sched.now - WITHIN - w->slow_ns || !somebody_stays(h, lock))
		return;
	TAILQ_FOREACH(n, &dir->children, sibling) {
		if (!n->view[FAKEZK_TRUTH].exists || !n->session || n->session != h->zk->session || stray_is(n))
			continue;
		if (!tries_is_one(w, lock, n) || !check_ahead_of(w, n))
			return;
		if (n->created_at < w->sched.now - WITHIN - w->slow_ns)
			tries = n;
	}
	if (tries)
		world_fail(w, lock, "host %d: a client waits for %s, and other hosts take its %s for a try's", h->index,
			   w->lock_name[lock], tries->path);
}

static void look(void *world, uint64_t argument)
{
	struct world *w = world;
	int h, lock;

	(void)argument;
	for (h = 0; h < w->host_count; h++)
		for (lock = 0; lock < w->lock_count; lock++)
			look_at(&w->hosts[h], lock);
	sched_at(&w->sched, w->sched.now + LOOK_EVERY_NS, look, w, 0);
}

void tries_start(struct world *w)
{
	if (!w->mix->standalone)
		look(w, 0);
}
