/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of a semaphore, and the directories in which its permits are. The data of <name> say it for all hosts; whoever
 * makes the directory says the limit of the first request. Requests with another limit get MISMATCH.
 *
 *   state   | the data of <name>                                | left by
 *   UNKNOWN | not read, or changed since                        | wanted -> ASKED
 *   ASKED   | being read, with a watch; made if there are none  | answered -> KNOWN; connection lost -> UNKNOWN
 *   KNOWN   | read and watched                                  | watch, connection lost, a directory gone -> UNKNOWN
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/event.h"
#include "protocol/bytes.h"

struct locks;
struct operation;
struct request;
struct semaphore;

enum semaphore_state { SEMAPHORE_UNKNOWN, SEMAPHORE_ASKED, SEMAPHORE_KNOWN };

enum { SEMAPHORE_TRIES = 8 };

/* The data of a semaphore's directory; and the limit that they give, 0: none. False: they are not a semaphore's. */
void permit_limit_data(struct bytes *out, int64_t limit);
bool permit_limit_data_fits(struct slice data, int64_t *limit);
/* There are requests: reads the limit if it is not known, and refuses those that have another. */
void permit_limit_settle(struct semaphore *s);
/* Refuses the requests that have another limit than is known. */
void permit_limit_reject(struct semaphore *s);
/* Other software made it without a limit, or somebody overwrote that. The mutex's holder writes it for all. */
void permit_limit_say(struct semaphore *s, const struct request *r);
/* One of its directories is gone. */
void permit_limit_vanished(struct semaphore *s);
/* Answers of SEMAPHORE_GET and SEMAPHORE_WRITE; an event on some path. */
void permit_limit_answered(const struct operation *op, const struct event *event);
void permit_limit_watched(struct locks *locks, struct slice path);
