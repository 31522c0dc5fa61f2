/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/borne.h"

#include "base/minmax.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "protocol/limits.h"

static const int64_t NS_PER_MS = 1000000;

void borne_release(struct grant *g)
{
	struct client *bearer = g->client;

	grant_end(g);
	bearer_rest(bearer);
}

void borne_extend(struct grant *g, int64_t lease_ns, bool add)
{
	int64_t left_ns = add && g->lease.place ? grant_lease_rest_ns(g) : 0;

	/* First: one that is found with neither a lease nor a process would have no end. */
	grant_renew(g, min64(lease_ns + left_ns, LIMIT_MS_MAX * NS_PER_MS));
	bearer_untie(g->client);
}
