/* SPDX-License-Identifier: Apache-2.0 */
/* The time in nanoseconds, by the clock that nobody sets. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
