/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/budget.h"

#include "core/session/ensemble.h"

size_t budget_max(const struct budget *b)
{
	size_t taken = (size_t)b->packet_bytes / 10 * 9;

	return b->packet_bytes && taken < b->limits->session_path_bytes ? taken : b->limits->session_path_bytes;
}

static void set_totals(struct env *env, const struct budget *b)
{
	accounts_set_total(&env->accounts, POOL_PATHS, budget_max(b));
	accounts_set_total(&env->accounts, POOL_WATCHES, budget_max(b));
}

void budget_limits(struct env *env, struct budget *b)
{
	b->limits = &env->conf->limits;
	set_totals(env, b);
}

bool budget_takes_request(const struct budget *b, size_t bytes)
{
	return !b->packet_bytes || bytes <= (size_t)b->packet_bytes;
}

static void say(struct ensemble *zk, struct slice server)
{
	size_t configured = zk->env->conf->limits.session_path_bytes, max = budget_max(&zk->budget);

	if (max == configured)
		effects_say(zk->env->out, EFFECT_LEVEL_INFO, packet, EFFECT_FIELDS("wanted_bytes=%d", configured),
			    "ZooKeeper takes packets that are large enough for limits.session_path_bytes = %d",
			    configured);
	else
		effects_say(
			zk->env->out, EFFECT_LEVEL_WARNING, packet,
			EFFECT_FIELDS("server=%v bytes=%d wanted_bytes=%d", server, zk->budget.packet_bytes,
				      configured),
			"%s takes packets of no more than %d bytes, too few for limits.session_path_bytes = %d: the locks of "
			"this host are limited to %d bytes of paths. Raise jute.maxbuffer on every server, or lower the limit",
			server, zk->budget.packet_bytes, configured, max);
}

void budget_packet(struct ensemble *zk, const struct event *event)
{
	size_t before = budget_max(&zk->budget);

	zk->budget.packet_bytes = event->zk_packet.bytes;
	set_totals(zk->env, &zk->budget);
	if (budget_max(&zk->budget) != before)
		say(zk, event->zk_packet.server);
}
