/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/group.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/state.h"

static bool holds_or_waits(const struct client *c)
{
	return c->grant_count > c->lost_count || c->request_count;
}

static struct owner *find(struct broker *b, uint32_t uid, struct slice name)
{
	uint64_t hash = map_hash(&b->owners, name.data, name.len);
	struct map_node *node = map_first(&b->owners, hash);
	struct owner *owner;

	for (; node; node = map_next(node)) {
		owner = container_of(node, struct owner, node);
		if (owner->uid == uid && slice_eq(bytes_view(&owner->name), name))
			return owner;
	}
	owner = mem_new(sizeof(*owner));
	owner->uid = uid;
	bytes_slice(&owner->name, name);
	TAILQ_INIT(&owner->clients);
	map_add(&b->owners, &owner->node, hash);
	return owner;
}

bool owner_join(struct client *c, struct slice name)
{
	if (holds_or_waits(c))
		return false;
	owner_leave(c);
	if (name.len) {
		c->owner = find(c->broker, c->uid, name);
		TAILQ_INSERT_TAIL(&c->owner->clients, c, owner_link);
	}
	return true;
}

void owner_leave(struct client *c)
{
	struct owner *owner = c->owner;

	assert(!holds_or_waits(c));
	if (!owner)
		return;
	c->owner = NULL;
	TAILQ_REMOVE(&owner->clients, c, owner_link);
	if (!TAILQ_EMPTY(&owner->clients))
		return;
	map_remove(&c->broker->owners, &owner->node);
	bytes_free(&owner->name);
	mem_free(owner);
}

bool owner_same(const struct client *a, const struct client *b)
{
	return a == b || (a->owner && a->owner == b->owner);
}
