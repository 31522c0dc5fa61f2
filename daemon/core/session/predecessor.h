/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZooKeeper sessions for which nobody speaks any more: those that earlier daemons of this host left behind, and those
 * that this one has given up, because no server could be reached for so long. Processes that were granted locks under one
 * may still believe to hold them, until the last safe_until they can have been told. Its znodes keep everybody else
 * waiting, also when all servers were restarted and gave it its whole timeout again: so it is ended as soon as it may be,
 * and not before.
 *
 *   state   | means                                            | left by
 *   WAITING | a process that held something under it may live  | none lives any more, or now >= not_before -> ENDING
 *   ENDING  | the adapter was asked to end it                  | it is over, or was given up -> OVER
 *   OVER    | ended, expired, or left to its timeout           | its place is needed
 *
 * Meanwhile the daemon serves with a session of its own; what was left stands before it in the queues.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"

struct broker;
struct bytes;
struct event;

enum { LEFTOVERS_MAX = 5 };

enum leftover_state { LEFTOVER_WAITING, LEFTOVER_ENDING, LEFTOVER_OVER };

struct leftover {
	int64_t session;
	int64_t not_before_ns; /* while one of its holders may live */
	bool own;              /* this daemon's, until it gave it up */
	enum leftover_state state;
};

struct leftovers {
	struct leftover list[LEFTOVERS_MAX];
	size_t count;
	struct timer timer;
};

/* From the configuration; nothing is done before leftovers_start(). */
void leftovers_init(struct broker *b);
void leftovers_deinit(struct broker *b);
void leftovers_start(struct broker *b);
/* This daemon's session is given up: to be said before another one is asked for, and before its handle is discarded. */
void leftover_add(struct broker *b, int64_t session, int64_t not_before_ns);
/* EVENT_LEFTOVER_FREE. */
void leftover_free(struct broker *b, const struct event *event);
/* EVENT_LEFTOVER_OVER. */
void leftover_over(struct broker *b, const struct event *event);
/* When the timer is due. */
void leftovers_tick(struct broker *b);
/* Was it left by an earlier daemon, or given up by this one, over or not? */
bool leftover_is(const struct broker *b, int64_t session);
/* How many are not over yet. */
size_t leftovers_open(const struct broker *b);
/* How long until the last one may be ended whoever lives; 0 when none waits. */
int64_t leftovers_wait_ns(const struct broker *b);
