/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notification waits until its client reads it (EVENTS). client/notify.h describes and writes them.
 *
 *   type       | at most one for each                   | written from
 *   SESSION    | client                                 | the session
 *   LOST       | grant                                  | the grant, which ends when it is told
 *   LEADER     | observer                               | the known leader of the election
 *   UNOBSERVED | client and election                    | its text; observing the election again drops it
 *   REVOKE     | grant                                  | its text; the grant's end drops it
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
	struct notification **place; /* the client's, grant's or observer's pointer to it; may be NULL */
	struct grant *grant;         /* LOST */
	struct observer *observer;   /* LEADER */
	size_t items;                /* other types: the items of `text`, which is the same in both versions of RESP */
	struct bytes text;
};

TAILQ_HEAD(notification_list, notification);

/* Adds one behind those that wait. The client is closed if too many wait. `place` is NULL or points to NULL. */
struct notification *notification_add(struct client *c, enum notification_type type, struct notification **place);
/* Takes NULL. */
void notification_drop(struct client *c, struct notification *n);
void notification_drop_all(struct client *c);
