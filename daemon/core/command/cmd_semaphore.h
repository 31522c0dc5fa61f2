/* SPDX-License-Identifier: Apache-2.0 */
/* ACQUIRE, RELEASE and LIMIT: what clients ask of semaphores (semaphore.h). */
#pragma once

#include "core/hosts/query.h"
#include "core/command/cmd_client.h"

/* What the client has of that semaphore, or lost and was not told; NULL. */
struct grant *permits_find(struct client *c, struct slice name);
void permits_acquire(const struct request_words *w);
void permits_release(const struct request_words *w);
void permits_limit(const struct request_words *w);
/* Answers of LIMIT_GET and LIMIT_SET. */
void permits_limit_answered(struct query *q, const struct operation *op, const struct event *event);
