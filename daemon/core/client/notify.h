/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications report events for which a client has not asked: granted, timeout, failed, lost, jeopardy, safe, revoke,
 * leader, unobserved. A RESP3 client gets them as pushes; for others they are kept until EVENTS asks. jeopardy and safe
 * coalesce to the latest; leader does for each election. The others report one event each, once and in order.
 *
 * A notification that is kept (notification.h) is written when it is read: with the text that was composed before, or
 * with the state at that time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/bytes_format.h"
#include "protocol/slice.h"

struct client;
struct grant;
struct observer;

void notify_lost(struct client *c, struct grant *g); /* a moment ago */
void notify_session(struct client *c); /* jeopardy or safe, by the session's state */
void notify_leader(struct client *c, struct observer *o); /* the leader as it is known now */
void notify_forget_unobserved(struct client *c, struct slice name);
void notify_revoke(struct client *c, struct grant *g, struct slice reason); /* the latest unread one counts */
bool notify_full(const struct client *c); /* two more would close it: notifications that can wait leave room */
bool notify_unresponsive(const struct client *c); /* it has not read its share of revocations */
/* Any other: its items, as bytes_format() takes values. */
#define notify(c, ...) notify_values(c, BYTES_ARGUMENTS(__VA_ARGS__))
void notify_values(struct client *c, const struct bytes_value *values, size_t count);
/* EVENTS: answers now, or waits for so long (negative: for ever) and then answers with nil. */
void notify_wait(struct client *c, int64_t wait_ns);
void notify_end_wait(struct client *c);
void notify_speak(struct client *c, int version); /* RESP3: notifications that waited for EVENTS are pushed */
