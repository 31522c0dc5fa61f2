/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdogs. The service manager watches the keeper (WATCHDOG_USEC), and the keeper the worker, for the same time: a
 * worker that hangs is ended and started again, and costs no more than one that crashes.
 *
 *   the worker ...                      | the step that is due
 *   has said in time that it lives      | nothing
 *   has not                             | nothing yet: perhaps the whole host stood still, and it says so right now
 *   ... a second later                  | WATCHDOGS_ABORT: it may write a core
 *   ... is still there ten seconds later| WATCHDOGS_KILL
 *
 * Instants are of CLOCK_MONOTONIC, which stands still while the host sleeps.
 */
#pragma once

#include <stdint.h>

#include "io/notify.h"

enum watchdogs_due { WATCHDOGS_NOTHING, WATCHDOGS_ABORT, WATCHDOGS_KILL };

enum watchdogs_state { WATCHDOGS_WELL, WATCHDOGS_LATE, WATCHDOGS_ABORTED, WATCHDOGS_KILLED };

struct watchdogs {
	struct notify notify;
	int64_t every_ns;  /* how often the service manager is notified; 0: it does not want to know */
	int64_t next_ns;   /* when it is notified next; INT64_MAX: never */
	int64_t within_ns; /* the worker says so again within this time; 0: it need not */
	int64_t due_ns;    /* of `state`; INT64_MAX: never */
	enum watchdogs_state state;
};

int64_t watchdogs_now_ns(void);
/* Reads the variables of the service manager, and removes them. */
void watchdogs_open(struct watchdogs *w);
void watchdogs_close(struct watchdogs *w);
/* A worker was started: it has a minute until it says the first time that it lives. */
void watchdogs_begin(struct watchdogs *w, int64_t now_ns);
/* There is none. */
void watchdogs_end(struct watchdogs *w);
/* The worker lives, and says so again within that time; 0: it does not. */
void watchdogs_alive(struct watchdogs *w, int64_t now_ns, uint64_t within_us);
/* The worker serves. */
void watchdogs_ready(const struct watchdogs *w);
/* When watchdogs_look() is to be called next; INT64_MAX: never. */
int64_t watchdogs_deadline(const struct watchdogs *w);
/* Tells the service manager that the keeper lives, and returns the step that is due for the worker. */
enum watchdogs_due watchdogs_look(struct watchdogs *w, int64_t now_ns);
