/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host's daemon leaves to the next one: its session, the last instant that a holder can have learnt as safe, and
 * its holders. Their processes outlive it or not, by chance, and rely on their locks until that instant. It also keeps
 * the sessions that the daemon gives up itself.
 */
#include "world.h"

#include "core/state.h"

static const int64_t LOOK_NS = 250 * MS;

void saved_holder(struct host *h, uint32_t conn, bool holds)
{
	if (conn >= (uint32_t)h->client_count || h->holds[conn] == holds)
		world_fail(h->w, -1, "host %d: client %u %s anyway", h->index, conn, holds ? "holds" : "does not hold");
	h->holds[conn] = holds;
}

static void believe(struct host *h, const struct caller *c, int64_t dies)
{
	struct world *w = h->w;
	int64_t until = h->saved_until - h->offset;
	int lock;

	if (until > dies)
		until = dies;
	for (lock = 0; lock < w->lock_count; lock++)
		if (check_grant_valid(c, lock))
			w->belief[w->belief_count++ % BELIEFS_MAX] =
				(struct belief){ .host = h, .lock = lock, .token = c->holding[lock].token, .until = until };
}

static void forget(struct host *h, int at)
{
	memmove(&h->saved[at], &h->saved[at + 1], sizeof(h->saved[0]) * (size_t)(--h->saved_count - at));
}

void saved_leave_session(struct host *h)
{
	struct saved *s;

	if (h->conf.standalone || !h->session)
		return;
	if (h->saved_count == SAVED_MAX)
		forget(h, 0);
	s = &h->saved[h->saved_count++];
	*s = (struct saved){ .session = h->session, .not_before = h->saved_until };
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (h->ghosts[i].on || !h->kept[i])
			s->holder_dies[i] = h->ghosts[i].until;
	h->session = 0;
}

void saved_leave(struct host *h)
{
	struct world *w = h->w;
	struct saved *s;
	int i;

	if (h->conf.standalone)
		ghosts_forget(h, -1);
	if (h->conf.standalone || !h->session) {
		memset(h->holds, 0, sizeof(h->holds));
		return;
	}
	if (h->saved_count == SAVED_MAX)
		forget(h, 0);
	s = &h->saved[h->saved_count++];
	*s = (struct saved){ .session = h->session, .not_before = h->saved_until };
	for (i = 0; i < h->client_count; i++) {
		int64_t dies = rng_percent(&w->rng, 50) ? w->sched.now + rng_between(&w->rng, MS, w->timeout) : 0;

		if (h->ghosts[i].on)
			dies = h->ghosts[i].until;
		if (dies)
			believe(h, &h->clients[i], dies);
		if (h->holds[i])
			s->holder_dies[i] = dies;
		h->holds[i] = false;
	}
	h->session = 0;
}

static bool holders_live(const struct host *h, const struct saved *s)
{
	int i;

	for (i = 0; i < CLIENTS_MAX; i++)
		if (s->holder_dies[i] > h->w->sched.now)
			return true;
	return false;
}

static struct saved *find(struct host *h, int64_t session)
{
	int i;

	for (i = 0; i < h->saved_count; i++)
		if (h->saved[i].session == session)
			return &h->saved[i];
	return NULL;
}

/* Only the last session's table is kept: of older ones no more is known than the instant. */
static struct saved *with_holders(struct host *h)
{
	int i = h->saved_count - 1;

	while (i >= 0 && h->saved[i].own)
		i--;
	return i >= 0 ? &h->saved[i] : NULL;
}

static void look(void *host, uint64_t life)
{
	struct host *h = host;
	struct saved *s = with_holders(h);
	struct event e = { .type = EVENT_FORMER_FREE };

	if (life != h->life || !h->broker || !s || !s->not_before)
		return;
	if (h->stopped_until > h->w->sched.now || holders_live(h, s)) {
		sched_at(&h->w->sched, h->w->sched.now + LOOK_NS, look, h, life);
		return;
	}
	s->not_before = 0;
	e.former.session = s->session;
	host_handle(h, &e);
}

