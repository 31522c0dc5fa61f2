/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A command that runs while something is held through a connection: a lock, several locks, permits, a leadership.
 *
 * The connection is the owner of the locks, and the command inherits its descriptor: all locks are held until the last
 * process that has the descriptor ends, even if this process is killed. Nothing is ever released by a request. A
 * command that does not inherit the descriptor (`closes`) gets SIGTERM when this process is killed.
 *
 *     already lost -> the command is not started
 *     fork, exec   -> watch: signals are forwarded, events of the connection are handled
 *                            one lock LOST, or the connection gone -> TERM, grace, KILL, to the command and all its
 *                                descendants; it is over when the last of them has ended
 *                            somebody asks for a lock -> the signal that was chosen for that
 *                            the command ended -> its exit status; processes that it left in the background go on;
 *                                the locks are held for min_hold_ms at least, unless a signal ends that, or ended
 *                                the command
 *     in_place     -> exec, without fork: nobody watches
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
	char **names; /* of the locks held */
	size_t count;
	const int64_t *tokens; /* of the locks; NULL: there are none */
	bool leads;            /* the name is an election's */
	bool leased;           /* the grant ends by itself */
	char **command;
	bool with_dashes;      /* a "--" follows in it: perhaps it was meant as the end of names */
	const char *owner;     /* the lock group of the command; "": none; NULL: the environment is left as it is */
	int64_t grace_ms;
	int on_revoke;         /* the signal; 0: none */
	int64_t min_hold_ms;   /* from the grant on */
	bool closes;           /* the command does not inherit the connection */
	bool in_place;         /* the command takes our place */
	struct sigaction pipe_action; /* of SIGPIPE, for the command; we ignore it */
	/* Private. */
	sigset_t inherited; /* signal mask, for the command */
	bool started;       /* there is, or was, a command */
	struct cli_proof proof;
	int signals;        /* signalfd */
	pid_t child;        /* 0 when the command has ended, with `status` */
	int status;
	bool ended;         /* the command has, and it was seen what became of the lock until then */
	bool asked_back, lost;
	bool told_to_end;   /* by a signal */
	int64_t hold_until_ms;
	int64_t kill_at_ms, give_up_at_ms; /* INT64_MAX: not set */
	struct cli_tree tree;
};

/* Why a lock was lost, by the reason that its event gives: the rest of a sentence. */
const char *cli_why_lost(const char *reason);
/* Why everything is lost after a call that failed with `result`: the rest of a sentence, in `ret`. */
const char *cli_why_ended(const struct lb *lb, enum lb_result result, char *ret, size_t size);
/* Runs the command to its end. Returns the exit status; with `in_place`, only if the command could not be run. */
int cli_job_run(struct cli_job *job);
