/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/predecessor.h"

#include <assert.h>

#include "core/state.h"

static void log_about(struct broker *b, const struct leftover *l, const char *text, int64_t ms, const char *rest)
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

void leftovers_init(struct broker *b)
{
	struct leftovers *all = &b->leftovers;
	size_t i;

	assert(b->conf->leftover_count <= LEFTOVERS_MAX);
	all->timer.kind = TIMER_LEFTOVER;
	all->count = b->conf->leftover_count;
	for (i = 0; i < all->count; i++)
		all->list[i] = (struct leftover){ .session = b->conf->leftovers[i].session,
						  .not_before_ns = b->conf->leftovers[i].not_before_ns };
}

void leftovers_deinit(struct broker *b)
{
	heap_unset(&b->timers, &b->leftovers.timer);
}

static struct leftover *find(struct broker *b, int64_t session)
{
	struct leftovers *all = &b->leftovers;

	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].session == session)
			return &all->list[i];
	return NULL;
}

static void end(struct broker *b, struct leftover *l)
{
	l->state = LEFTOVER_ENDING;
	effects_add(b->out, EFFECT_LEFTOVER_END)->session = l->session;
}

/* Ends those whose holders, if any live, have had their time; waits for the others. */
static void look(struct broker *b)
{
	struct leftovers *all = &b->leftovers;
	int64_t due_ns = INT64_MAX;

	for (size_t i = 0; i < all->count; i++) {
		struct leftover *l = &all->list[i];

		if (l->state != LEFTOVER_WAITING)
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

void leftovers_start(struct broker *b)
{
	struct leftovers *all = &b->leftovers;

	for (size_t i = 0; i < all->count; i++) {
		const struct leftover *l = &all->list[i];

		if (b->now_ns >= l->not_before_ns)
			log_about(b, l, "is ended: no process lives that could believe to hold something under it", -1, "");
		else
			log_about(b, l, "is not ended yet: a process lives that may believe to hold something under it, for ",
				  (l->not_before_ns - b->now_ns) / 1000000, " ms at most");
	}
	look(b);
}

/* NULL: all are still to be ended. */
static struct leftover *place(struct leftovers *all)
{
	if (all->count < LEFTOVERS_MAX)
		return &all->list[all->count++];
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].state == LEFTOVER_OVER)
			return &all->list[i];
	return NULL;
}

void leftover_add(struct broker *b, int64_t session, int64_t not_before_ns)
{
	struct leftover added = { .session = session, .not_before_ns = not_before_ns, .own = true };
	struct leftover *l = place(&b->leftovers);

	if (!l) {
		log_about(b, &added, "is left to its timeout: too many are still to be ended", -1, "");
		return;
	}
	*l = added;
	effects_add(b->out, EFFECT_LEFTOVER_ADD)->session = session;
	/* It is ended after another one is asked for. */
	heap_set(&b->timers, &b->leftovers.timer, b->now_ns);
}

void leftovers_tick(struct broker *b)
{
	look(b);
}

void leftover_free(struct broker *b, const struct event *event)
{
	struct leftover *l = find(b, event->leftover.session);

	if (l && l->state == LEFTOVER_WAITING)
		end(b, l);
}

void leftover_over(struct broker *b, const struct event *event)
{
	struct leftover *l = find(b, event->leftover.session);

	if (!l || l->state == LEFTOVER_OVER)
		return;
	l->state = LEFTOVER_OVER;
	log_about(b, l, event->leftover.ended ? "is over" : "could not be ended: it is left to its timeout", -1, "");
}

bool leftover_is(const struct broker *b, int64_t session)
{
	for (size_t i = 0; i < b->leftovers.count; i++)
		if (b->leftovers.list[i].session == session)
			return true;
	return false;
}

size_t leftovers_open(const struct broker *b)
{
	size_t open = 0;

	for (size_t i = 0; i < b->leftovers.count; i++)
		open += b->leftovers.list[i].state != LEFTOVER_OVER;
	return open;
}

int64_t leftovers_wait_ns(const struct broker *b)
{
	int64_t wait_ns = 0;

	for (size_t i = 0; i < b->leftovers.count; i++) {
		const struct leftover *l = &b->leftovers.list[i];

		if (l->state == LEFTOVER_WAITING && l->not_before_ns - b->now_ns > wait_ns)
			wait_ns = l->not_before_ns - b->now_ns;
	}
	return wait_ns;
}
