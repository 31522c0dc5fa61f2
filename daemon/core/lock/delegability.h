/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock is delegated only if it is likely to stay delegated: after `need` grants in a row by message to one client, or to
 * readers. When delegations of the lock are taken back for somebody else, one or all readers' at once, `need` doubles, up to
 * 64. When the last client that has the lock delegated does not use it for a second, `need` halves. What that client causes
 * itself does not change `need`. So among m grants by message in t seconds at most 6 + m/64 + t delegations are taken back
 * for others, whatever the clients do: at 64 each of them costs 64 grants in a row; it takes 6 to get to 64, and one more
 * for each time that `need` was halved, which takes a second.
 */
#pragma once

#include <stdint.h>

#include "base/queue.h"

enum {
	DELEGATED_NEED_MAX = 64,
	SHARED_DELEGATIONS_MAX = 256, /* of one lock: no more are taken back in one step */
};

#define DELEGABILITY_READERS UINT64_MAX

LIST_HEAD(delegated_list, grant);

/* What a lock remembers about its latest grants by message. */
struct delegability {
	uint64_t client;       /* the client that got them, or DELEGABILITY_READERS; 0: there were none */
	uint32_t streak, need; /* grants in a row since the lock was last delegated; how many are needed (0: one) */
	uint32_t count;        /* delegated grants */
};

static inline void delegability_count(struct delegability *l, uint64_t client)
{
	if (l->client != client) {
		l->client = client;
		l->streak = 0;
	}
	l->streak++;
}
