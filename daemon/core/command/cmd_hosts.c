/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that concern all hosts: HOLDERS, QUEUE, WHY, HOSTS, REVOKE, FORCEUNLOCK, AUDIT. */
#include "core/client/reply.h"
#include "core/command/call.h"
#include "core/hosts/query_reply.h"
#include "core/hosts/revocation.h"
#include "core/hosts/revoke.h"

void cmd_ask(struct call *call)
{
	query_ask(call->hosts, call->client, call->words.command, call->name);
}

void cmd_holders(struct call *call)
{
	if (call->words.argc == 2)
		cmd_ask(call);
	else if (slice_is(call->words.argv[2], "known"))
		query_known(call->hosts, call->client, call->name);
	else
		args_usage_error(call->client, "unknown word in", COMMAND_HOLDERS);
}

void cmd_hosts(struct call *call)
{
	query_ask(call->hosts, call->client, COMMAND_HOSTS, (struct slice){ 0 });
}

void cmd_revoke(struct call *call)
{
	struct slice reason = call->words.argc == 3 ? call->words.argv[2] : SLICE("requested");

	if (!revoke_reason_valid(reason))
		reply_error(call->client, ERROR_ERR,
				   "a reason is 1..128 bytes of UTF-8 without control characters");
	else
		revocation_new(call->hosts, call->client, COMMAND_REVOKE, call->name, reason);
}

void cmd_forceunlock(struct call *call)
{
	struct slice name = call->words.argv[1];
	struct client *c = call->client;

	if (!client_is_operator(c))
		reply_error(c, ERROR_DENIED, "only root and the daemon's own user may take a lock by force");
	else if (args_valid_name(c, name))
		revocation_new(call->hosts, c, COMMAND_FORCEUNLOCK, name, (struct slice){ 0 });
}

void cmd_audit(struct call *call)
{
	audit_ask(call->hosts, call->client);
}
