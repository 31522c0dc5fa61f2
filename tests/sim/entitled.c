/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the truth a znode of the host's present session entitles to grants if no contender before it conflicts with it,
 * but for one of the same session whose tokens are used up (core/claim/claim.h), on which its broker never grants
 * again. There is one exception: a znode that an operator deletes while it is entitled.
 */
#include "world.h"

#include <inttypes.h>

static const int64_t MEDDLED_TOLD_WITHIN = 4 * SECOND;

enum {
	TOKENS_LAST = 1023,
	UNSEEN_MAX = 8, /* grants in a row that nobody read: their clients were gone */
};

static int64_t czxid_of(int64_t token)
{
	return token >> 10;
}

/* ---- used up ---- */

void entitled_granted(struct host *h, int lock, int64_t token)
{
	struct used *used = h->used[lock], *at = &used[0];
	int i;

	for (i = 0; i < USED_MAX; i++) {
		if (used[i].czxid == czxid_of(token))
			break;
		at = used[i].czxid < at->czxid ? &used[i] : at;
	}
	if (i < USED_MAX)
		at = &used[i];
	else
		*at = (struct used){ .czxid = czxid_of(token) };
	at->tokens = (token & 1023) > at->tokens ? token & 1023 : at->tokens;
}

/* As far as what its clients were told shows: a few of its grants nobody may have read. */
static bool is_used_up(const struct world *w, int64_t czxid)
{
	int h, lock, i;

	for (h = 0; h < w->host_count; h++)
		for (lock = 0; lock < w->lock_count; lock++)
			for (i = 0; i < USED_MAX; i++)
				if (w->hosts[h].used[lock][i].czxid == czxid)
					return w->hosts[h].used[lock][i].tokens >= TOKENS_LAST - UNSEEN_MAX;
	return false;
}

bool entitled_followed(const struct world *w, const struct znode *dir)
{
	const struct znode *n;

	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->view[FAKEZK_TRUTH].exists && is_used_up(w, n->czxid) && TAILQ_NEXT(n, sibling))
			return true;
	return false;
}

/* ---- who stands before ---- */

bool check_is_reader(const struct znode *n)
{
	return memmem(n->path, n->len, "-__READ__", 9) || memmem(n->path, n->len, "__rlock__", 9);
}

static bool is_ahead(const struct znode *o, const struct znode *n)
{
	return o->view[FAKEZK_TRUTH].exists && o->czxid < n->czxid && !(check_is_reader(o) && check_is_reader(n));
}

const struct znode *check_ahead_of(const struct world *w, const struct znode *n)
{
	const struct znode *o;

	TAILQ_FOREACH(o, &n->parent->children, sibling)
		if (is_ahead(o, n) && (o->session != n->session || !is_used_up(w, o->czxid)))
			return o;
	return NULL;
}

void check_entitled(struct caller *c, const struct ask *a, int64_t token)
{
	struct world *w = c->host->w;
	struct slice path = { w->lock_path[a->lock], w->lock_path_len[a->lock] };
	struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n, *mine = NULL;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && n->czxid == czxid_of(token))
				mine = n;
	if (!mine || check_host_of(w, mine->session) != c->host)
		world_fail(w, a->lock, "host %d client %u: granted %s on znode %" PRIx64 ", which is %s", c->host->index,
			   c->conn, w->lock_name[a->lock], (uint64_t)czxid_of(token),
			   mine ? "somebody else's" : "gone or never was");
	if (check_is_reader(mine) && !a->shared)
		world_fail(w, a->lock, "host %d client %u: granted exclusively on %s", c->host->index, c->conn, mine->path);
	if (check_ahead_of(w, mine))
		world_fail(w, a->lock, "host %d client %u: granted on %s, and before it stands %s", c->host->index,
			   c->conn, mine->path, check_ahead_of(w, mine)->path);
	w->stats->followed += (token & 1023) == 0 && entitled_followed(w, dir);
}

/* ---- what operators delete ---- */

bool check_is_meddled(const struct world *w, int64_t token)
{
	size_t i;

	for (i = 0; i < w->meddled_count; i++)
		if (w->meddled[i].czxid == czxid_of(token))
			return !w->meddled[i].behind || is_used_up(w, w->meddled[i].behind);
	return false;
}

/* An operator's deletion under a grant must be noticed in time, unless something else goes on. */
static void check_meddled_told(void *world, uint64_t number)
{
	struct world *w = world;
	const struct meddled *m = &w->meddled[number];
	int h, i, lock;

	for (h = 0; h < w->host_count; h++) {
		struct host *host = &w->hosts[h];

		for (i = 0; i < host->client_count; i++)
			for (lock = 0; lock < w->lock_count; lock++) {
				const struct holding *g = &host->clients[i].holding[lock];

				if (!g->held || g->lost || !g->meddled || czxid_of(g->token) != m->czxid)
					continue;
				if (host->clients[i].protocol != 3 || g->since > m->at || w->last_fault > m->at - 2 * SECOND - w->slow_ns)
					continue;
				world_fail(w, lock, "host %d client %u: the znode under its grant of %s was deleted and it "
					   "was never told", h, host->clients[i].conn, w->lock_name[lock]);
			}
	}
}

/* The exception is for znodes that were entitled: on one that only waited no grant may ever be made. */
void entitled_meddle(struct world *w, const struct znode *n)
{
	struct meddled m = { .czxid = n->czxid, .at = w->sched.now };
	const struct znode *o;

	TAILQ_FOREACH(o, &n->parent->children, sibling) {
		if (!is_ahead(o, n))
			continue;
		if (o->session != n->session)
			return;
		/* Right behind one of its host's own it is as good as entitled when that one's tokens are used up. */
		m.behind = o->czxid;
	}
	if (w->meddled_count == MEDDLED_MAX)
		world_fail(w, -1, "the operator meddles too much for this simulator");
	w->meddled[w->meddled_count] = m;
	sched_at(&w->sched, w->sched.now + MEDDLED_TOLD_WITHIN + w->slow_ns, check_meddled_told, w, w->meddled_count++);
}
