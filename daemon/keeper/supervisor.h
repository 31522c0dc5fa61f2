/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the main process of the service. It starts the worker, which does everything else, holds descriptors for it,
 * and starts it anew when it crashes. It parses nothing but messages of a few numbers (io/base/keeper_message.h), and never
 * waits for the worker.
 *
 *   event                                 | the keeper
 *   a signal of the service               | SIGNAL; a signal to stop also goes to a later worker, and SIGUSR1 before it
 *   STAYS                                 | ... but no longer
 *   the worker says nothing for too long  | it is ended as by the service manager's watchdog (SIGABRT)
 *   the worker's end of the channel closes| whatever is left of its processes is killed; when all are reaped:
 *     it has exited                       |   the keeper exits with the same status
 *     anything else                       |   another worker is started, and given all that is kept (crashes.h)
 *   AGAIN, and another program is there   | runs that in its own place, with all that is kept (reexec.h)
 *
 * The end of the worker is the end of the channel, so that a hand-over, in which the next worker has that end before the old
 * one exits, needs no notice. The service manager's watchdog watches the keeper, and the keeper the worker, for the same
 * time: a worker that hangs costs no more than one that crashes.
 */
#pragma once

#include "base/log.h"

struct program;

/* Started as usual, with the log set up in that form. Returns when the service has ended: the exit status. */
int supervisor_run(const struct program *program, enum log_form form);
/* In the place of another keeper, which left its state in PROGRAM_KEEPING_VARIABLE. -1: this is no such process. */
int supervisor_resume(const struct program *program);
