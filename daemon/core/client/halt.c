/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/halt.h"

#include "core/client/notify.h"
#include "core/client/tell.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"

static const int64_t ASK_EVERY_NS = 1000000000;

static void end_requests(struct locks *locks)
{
	struct client *c;
	struct request *r;

	TAILQ_FOREACH(c, &locks->clients, link)
		while ((r = TAILQ_FIRST(&c->requests)))
			request_fail(r, ERROR_DRAINING, env_halt_sentence(locks->env));
	tell_outcomes(locks); /* before the holders are asked to release */
}

/* No client knows of these grants or can take them any longer. A stop would leave them, as it leaves locks under a value. */
static void end_kept_turns(struct locks *locks)
{
	struct client *c, *after;

	TAILQ_FOREACH_SAFE(c, &locks->clients, link, after)
		if (c->bearer && place_is_kept(c))
			place_end(c);
}

/* A client that is closed because it does not read would lose all that it holds: operators may drain again and again. */
static bool may_ask(const struct grant *g)
{
	const struct env *env = g->lock->locks->env;

	if (notify_full(g->client))
		return false;
	if (env->stopping)
		return true;
	return !notify_unresponsive(g->client) && (!g->asked_back_ns || env->now_ns - g->asked_back_ns >= ASK_EVERY_NS);
}

void halt(struct locks *locks, struct slice reason)
{
	struct directory *d;
	struct lock *lock;
	struct grant *g;

	end_requests(locks);
	end_kept_turns(locks);
	TAILQ_FOREACH(lock, &locks->used, link) {
		LOCK_DIRECTORIES(d, lock)
			directory_touch(d);
		delegated_take_back(lock, true);
		TAILQ_FOREACH(g, &lock->grants, link) {
			if (!may_ask(g))
				continue;
			g->asked_back_ns = locks->env->now_ns;
			notify_revoke(g->client, g, reason);
		}
	}
}

static void set(struct locks *locks, bool draining)
{
	locks->env->draining = draining;
	ledger_draining(locks->env->ledger, draining);
}

void halt_drain(struct locks *locks)
{
	set(locks, true);
	halt(locks, SLICE("draining"));
}

void halt_over(struct locks *locks)
{
	set(locks, false);
}
