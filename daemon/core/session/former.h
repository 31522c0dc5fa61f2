/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZooKeeper sessions that no daemon uses any longer: earlier daemons of this host left them behind, or this one has given
 * them up, because no server could be reached for so long. Processes that were granted locks under one may still believe to
 * hold them, until the last safe_until that can have been reported to them. Its znodes keep everybody else waiting, also
 * when all servers were restarted and gave it its whole timeout again: so it is ended as soon as it may be, and not before.
 *
 *   state   | means                                            | left by
 *   WAITING | a process that held something under it may live  | none is alive any longer, or now >= not_before -> ENDING
 *   ENDING  | the adapter was asked to end it                  | it is over, or was given up -> OVER
 *   OVER    | ended, expired, or left to its timeout           | its place is needed
 *
 * Until then the daemon serves with a session of its own; the former session's znodes stand before it in the queues.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"

struct ensemble;
struct event;

enum { FORMERS_MAX = 5 };

enum former_state { FORMER_WAITING, FORMER_ENDING, FORMER_OVER };

struct former {
	int64_t session;
	int64_t not_before_ns; /* while one of its holders may live */
	bool own;              /* this daemon's, until it gave it up */
	enum former_state state;
};

struct formers {
	struct former list[FORMERS_MAX];
	size_t count;
	struct timer timer;
};

/* From the configuration; nothing is done before formers_start(). */
void formers_init(struct ensemble *zk);
void formers_start(struct ensemble *zk);
/* This daemon's session is given up: to be said before another one is asked for, and before its handle is discarded. */
void former_add(struct ensemble *zk, int64_t session, int64_t not_before_ns);
void former_free(struct ensemble *zk, int64_t session);           /* EVENT_FORMER_FREE */
void former_over(struct ensemble *zk, const struct event *event); /* EVENT_FORMER_OVER */
void formers_tick(struct ensemble *zk);                           /* the timer is due */
/* The session that an earlier daemon left or this one gave up, over or not; NULL: it is neither. */
struct former *former_find(struct ensemble *zk, int64_t session);
/* How many are not over yet. */
size_t formers_open(const struct ensemble *zk);
/* How long until the last one may be ended, even if its holders live; 0 when none waits. */
int64_t formers_wait_ns(const struct ensemble *zk);
