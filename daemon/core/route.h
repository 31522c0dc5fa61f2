/* SPDX-License-Identifier: Apache-2.0 */
/* ZooKeeper's answers and watch events, to whoever asked. */
#pragma once

struct broker;
struct event;

/* An answer of an older life is dropped. */
void route_answered(struct broker *b, const struct event *event);
void route_watched(struct broker *b, const struct event *event);
/* The connection is gone: all that is open gets ZK_UNKNOWN. */
void route_fail_all(struct broker *b);
