/* SPDX-License-Identifier: Apache-2.0 */
/* ZooKeeper's answers and watch events, to whoever asked. */
#pragma once

#include <stdint.h>

struct broker;
struct event;

/* Takes the operation off the queue, then acts on its answer: what that sends is queued behind. */
void route_answer(struct broker *b, uint64_t number, const struct event *event);
void route_watched(struct broker *b, const struct event *event);
/* The connection is gone: all that is open gets ZK_UNKNOWN. */
void route_fail_all(struct broker *b);
