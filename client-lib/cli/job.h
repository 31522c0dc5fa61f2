/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A command that runs while something is held through a connection: a lock, several, permits, a leadership.
 *
 * The connection is the owner of what is held, and the command inherits its descriptor: it is held until the last of
 * the processes that have it ends, even if this one is killed. Nothing is ever unlocked by a request. A command that does
 * not inherit it (`closes`) gets SIGTERM when this one is killed.
 *
 *     lost by now -> not started
 *     fork, exec -> watch: signals are forwarded, events of the connection are heeded
 *                          any of it LOST, or connection gone -> TERM, grace, KILL: to the command and to all that
 *                              descend from it; over when the last of them has ended
 *                          any of it asked back -> the signal that was chosen for that
 *                          command ended -> its exit status, and what it left in the background goes on
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/cli/proof.h"
#include "client-lib/cli/tree.h"
#include "client-lib/lockbroker.h"

struct cli_job {
	struct lb *lb;
	char **names; /* of what is held */
	size_t count;
	const int64_t *tokens; /* theirs; NULL: there are none */
	bool leased;           /* it ends by itself */
	char **command;
	const char *owner;     /* whom the command belongs to; "": to nobody; NULL: that is not ours to say */
	int64_t grace_ms;
	int on_revoke;         /* the signal; 0: none */
	bool closes;           /* the command does not inherit the connection */
	struct sigaction pipe_action; /* of SIGPIPE, for the command; we ignore it */
	/* Private. */
	sigset_t inherited; /* signal mask, for the command */
	bool started;       /* there is a command, or was */
	struct cli_proof proof;
	int signals;        /* signalfd */
	pid_t child;        /* 0 when the command has ended, with `status` */
	int status;
	bool asked_back, lost;
	int64_t kill_at_ms, give_up_at_ms; /* INT64_MAX: not set */
	struct cli_tree tree;
};

/* Runs the command to its end. Returns the exit status. */
int cli_job_run(struct cli_job *job);
