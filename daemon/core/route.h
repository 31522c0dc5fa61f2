/* SPDX-License-Identifier: Apache-2.0 */
/* Routes ZooKeeper's answers and watch events to the modules that asked. */
#pragma once

struct broker;
struct event;

/* Takes the operation off the queue, then acts on its answer: operations that it sends are queued behind. */
void route_answer(struct broker *b, const struct event *event);
void route_watched(struct broker *b, const struct event *event);
/* The connection is lost: all open operations get ZK_UNKNOWN. */
void route_fail_all(struct broker *b);
