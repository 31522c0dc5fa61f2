/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LIMIT reads the limit of a semaphore, and sets it if the client asks for that: only over the version that was read,
 * because another host may have made a lock of that name meanwhile, or set another limit; then it is read again.
 */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

struct client;
struct event;
struct hosts;
struct operation;

/* Sets it to `limit` if that is not 0. Not standalone. Answers later. */
void query_limit(struct hosts *h, struct client *c, struct slice name, int64_t limit);
/* Answers of LIMIT_GET and LIMIT_SET. */
void query_limit_answered(struct hosts *h, const struct operation *op, const struct event *event);
/* The reply to LIMIT; 0: there is no limit. */
void query_limit_reply(struct client *c, int64_t limit);
