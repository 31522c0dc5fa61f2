/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/former.h"

#include <assert.h>

#include "base/minmax.h"
#include "core/session/ensemble.h"

#define log_about(zk, f, state, wait_ms, text, ...) \
	effects_say((zk)->env->out, EFFECT_LEVEL_INFO, session_former, \
		    EFFECT_FIELDS("state=%s own=%d wait_ms=%d", state, (f)->own, wait_ms), "a session %s " text, \
		    (f)->own ? "that this daemon gave up" : "of an earlier daemon", ##__VA_ARGS__)

void formers_init(struct ensemble *zk)
{
	struct formers *all = &zk->formers;

	assert(zk->env->conf->former_count <= FORMERS_MAX);
	all->timer.kind = TIMER_FORMER;
	all->count = zk->env->conf->former_count;
	for (size_t i = 0; i < all->count; i++) {
		all->list[i].session = zk->env->conf->formers[i].session;
		all->list[i].not_before_ns = zk->env->conf->formers[i].not_before_ns;
	}
}

struct former *former_find(struct ensemble *zk, int64_t session)
{
	struct formers *all = &zk->formers;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].session == session)
			return &all->list[i];
	return NULL;
}

static void end(struct ensemble *zk, struct former *f)
{
	f->state = FORMER_ENDING;
	effects_add(zk->env->out, EFFECT_FORMER_END)->session = f->session;
}

/* Ends those whose holders, if any live, have had their time; waits for the others. */
void formers_tick(struct ensemble *zk)
{
	struct formers *all = &zk->formers;
	int64_t due_ns = INT64_MAX;

	for (size_t i = 0; i < all->count; i++) {
		struct former *f = &all->list[i];

		if (f->state != FORMER_WAITING)
			continue;
		if (zk->env->now_ns >= f->not_before_ns && past_may_end(zk))
			end(zk, f);
		else if (zk->env->now_ns < f->not_before_ns && f->not_before_ns < due_ns)
			due_ns = f->not_before_ns;
	}
	heap_unset(&zk->env->timers, &all->timer);
	if (due_ns != INT64_MAX)
		heap_set(&zk->env->timers, &all->timer, due_ns);
}

static void log_waiting(struct ensemble *zk, const struct former *f, int64_t wait_ms)
{
	log_about(zk, f, "waiting", wait_ms,
		  "is not ended yet: a process lives that may believe to hold something under it, for %d ms at most",
		  wait_ms);
}

void formers_start(struct ensemble *zk)
{
	struct formers *all = &zk->formers;

	for (size_t i = 0; i < all->count; i++) {
		const struct former *f = &all->list[i];

		if (zk->env->now_ns >= f->not_before_ns)
			log_about(zk, f, "ending", 0,
				  "is ended: no process lives that could believe to hold something under it");
		else
			log_waiting(zk, f, (f->not_before_ns - zk->env->now_ns) / 1000000);
	}
	formers_tick(zk);
}

/* NULL: all are still to be ended. */
static struct former *place(struct formers *all)
{
	if (all->count < FORMERS_MAX)
		return &all->list[all->count++];
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].state == FORMER_OVER)
			return &all->list[i];
	return NULL;
}

void former_add(struct ensemble *zk, int64_t session, int64_t not_before_ns)
{
	struct former added = { .session = session, .not_before_ns = not_before_ns, .own = true };
	struct former *f = place(&zk->formers);

	if (!f) {
		log_about(zk, &added, "left", 0, "is left to its timeout: too many are still to be ended");
		return;
	}
	*f = added;
	effects_add(zk->env->out, EFFECT_FORMER_ADD)->session = session;
	/* It is ended after another one is asked for. */
	heap_set(&zk->env->timers, &zk->formers.timer, zk->env->now_ns);
}

void former_free(struct ensemble *zk, int64_t session)
{
	struct former *f = former_find(zk, session);

	if (!f || f->state != FORMER_WAITING)
		return;
	f->not_before_ns = zk->env->now_ns;
	formers_tick(zk);
}

void former_over(struct ensemble *zk, const struct event *event)
{
	struct former *f = former_find(zk, event->former.session);

	if (!f || f->state == FORMER_OVER)
		return;
	f->state = FORMER_OVER;
	log_about(zk, f, event->former.ended ? "over" : "left", 0, "%s",
		  event->former.ended ? "is over" : "could not be ended: it is left to its timeout");
}

size_t formers_open(const struct ensemble *zk)
{
	size_t open = 0;

	for (size_t i = 0; i < zk->formers.count; i++)
		open += zk->formers.list[i].state != FORMER_OVER;
	return open;
}

int64_t formers_wait_ns(const struct ensemble *zk)
{
	int64_t wait_ns = 0;

	for (size_t i = 0; i < zk->formers.count; i++) {
		const struct former *f = &zk->formers.list[i];

		/* INT64_MIN if nobody was told of the session: a difference to that would overflow. */
		if (f->state == FORMER_WAITING && f->not_before_ns > zk->env->now_ns)
			wait_ns = max64(wait_ns, f->not_before_ns - zk->env->now_ns);
	}
	return wait_ns;
}
