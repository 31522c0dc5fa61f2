/* SPDX-License-Identifier: Apache-2.0 */
/* Elections: CAMPAIGN, RESIGN, LEADER, OBSERVE, UNOBSERVE. */
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/hosts/query_reply.h"
#include "core/kind/observe.h"
#include "core/claim/charge.h"

void cmd_campaign(struct client *c, struct call *call)
{
	if (call->options.given & OPTION_DATA)
		call_ask(call, KIND_ELECTION);
	else
		args_syntax_error(call);
}

void cmd_resign(struct client *c, struct call *call)
{
	struct request *r;
	struct grant *g;

	if (!call_is_kind(call, KIND_ELECTION))
		return;
	r = call_request(call);
	if (r) {
		c->locks->env->stats.cancelled_total++;
		request_end(r);
		reply_integer(c, 0);
		return;
	}
	g = call_grant(call, KIND_ELECTION, "the leadership was lost before it was resigned", "");
	if (!g)
		return;
	grant_end(g);
	reply_integer_settled(c, 1);
}

void cmd_leader(struct client *c, struct call *call)
{
	if (call_is_kind(call, KIND_ELECTION) && reply_permits(c, RULE_observe, call->name, "see who leads"))
		query_ask(call->hosts, c, COMMAND_LEADER, call->name);
}

static void observe(struct client *c, struct slice name)
{
	struct lock *lock;
	const char *why;

	if (c->locks->env->stopping) {
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
		return;
	}
	if (!client_may_observe(c, &why)) {
		reply_limit(c, why);
		return;
	}
	lock = lock_make(c->locks, name, c);
	if (!lock) {
		reply_limit(c, pools_refusal(c->locks->env, c->account, POOL_LOCKS, c->privileged));
	} else if ((why = charge_refuses_observer(&lock->directory, c->privileged))) {
		reply_limit(c, why);
	} else {
		lock_become(lock, KIND_ELECTION);
		reply_status(c, "OK");
		/* From now on the client reads only about this observation. */
		notify_forget_unobserved(c, name);
		observe_begin(lock, c);
	}
}

static struct observer *find_observer(const struct call *call)
{
	return call->lock ? observe_find(call->lock, call->client) : NULL;
}

void cmd_observe(struct client *c, struct call *call)
{
	if (!call_is_kind(call, KIND_ELECTION) || !reply_permits(c, RULE_observe, call->name, "see who leads"))
		return;
	if (find_observer(call))
		reply_status(c, "OK");
	else if (call->lock && lock_sets_aside(call->lock, KIND_ELECTION))
		reply_error(c, ERROR_UNAVAILABLE, "it is not known yet whether the name is an election: ask again: %s", call->name);
	else
		observe(c, call->name);
}

void cmd_unobserve(struct client *c, struct call *call)
{
	struct observer *o = find_observer(call);

	if (o)
		observe_end(o);
	reply_integer(c, o != NULL);
}
