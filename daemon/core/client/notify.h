/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client is told without having asked: granted, timeout, failed, lost, jeopardy, safe, revoke, leader, unobserved.
 * Pushes for a RESP3 client; for others they are kept until EVENTS asks. jeopardy and safe coalesce to the latest, and so
 * does leader of one election; the others tell what happened, each once and in order.
 *
 * What is kept (notification.h) is written when it is read: the text that was put together before, or what is true then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/errors.h"
#include "protocol/slice.h"

struct client;
struct grant;
struct observer;

void notify_lost(struct client *c, struct grant *g); /* it just became so */
void notify_session(struct client *c); /* jeopardy or safe, by the session's state */
void notify_leader(struct client *c, struct observer *o); /* who leads, as it is known now */
void notify_unobserved(struct client *c, struct slice name, enum error_code code, struct slice sentence);
void notify_forget_unobserved(struct client *c, struct slice name);
void notify_revoke(struct client *c, struct grant *g, struct slice reason); /* the latest unread one counts */
bool notify_full(const struct client *c); /* two more would close it: what can wait leaves room */
bool notify_unresponsive(const struct client *c); /* so much of its output may be revocations that it has not read */
void notify_granted(struct client *c, struct slice name, int64_t token); /* how a queued request ended */
void notify_timeout(struct client *c, struct slice name);
void notify_failed(struct client *c, struct slice name, enum error_code code, struct slice sentence);
/* EVENTS: answers now or waits, wait_ns < 0: for ever; then ends with nil. */
void notify_wait(struct client *c, int64_t wait_ns);
void notify_end_wait(struct client *c);
void notify_speak(struct client *c, int version); /* what waited for EVENTS is pushed from RESP3 on */
