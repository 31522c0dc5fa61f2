/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A notification waits until its client reads it (EVENTS). client/notify.h describes and writes them.
 *
 *   type       | at most one for each                   | written from
 *   SESSION    | client                                 | the session
 *   LOST       | grant                                  | the grant, which then ends
 *   LEADER     | observer                               | the known leader of the election
 *   REVOKE     | grant                                  | its text; the grant's end drops it
 *   TOLD       | (any number)                           | its text; observing an election again drops `unobserved`
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/queue.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

struct client;
struct grant;
struct observer;

/*
 * An outcome records the news for a client about a request, a grant or an election. The rule takes the request off its lock
 * at once, so that it sees the truth, and queues the outcome; `client/tell.c` reports it before the event ends.
 *
 *   kind       | embedded in | reported as
 *   GRANTED    | request     | the reply, a notification when the request was queued, or the next step of an MLOCK
 *   TIMED_OUT  | request     | likewise
 *   FAILED     | request     | likewise, with `code` and `sentence`
 *   LOST       | grant       | a notification, or the MLOCK that took the grant begins again
 *   LEADER     | observer    | a notification: the leader of an election, as it is then known
 *   UNOBSERVED | observer    | a notification, with `code` and `sentence`
 *
 * Outcomes are reported in the order in which they were queued, each once. One whose struct is freed before is dropped.
 */

enum outcome_kind {
	OUTCOME_NONE,
	OUTCOME_GRANTED,
	OUTCOME_TIMED_OUT,
	OUTCOME_FAILED,
	OUTCOME_LOST,
	OUTCOME_LEADER,
	OUTCOME_UNOBSERVED,
};

struct outcome {
	TAILQ_ENTRY(outcome) link; /* locks->outcomes */
	enum outcome_kind kind;    /* NONE: there is nothing to report */
	enum error_code code;
	struct client *client;
	int64_t number;            /* GRANTED: the token, or the number of permits that the client has now */
	struct bytes sentence;
};

TAILQ_HEAD(outcome_list, outcome);

static inline void outcome_add(struct outcome_list *list, struct outcome *o, enum outcome_kind kind, struct client *client)
{
	assert(o->kind == OUTCOME_NONE && kind != OUTCOME_NONE);
	o->kind = kind;
	o->client = client;
	TAILQ_INSERT_TAIL(list, o, link);
}

static inline void outcome_add_error(struct outcome_list *list, struct outcome *o, enum outcome_kind kind,
				     struct client *client, enum error_code code, const char *sentence)
{
	outcome_add(list, o, kind, client);
	o->code = code;
	bytes_text(&o->sentence, sentence);
}

/* It was reported, or will not be. The sentence stays. */
static inline void outcome_drop(struct outcome_list *list, struct outcome *o)
{
	if (o->kind == OUTCOME_NONE)
		return;
	o->kind = OUTCOME_NONE;
	TAILQ_REMOVE(list, o, link);
}

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

/* Keeps a copy, with its text, behind the waiting ones. The client is closed if too many wait. */
void notification_add(struct client *c, const struct notification *told);
/* The same, whatever waits: it was kept before. */
void notification_keep(struct client *c, const struct notification *told);
bool notification_counts(enum notification_type type);   /* the others are bounded by their client, grant or observer */
size_t notification_bytes(const struct notification *n); /* that are charged, if it counts */
void notification_free(struct client *c, struct notification *n); /* before it is read */
void notification_drop_all(struct client *c);

/* Takes NULL. */
static inline void notification_drop(struct client *c, struct notification *n)
{
	if (n)
		notification_free(c, n);
}
