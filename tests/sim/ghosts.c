/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ghosts: the connections that a kill has cut. Their processes live on for a while, and rely on their grants as long as
 * these are proven; the next broker learns when the processes end.
 */
#include "world.h"

#include "anything.h"

/* It asked to end its grant, or to downgrade it: the broker may have done so. */
static bool lets_go(const struct caller *c, int lock)
{
	const struct ask *a = &c->current;

	if (a->command == COMMAND_QUIT)
		return true;
	if (!c->asking || a->permits)
		return false;
	return a->command == COMMAND_RESET ||
	       (a->command == COMMAND_MUNLOCK && (a->several & 1U << lock)) ||
	       ((a->command == COMMAND_UNLOCK || a->command == COMMAND_RENEW) && a->lock == lock);
}

/* The process lives on for a while, and relies on its grants. If they are not proven, it sees that it was cut off. */
static void believe(struct host *h, const struct caller *c, int64_t until)
{
	struct world *w = h->w;

	for (int lock = 0; lock < w->lock_count; lock++) {
		const struct holding *g = &c->holding[lock];
		bool less = c->asking && c->current.command == COMMAND_DOWNGRADE && c->current.lock == lock;

		if (check_grant_valid(c, lock) && !lets_go(c, lock))
			w->belief[w->belief_count++ % BELIEFS_MAX] = (struct belief){
				.host = h,
				.lock = lock,
				.token = g->token,
				.until = until < g->lease_until ? until : g->lease_until,
				.kept_out = true,
				.shared = g->shared || less,
			};
	}
}

void ghost_leave(struct host *h, uint32_t conn)
{
	struct world *w = h->w;
	int64_t dies = w->sched.now, until = INT64_MAX;

	if (h->ghosts[conn].on)
		return;
	if (rng_percent(&h->w->kills.rng, 60))
		dies += rng_between(&h->w->kills.rng, MS, w->timeout);
	if (!h->conf.standalone)
		until = h->frozen_until - h->offset;
	until = until < dies ? until : dies;
	if (!w->any)
		believe(h, &h->clients[conn], until);
	h->ghosts[conn].until = until + rng_between(&h->w->kills.rng, 0, 300 * MS);
}

static void ghost_due(void *host, uint64_t conn)
{
	struct host *h = host;
	struct ghost *g = &h->ghosts[conn];
	int64_t now = h->w->sched.now, again = g->until > now ? g->until : h->stopped_until;

	if (!g->on)
		return;
	if (again > now || !h->broker || h->dying) {
		sched_at(&h->w->sched, again > now ? again : now + MS, ghost_due, h, conn);
		return;
	}
	TRACE(h->w, -1, "host %d: the process of connection %d has ended", h->index, (int)conn);
	host_handle(h, &(struct event){ .type = EVENT_CLIENT_GONE, .conn = (uint32_t)conn });
	g->on = false;
	h->holds[conn] = false;
}

bool ghost_takes(struct host *h, const struct effect *e)
{
	if (e->conn > CLIENTS_MAX || !h->ghosts[e->conn].on)
		return false;
	if (e->type == EFFECT_CLOSE) {
		h->ghosts[e->conn].until = h->w->sched.now;
		sched_at(&h->w->sched, h->w->sched.now, ghost_due, h, e->conn);
	}
	return true;
}

void ghosts_forget(struct host *h, int lock)
{
	for (size_t i = 0; i < BELIEFS_MAX; i++) {
		struct belief *b = &h->w->belief[i];

		if (b->kept_out && b->host == h && (lock < 0 || b->lock == lock))
			b->until = 0;
	}
}

void ghosts_find(struct host *h)
{
	for (uint32_t i = 0; i < host_conns(h); i++) {
		bool was = h->ghosts[i].on;

		if (h->kept[i] && !broker_has_client(h->broker, i))
			world_fail(h->w, -1, "host %d: the kept connection %u is nobody's", h->index, i);
		h->ghosts[i].on = !h->kept[i] && broker_has_client(h->broker, i);
		if (h->ghosts[i].on && h->ghosts[i].until + h->w->timeout > h->w->last_fault)
			h->w->last_fault = h->ghosts[i].until + h->w->timeout;
		if (h->ghosts[i].on && !was)
			sched_at(&h->w->sched, h->w->sched.now, ghost_due, h, i);
	}
}
