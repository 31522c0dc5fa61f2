/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock is delegated only if it is likely to stay so: after `need` grants in a row to one client by message. Each
 * delegation that is taken back for somebody else doubles that number, up to 64; each one that goes back because its
 * client did not use it for a second halves it; what the client itself causes leaves it. So of m grants by message in t
 * seconds at most 6 + m/64 + t delegations are taken back for somebody else, whatever the clients do: at 64 each costs 64
 * grants in a row, and it takes 6 of them to get there, or one more for each time that the number was halved, which takes
 * a second.
 */
#pragma once

#include <stdint.h>

enum { DELEGATED_NEED_MAX = 64 };

/* What a lock knows of its latest grants by message. */
struct delegability {
	uint64_t client;       /* whose they were; 0: nobody's yet */
	uint32_t streak, need; /* how many in a row, since it was delegated last; how many are needed; 0: one */
};

static inline void delegability_count(struct delegability *l, uint64_t client)
{
	if (l->client != client) {
		l->client = client;
		l->streak = 0;
	}
	l->streak++;
}
