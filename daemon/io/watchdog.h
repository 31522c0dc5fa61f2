/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's watchdog (WatchdogSec=): the loop tells the manager that it turns, at half of the time after which
 * the manager would kill the daemon and start it again; also while the daemon stops.
 *
 * With a keeper, the loop tells the keeper, and the keeper tells the manager (keeper/watchdogs.h).
 *
 * A daemon that hangs for less than two thirds of the session timeout costs nobody a lock: a shorter watchdog, which would,
 * is made that long, and longer when the servers grant a longer timeout than was asked for.
 */
#pragma once

#include <stdint.h>

/* Ten years: longer than any that is meant, and far from the end of the numbers. */
#define WATCHDOG_US_MAX INT64_C(315360000000000)

struct feed;
struct keeper;
struct notify;
struct watchdog;

/* After how many microseconds it fires; 0: there is none for this process (WATCHDOG_USEC, WATCHDOG_PID). */
int64_t watchdog_setting_us(void);
/* Begins to feed it. NULL: there is none. The feed, `notify` and `keeper`, which may be NULL, outlive it. */
struct watchdog *watchdog_new(const struct feed *feed, const struct notify *notify, struct keeper *keeper,
			      int64_t session_timeout_ns);
/* The loop has ended, and the service with it: that the process exits in time is for TimeoutStopSec= to see. Takes NULL. */
void watchdog_end(struct watchdog *w);
/* Takes NULL. */
void watchdog_free(struct watchdog *w);
