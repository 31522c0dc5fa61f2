/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals as events of the loop. Nothing but a fault or SIGKILL ends the daemon before holders were notified.
 *
 *     TERM INT QUIT HUP USR1 USR2       -> `heed` is called, each time
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

/* `sender` 0: the kernel, or a process that cannot be seen from here. */
typedef void signals_heed(void *arg, int number, pid_t sender);

/* To be called before there are threads. 0 or -errno. */
int signals_new(struct signals **ret, struct watch_base *base, signals_heed *heed, void *arg);
/* Takes NULL. */
void signals_free(struct signals *s);
