/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client is told without having asked: granted, timeout, failed, lost, jeopardy, safe, revoke, leader, unobserved.
 * Pushes for a RESP3 client; for others they are kept until EVENTS asks. jeopardy and safe coalesce to the latest, and so
 * does leader of one election; the others tell what happened, each once and in order.
 *
 * What is kept is written when it is read: the text that was put together before, or what is true then.
 *
 *   type       | of which there is at most one for each | written from
 *   SESSION    | client                                 | the session
 *   LOST       | grant                                  | the grant: telling it ends it
 *   LEADER     | observer                               | what is known of the election
 *   UNOBSERVED | client and election                    | its text; who observes it again is not told any more
 *   REVOKE     | grant                                  | its text; the grant's end takes it with it
 *   TOLD       | (any number)                           | its text
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

struct client;
struct grant;
struct observer;

enum notification_type {
	NOTIFICATION_SESSION,
	NOTIFICATION_LOST,
	NOTIFICATION_LEADER,
	NOTIFICATION_UNOBSERVED,
	NOTIFICATION_REVOKE,
	NOTIFICATION_TOLD,
};

struct notification {
	TAILQ_ENTRY(notification) link;
	enum notification_type type;
	struct grant *grant;       /* LOST, REVOKE */
	struct observer *observer; /* LEADER */
	size_t items;              /* of the others: so many, and their text, the same in both versions of RESP */
	struct bytes text;
};

TAILQ_HEAD(notification_list, notification);

/* It got, lost or let go of a grant: who holds nothing any more is no holder, and in no jeopardy. */
void client_grants_changed(struct client *c);
void client_tell_lost(struct client *c, struct grant *g); /* it just became so */
void client_tell_session(struct client *c); /* jeopardy or safe, by the session's state */
void client_tell_leader(struct client *c, struct observer *o); /* kept for EVENTS, as o->event, or told */
void client_drop_event(struct client *c, struct notification *e);
void client_drop_events(struct client *c);
void client_tell_unobserved(struct client *c, struct slice name, enum error_code code, const char *sentence);
void client_forget_unobserved(struct client *c, struct slice name);
void client_tell_revoke(struct client *c, struct grant *g, struct slice reason); /* the latest unread one counts */
void client_forget_revoke(struct client *c, const struct grant *g);
bool client_events_full(const struct client *c); /* two more would close it: what can wait leaves room */
bool client_is_unresponsive(const struct client *c); /* so much of its output may be revocations that it has not read */
void client_tell_granted(struct client *c, struct slice name, int64_t token); /* how a queued request ended */
void client_tell_timeout(struct client *c, struct slice name);
void client_tell_failed(struct client *c, struct slice name, enum error_code code, const char *sentence);
void client_lost_told(struct client *c, struct grant *g); /* in a reply: forgets it and frees it */
/* EVENTS: answers now or waits, wait_ns < 0: for ever; then ends with nil. */
void client_events(struct client *c, int64_t wait_ns);
void client_events_end(struct client *c);
void client_speak(struct client *c, int version); /* what waited for EVENTS is pushed from RESP3 on */
