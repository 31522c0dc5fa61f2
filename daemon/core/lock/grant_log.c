/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/grant_log.h"

#include "core/lock/locks.h"
#include "protocol/bytes_format.h"

static const int64_t NS_PER_MS = 1000000;

/* Names the grant, its duration if it ended, and its client. A broker that is being freed logs nothing. */
static void say(const struct grant *g, const char *event, int64_t count, bool ended)
{
	const struct env *env = g->lock->locks->env;
	const struct client *c = g->client;
	struct slice name = bytes_view(&g->lock->name);
	struct bytes *out;
	size_t begin;

	if (!env->out)
		return;
	begin = effects_begin(env->out);
	out = &env->out->arena;
	if (g->lock->slots)
		bytes_format(out, "%s: %d permits of semaphore %q", event, count, name);
	else
		bytes_format(out, "%s: %s %q, %s, token %d", event, kind_word(g->lock->rule->kind), name,
			     mode_word(g->mode), g->token);
	if (ended)
		bytes_format(out, ", after %d ms", (env->now_ns - g->granted_ns) / NS_PER_MS);
	bytes_format(out, "%s%d, uid %d, pid %d (%q", ended ? ", by client " : ", to client ", c->id, c->uid, c->pid,
		     bytes_view(&c->comm));
	if (c->name.len)
		bytes_format(out, ", %q", bytes_view(&c->name));
	bytes_text(out, ")");
	effects_log(env->out, env->conf->log_grants_level, begin)->one_of_many = true;
}

void grant_log_granted(const struct grant *g, int64_t count)
{
	say(g, "granted", count, false);
}

void grant_log_released(const struct grant *g, int64_t count)
{
	say(g, "released", count, true);
}

void grant_log_lost(const struct grant *g)
{
	static const char *const events[] = {
		[LOSS_SESSION] = "lost (session)", [LOSS_DELETED] = "lost (deleted)", [LOSS_LEASE] = "lost (lease)",
		[LOSS_LIMIT] = "lost (limit)",     [LOSS_FORCED] = "lost (forced)",
	};

	say(g, events[g->loss], g->depth, true);
}
