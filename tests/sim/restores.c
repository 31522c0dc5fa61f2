/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All servers are stopped, get an older state from a backup, and are started again: their transactions begin again
 * behind what hosts have seen, perhaps twice from one backup. A host that can see that must not grant what would repeat
 * a token, until an operator has done what the log says. It can see it if the first of its writes after that has a
 * number that is not above all that it was answered before, or if its own znode is there as it was before its latest
 * heartbeat: unless it was away until that had expired. And it cannot know what others were given when it was away while
 * two leaders were elected, or since before an operator raised the numbers. What such a host says helps only if it names
 * a number that is above all that were given. Without a restore no host may say that there was one.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/state.h"

/* The upper half of a number counts the leaders. */
enum { EPOCH_SHIFT = 32 };

/* By chance, of all: a single server, which counts no leaders; a host that cannot reach the restored servers; an operator
 * who raises the numbers before the servers start. */
enum { SINGLE_PERCENT = 30, AWAY_PERCENT = 40, NEW_BACKUP_PERCENT = 40, RAISED_PERCENT = 30 };

static int64_t between(struct world *w, int64_t from, int64_t to)
{
	return rng_between(&w->restores.rng, from, to);
}

static int64_t number_of(const struct zk_stat *s)
{
	int64_t highest = s->czxid > s->mzxid ? s->czxid : s->mzxid;

	return highest > s->pzxid ? highest : s->pzxid;
}

struct restores_answer restores_answer(const struct host *h, const struct event *e)
{
	struct restores_answer ret = { 0 };
	const struct operation *op;

	if (e->type != EVENT_ZK_ANSWERED || e->zk_answered.code != ZK_OK || !h->w->mix->restore_every_ms)
		return ret;
	op = operation_find(&h->broker->ensemble, e->zk_answered.op);
	if (!op)
		return ret;
	ret.number = number_of(&e->zk_answered.stat);
	ret.write = op->flight.write;
	if (op->kind == OPERATION_BEAT || op->kind == OPERATION_DUPLICATE)
		ret.own = e->zk_answered.stat.mzxid;
	return ret;
}

void restores_answered(struct host *h, const struct restores_answer *a)
{
	struct world *w = h->w;

	if (a->number && a->write && h->restores_met != w->restores.count) {
		h->restores_met = w->restores.count;
		h->unaware = h->unaware || (a->number > h->seen && !h->undone);
	}
	if (a->number && a->write)
		h->wrote_at = w->sched.now;
	if (a->number > h->seen)
		h->seen = a->number;
	if (a->own)
		h->own = a->own;
}

static const struct znode *own_znode(struct host *h)
{
	char path[128];
	int len = snprintf(path, sizeof(path), "%s/.hosts/%s", h->conf.root, h->name);

	return fakezk_find(&h->w->zk, (struct slice){ path, (size_t)len }, FAKEZK_TRUTH);
}

/* The older state is in place: whose latest heartbeat is gone, and an older one is there? */
void restores_done(void *world)
{
	struct world *w = world;

	w->restores.count++;
	w->restores.raised = !w->zk.single && rng_percent(&w->restores.rng, RAISED_PERCENT);
	if (w->restores.raised)
		w->zk.epoch = (w->restores.given >> EPOCH_SHIFT) + 2;
	w->restores.at = w->sched.now;
	w->stats->restores++;
	for (size_t i = 0; i < REPLACED_MAX; i++)
		if (w->replaced[i] > fakezk_zxid(&w->zk))
			w->replaced[i] = 0; /* the number may be that of another znode */
	for (int i = 0; i < w->host_count; i++) {
		struct host *h = &w->hosts[i];
		const struct znode *n = own_znode(h);

		h->undone = n && n->view[FAKEZK_TRUTH].mzxid < h->own;
		h->unaware = h->unaware || h->wrote_at < w->restores.raised_at ||
			     w->restores.given >> EPOCH_SHIFT > (h->seen >> EPOCH_SHIFT) + 1;
	}
}

/* A host that could not reach the restored servers until shortly before that finds nothing of its own. */
void restores_expired(struct world *w, const struct zsession *s)
{
	int64_t enough = w->sched.now - w->timeout / 2;

	if (enough < w->restores.at)
		enough = w->restores.at;
	for (int i = 0; i < w->host_count; i++) {
		const struct znode *n = w->restores.count ? own_znode(&w->hosts[i]) : NULL;

		if (n && n->session == s && w->hosts[i].zk->reachable_at > enough)
			w->hosts[i].undone = false;
	}
}

