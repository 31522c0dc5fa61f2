/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a worker crashed within the last minute, and what follows from that:
 *
 *   1st, 2nd | another worker goes on from what the one before remembered
 *   3rd, 4th | another one starts without that, because that may be what crashes it
 *   5th      | the keeper gives up: the service manager decides what comes next
 */
#pragma once

#include <stdint.h>

enum { CRASHES_MAX = 5 };

/* Zero-initialised: none. */
struct crashes {
	int64_t at_ns[CRASHES_MAX]; /* the latest ones, the oldest first */
	unsigned int count;
};

/* Returns how many there were within the minute before `now_ns`, with this one; at most CRASHES_MAX. */
unsigned int crashes_add(struct crashes *c, int64_t now_ns);
/* ... without another one. */
unsigned int crashes_recent(struct crashes *c, int64_t now_ns);
