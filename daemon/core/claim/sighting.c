/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/sighting.h"

#include "core/claim/directories.h"
#include "core/znode/holder.h"
#include "core/znode/record.h"

enum { SEEN_BYTES = 2048 }; /* a broker's data are shorter */

static const int64_t SEEN_NS = 1000000000;

/* Two of one host count as one: the later may have followed the other (claim.h), and neither need be in use. */
static bool waits_for(const struct contender *c, const struct contender *other, enum flavour flavour)
{
	if (slice_eq(c->name, other->name) || !contender_before(other, c) || !mode_conflicts(c->mode, other->mode))
		return false;
	return c->mode == MODE_SHARED || other->mode == MODE_SHARED ||
	       !contender_same_session(c->name, other->name, flavour);
}

static bool waits(const struct contender *c, enum flavour flavour, const struct event *event)
{
	struct contender other;

	for (size_t i = 0; i < event->zk_answered.count; i++)
		if (contender_parse(event->zk_answered.children[i], flavour, &other) && waits_for(c, &other, flavour))
			return true;
	return false;
}

void sighting_listed(struct claim *c, const struct contender *nearest, const struct event *event)
{
	const struct directories *all = c->directory->directories;
	bool own = directory_is_ours(c->directory, nearest->name);

	if (own)
		c->taken_ns = 0;
	else if (!c->taken_ns)
		c->taken_ns = all->env->now_ns + all->env->conf->try_ns;
	c->contested = !own && waits(nearest, c->directory->flavour, event);
}

void sighting_read(struct claim *c, struct slice data)
{
	struct seen *seen = &c->directory->seen;
	struct contender before;

	c->in_use = holder_in_use(data);
	if (!contender_parse(bytes_view(&c->pred), c->directory->flavour, &before))
		return;
	bytes_set(&seen->by, before.name);
	bytes_set(&seen->data, (struct slice){ data.data, data.len < SEEN_BYTES ? data.len : SEEN_BYTES });
	seen->mode = before.mode;
	seen->first = !c->contested;
	seen->in_use = c->in_use;
	c->succeeds = true;
	seen->until_ns = c->directory->directories->env->now_ns + SEEN_NS;
}

bool sighting_tells_holder(const struct directory *d)
{
	const struct seen *seen = &d->seen;

	return seen->by.len && seen->first && record_get(bytes_view(&seen->data), "pid").len;
}

void sighting_forget(struct directory *d, struct slice name)
{
	if (!name.len || slice_eq(name, bytes_view(&d->seen.by)))
		bytes_clear(&d->seen.by);
}

bool sighting_taken(const struct directory *d, enum mode mode)
{
	const struct seen *seen = &d->seen;

	if (!seen->by.len || !seen->in_use || d->directories->env->now_ns >= seen->until_ns ||
	    (d->claim && d->claim->state == CLAIM_HELD))
		return false;
	return mode_conflicts(seen->mode, flavour_claim_mode(d->flavour, mode));
}

bool sighting_taken_before(const struct claim *c, enum mode mode)
{
	if (c->readers_ahead && mode == MODE_SHARED)
		return false;
	return c->contested || c->in_use || (c->taken_ns && c->directory->directories->env->now_ns >= c->taken_ns);
}
