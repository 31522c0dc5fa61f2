/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdogs. The service manager watches the keeper (WATCHDOG_USEC), and the keeper the worker, for the same time: a
 * worker that hangs is ended and started again, and costs no more than one that crashes.
 *
 *   the worker ...                      | what is due
 *   has said in time that it lives      | nothing
 *   has not                             | nothing yet: perhaps the whole host stood still, and it says so right now
 *   ... a second later                  | VIGIL_ABORT: it may write a core
 *   ... is still there ten seconds later| VIGIL_KILL
 *
 * Instants are of CLOCK_MONOTONIC, which stands still while the host sleeps.
 */
#pragma once

#include <stdint.h>

#include "io/notify.h"

enum vigil_due { VIGIL_NOTHING, VIGIL_ABORT, VIGIL_KILL };

enum vigil_state { VIGIL_WELL, VIGIL_LATE, VIGIL_ABORTED, VIGIL_KILLED };

struct vigil {
	struct notify notify;
	int64_t every_ns;  /* how often the service manager is told; 0: it does not want to know */
	int64_t next_ns;   /* when it is told next; INT64_MAX: never */
	int64_t within_ns; /* the worker says so again within this time; 0: it need not */
	int64_t due_ns;    /* of `state`; INT64_MAX: never */
	enum vigil_state state;
};

int64_t vigil_now_ns(void);
/* Reads what the service manager wants. Removes its variables. */
void vigil_open(struct vigil *v);
void vigil_close(struct vigil *v);
/* A worker was started: it has a minute until it says the first time that it lives. */
void vigil_begin(struct vigil *v, int64_t now_ns);
/* There is none. */
void vigil_end(struct vigil *v);
/* The worker lives, and says so again within that time; 0: it does not. */
void vigil_alive(struct vigil *v, int64_t now_ns, uint64_t within_us);
/* The worker serves. */
void vigil_ready(const struct vigil *v);
/* When vigil_look() is to be called next; INT64_MAX: never. */
int64_t vigil_deadline(const struct vigil *v);
/* Tells the service manager that the keeper lives, and returns what is due for the worker. */
enum vigil_due vigil_look(struct vigil *v, int64_t now_ns);
