/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/budget.h"

#include "core/session/ensemble.h"

size_t budget_path_max(const struct ensemble *zk)
{
	size_t configured = zk->env->conf->limits.session_path_bytes;
	size_t taken = (size_t)zk->packet_bytes / 10 * 9;

	return zk->packet_bytes && taken < configured ? taken : configured;
}

static void say(struct ensemble *zk, struct slice server)
{
	size_t configured = zk->env->conf->limits.session_path_bytes, max = budget_path_max(zk);

	if (max == configured)
		effects_say(zk->env->out, EFFECT_LEVEL_INFO,
			    "ZooKeeper takes packets that are large enough for limits.session_path_bytes = %d", configured);
	else
		effects_say(zk->env->out, EFFECT_LEVEL_WARNING,
			    "%s takes packets of no more than %d bytes, too few for limits.session_path_bytes = %d: the "
			    "locks of this host are limited to %d bytes of paths. Raise jute.maxbuffer on every server, or "
			    "lower the limit",
			    server, zk->packet_bytes, configured, max);
}

void budget_packet(struct ensemble *zk, const struct event *event)
{
	size_t before = budget_path_max(zk);

	zk->packet_bytes = event->zk_packet.bytes;
	if (budget_path_max(zk) != before)
		say(zk, event->zk_packet.server);
}
