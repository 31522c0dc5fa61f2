/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/former.h"

#include <assert.h>

#include "core/state.h"

static void log_about(struct broker *b, const struct former *l, const char *text, int64_t ms, const char *rest)
{
	struct bytes *out = &b->out->arena;
	size_t begin = broker_log_begin(b);

	bytes_text(out, "the session 0x");
	bytes_hex(out, (uint64_t)l->session, 16);
	bytes_text(out, l->own ? " that this daemon gave up " : " of an earlier daemon ");
	bytes_text(out, text);
	if (ms >= 0)
		bytes_int(out, ms);
	bytes_text(out, rest);
	broker_log_end(b, EFFECT_LEVEL_INFO, begin);
}

void formers_init(struct broker *b)
{
	struct formers *all = &b->formers;
	size_t i;

	assert(b->conf->former_count <= FORMERS_MAX);
	all->timer.kind = TIMER_FORMER;
	all->count = b->conf->former_count;
	for (i = 0; i < all->count; i++)
		all->list[i] = (struct former){ .session = b->conf->formers[i].session,
						  .not_before_ns = b->conf->formers[i].not_before_ns };
}

void formers_deinit(struct broker *b)
{
	heap_unset(&b->timers, &b->formers.timer);
}

static struct former *find(struct broker *b, int64_t session)
{
	struct formers *all = &b->formers;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].session == session)
			return &all->list[i];
	return NULL;
}

static void end(struct broker *b, struct former *l)
{
	l->state = FORMER_ENDING;
	effects_add(b->out, EFFECT_FORMER_END)->session = l->session;
}

/* Ends those whose holders, if any live, have had their time; waits for the others. */
static void look(struct broker *b)
{
	struct formers *all = &b->formers;
	int64_t due_ns = INT64_MAX;

	for (size_t i = 0; i < all->count; i++) {
		struct former *l = &all->list[i];

		if (l->state != FORMER_WAITING)
			continue;
		if (b->now_ns >= l->not_before_ns)
			end(b, l);
		else if (l->not_before_ns < due_ns)
			due_ns = l->not_before_ns;
	}
	heap_unset(&b->timers, &all->timer);
	if (due_ns != INT64_MAX)
		heap_set(&b->timers, &all->timer, due_ns);
}

void formers_start(struct broker *b)
{
	struct formers *all = &b->formers;

	for (size_t i = 0; i < all->count; i++) {
		const struct former *l = &all->list[i];

		if (b->now_ns >= l->not_before_ns)
			log_about(b, l, "is ended: no process lives that could believe to hold something under it", -1, "");
		else
			log_about(b, l, "is not ended yet: a process lives that may believe to hold something under it, for ",
				  (l->not_before_ns - b->now_ns) / 1000000, " ms at most");
	}
	look(b);
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

void former_add(struct broker *b, int64_t session, int64_t not_before_ns)
{
	struct former added = { .session = session, .not_before_ns = not_before_ns, .own = true };
	struct former *l = place(&b->formers);

	if (!l) {
		log_about(b, &added, "is left to its timeout: too many are still to be ended", -1, "");
		return;
	}
	*l = added;
	effects_add(b->out, EFFECT_FORMER_ADD)->session = session;
	/* It is ended after another one is asked for. */
	heap_set(&b->timers, &b->formers.timer, b->now_ns);
}

void formers_tick(struct broker *b)
{
	look(b);
}

void former_free(struct broker *b, const struct event *event)
{
	struct former *l = find(b, event->former.session);

	if (l && l->state == FORMER_WAITING)
		end(b, l);
}

void former_over(struct broker *b, const struct event *event)
{
	struct former *l = find(b, event->former.session);

	if (!l || l->state == FORMER_OVER)
		return;
	l->state = FORMER_OVER;
	log_about(b, l, event->former.ended ? "is over" : "could not be ended: it is left to its timeout", -1, "");
}

bool former_is(const struct broker *b, int64_t session)
{
	for (size_t i = 0; i < b->formers.count; i++)
		if (b->formers.list[i].session == session)
			return true;
	return false;
}

size_t formers_open(const struct broker *b)
{
	size_t open = 0;

	for (size_t i = 0; i < b->formers.count; i++)
		open += b->formers.list[i].state != FORMER_OVER;
	return open;
}

int64_t formers_wait_ns(const struct broker *b)
{
	int64_t wait_ns = 0;

	for (size_t i = 0; i < b->formers.count; i++) {
		const struct former *l = &b->formers.list[i];

		if (l->state == FORMER_WAITING && l->not_before_ns - b->now_ns > wait_ns)
			wait_ns = l->not_before_ns - b->now_ns;
	}
	return wait_ns;
}
