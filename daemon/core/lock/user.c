/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/user.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/lock/locks.h"

struct user *user_enter(struct locks *locks, struct account *account)
{
	uint64_t hash = map_hash(&locks->users, &account, sizeof(account));
	struct user *user;

	MAP_FOREACH(user, &locks->users, hash, node)
		if (user->account == account) {
			user->clients++;
			return user;
		}
	user = mem_new(sizeof(*user));
	user->account = account;
	user->clients = 1;
	work_user_init(&user->worker);
	TAILQ_INIT(&user->delegations);
	map_add(&locks->users, &user->node, hash);
	return user;
}

bool user_leave(struct locks *locks, struct user *user)
{
	if (--user->clients)
		return false;
	assert(TAILQ_EMPTY(&user->worker.items));
	map_remove(&locks->users, &user->node);
	mem_free(user->scripts);
	mem_free(user);
	return true;
}

/* ---- lock groups ---- */

static bool holds_or_waits(const struct client *c)
{
	return c->grant_count > c->lost_count || c->request_count;
}

static struct group *find(struct locks *locks, const struct account *account, struct slice name)
{
	uint64_t hash = map_hash(&locks->groups, name.data, name.len);
	struct group *group;

	MAP_FOREACH(group, &locks->groups, hash, node)
		if (group->account == account && slice_eq(bytes_view(&group->name), name))
			return group;
	group = mem_new(sizeof(*group));
	group->account = account;
	bytes_slice(&group->name, name);
	TAILQ_INIT(&group->clients);
	map_add(&locks->groups, &group->node, hash);
	return group;
}

bool group_join(struct client *c, struct slice name)
{
	if (holds_or_waits(c))
		return false;
	group_leave(c);
	if (name.len) {
		c->group = find(c->locks, c->account, name);
		TAILQ_INSERT_TAIL(&c->group->clients, c, group_link);
	}
	return true;
}

void group_leave(struct client *c)
{
	struct group *group = c->group;

	assert(!holds_or_waits(c));
	if (!group)
		return;
	c->group = NULL;
	TAILQ_REMOVE(&group->clients, c, group_link);
	if (!TAILQ_EMPTY(&group->clients))
		return;
	map_remove(&c->locks->groups, &group->node);
	bytes_free(&group->name);
	mem_free(group);
}

bool group_same(const struct client *a, const struct client *b)
{
	return a == b || (a->group && a->group == b->group);
}
