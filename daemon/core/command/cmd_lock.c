/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: LOCK, ENQUEUE, CANCEL, UNLOCK, MLOCK, MUNLOCK, RENEW, DOWNGRADE, VALID; and what other kinds share. */
#include "base/cold.h"
#include "base/minmax.h"
#include "core/client/ask.h"
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/command/call.h"

/* ---- what the kinds share ---- */

static COLD void refuse(const struct call *call, struct refusal *no)
{
	refusal_name(no, call->name);
	refusal_reply(call->client, no);
}

static COLD bool refuse_kind(const struct call *call, enum kind kind)
{
	struct refusal no;

	ask_fits(call->lock, kind, &no);
	refuse(call, &no);
	return false;
}

bool call_is_kind(const struct call *call, enum kind kind)
{
	return !call->lock || !lock_refuses(call->lock, kind) || refuse_kind(call, kind);
}

struct request *call_request(const struct call *call)
{
	return call->lock ? request_find(call->lock, call->client) : NULL;
}

COLD void call_reply_lost(struct client *c, struct grant *g, const char *else_told)
{
	struct refusal no = refusal_lost(g, else_told);

	refusal_reply(c, &no);
}

static bool is_token(const struct call *call, const struct grant *g)
{
	return call->options.token < 0 || call->options.token == g->token;
}

static COLD struct grant *refuse_grant(const struct call *call, const char *else_told, const char *undone)
{
	if (!call->grant)
		reply_error(call->client, ERROR_NOTHELD, "this client does not hold %s", call->name);
	else if (!is_token(call, call->grant))
		reply_error(call->client, ERROR_LOST, "%s: %s", undone, call->name);
	else
		call_reply_lost(call->client, call->grant, else_told);
	return NULL;
}

struct grant *call_grant(const struct call *call, enum kind kind, const char *else_told, const char *undone)
{
	struct grant *g = call->grant;

	if (!call_is_kind(call, kind))
		return NULL;
	return g && !g->lost && is_token(call, g) ? g : refuse_grant(call, else_told, undone);
}

static COLD void reenter(struct client *c, struct grant *g, const struct request_terms *terms)
{
	grant_reenter(g, terms->lease_ns, terms->data);
	if (!terms->queued) {
		reply_integer(c, g->token);
		return;
	}
	reply_status(c, "QUEUED");
	notify(c, "granted", bytes_view(&g->lock->name), g->token);
}

void call_ask(const struct call *call, enum kind kind)
{
	struct client *c = call->client;
	const struct options *o = &call->options;
	struct request_terms terms = {
		.kind = kind,
		.mode = o->given & OPTION_SHARED ? MODE_SHARED : MODE_EXCLUSIVE,
		.queued = call->command == COMMAND_ENQUEUE || o->given & OPTION_ENQUEUE,
		.wait_ns = c->half_closed ? 0 : o->wait_ns,
		.lease_ns = o->lease_ns,
		.data = o->data,
		.limit = o->limit,
		.count = c->locks->rules[kind]->counts ? o->count : 0,
		.slot = (uint8_t)o->slot,
		.fresh = o->given & OPTION_FRESH,
	};
	struct refusal no = { 0 };
	/* Most often nobody has it or waits for it. */
	bool in_use = call->lock && (call->grant || call->lock->request_count || call->lock->aside_count ||
				     call->lock->rule->kind != kind);

	if (in_use && !ask_may(call->lock, c, call->grant, &terms, o->given & OPTION_REENTER, &no))
		refusal_reply(c, &no);
	else if (call->grant && kind == KIND_LOCK)
		reenter(c, call->grant, &terms);
	else if (!ask_lock(c, call->name, &terms, &no))
		refuse(call, &no);
	else if (terms.queued)
		reply_status(c, "QUEUED");
}

/* ---- locks ---- */

void cmd_lock(struct client *c, struct call *call)
{
	call_ask(call, KIND_LOCK);
}

void cmd_cancel(struct client *c, struct call *call)
{
	struct request *r = call_request(call);

	if (r) {
		request_end(r);
		c->locks->env->stats.cancelled_total++;
	}
	reply_integer(c, r != NULL);
}

void cmd_unlock(struct client *c, struct call *call)
{
	struct grant *g;
	int64_t depth;

	c->lazy = call->options.given & OPTION_LAZY;
	g = call_grant(call, KIND_LOCK, "the grant was lost before it was released",
		       "that token belongs to another grant; nothing was released");
	if (!g)
		return;
	depth = g->depth - 1;
	if (depth)
		grant_set_depth(g, depth);
	else
		grant_end(g);
	reply_integer_settled(c, depth);
}

void cmd_renew(struct client *c, struct call *call)
{
	bool permits = call->lock && call->lock->slots;
	struct grant *g;
	int64_t lease_ns;

	if (!args_parse_lease(c, "RENEW", call->argv[2], &lease_ns) || !args_parse_options(call, 3, OPTION_TOKEN))
		return;
	g = call_grant(call, permits ? KIND_SEMAPHORE : KIND_LOCK,
		       permits ? "the permits were lost before they were renewed" : "the grant was lost before it was renewed",
		       permits ? "permits have no token; nothing was renewed"
			       : "that token belongs to another grant; nothing was renewed");
	if (!g)
		return;
	grant_renew(g, lease_ns);
	reply_integer(c, 1);
}

/* The claim keeps its znode, and with that its place among the hosts; readers of this host may join at once. */
void cmd_downgrade(struct client *c, struct call *call)
{
	struct grant *g = call_grant(call, KIND_LOCK, "the grant was lost before it was downgraded", "");

	if (!g)
		return;
	grant_downgrade(g);
	directory_touch(&g->lock->directory);
	reply_integer(c, g->token);
}

/* Of a lock, or of permits. */
void cmd_valid(struct client *c, struct call *call)
{
	const struct grant *g = call->grant;
	int64_t left_ns = 0, until_ns = session_safe_until(c->locks->ensemble);

	if (g && !g->lost && is_token(call, g)) {
		left_ns = until_ns == INT64_MAX ? INT64_MAX : until_ns - c->locks->env->now_ns;
		left_ns = min64(left_ns, grant_lease_rest_ns(g));
	}
	reply_integer(c, left_ns < 0 ? 0 : left_ns / NS_PER_MS);
}
