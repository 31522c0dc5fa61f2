/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include <stdlib.h>

#include "base/clock.h"

#define BACKOFF_MIN_NS (100 * CLOCK_NS_PER_MS)

int64_t backoff_next_ns(struct backoff *b, int64_t max_ns)
{
	int64_t whole_ns = b->whole_ns ? b->whole_ns : BACKOFF_MIN_NS;

	if (whole_ns > max_ns)
		whole_ns = max_ns;
	b->whole_ns = whole_ns < max_ns ? 2 * whole_ns : whole_ns;
	return whole_ns / 2 + random() % (whole_ns / 2 + 1);
}

void backoff_reset(struct backoff *b)
{
	b->whole_ns = 0;
}
