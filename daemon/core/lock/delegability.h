/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock is delegated only if it is likely to stay so: after `need` grants in a row by message to one client, or to readers.
 * Each time that it is taken back for somebody else, from one or from all readers, doubles that number, up to 64; each time
 * that it goes back because the last client that had it did not use it for a second halves it; what that client itself
 * causes leaves it. So of m grants by message in t seconds at most 6 + m/64 + t lead to that, whatever the clients do: at 64
 * each costs 64 grants in a row, and it takes 6 of them to get there, or one more for each time that the number was halved,
 * which takes a second.
 */
#pragma once

#include <stdint.h>

#include "base/queue.h"

enum {
	DELEGATED_NEED_MAX = 64,
	SHARED_DELEGATIONS_MAX = 256, /* of one lock: so many are taken back in one go */
};

#define DELEGABILITY_READERS UINT64_MAX

LIST_HEAD(delegated_list, grant);

/* What a lock knows of its latest grants by message. */
struct delegability {
	uint64_t client;       /* whose they were, or DELEGABILITY_READERS; 0: nobody's yet */
	uint32_t streak, need; /* how many in a row, since it was delegated last; how many are needed; 0: one */
	uint32_t count;        /* of delegated grants */
};

static inline void delegability_count(struct delegability *l, uint64_t client)
{
	if (l->client != client) {
		l->client = client;
		l->streak = 0;
	}
	l->streak++;
}
