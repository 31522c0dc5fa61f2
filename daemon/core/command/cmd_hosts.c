/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that concern all hosts: HOLDERS, QUEUE, WHY, HOSTS, REVOKE, FORCEUNLOCK, AUDIT. */
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/hosts/query_reply.h"
#include "core/hosts/revocation.h"
#include "core/hosts/revoke.h"

void cmd_ask(struct client *c, struct call *call)
{
	query_ask(call->hosts, c, call->command, call->name);
}

void cmd_holders(struct client *c, struct call *call)
{
	if (call->argc == 2)
		cmd_ask(c, call);
	else if (slice_is(call->argv[2], "known"))
		query_known(call->hosts, c, call->name);
	else
		args_usage_error(call, "unknown word in");
}

void cmd_hosts(struct client *c, struct call *call)
{
	query_ask(call->hosts, c, COMMAND_HOSTS, (struct slice){ 0 });
}

/* All that hold it are clients of the same account, as far as there can be no others elsewhere. */
static bool is_own(const struct client *c, const struct lock *lock)
{
	const struct grant *g;
	bool alone = c->locks->env->conf->standalone;

	if (!lock || TAILQ_EMPTY(&lock->grants))
		return false;
	TAILQ_FOREACH(g, &lock->grants, link) {
		if (!client_is_own(c, g->client))
			return false;
		alone |= g->mode == MODE_EXCLUSIVE && !lock->slots;
	}
	return alone;
}

void cmd_revoke(struct client *c, struct call *call)
{
	struct slice reason = call->argc == 3 ? call->argv[2] : SLICE("requested");

	if (!is_own(c, call->lock) && !reply_permits(c, RULE_revoke, call->name, "ask for what others hold"))
		return;
	if (!revoke_reason_valid(reason))
		reply_error(c, ERROR_ERR,
				   "a reason is 1..128 bytes of UTF-8 without control characters");
	else
		revocation_new(call->hosts, c, COMMAND_REVOKE, call->name, reason);
}

void cmd_forceunlock(struct client *c, struct call *call)
{
	struct slice name = call->argv[1];

	if (!client_is_operator(c))
		reply_denied(c, "take a lock by force");
	else if (args_valid_name(c, name))
		revocation_new(call->hosts, c, COMMAND_FORCEUNLOCK, name, (struct slice){ 0 });
}

void cmd_audit(struct client *c, struct call *call)
{
	if (client_is_operator(c))
		audit_ask(call->hosts, c);
	else
		reply_denied(c, "have all directories examined");
}
