/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of a semaphore, and the directories that contain its permits. The data of <name> give the limit for all hosts:
 * the host that makes the directory writes the limit of its first request. Requests with another limit get MISMATCH.
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

/* Writes the data of a semaphore's directory; reads its limit from them (0: none). False: they are not a semaphore's. */
void permit_limit_data(struct bytes *out, int64_t limit);
bool permit_limit_data_fits(struct slice data, int64_t *limit);
/* To be called if there are requests: reads the limit if it is not known, and refuses requests with another limit. */
void permit_limit_settle(struct semaphore *s);
/* Refuses the requests whose limit is not the known one. */
void permit_limit_reject(struct semaphore *s);
/* Other software made the directory without a limit, or overwrote the limit: the mutex's holder writes it for all. */
void permit_limit_say(struct semaphore *s, const struct request *r);
/* One of the semaphore's directories is gone. */
void permit_limit_vanished(struct semaphore *s);
/* The answer of a SEMAPHORE_GET or SEMAPHORE_WRITE; an event of a watch on any path. */
void permit_limit_answered(const struct operation *op, const struct event *event);
void permit_limit_watched(struct locks *locks, struct slice path);
