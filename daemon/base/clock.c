/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

int64_t clock_now_ns(void)
{
	struct timespec ts;
	int rc = clock_gettime(CLOCK_BOOTTIME, &ts);

	assert(rc == 0);
	return (int64_t)ts.tv_sec * CLOCK_NS_PER_S + ts.tv_nsec;
}
