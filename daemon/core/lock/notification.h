/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notification that waits until its client reads it (EVENTS). client/notify.h says what they are and writes them.
 *
 *   type       | of which there is at most one for each | written from
 *   SESSION    | client                                 | the session
 *   LOST       | grant                                  | the grant: telling it ends it
 *   LEADER     | observer                               | what is known of the election
 *   UNOBSERVED | client and election                    | its text; a client that observes it again is not told any longer
 *   REVOKE     | grant                                  | its text; the grant's end takes it with it
 *   TOLD       | (any number)                           | its text
 */
#pragma once

#include <stddef.h>

#include "base/queue.h"
#include "protocol/bytes.h"

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
	struct notification **place; /* where the one of a client, grant or observer is remembered; may be NULL */
	struct grant *grant;         /* LOST */
	struct observer *observer;   /* LEADER */
	size_t items;                /* of the others: so many, and their text, the same in both versions of RESP */
	struct bytes text;
};

TAILQ_HEAD(notification_list, notification);

/* Behind those that wait. The client is closed if too many do. `place` may be NULL, and points to NULL otherwise. */
struct notification *notification_add(struct client *c, enum notification_type type, struct notification **place);
/* Takes NULL. */
void notification_drop(struct client *c, struct notification *n);
void notification_drop_all(struct client *c);
