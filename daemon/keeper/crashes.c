/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/crashes.h"

#include <string.h>

#include "base/clock.h"
#include "base/minmax.h"

#define WITHIN_NS (60 * CLOCK_NS_PER_S)
#define PAUSE_MIN_NS CLOCK_NS_PER_S
#define PAUSE_MAX_NS (30 * CLOCK_NS_PER_S)

static void forget_oldest(struct crashes *c)
{
	c->count--;
	memmove(c->at_ns, c->at_ns + 1, c->count * sizeof(c->at_ns[0]));
}

unsigned int crashes_recent(struct crashes *c, int64_t now_ns)
{
	if (c->pause_ns && now_ns - c->at_ns[c->count - 1] <= c->pause_ns + WITHIN_NS)
		return CRASHES_MAX;
	c->pause_ns = 0;
	while (c->count && now_ns - c->at_ns[0] > WITHIN_NS)
		forget_oldest(c);
	return c->count;
}

unsigned int crashes_add(struct crashes *c, int64_t now_ns)
{
	unsigned int recent = crashes_recent(c, now_ns);

	if (c->count == CRASHES_MAX)
		forget_oldest(c);
	c->at_ns[c->count++] = now_ns;
	if (c->pause_ns)
		c->pause_ns = min64(2 * c->pause_ns, PAUSE_MAX_NS);
	else if (recent + 1 >= CRASHES_MAX)
		c->pause_ns = PAUSE_MIN_NS;
	return crashes_recent(c, now_ns);
}
