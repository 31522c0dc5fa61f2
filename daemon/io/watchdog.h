/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's watchdog (WatchdogSec=): the loop tells the manager that it turns, at half of the time after which
 * the manager would kill the daemon and start it again. It is fed for as long as the daemon runs, also while it stops.
 *
 * A daemon that hangs for less than two thirds of the session timeout costs nobody a lock: a shorter watchdog, which would,
 * is made that long.
 */
#pragma once

#include <stdint.h>

struct notify;
struct watch_base;
struct watchdog;

/* Begins to feed it. NULL: there is none for this process (WATCHDOG_USEC, WATCHDOG_PID). `notify` outlives it. */
struct watchdog *watchdog_new(struct watch_base *base, const struct notify *notify, int64_t session_timeout_ns);
/* Takes NULL. */
void watchdog_free(struct watchdog *w);
