/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/halt.h"

#include "base/minmax.h"
#include "core/client/notify.h"
#include "core/client/tell.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "core/lock/take_back.h"

static const int64_t ASK_EVERY_NS = 1000000000;

enum {
	LOCK_STEPS = 8, /* of one lock: its delegations end, and it is settled */
	HURRY_STEPS = 1 << 20,
};

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

/* Returns the number of steps. */
static int64_t go_over(struct lock *lock)
{
	const struct env *env = lock->locks->env;
	int64_t steps = LOCK_STEPS;
	struct directory *d;
	struct grant *g;

	LOCK_DIRECTORIES(d, lock)
		directory_touch(d);
	delegated_take_back(lock, true);
	TAILQ_FOREACH(g, &lock->grants, link) {
		if (!may_ask(g))
			continue;
		g->asked_back_ns = env->now_ns;
		notify_revoke(g->client, g, env->stopping ? SLICE("stopping") : SLICE("draining"));
		steps += WORK_PUSH_STEPS;
	}
	return steps;
}

static void end_pass(struct locks *locks)
{
	locks->halting.on = false;
	walk_end(locks, &locks->halting.walk);
	work_drop(&locks->env->works, &locks->halting.work);
}

static void begin_pass(struct locks *locks)
{
	struct halting *h = &locks->halting;

	end_pass(locks);
	h->on = true;
	walk_begin(locks, &h->walk, false);
	work_add(&locks->env->works, &h->worker, &h->work);
}

int64_t halt_continue(struct locks *locks, int64_t steps)
{
	int64_t most = locks->env->conf->all_in_pieces ? 1 : steps, done = 0;
	struct lock *lock;

	while (done < most) {
		lock = walk_lock(&locks->halting.walk);
		if (!lock) {
			end_pass(locks);
			return done + 1;
		}
		done += go_over(lock);
	}
	return max64(done, steps);
}

void halt_hurry(struct locks *locks)
{
	while (locks->halting.on)
		halt_continue(locks, HURRY_STEPS);
}

void halt_resume(struct locks *locks)
{
	if (locks->halting.on)
		begin_pass(locks);
}

void halt(struct locks *locks)
{
	end_requests(locks);
	end_kept_turns(locks);
	begin_pass(locks);
	halt_continue(locks, WORK_TURN_STEPS);
}

static void set(struct locks *locks, bool draining)
{
	locks->env->draining = draining;
	ledger_draining(locks->env->ledger, draining);
}

void halt_drain(struct locks *locks)
{
	set(locks, true);
	halt(locks);
}

void halt_over(struct locks *locks)
{
	set(locks, false);
	end_pass(locks);
}