void saved_formers(struct host *h)
{
	for (int i = 0; i < h->saved_count; i++)
		h->formers[i] = (struct broker_former){ h->saved[i].session, h->saved[i].not_before };
	h->conf.formers = h->formers;
	h->conf.former_count = (size_t)h->saved_count;
	sched_at(&h->w->sched, h->w->sched.now + LOOK_NS, look, h, h->life + 1);
}

void saved_begin(struct host *h)
{
	struct saved *last = with_holders(h);

	/* Somebody removed the file, or it was garbled. */
	if (rng_percent(&h->w->rng, 15) || h->file_lost)
		h->saved_count = h->given_up = 0;
	else if (last && !holders_live(h, last))
		last->not_before = 0;
	h->file_lost = false;
	saved_formers(h);
}

static struct zsession *session_of(struct fakezk *z, int64_t id)
{
	struct zsession *s;

	LIST_FOREACH(s, &z->sessions, link)
		if (s->id == id && s->alive)
			return s;
	return NULL;
}

static void end_due(void *host, uint64_t session)
{
	struct host *h = host;
	struct world *w = h->w;
	struct saved *s = find(h, (int64_t)session);
	struct event e = { .type = EVENT_FORMER_OVER };
	struct zsession *left;

	if (!s || !h->broker)
		return;
	if (w->zk.leader < 0 || h->zk->reachable_at > w->sched.now || h->stopped_until > w->sched.now) {
		sched_at(&w->sched, w->sched.now + 100 * MS, end_due, h, session);
		return;
	}
	e.former.session = s->session;
	e.former.ended = rng_percent(&w->rng, 95);
	left = session_of(&w->zk, s->session);
	TRACE(w, -1, "host %d ends the session %llx of an earlier life", h->index, (unsigned long long)session);
	if (!e.former.ended && h->given_up == s->session)
		h->given_up = 0;
	if (left && e.former.ended)
		fakezk_session_close(&w->zk, left, (struct txn){ .origin = -1 }, ZK_BY_SESSION);
	forget(h, (int)(s - h->saved));
	host_handle(h, &e);
}

void saved_end(struct host *h, int64_t session)
{
	const struct saved *s = find(h, session);

	if (!s || host_now(h) < s->not_before)
		world_fail(h->w, -1, "host %d ends a session that is %s", h->index,
			   s ? "believed in" : "none of those that are left");
	sched_at(&h->w->sched, h->w->sched.now + rng_between(&h->w->rng, MS, 200 * MS), end_due, h, (uint64_t)session);
}

void saved_add(struct host *h, int64_t session)
{
	if (session != h->session)
		world_fail(h->w, -1, "host %d gives up a session that its file does not name (any more)", h->index);
	if (h->saved_count == SAVED_MAX)
		forget(h, 0);
	h->saved[h->saved_count++] = (struct saved){ .own = true, .session = session, .not_before = h->saved_until };
	h->session = 0;
}

void saved_given_up(struct host *h)
{
	const struct zsession *s = h->zk->session;

	/* What an earlier process had it cannot give up. */
	if (!s || !s->alive || h->began_at == h->w->sched.now)
		return;
	h->given_up = s->id;
	h->given_up_at = h->w->sched.now;
	h->given_up_told = h->saved_until - h->offset;
	/* The answer that shows a restore may have proven the session, and the proof may have been told, in the same event. */
	if (h->answered)
		h->given_up_told = h->given_up_at + h->w->timeout / 3 * 2;
}

void saved_check_given_up(struct host *h)
{
	const struct world *w = h->w;
	int64_t since = w->quiet_at > w->zk.led_at ? w->quiet_at : w->zk.led_at;

	if (!h->given_up || !h->broker || h->stopping || w->zk.leader < 0 || !session_of(&h->w->zk, h->given_up))
		return;
	/* Before, the next session has to look at what it has left. */
	if (!past_may_end(&h->broker->ensemble))
		h->given_up_at = w->sched.now;
	if (h->given_up_at > since)
		since = h->given_up_at;
	if (h->given_up_told > since)
		since = h->given_up_told;
	if (h->began_at > since)
		since = h->began_at;
	if (w->sched.now > since + 3 * SECOND)
		world_fail(h->w, -1, "host %d: a session that it has given up is still there", h->index);
}
