/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker lock runs a command while holding a lock, or several; lockbroker sem, while holding permits of a semaphore;
 * lockbroker campaign, while leading an election. order.c reads the words, acquire.c acquires, job.c runs the command.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "client-lib/cli/acquire.h"
#include "client-lib/cli/commands.h"
#include "client-lib/cli/hold.h"
#include "client-lib/cli/job.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/order.h"
#include "client-lib/cli/say.h"

static int run(struct cli_order *o, struct lb *lb, const int64_t *tokens, const char *owner,
	       const struct sigaction *pipe_action)
{
	struct cli_job job = {
		.lb = lb,
		.names = o->names,
		.count = o->count,
		.tokens = o->held == HELD_PERMITS ? NULL : tokens,
		.leads = o->held == HELD_LEADERSHIP,
		.leased = o->options.lease_ms > 0,
		.command = o->command,
		.with_dashes = o->with_dashes,
		.owner = owner,
		.grace_ms = o->grace_ms,
		.min_hold_ms = o->min_hold_ms,
		.on_revoke = o->on_revoke,
		.closes = o->closes,
		.in_place = o->in_place,
		.pipe_action = *pipe_action,
	};

	if (o->verbose)
		cli_say("Running %s.", o->command[0]);
	return cli_job_run(&job);
}

int cli_lock(const char *socket, const struct cli_command *command, int argc, char **argv)
{
	int64_t tokens[LIMIT_NAMES_MAX];
	struct sigaction pipe_action;
	struct lb *lb = NULL;
	struct cli_order o;
	int status = cli_order_read(&o, command, argc, argv);

	if (status != CLI_OK)
		return status;
	if (o.asks == ASKS_HELP)
		return cli_help(command);
	if (o.asks == ASKS_VERSION)
		return cli_version();
	cli_say_about(command->word, o.names[0]);
	/* Perhaps nobody is left to read our messages: that must end neither us nor the command. */
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, &pipe_action);
	/* The search for deadlocks ignores leaderships. */
	if (o.held == HELD_LEADERSHIP)
		o.owner = NULL;
	else if (!o.owner)
		o.owner = getenv("LOCKBROKER_OWNER");
	if (cli_acquire(&o, o.socket ? o.socket : socket, &lb, tokens, &status)) {
		cli_say_about(command->word, o.names[0]);
		status = o.runs ? run(&o, lb, tokens, o.owner, &pipe_action) : cli_hold(&o, lb, tokens);
	}
	lb_close(lb);
	return status;
}
