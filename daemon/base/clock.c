/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

static int64_t read_ns(clockid_t clock)
{
	struct timespec ts;
	int rc = clock_gettime(clock, &ts);

	assert(rc == 0);
	return (int64_t)ts.tv_sec * CLOCK_NS_PER_S + ts.tv_nsec;
}

int64_t clock_now_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(int64_t at_ns)
{
	return (read_ns(CLOCK_REALTIME) - (clock_now_ns() - at_ns)) / CLOCK_NS_PER_MS;
}
