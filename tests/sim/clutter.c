/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that run every few seconds: they look for znodes that no client of their host wants any longer, orphans that
 * their host should have seen, and locks that a client waits for although nothing moves.
 */
#include "world.h"

#include <inttypes.h>

enum { ONE_ZNODE = 1000 }; /* bytes of paths: there may be no room for a second one */

static void check_clutter(struct host *h, int lock)
{
	struct world *w = h->w;
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	int64_t since = h->wanted_at[lock] > w->last_fault ? h->wanted_at[lock] : w->last_fault;
	struct znode *dir, *n;
	bool lingers;
	int i;

	for (i = 0; i < h->client_count; i++) {
		const struct caller *c = &h->clients[i];

		if (c->holding[lock].held || c->wait[lock].on || several_asked(c, lock) || check_waiting_ask(c, lock) ||
		    delegations_may_lose(c, lock)) {
			h->wanted_at[lock] = w->sched.now;
			return;
		}
	}
	since += 3 * SECOND + w->slow_ns;
	if (since > w->sched.now)
		return;
	lingers = !w->election[lock] && since + h->loosest.linger_ns > w->sched.now;
	dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH);
	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && n->session && n->session == h->zk->session && !stray_is(n) &&
			    n->created_at + 3 * SECOND + w->slow_ns < w->sched.now && (!lingers || tries_says_held(n)))
				world_fail(w, lock, "host %d: nobody has wanted %s for a while, and %s is still there", h->index,
					   w->lock_name[lock], n->path);
}

static bool holds_any(const struct host *h, int lock)
{
	int i;

	for (i = 0; i < h->client_count; i++)
		if (h->clients[i].holding[lock].held || delegations_may_lose(&h->clients[i], lock))
			return true;
	return false;
}

static bool has_znode(const struct host *h, const struct znode *dir, int64_t since)
{
	const struct znode *n;

	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->view[FAKEZK_TRUTH].exists && n->created_at < since && n->session && n->session == h->zk->session)
			return true;
	return false;
}

/*
 * A host whose znode an operator took learns it only when the one before goes; one with room for a single znode waits
 * for its own readers behind others.
 */
static bool somebody_waits(const struct world *w, int lock, const struct znode *dir, int64_t since)
{
	int h, i;

	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++) {
			const struct ask *a = check_waiting_ask(&w->hosts[h].clients[i], lock);

			if (w->hosts[h].conf.limits.session_path_bytes <= ONE_ZNODE && holds_any(&w->hosts[h], lock))
				break;
			if (a && a->asked_at < since && has_znode(&w->hosts[h], dir, since))
				return true;
		}
	return false;
}

/* The list that comes with a join shows what was made before: an orphan older than a claim of its host is deleted. */
static void check_orphans(struct host *h, int lock)
{
	struct world *w = h->w;
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n, *claim = NULL;

	if (!dir)
		return;
	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->view[FAKEZK_TRUTH].exists && n->session && n->session == h->zk->session && !stray_is(n) &&
		    n->created_at + 3 * SECOND + w->slow_ns < w->sched.now)
			claim = n;
	if (!claim || w->last_fault > claim->created_at - 3 * SECOND - w->slow_ns)
		return;
	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->view[FAKEZK_TRUTH].exists && stray_is(n) && n->session == claim->session && n->czxid < claim->czxid)
			world_fail(w, lock, "host %d has joined %s by %s, and has left its own %s where it is", h->index,
				   w->lock_name[lock], claim->path, n->path);
}

/* Whoever has the first znode of a lock that somebody waits for grants it, or gives it back, in time. */
static void check_moves(struct world *w, int lock)
{
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n = NULL;
	int64_t since = w->sched.now - 5 * SECOND - w->slow_ns;
	struct host *h;
	int i;

	if (!dir || w->last_fault > since || !somebody_waits(w, lock, dir, since))
		return;
	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->view[FAKEZK_TRUTH].exists)
			break;
	h = n ? check_host_of(w, n->session) : NULL;
	if (!h || stray_is(n) || n->created_at > since || h->moved_at[lock] > since || w->deleted_at[lock] > since)
		return;
	for (i = 0; i < h->client_count; i++)
		if (h->clients[i].holding[lock].held || delegations_may_lose(&h->clients[i], lock) ||
		    (h->clients[i].wait[lock].on && h->clients[i].wait[lock].blind))
			return;
	if (several_asked_by_any(h, lock))
		return;
	world_fail(w, lock, "host %d has the first znode of %s, and grants nothing although somebody waits", h->index,
		   w->lock_name[lock]);
}

/*
 * What stood when the client asked is gone. A follower's lists are late, but not later than the last answered write,
 * which is never older than the time from one heartbeat to the drop of a silent server.
 */
void check_audited(struct caller *c, const struct ask *a)
{
	struct world *w = c->host->w;
	int lock;

	for (lock = 0; lock < w->lock_count; lock++) {
		struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
		struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n;

		if (!dir)
			continue;
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && stray_is(n) && n->session == c->host->zk->session &&
			    n->created_at < a->asked_at - w->timeout / 2 - w->slow_ns)
				world_fail(w, lock, "host %d: an AUDIT asked %" PRId64 " ms after %s was made has left it",
					   c->host->index, (a->asked_at - n->created_at) / MS, n->path);
	}
}

static void look_for_clutter(void *world, uint64_t argument)
{
	struct world *w = world;
	int h, lock;

	(void)argument;
	for (h = 0; h < w->host_count; h++)
		for (lock = 0; lock < w->lock_count; lock++) {
			check_clutter(&w->hosts[h], lock);
			check_orphans(&w->hosts[h], lock);
		}
	for (lock = 0; lock < w->lock_count; lock++)
		check_moves(w, lock);
	sched_at(&w->sched, w->sched.now + 3 * SECOND, look_for_clutter, w, 0);
}

void clutter_start(struct world *w)
{
	look_for_clutter(w, 0);
}
