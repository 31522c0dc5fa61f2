/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker lock runs a command while holding a lock, or several; lockbroker sem, while holding permits of a semaphore;
 * lockbroker campaign, while leading an election. order.c reads the words, acquire.c acquires, job.c runs the command.
 */
#include <signal.h>
#include <stdlib.h>

#include "client-lib/cli/acquire.h"
#include "client-lib/cli/commands.h"
#include "client-lib/cli/hold.h"
#include "client-lib/cli/job.h"
#include "client-lib/cli/order.h"
#include "client-lib/cli/say.h"

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
	status = cli_acquire(&o, o.socket ? o.socket : socket, &lb, tokens);
	if (status < 0) {
		cli_say_about(command->word, o.names[0]);
		status = o.runs ? cli_job_run(&o, lb, tokens, &pipe_action) : cli_hold(&o, lb, tokens);
	}
	lb_close(lb);
	return status;
}
