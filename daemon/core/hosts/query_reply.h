/* SPDX-License-Identifier: Apache-2.0 */
/* HOLDERS, QUEUE, WHY, LEADER and HOSTS begin a query (query.h) and are answered, now or later, from its result. */
#pragma once

#include "protocol/commands.h"
#include "protocol/slice.h"

struct client;
struct hosts;
struct query;

/* Answers now or later. HOSTS has no name. */
void query_ask(struct hosts *h, struct client *c, enum command command, struct slice name);
/* HOLDERS, as far as this host knows without asking. */
void query_known(struct hosts *h, struct client *c, struct slice name);
/* Answers a query that is finished, and frees it. */
void query_reply(struct query *q);
