/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notification waits until its client reads it (EVENTS). client/notify.h describes and writes them.
 *
 *   type       | at most one for each                   | written from
 *   SESSION    | client                                 | the session
 *   LOST       | grant                                  | the grant, which ends when it is told
 *   LEADER     | observer                               | the known leader of the election
 *   REVOKE     | grant                                  | its text; the grant's end drops it
 *   TOLD       | (any number)                           | its text; observing an election again drops `unobserved`
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/charge.h"
#include "base/queue.h"
#include "protocol/bytes.h"

struct client;
struct grant;
struct observer;

enum notification_type {
	NOTIFICATION_SESSION,
	NOTIFICATION_LOST,
	NOTIFICATION_LEADER,
	NOTIFICATION_REVOKE,
	NOTIFICATION_TOLD,
};

struct notification {
	TAILQ_ENTRY(notification) link;
	enum notification_type type;
	struct notification **place; /* the client's, grant's or observer's pointer to it, NULL before; or NULL */
	struct grant *grant;         /* LOST */
	struct observer *observer;   /* LEADER */
	size_t items;                /* other types: the items of `text`, which is the same in both versions of RESP */
	struct bytes text;
	struct charge charge;
};

TAILQ_HEAD(notification_list, notification);

/* Keeps a copy behind those that wait, with its text. The client is closed if too many wait. */
void notification_add(struct client *c, const struct notification *told);
/* The same, whatever waits: it was kept before. */
void notification_keep(struct client *c, const struct notification *told);
bool notification_counts(enum notification_type type);   /* the others are bounded by what they are about */
size_t notification_bytes(const struct notification *n); /* that are charged, if it counts */
void notification_free(struct client *c, struct notification *n); /* before it is read */
void notification_drop_all(struct client *c);

/* Takes NULL. */
static inline void notification_drop(struct client *c, struct notification *n)
{
	if (n)
		notification_free(c, n);
}
