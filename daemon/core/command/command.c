/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/command.h"

#include "core/command/call.h"
#include "protocol/commands.h"

enum {
	OPTIONS_LOCK = OPTION_SHARED | OPTION_WAIT | OPTION_LEASE | OPTION_DATA | OPTION_REENTER,
	OPTIONS_ACQUIRE = OPTION_LIMIT | OPTION_COUNT | OPTION_WAIT | OPTION_LEASE,
	OPTIONS_CAMPAIGN = OPTION_WAIT | OPTION_DATA | OPTION_ENQUEUE,
};

/* What each command takes: NAMED, a lock's name first; options from the word `from` on (0: it parses its own words). */
enum named { PLAIN, NAMED };

static const struct {
	void (*run)(struct call *call);
	enum named named;
	size_t from;
	unsigned int options;
} table[COMMAND_COUNT] = {
	[COMMAND_LOCK] = { cmd_lock, NAMED, 2, OPTIONS_LOCK },
	[COMMAND_UNLOCK] = { cmd_unlock, NAMED, 2, OPTION_TOKEN | OPTION_LAZY },
	[COMMAND_MLOCK] = { cmd_mlock, PLAIN, 0, 0 },
	[COMMAND_MUNLOCK] = { cmd_munlock, PLAIN, 0, 0 },
	[COMMAND_DOWNGRADE] = { cmd_downgrade, NAMED, 2, 0 },
	[COMMAND_RENEW] = { cmd_renew, NAMED, 0, 0 },
	[COMMAND_ENQUEUE] = { cmd_lock, NAMED, 2, OPTIONS_LOCK },
	[COMMAND_CANCEL] = { cmd_cancel, NAMED, 2, 0 },
	[COMMAND_ACQUIRE] = { cmd_acquire, NAMED, 2, OPTIONS_ACQUIRE },
	[COMMAND_RELEASE] = { cmd_release, NAMED, 2, OPTION_COUNT },
	[COMMAND_LIMIT] = { cmd_limit, NAMED, 0, 0 },
	[COMMAND_VALID] = { cmd_valid, NAMED, 2, OPTION_TOKEN },
	[COMMAND_CAMPAIGN] = { cmd_campaign, NAMED, 2, OPTIONS_CAMPAIGN },
	[COMMAND_RESIGN] = { cmd_resign, NAMED, 2, 0 },
	[COMMAND_LEADER] = { cmd_leader, NAMED, 2, 0 },
	[COMMAND_OBSERVE] = { cmd_observe, NAMED, 2, 0 },
	[COMMAND_UNOBSERVE] = { cmd_unobserve, NAMED, 2, 0 },
	[COMMAND_HOLDERS] = { cmd_holders, NAMED, 0, 0 },
	[COMMAND_QUEUE] = { cmd_ask, NAMED, 2, 0 },
	[COMMAND_WHY] = { cmd_ask, NAMED, 2, 0 },
	[COMMAND_REVOKE] = { cmd_revoke, NAMED, 0, 0 },
	[COMMAND_FORCEUNLOCK] = { cmd_forceunlock, PLAIN, 0, 0 },
	[COMMAND_HOSTS] = { cmd_hosts, PLAIN, 0, 0 },
	[COMMAND_LOCKS] = { cmd_locks, PLAIN, 0, 0 },
	[COMMAND_EVENTS] = { cmd_events, PLAIN, 1, OPTION_WAIT },
	[COMMAND_AUDIT] = { cmd_audit, PLAIN, 0, 0 },
	[COMMAND_HELLO] = { cmd_hello, PLAIN, 0, 0 },
	[COMMAND_PING] = { cmd_ping, PLAIN, 0, 0 },
	[COMMAND_ECHO] = { cmd_echo, PLAIN, 0, 0 },
	[COMMAND_SELECT] = { cmd_select, PLAIN, 0, 0 },
	[COMMAND_INFO] = { cmd_info, PLAIN, 0, 0 },
	[COMMAND_CLIENT] = { cmd_client, PLAIN, 0, 0 },
	[COMMAND_COMMAND] = { cmd_command, PLAIN, 0, 0 },
	[COMMAND_RESET] = { cmd_reset, PLAIN, 0, 0 },
	[COMMAND_QUIT] = { cmd_quit, PLAIN, 0, 0 },
};

/* False: the words are not what the command takes, and that was answered. */
static bool prepare(struct call *call)
{
	enum command command = call->words.command;

	if (table[command].named == NAMED) {
		call->name = call->words.argv[1];
		call->lock = lock_find(call->client->locks, call->name);
		/* No lock was made of a name that is not valid. */
		if (!call->lock && !args_valid_name(call->client, call->name))
			return false;
	}
	return !table[command].from ||
	       options_parse(&call->words, command, table[command].from, table[command].options, &call->options);
}

void command_handle(struct hosts *h, struct client *c, size_t argc, const struct slice *argv)
{
	struct call call;
	enum command command = command_find(argv[0]);
	const struct command_spec *spec;

	c->last_command = command;
	if (command == COMMAND_COUNT) {
		args_unknown_command(c, argv[0]);
		return;
	}
	spec = &command_table[command];
	if (argc < (size_t)spec->args_min || (spec->args_max >= 0 && argc > (size_t)spec->args_max)) {
		args_usage_error(c, "wrong number of arguments for", command);
		return;
	}
	call.words = (struct request_words){ c, command, argc, argv };
	call.hosts = h;
	call.client = c;
	if (prepare(&call))
		table[command].run(&call);
}
