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
#include <stdint.h>

#include "client-lib/cli/order.h"

/*
 * Runs the command of the order, whose locks `lb` holds, with these tokens (which permits do not have), to its end.
 * `pipe_action`: of SIGPIPE, for the command; we ignore it. Returns the exit status; with `in_place`, only if the command
 * could not be run.
 */
int cli_job_run(const struct cli_order *order, struct lb *lb, const int64_t *tokens,
		const struct sigaction *pipe_action);
