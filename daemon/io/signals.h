/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals as events of the loop. Nothing but a fault or SIGKILL ends the daemon before holders were notified.
 *
 *     TERM INT QUIT                     -> `stop` is called, each time
 *     HUP                               -> `reload` is called
 *     USR2                              -> `restart` is called
 *     USR1                              -> `keep` is called
 *     ALRM VTALRM PROF
 *     IO PWR STKFLT XCPU XFSZ, real time -> logged, and ignored
 *     PIPE                              -> ignored
 *     SEGV BUS FPE ILL ABRT             -> not touched: a fault ends the process (crash.h)
 *     TRAP SYS                          -> default action, which ends it, too
 *     others                            -> default action: TSTP stops it, CONT continues it, CHLD does nothing
 *
 * signals_free() leaves blocked signals blocked: from then on the process only ends.
 */
#pragma once

#include <sys/types.h>

struct signals;
struct watch_base;

struct signals_calls {
	void (*stop)(void *arg, int number);
	void (*reload)(void *arg, int number);
	void (*restart)(void *arg, int number);
	void (*keep)(void *arg, int number);
	void *arg;
};

/* To be called before there are threads. 0 or -errno. */
int signals_new(struct signals **ret, struct watch_base *base, const struct signals_calls *calls);
/* The sender of the signal that a call is about; 0: the kernel, or a process that cannot be seen from here. */
pid_t signals_sender(const struct signals *s);
/* Takes NULL. */
void signals_free(struct signals *s);
