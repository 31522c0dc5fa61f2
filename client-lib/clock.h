/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The clocks in milliseconds. Not part of the public interface. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
