/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/budget.h"

#include <assert.h>

#include "core/session/ensemble.h"

void budget_limits(struct budget *b, const struct broker_limits *limits)
{
	b->limits = limits;
}

size_t budget_max(const struct budget *b)
{
	size_t taken = (size_t)b->packet_bytes / 10 * 9;

	return b->packet_bytes && taken < b->limits->session_path_bytes ? taken : b->limits->session_path_bytes;
}

bool budget_takes_paths(const struct budget *b, size_t more)
{
	return b->path_bytes + more <= budget_max(b);
}

bool budget_takes_watches(const struct budget *b, size_t more)
{
	return b->watch_bytes + more <= budget_max(b);
}

bool budget_takes_request(const struct budget *b, size_t bytes)
{
	return !b->packet_bytes || bytes <= (size_t)b->packet_bytes;
}

void budget_charge(size_t *sum, size_t bytes)
{
	*sum += bytes;
}

void budget_give_back(size_t *sum, size_t bytes)
{
	assert(*sum >= bytes);
	*sum -= bytes;
}

static void say(struct ensemble *zk, struct slice server)
{
	size_t configured = zk->env->conf->limits.session_path_bytes, max = budget_max(&zk->budget);

	if (max == configured)
		effects_say(zk->env->out, EFFECT_LEVEL_INFO,
			    "ZooKeeper takes packets that are large enough for limits.session_path_bytes = %d", configured);
	else
		effects_say(zk->env->out, EFFECT_LEVEL_WARNING,
			    "%s takes packets of no more than %d bytes, too few for limits.session_path_bytes = %d: the locks of "
			    "this host are limited to %d bytes of paths. Raise jute.maxbuffer on every server, or lower the limit",
			    server, zk->budget.packet_bytes, configured, max);
}

void budget_packet(struct ensemble *zk, const struct event *event)
{
	size_t before = budget_max(&zk->budget);

	zk->budget.packet_bytes = event->zk_packet.bytes;
	if (budget_max(&zk->budget) != before)
		say(zk, event->zk_packet.server);
}
