/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/budget.h"

#include "core/session/ensemble.h"

size_t budget_path_max(const struct ensemble *zk)
{
	size_t configured = zk->env->conf->limits.session_path_bytes;
	size_t taken = (size_t)zk->packet_bytes / 10 * 9;

	return zk->packet_bytes && taken < configured ? taken : configured;
}

static void put(struct bytes *out, const char *text, size_t number)
{
	bytes_text(out, text);
	bytes_int(out, (int64_t)number);
}

static void say(struct ensemble *zk, struct slice server)
{
	struct bytes *out = &zk->env->out->arena;
	size_t begin = effects_begin(zk->env->out);

	if (budget_path_max(zk) == zk->env->conf->limits.session_path_bytes) {
		put(out, "ZooKeeper takes packets that are large enough for limits.session_path_bytes = ",
		    zk->env->conf->limits.session_path_bytes);
		effects_log(zk->env->out, EFFECT_LEVEL_INFO, begin);
		return;
	}
	bytes_slice(out, server);
	put(out, " takes packets of no more than ", (size_t)zk->packet_bytes);
	put(out, " bytes, too few for limits.session_path_bytes = ", zk->env->conf->limits.session_path_bytes);
	put(out, ": the locks of this host are limited to ", budget_path_max(zk));
	bytes_text(out, " bytes of paths. Raise jute.maxbuffer on every server, or lower the limit");
	effects_log(zk->env->out, EFFECT_LEVEL_WARNING, begin);
}

void budget_packet(struct ensemble *zk, const struct event *event)
{
	size_t before = budget_path_max(zk);

	zk->packet_bytes = event->zk_packet.bytes;
	if (budget_path_max(zk) != before)
		say(zk, event->zk_packet.server);
}
