/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HOLDERS, QUEUE, WHY, LEADER and HOSTS begin a query (query.h) and are answered, now or later, from its result.
 *
 * LIMIT reads the limit of a semaphore, and sets it if the client asks for that: only over the version that was read,
 * because another host may have made a lock of that name since, or set another limit; then it is read again.
 */
#pragma once

#include <stdint.h>

#include "protocol/commands.h"
#include "protocol/slice.h"

struct client;
struct event;
struct hosts;
struct operation;
struct query;

/* Answers now or later. HOSTS has no name. */
void query_ask(struct hosts *h, struct client *c, enum command command, struct slice name);
/* HOLDERS, as far as this host knows without asking. */
void query_known(struct hosts *h, struct client *c, struct slice name);
/* Answers of LIMIT_GET and LIMIT_SET. */
void query_limit_answered(struct hosts *h, const struct operation *op, const struct event *event);
/* The reply to LIMIT; 0: there is no limit. */
void query_limit_reply(struct client *c, int64_t limit);
/* Answers a query that is finished, and frees it. */
void query_reply(struct query *q);
