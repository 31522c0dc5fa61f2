/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores: ACQUIRE, RELEASE, LIMIT. */
#include "core/client/ask.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/hosts/query_reply.h"
#include "core/kind/semaphore.h"

/* The limit is certainly another than the agreed one: the request is refused. */
static bool is_other_limit(const struct client *c, struct slice name, int64_t limit)
{
	const struct semaphore *s = semaphore_find(c->locks, name);

	return s->limit && s->limit != limit && (s->state == SEMAPHORE_KNOWN || c->locks->env->conf->standalone);
}

void cmd_acquire(struct call *call)
{
	struct client *c = call->client;
	const struct options *o = &call->options;
	struct request_terms terms = {
		.kind = KIND_SEMAPHORE,
		.mode = MODE_EXCLUSIVE,
		.limit = o->limit,
		.count = o->count,
		.wait_ns = c->half_closed ? 0 : o->wait_ns,
		.lease_ns = o->lease_ns,
	};
	struct refusal no = { 0 };
	struct grant *g;

	if (!(o->given & OPTION_LIMIT) || o->count > o->limit) {
		reply_error(
			c, ERROR_ERR,
			"ACQUIRE needs LIMIT n, the same for all clients of the semaphore, and a COUNT of at most n");
		return;
	}
	if (!call_is_kind(call, KIND_SEMAPHORE))
		return;
	g = call->lock ? grant_find(call->lock, c) : NULL;
	if (g && g->lost)
		call_reply_lost(c, g, "earlier permits of this semaphore were lost; ask again");
	else if (g && g->depth + o->count > o->limit && !is_other_limit(c, call->name, o->limit))
		reply_error(
			c, ERROR_DEADLOCK,
			"this client has %d permits and asks for %d more: it would wait for itself; release some first",
			g->depth, o->count);
	else if (!ask_lock(c, call->name, &terms, &no))
		refusal_reply(c, &no);
}

void cmd_release(struct call *call)
{
	struct client *c = call->client;
	int64_t count = call->options.count, rest;
	struct grant *g = call->lock && call->lock->slots ? grant_find(call->lock, c) : NULL;

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
		grant_set_depth(g, rest);
		grant_log(g, "released", true, count);
		directory_touch(g->lock->slots);
	} else {
		grant_end(g);
	}
	reply_integer_settled(c, rest);
}

/* ---- the limit ---- */

static void limit_here(struct client *c, struct slice name, int64_t wanted)
{
	struct semaphore *s = semaphore_find(c->locks, name);

	if (s && wanted && s->limit) {
		s->limit = wanted;
		directory_touch(&s->lock->directory);
		directory_touch(&s->slots);
	}
	query_limit_reply(c, s ? s->limit : 0);
}

void cmd_limit(struct call *call)
{
	bool standalone = call->client->locks->env->conf->standalone;
	struct client *c = call->client;
	int64_t wanted = 0;

	if (call->words.argc == 3 && !args_parse_limit(c, call->words.argv[2], &wanted))
		return;
	if (wanted && !client_is_operator(c))
		reply_error(c, ERROR_DENIED, "only root and the daemon's own user may change a limit");
	else if (!standalone)
		query_limit(call->hosts, c, call->name, wanted);
	else if (call_is_kind(call, KIND_SEMAPHORE))
		limit_here(c, call->name, wanted);
}
