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

/* The child's place in `ahead`; -1: it is not there. */
static int place_of(const struct second *s, struct slice child)
{
	for (int i = 0; i < SECOND_AHEAD; i++)
		if (s->ahead[i].len && slice_eq(child, bytes_view(&s->ahead[i])))
			return i;
	return -1;
}

static void name(struct second *s, int place, struct slice child, bool watched)
{
	bytes_set(&s->ahead[place], child);
	s->watched[place] = child.len && watched;
}

void second_listed(struct claim *c, size_t others, bool readers, const struct slice ahead[SECOND_AHEAD])
{
	struct second *s = &c->second;
	bool ours = directory_is_ours(c->directory, bytes_view(&c->pred)), watched[SECOND_AHEAD];
	size_t named = 0;

	for (int i = 0; i < SECOND_AHEAD; i++)
		watched[i] = place_of(s, ahead[i]) >= 0 && s->watched[place_of(s, ahead[i])];
	for (int i = 0; i < SECOND_AHEAD; i++) {
		bool wanted = (i == 0 || others == SECOND_AHEAD + 1) && ahead[i].len;

		name(s, i, wanted ? ahead[i] : (struct slice){ 0 }, watched[i]);
		named += wanted;
	}
	s->before = ours || others > UINT8_MAX ? 0 : (uint8_t)others;
	s->all_watched = s->before == named + 1 && !readers;
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

struct slice second_watch_ahead(struct claim *c)
{
	struct second *s = &c->second;

	for (int i = SECOND_AHEAD - 1; i >= 0; i--) {
		if (!s->ahead[i].len || s->watched[i] || s->before == 1 || !pays(c) || !turn_may(c->directory, TURN_JOIN))
			continue;
		s->watched[i] = true;
		return bytes_view(&s->ahead[i]);
	}
	return (struct slice){ 0 };
}

static void list(struct claim *c)
{
	second_forget(c);
	if (!directory_is_listed(c->directory))
		directory_list(c->directory, false);
}

/* One contender fewer is before the claim. If all of them are watched, the rest are known; otherwise a list shows them. */
static void deleted(struct claim *c, int place)
{
	struct second *s = &c->second;

	if (!s->all_watched) {
		list(c);
		return;
	}
	for (; place + 1 < SECOND_AHEAD; place++)
		name(s, place, bytes_view(&s->ahead[place + 1]), s->watched[place + 1]);
	name(s, place, (struct slice){ 0 }, false);
	if (--s->before == 1)
		c->contested = false;
}

void second_watched(struct claim *c, enum zk_watch type, struct slice child)
{
	int place = place_of(&c->second, child);

	if (c->state != CLAIM_WAITING || place < 0)
		return;
	if (type == ZK_WATCH_DELETED)
		deleted(c, place);
	else
		c->second.watched[place] = false; /* the event used the watch up; settling the lock sets it again */
}

/* It does not matter which of the contenders the answer was about: a list shows those that are left. */
void second_answered(struct claim *c, const struct event *event)
{
	const struct second *s = &c->second;

	if (c->state == CLAIM_WAITING && (s->watched[0] || s->watched[1]) && event->zk_answered.code == ZK_NONODE)
		list(c);
}

void second_forget(struct claim *c)
{
	c->second.before = 0;
	c->second.all_watched = false;
	for (int i = 0; i < SECOND_AHEAD; i++)
		name(&c->second, i, (struct slice){ 0 }, false);
}

void second_free(struct claim *c)
{
	for (int i = 0; i < SECOND_AHEAD; i++)
		bytes_free(&c->second.ahead[i]);
}
