/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/try.h"

#include "core/znode/holder.h"
#include "core/lock/locks.h"

enum { SEEN_BYTES = 2048 }; /* ours are shorter */

static const int64_t SEEN_NS = 1000000000;

bool try_only(const struct lock *lock)
{
	return lock->rule->marks_tries && lock->request_count && lock->expired_count == lock->request_count;
}

bool try_seen_taken(const struct lock *lock, enum mode mode)
{
	const struct try_seen *seen = &lock->seen;

	if (!seen->by.len || !seen->in_use || lock->locks->env->now_ns >= seen->until_ns ||
	    (lock->claim && lock->claim->state == CLAIM_HELD))
		return false;
	return mode_conflicts(seen->mode, flavour_claim_mode(lock->flavour, mode));
}

bool try_taken(const struct claim *c, enum mode mode)
{
	if (c->readers_ahead && mode == MODE_SHARED)
		return false;
	return c->contested || c->in_use || (c->taken_ns && c->lock->locks->env->now_ns >= c->taken_ns);
}

/* Two of one host are one contender: the one behind may have followed the other (rollover.h), and neither be in use. */
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

void try_listed(struct claim *c, const struct contender *nearest, const struct event *event)
{
	const struct locks *locks = c->lock->locks;
	bool own = contender_of_session(nearest->name, c->lock->flavour, locks->ensemble->session.id);

	if (own)
		c->taken_ns = 0;
	else if (!c->taken_ns)
		c->taken_ns = locks->env->now_ns + locks->env->conf->try_ns;
	c->contested = !own && waits(nearest, c->lock->flavour, event);
}

void try_read(struct claim *c, struct slice data)
{
	struct try_seen *seen = &c->lock->seen;
	struct contender before;

	c->in_use = holder_in_use(data);
	if (!contender_parse(bytes_view(&c->pred), c->lock->flavour, &before))
		return;
	bytes_clear(&seen->by);
	bytes_clear(&seen->data);
	bytes_slice(&seen->by, before.name);
	bytes_slice(&seen->data, (struct slice){ data.data, data.len < SEEN_BYTES ? data.len : SEEN_BYTES });
	seen->mode = before.mode;
	seen->first = !c->contested;
	seen->in_use = c->in_use;
	seen->until_ns = c->lock->locks->env->now_ns + SEEN_NS;
}

bool try_knows_holder(const struct lock *lock)
{
	const struct try_seen *seen = &lock->seen;

	return seen->by.len && seen->first && holder_tells(bytes_view(&seen->data));
}

void try_forget(struct lock *lock, struct slice name)
{
	if (!name.len || slice_eq(name, bytes_view(&lock->seen.by)))
		bytes_clear(&lock->seen.by);
}

void try_behind(struct claim *c, bool some)
{
	c->tried = some;
	c->looked_ns = c->lock->locks->env->now_ns;
}
