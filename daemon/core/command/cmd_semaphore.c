/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores: ACQUIRE, RELEASE, LIMIT. */
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/hosts/query_reply.h"
#include "core/kind/semaphore.h"
#include "core/lock/hold.h"

void cmd_acquire(struct client *c, struct call *call)
{
	const struct options *o = &call->options;

	if (o->given & OPTION_LIMIT && o->count <= o->limit)
		call_ask(call, KIND_SEMAPHORE);
	else
		reply_error(
			c, ERROR_ERR,
			"ACQUIRE needs LIMIT n, the same for all clients of the semaphore, and a COUNT of at most n");
}

void cmd_release(struct client *c, struct call *call)
{
	int64_t count = call->options.count, rest;
	struct grant *g = call->lock && call->lock->slots ? call->grant : NULL;

	if (g && g->lost) {
		call_reply_lost(c, g, "the permits were lost before they were released");
		return;
	}
	if (!g || g->depth < count) {
		reply_error(c, ERROR_NOTHELD, "this client has %d permits and cannot release %d", g ? g->depth : 0, count);
		return;
	}
	rest = g->depth - count;
	if (rest) {
		hold_say(g, LOG_EVENT_released, "released", count);
		grant_set_depth(g, rest);
		directory_touch(g->lock->slots);
	} else {
		grant_end(g);
	}
	reply_integer_settled(c, rest);
}

/* ---- the limit ---- */

static void limit_here(struct client *c, const struct lock *lock, int64_t wanted)
{
	struct semaphore *s = lock ? semaphore_of(lock) : NULL;

	if (s && wanted && s->limit) {
		s->limit = wanted;
		directory_touch(&s->lock->directory);
		directory_touch(&s->slots);
	}
	query_limit_reply(c, s ? s->limit : 0);
}

void cmd_limit(struct client *c, struct call *call)
{
	bool standalone = c->locks->env->conf->standalone;
	int64_t wanted = 0;

	if (call->argc == 3 && !args_parse_limit(c, call->argv[2], &wanted))
		return;
	if (wanted && !reply_permits(c, RULE_limit, call->name, "change a limit"))
		return;
	if (!standalone)
		query_new(call->hosts, c, COMMAND_LIMIT, call->name)->limit = wanted;
	else if (call_is_kind(call, KIND_SEMAPHORE))
		limit_here(c, call->lock, wanted);
}
