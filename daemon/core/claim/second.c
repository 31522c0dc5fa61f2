/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/second.h"

#include "core/claim/charge.h"
#include "core/claim/claim.h"
#include "core/claim/directories.h"

/* The answers to the deletes tell when the host's own earlier znodes are gone. */
bool second_is_first(const struct claim *c)
{
	const struct directory *d = c->directory;

	return c->second && c->own_watch == CLAIM_STANDS && c == d->claim && TAILQ_EMPTY(&d->leaving);
}

void second_listed(struct claim *c, struct slice ahead)
{
	if (slice_eq(bytes_view(&c->ahead), ahead))
		return;
	bytes_set(&c->ahead, ahead);
	c->ahead_watch = false;
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
	return !c->second && c->ahead.len && !c->ahead_watch && pays(c);
}

static void list(struct claim *c)
{
	second_forget(c);
	if (!directory_is_listed(c->directory))
		directory_list(c->directory, false);
}

void second_watched(struct claim *c, enum zk_watch type, struct slice child)
{
	if (c->state != CLAIM_WAITING || !c->ahead.len || !slice_eq(child, bytes_view(&c->ahead)))
		return;
	if (type == ZK_WATCH_DELETED)
		list(c);
	else
		c->ahead_watch = false; /* the event used the watch up; settling the lock sets it again */
}

void second_answered(struct claim *c, const struct event *event)
{
	if (c->state == CLAIM_WAITING && c->ahead_watch && event->zk_answered.code == ZK_NONODE)
		list(c);
}

void second_forget(struct claim *c)
{
	c->second = c->ahead_watch = false;
	bytes_clear(&c->ahead);
}
