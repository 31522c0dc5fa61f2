/* SPDX-License-Identifier: Apache-2.0 */
#include "core/drain.h"

#include "core/client/notify.h"
#include "core/client/tell.h"
#include "core/state.h"

static void end_all_requests(struct broker *b)
{
	struct client *c;
	struct request *r;

	TAILQ_FOREACH(c, &b->locks.clients, link)
		while ((r = TAILQ_FIRST(&c->requests)))
			request_fail(r, ERROR_DRAINING, "the daemon is stopping");
	tell_outcomes(&b->locks); /* before the holders are asked to release */
	audit_stopping(&b->hosts);
}

void drain(struct broker *b)
{
	struct directory *d;
	struct lock *lock;
	struct grant *g;

	if (b->env.stopping)
		return;
	b->env.stopping = true;
	end_all_requests(b);
	TAILQ_FOREACH(lock, &b->locks.used, link) {
		LOCK_DIRECTORIES(d, lock)
			directory_touch(d);
		TAILQ_FOREACH(g, &lock->grants, link)
			/* A client that is closed because it does not read would lose all that it holds. */
			if (!notify_full(g->client))
				notify_revoke(g->client, g, SLICE("stopping"));
	}
	heap_set(&b->env.timers, &b->stop_timer, b->env.now_ns + b->env.conf->stop_timeout_ns);
}

void drain_end(struct broker *b, bool close_session)
{
	struct effect *e;

	if (b->stopped)
		return;
	b->stopped = true;
	heap_unset(&b->env.timers, &b->stop_timer);
	e = effects_add(b->env.out, EFFECT_STOPPED);
	e->close_session = close_session;
	e->refused = b->refused;
}

void drain_refuse(struct broker *b)
{
	if (b->env.stopping)
		return;
	b->refused = true;
	drain(b);
}
