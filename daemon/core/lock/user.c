/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/user.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/state.h"

struct user *user_enter(struct broker *b, uint32_t uid)
{
	uint64_t hash = map_hash(&b->users, &uid, sizeof(uid));
	struct map_node *node = map_first(&b->users, hash);
	struct user *user;

	for (; node; node = map_next(node)) {
		user = container_of(node, struct user, node);
		if (user->uid == uid) {
			user->clients++;
			return user;
		}
	}
	user = mem_new(sizeof(*user));
	user->uid = uid;
	user->clients = 1;
	map_add(&b->users, &user->node, hash);
	return user;
}

void user_leave(struct broker *b, struct user *user)
{
	if (--user->clients)
		return;
	assert(!user->requests && !user->grants);
	map_remove(&b->users, &user->node);
	mem_free(user);
}
