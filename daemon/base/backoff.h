/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before something that failed is tried again: twice as long each time, up to a bound, and each time
 * by chance between the half and the whole of it, so that many hosts do not try in step.
 */
#pragma once

#include <stdint.h>

/* Zero-initialised: the next failure is the first. */
struct backoff {
	int64_t whole_ns;
};

/* For one more failure. `max_ns` may be another at each call. */
int64_t backoff_next_ns(struct backoff *b, int64_t max_ns);
void backoff_reset(struct backoff *b);
