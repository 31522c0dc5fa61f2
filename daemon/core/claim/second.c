/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/second.h"

#include "core/claim/charge.h"
#include "core/claim/claim.h"
#include "core/claim/directories.h"

/* The answers to the deletes tell when the host's own earlier znodes are gone. */
bool second_is_first(const struct claim *c)
{
	const struct directory *d = c->directory;

	return c->second.before == 1 && c->own_watch == CLAIM_STANDS && c == d->claim && TAILQ_EMPTY(&d->leaving);
}

void second_listed(struct claim *c, size_t others, bool writers, struct slice ahead)
{
	struct second *s = &c->second;

	s->before = directory_is_ours(c->directory, bytes_view(&c->pred)) || others > UINT8_MAX ? 0 : (uint8_t)others;
	s->writers = writers;
	if (slice_eq(bytes_view(&s->ahead), ahead))
		return;
	bytes_set(&s->ahead, ahead);
	s->watched = false;
}

/* A try has gone before that pays, a semaphore is listed in any case, and a full session needs its room for others. */
static bool pays(const struct claim *c)
{
	return !c->tries && !c->directory->part && charge_fits_own(c);
}

bool second_wants_own(const struct claim *c)
{
	return c->own_watch == CLAIM_UNSET && !directory_is_ours(c->directory, bytes_view(&c->pred)) && pays(c);
}

bool second_wants_ahead(const struct claim *c)
{
	const struct second *s = &c->second;

	return s->before != 1 && s->ahead.len && !s->watched && pays(c);
}

static void list(struct claim *c)
{
	second_forget(c);
	if (!directory_is_listed(c->directory))
		directory_list(c->directory, false);
}

/* If there were two, its predecessor is left, and no list is needed to know that. */
static void ahead_deleted(struct claim *c)
{
	struct second *s = &c->second;

	if (s->before != 2 || !s->writers) {
		list(c);
		return;
	}
	bytes_clear(&s->ahead);
	s->watched = false;
	s->before = 1;
	c->contested = false;
}

void second_watched(struct claim *c, enum zk_watch type, struct slice child)
{
	struct second *s = &c->second;

	if (c->state != CLAIM_WAITING || !s->ahead.len || !slice_eq(child, bytes_view(&s->ahead)))
		return;
	if (type == ZK_WATCH_DELETED)
		ahead_deleted(c);
	else
		s->watched = false; /* the event used the watch up; settling the lock sets it again */
}

/* It may be about a former one: a list shows who is left. */
void second_answered(struct claim *c, const struct event *event)
{
	if (c->state == CLAIM_WAITING && c->second.watched && event->zk_answered.code == ZK_NONODE)
		list(c);
}

void second_forget(struct claim *c)
{
	c->second.before = 0;
	c->second.watched = false;
	bytes_clear(&c->second.ahead);
}

void second_free(struct claim *c)
{
	bytes_free(&c->second.ahead);
}
