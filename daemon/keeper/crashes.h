/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a worker crashed within the last minute, and how the next worker starts:
 *
 *   1st, 2nd  | another worker goes on from the state of the worker before it
 *   3rd, 4th  | another worker starts without that state, because the state may cause the crash
 *   5th       | ... after a pause of 1 s, so that the log and the processor are not full of it
 *   any later | ... after a pause of twice as long, up to 30 s, until a worker has lived for a minute
 *
 * Whatever crashes it may be over by itself: a server that sends nonsense, memory that is short. So the keeper goes on.
 */
#pragma once

#include <stdint.h>

enum { CRASHES_MAX = 5 };

/* Zero-initialised: none. */
struct crashes {
	int64_t at_ns[CRASHES_MAX]; /* the latest ones, the oldest first */
	unsigned int count;
	int64_t pause_ns; /* before the worker that follows the latest one starts; 0: none */
};

/*
 * Returns the number of crashes within the minute before `now_ns`, with this crash. CRASHES_MAX: so many or more, or
 * there are pauses.
 */
unsigned int crashes_add(struct crashes *c, int64_t now_ns);
/* ... without another one. */
unsigned int crashes_recent(struct crashes *c, int64_t now_ns);
