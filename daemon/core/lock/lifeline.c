/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lifeline.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"

static struct lifeline *find(const struct client *c)
{
	struct lifeline *l;

	MAP_FOREACH(l, &c->locks->lifeline_pids, c->pid, node)
		if (l->pid == c->pid && l->started == c->started && l->user == c->user)
			return l;
	return NULL;
}

/* Nobody may need it any longer. */
static struct lifeline *find_numbered(const struct locks *locks, uint32_t pid, uint64_t number)
{
	struct lifeline *l;

	MAP_FOREACH(l, &locks->lifeline_pids, pid, node)
		if (l->number == number)
			return l;
	return NULL;
}

/* While the state is restored nobody is there to be asked. */
static void ask(struct lifeline *l)
{
	struct effects *out = l->locks->env->out;
	struct effect *e;

	if (l->state != LIFELINE_NEW || !out)
		return;
	l->state = LIFELINE_ASKED;
	l->asked = true;
	bytes_text(&out->arena, l->user->account->unit);
	e = effects_add(out, EFFECT_LIFELINE);
	e->text = effects_take(out);
	e->pid = l->pid;
	e->holds = !TAILQ_EMPTY(&l->bearers);
	e->privileged = l->privileged;
	e->lifeline.number = l->number;
	e->lifeline.started = l->started;
	e->lifeline.uid = l->user->account->uid;
}

static struct lifeline *enter(const struct client *c)
{
	struct lifeline *l = find(c);

	if (l)
		return l;
	assert(lifeline_may_be(c));
	l = mem_new(sizeof(*l));
	l->locks = c->locks;
	l->number = ++c->locks->last_lifeline;
	l->user = c->user;
	l->privileged = c->privileged;
	l->pid = c->pid;
	l->started = c->started;
	l->work.kind = WORK_LIFELINE;
	TAILQ_INIT(&l->waits);
	TAILQ_INIT(&l->bearers);
	TAILQ_INSERT_TAIL(&c->locks->lifelines, l, link);
	map_add(&c->locks->lifeline_pids, &l->node, l->pid);
	charge_force(&l->charge, c->account, POOL_MEMORY, sizeof(*l));
	return l;
}

static void rest(struct lifeline *l)
{
	struct locks *locks = l->locks;
	struct effect *e;

	if (TAILQ_EMPTY(&l->bearers))
		work_drop(&locks->env->works, &l->work);
	if (!TAILQ_EMPTY(&l->waits) || !TAILQ_EMPTY(&l->bearers))
		return;
	if (l->asked && locks->env->out) {
		e = effects_add(locks->env->out, EFFECT_LIFELINE_OVER);
		e->lifeline.number = l->number;
	}
	TAILQ_REMOVE(&locks->lifelines, l, link);
	map_remove(&locks->lifeline_pids, &l->node);
	charge_give_back(&l->charge, POOL_MEMORY);
	bytes_free(&l->why);
	mem_free(l);
}

bool lifeline_may_be(const struct client *c)
{
	return c->pid && c->started;
}

void lifeline_wait(const struct client *c, struct lifeline_wait *w)
{
	w->lifeline = enter(c);
	TAILQ_INSERT_TAIL(&w->lifeline->waits, w, link);
	ask(w->lifeline);
}

void lifeline_wait_end(struct lifeline_wait *w)
{
	struct lifeline *l = w->lifeline;

	if (!l)
		return;
	w->lifeline = NULL;
	TAILQ_REMOVE(&l->waits, w, link);
	rest(l);
}

void lifeline_tie(struct client *bearer)
{
	struct bearer *b = bearer->bearer;

	assert(!b->lifeline);
	b->lifeline = enter(bearer);
	assert(b->lifeline->state == LIFELINE_WATCHED || bearer->locks->restoring);
	TAILQ_INSERT_TAIL(&b->lifeline->bearers, b, link);
}

void lifeline_untie(struct client *bearer)
{
	struct lifeline *l = bearer->bearer->lifeline;

	if (!l)
		return;
	bearer->bearer->lifeline = NULL;
	TAILQ_REMOVE(&l->bearers, bearer->bearer, link);
	rest(l);
}

struct client *lifeline_first(const struct lifeline *l)
{
	const struct bearer *b = TAILQ_FIRST(&l->bearers);

	return b ? b->client : NULL;
}

static void end(struct lifeline *l)
{
	l->state = LIFELINE_ENDED;
	if (!TAILQ_EMPTY(&l->bearers))
		work_add(&l->locks->env->works, &l->user->worker, &l->work);
}

void lifeline_tie_ended(struct client *bearer)
{
	lifeline_tie(bearer);
	end(bearer->bearer->lifeline);
}

void lifeline_told(struct locks *locks, const struct event *event)
{
	static const enum lifeline_state states[] = {
		[PROCESS_WATCHED] = LIFELINE_WATCHED,
		[PROCESS_ENDED] = LIFELINE_ENDED,
		[PROCESS_REFUSED] = LIFELINE_REFUSED,
	};
	struct lifeline *l = find_numbered(locks, event->lifeline.pid, event->lifeline.number);
	struct lifeline_wait *w;

	if (!l)
		return;
	l->state = states[event->lifeline.is];
	assert(l->state != LIFELINE_REFUSED || TAILQ_EMPTY(&l->bearers));
	bytes_set(&l->why, event->lifeline.sentence);
	TAILQ_FOREACH(w, &l->waits, link)
		work_add(&locks->env->works, &l->user->worker, w->work);
	if (l->state == LIFELINE_ENDED)
		end(l);
}

void lifelines_resume(struct locks *locks)
{
	struct lifeline *l;

	TAILQ_FOREACH(l, &locks->lifelines, link)
		ask(l);
}
