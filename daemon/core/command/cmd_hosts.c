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

void cmd_revoke(struct client *c, struct call *call)
{
	struct slice reason = call->argc == 3 ? call->argv[2] : SLICE("requested");

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
	audit_ask(call->hosts, c);
}