/* A process that does not go on with what the one before knew. */
void restores_begin(struct host *h)
{
	h->seen = h->own = 0;
	h->restores_met = h->w->restores.count;
	h->unaware = h->w->restores.count > 0;
}

bool restores_excuse(const struct host *h, int64_t token)
{
	return h->unaware || token >> 10 <= h->excused;
}

void restores_logged(struct host *h, struct slice text)
{
	const char *leaders = memmem(text.data, text.len, "of its servers to ", 18);
	const char *above = memmem(text.data, text.len, "transactions are above ", 23);
	int64_t number;

	if (!memmem(text.data, text.len, "ZooKeeper has gone back", 23))
		return;
	if (!h->w->restores.count)
		world_fail(h->w, -1, "host %d says that an older state was restored, and none was", h->index);
	/* Of earlier restores more may be demanded. */
	if (h->w->restores.raised && h->w->restores.count == 1)
		world_fail(h->w, -1, "host %d demands more than what an operator has raised the numbers to", h->index);
	if (!leaders || !above)
		world_fail(h->w, -1, "host %d does not say what an operator is to do", h->index);
	number = h->w->zk.single ? strtoll(above + 23, NULL, 16) : strtoll(leaders + 18, NULL, 10);
	if (number > h->w->restores.advised)
		h->w->restores.advised = number;
}

/* At least. */
static int64_t next_number(const struct fakezk *z)
{
	return z->single ? z->counter + 1 : (z->epoch + 1) << EPOCH_SHIFT;
}

/* An operator does what the logs say; a single server's numbers grow by themselves. */
static void operate(void *world, uint64_t argument)
{
	struct world *w = world;
	int64_t advised = w->restores.advised, before = fakezk_zxid(&w->zk);

	(void)argument;
	sched_at(&w->sched, w->sched.now + between(w, w->timeout, 3 * w->timeout), operate, w, 0);
	if (w->zk.leader < 0 || (w->zk.single ? w->zk.counter : w->zk.epoch - 1) >= advised)
		return;
	TRACE(w, -1, "an operator does what the logs say: %lld", (long long)advised);
	if (w->zk.single)
		w->zk.counter = advised;
	else if (!fakezk_raise(&w->zk, advised, w->tick))
		return;
	w->restores.raised_at = w->sched.now;
	for (int i = 0; i < w->host_count; i++) {
		struct host *h = &w->hosts[i];

		h->zk->reachable_at = 0;
		if (!h->unaware || next_number(&w->zk) <= w->restores.given)
			continue; /* it was named by hosts that know too little, and the others know no more */
		h->excused = before;
		h->unaware = false;
	}
}

static void restore(struct world *w)
{
	struct host *away = &w->hosts[rng_below(&w->restores.rng, (uint32_t)w->host_count)];
	int64_t outage = 2 * w->timeout + between(w, 0, w->timeout), until = w->sched.now + outage + 4 * w->timeout;

	if (!fakezk_restore(&w->zk, outage))
		return;
	if (w->restores.given < fakezk_zxid(&w->zk))
		w->restores.given = fakezk_zxid(&w->zk);
	TRACE(w, -1, "an older state is restored");
	if (rng_percent(&w->restores.rng, AWAY_PERCENT))
		away->zk->reachable_at = until;
	if (w->last_fault < until)
		w->last_fault = until;
}

static void due(void *world, uint64_t argument)
{
	struct world *w = world;

	(void)argument;
	if (w->quiet)
		return;
	if (!w->zk.backup.made || rng_percent(&w->restores.rng, NEW_BACKUP_PERCENT))
		fakezk_back_up(&w->zk);
	else
		restore(w);
	sched_at(&w->sched, w->sched.now + between(w, 1, 2 * w->mix->restore_every_ms) * MS, due, w, 0);
}

void restores_init(struct world *w)
{
	w->restores.rng.state = w->seed * 0x8cb92ba72f3d8dd7u + 19;
	w->zk.single = w->mix->restore_every_ms && rng_percent(&w->restores.rng, SINGLE_PERCENT);
}

void restores_start(struct world *w)
{
	if (!w->mix->restore_every_ms)
		return;
	sched_at(&w->sched, w->sched.now + between(w, 1, 2 * SECOND), due, w, 0);
	sched_at(&w->sched, w->sched.now + w->timeout, operate, w, 0);
}
