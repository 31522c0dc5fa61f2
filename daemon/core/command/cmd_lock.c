/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: LOCK, ENQUEUE, CANCEL, UNLOCK, MLOCK, MUNLOCK, RENEW, DOWNGRADE, VALID; and what other kinds share. */
#include "core/client/mlock.h"
#include "base/cold.h"
#include "base/minmax.h"
#include "core/client/ask.h"
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/kind/semaphore.h"
#include "core/kind/observe.h"

static const int64_t NS_PER_MS = 1000000;

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
	struct slice name = bytes_view(&g->lock->name); /* the lock lasts until all is settled */

	if (g->loss == LOSS_LEASE)
		else_told = g->lock->slots ? "the lease of the permits ran out" : "the lease of the grant ran out";
	grant_end(g);
	reply_error(c, ERROR_LOST, "%s: %s", else_told, name);
}

static bool is_token(const struct call *call, const struct grant *g)
{
	return call->options.token < 0 || call->options.token == g->token;
}

static COLD struct grant *refuse_grant(const struct call *call, struct grant *g, const char *else_told, const char *undone)
{
	if (!g)
		reply_error(call->client, ERROR_NOTHELD, "this client does not hold %s", call->name);
	else if (!is_token(call, g))
		reply_error(call->client, ERROR_LOST, "%s: %s", undone, call->name);
	else
		call_reply_lost(call->client, g, else_told);
	return NULL;
}

static struct grant *valid(const struct call *call, struct grant *g, const char *else_told, const char *undone)
{
	return g && !g->lost && is_token(call, g) ? g : refuse_grant(call, g, else_told, undone);
}

struct grant *call_grant(const struct call *call, enum kind kind, const char *else_told, const char *undone)
{
	struct grant *g = call->lock ? grant_find(call->lock, call->client) : NULL;

	return call_is_kind(call, kind) ? valid(call, g, else_told, undone) : NULL;
}

void call_ask(const struct call *call, const struct request_terms *terms)
{
	struct refusal no = { 0 };

	if (ask_lock(call->client, call->name, terms, &no)) {
		if (terms->queued)
			reply_status(call->client, "QUEUED");
		return;
	}
	refuse(call, &no);
}

/* ---- locks ---- */

/* Clients of Redis share a connection among threads: one that does not say REENTER may be another than the holder. */
static COLD void reenter(struct client *c, struct grant *g, const struct request_terms *terms, bool asked_for)
{
	struct refusal no;

	if (g->lost) {
		call_reply_lost(c, g, "an earlier grant of this lock was lost; ask again");
		return;
	}
	if (!asked_for) {
		no = refusal_held(bytes_view(&g->lock->name));
		refusal_reply(c, &no);
		return;
	}
	/* An upgrade would wait for this very grant; and two upgrades would wait for each other. */
	if (!mode_covers(g->mode, terms->mode)) {
		reply_error(c, ERROR_DEADLOCK,
			    "this client holds %s shared and would wait for itself: release it first",
			    bytes_view(&g->lock->name));
		return;
	}
	grant_reenter(g, terms->lease_ns, terms->data);
	if (!terms->queued) {
		reply_integer(c, g->token);
		return;
	}
	reply_status(c, "QUEUED");
	notify(c, "granted", bytes_view(&g->lock->name), g->token);
}

void cmd_lock(struct call *call)
{
	struct client *c = call->client;
	const struct options *o = &call->options;
	struct request_terms terms = {
		.mode = o->given & OPTION_SHARED ? MODE_SHARED : MODE_EXCLUSIVE,
		.queued = call->words.command == COMMAND_ENQUEUE,
		.wait_ns = c->half_closed ? 0 : o->wait_ns,
		.lease_ns = o->lease_ns,
		.data = o->data,
	};
	struct grant *g;

	if (!call_is_kind(call, KIND_LOCK))
		return;
	g = call->lock ? grant_find(call->lock, c) : NULL;
	if (g)
		reenter(c, g, &terms, o->given & OPTION_REENTER);
	else if (call_request(call))
		reply_error(c, ERROR_ERR, "this client already waits for %s: CANCEL withdraws its ENQUEUE", call->name);
	else
		call_ask(call, &terms);
}

void cmd_cancel(struct call *call)
{
	struct request *r = call_request(call);

	if (r) {
		request_end(r);
		call->client->locks->env->stats.cancelled_total++;
	}
	reply_integer(call->client, r != NULL);
}

void cmd_unlock(struct call *call)
{
	struct client *c = call->client;
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

void cmd_mlock(struct call *call)
{
	mlock_lock(&call->words);
}

void cmd_munlock(struct call *call)
{
	mlock_unlock(&call->words);
}

void cmd_renew(struct call *call)
{
	struct client *c = call->client;
	struct grant *g;
	int64_t lease_ns;

	if (!args_parse_lease(c, "RENEW", call->words.argv[2], &lease_ns) ||
	    !options_parse(&call->words, 3, OPTION_TOKEN, &call->options))
		return;
	if (call->lock && call->lock->slots)
		g = valid(call, grant_find(call->lock, c), "the permits were lost before they were renewed",
			  "permits have no token; nothing was renewed");
	else
		g = call_grant(call, KIND_LOCK, "the grant was lost before it was renewed",
			       "that token belongs to another grant; nothing was renewed");
	if (!g)
		return;
	grant_renew(g, lease_ns);
	reply_integer(c, 1);
}

/* The claim keeps its znode, and with that its place among the hosts; readers of this host may join at once. */
void cmd_downgrade(struct call *call)
{
	struct grant *g = call_grant(call, KIND_LOCK, "the grant was lost before it was downgraded", "");

	if (!g)
		return;
	grant_downgrade(g);
	directory_touch(&g->lock->directory);
	reply_integer(call->client, g->token);
}

/* Of a lock, or of permits. */
void cmd_valid(struct call *call)
{
	struct client *c = call->client;
	struct grant *g = call->lock ? grant_find(call->lock, c) : NULL;
	int64_t left_ns = 0, until_ns = session_safe_until(c->locks->ensemble);

	if (g && !g->lost && is_token(call, g)) {
		left_ns = until_ns == INT64_MAX ? INT64_MAX : until_ns - c->locks->env->now_ns;
		left_ns = min64(left_ns, grant_lease_rest_ns(g));
	}
	reply_integer(c, left_ns < 0 ? 0 : left_ns / NS_PER_MS);
}
