/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/user.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/lock/locks.h"

struct user *user_enter(struct locks *locks, uint32_t uid)
{
	uint64_t hash = map_hash(&locks->users, &uid, sizeof(uid));
	struct user *user;

	MAP_FOREACH(user, &locks->users, hash, node)
		if (user->uid == uid) {
			user->clients++;
			return user;
		}
	user = mem_new(sizeof(*user));
	user->uid = uid;
	user->clients = 1;
	map_add(&locks->users, &user->node, hash);
	return user;
}

void user_leave(struct locks *locks, struct user *user)
{
	if (--user->clients)
		return;
	assert(!user->requests && !user->grants);
	map_remove(&locks->users, &user->node);
	mem_free(user);
}
