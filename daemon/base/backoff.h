/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before something that failed is tried again: twice as long each time, up to a limit, with a random
 * part between a half and the whole of that time, so that hosts do not retry in step.
 */
#pragma once

#include <stdint.h>

/* Zero-initialised: the next failure is the first. */
struct backoff {
	int64_t whole_ns;
};

/* The wait after one more failure. `max_ns` may differ from call to call. */
int64_t backoff_next_ns(struct backoff *b, int64_t max_ns);
void backoff_reset(struct backoff *b);
