/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observers of an election, and its leader as this host knows it.
 *
 *   state   | means                                           | event -> next state
 *   IDLE    | no observers, or the known leader may be old    | observed, connected and proving -> LISTING
 *   LISTING | the directory is being listed, with a watch     | the first contender -> READING; no contender -> KNOWN;
 *           |                                                 |   NONODE: make it -> IDLE
 *   READING | the first one's data are being read, with watch | answered -> KNOWN, or IDLE when the list is old by now;
 *           |                                                 |   NONODE -> IDLE
 *   KNOWN   | both watches are set                            | one fires -> IDLE
 *
 * From any state a lost connection leads to IDLE. If ZooKeeper refuses, or the directory is of another kind, the observers
 * are notified of the failure, and are removed. A list is sent behind an answered write of its connection, so it is never
 * older than an earlier one: the leaders come in the order of their tokens, and the last is the present.
 *
 * The first contender leads once its data say so (holder.h). Until then, and without a contender, there is no leader (token
 * 0). A new observer is notified of the known leader, then of each change of the token. It gets only the latest of several
 * changes that come before the client has read one (RESP2), or before its turn: more than OBSERVERS_AT_ONCE are notified in
 * pieces, each user's in its turns (core/port/work.h). The observers that a change concerns are searched for in pieces,
 * too, in turns of the next observer's user; a further change begins another round where the one before is.
 *
 * In standalone mode the first grant is the leader.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/queue.h"
#include "core/lock/client.h"
#include "core/port/event.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

struct ledger_observer;

enum { OBSERVERS_AT_ONCE = 32 }; /* of one election, that are notified in the event that changes its leader */

enum observe_state { OBSERVE_IDLE, OBSERVE_LISTING, OBSERVE_READING, OBSERVE_KNOWN };

struct observer {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(observer) link;        /* observation->observers */
	TAILQ_ENTRY(observer) client_link; /* client->observers */
	uint32_t mark;              /* its number in a snapshot (lock_snapshot.h) */
	bool told;                  /* it has been notified of a leader */
	int64_t token;              /* the token in its latest notification */
	struct notification *notification; /* its unread notification, or NULL */
	struct outcome outcome;            /* LEADER, UNOBSERVED */
	struct work_item work;             /* LEADER: it is notified later */
	struct ledger_observer *record;    /* NULL: there is no ledger */
};

struct observation {
	enum observe_state state;
	bool known;      /* the leader, or that there is none, is known */
	bool old;        /* READING: the list is old */
	bool missing;    /* the directory had to be made */
	uint64_t op;     /* LISTING, READING */
	struct observer_list observers; /* at least one */
	struct observer *next;          /* to be looked at, as are */
	size_t left;                    /* ... so many, from it on and from the first one on; 0: none is */
	struct work_item work;          /* OBSERVERS: as long as some are */
	struct bytes first;             /* READING, KNOWN: the first contender's name; may be empty */
	int64_t token;                  /* known: 0: no leader */
	struct bytes host, data;
};

struct observation *observation_of(const struct lock *lock); /* NULL: nobody observes it */
struct observer *observe_find(const struct lock *lock, const struct client *client);
/* Adds an observer for the client, and notifies it of the leader if that is known. */
void observe_begin(struct lock *lock, struct client *client);
void observe_end(struct observer *o);
/* Removes all observers of the lock, and notifies them of the reason. */
void observe_fail_all(struct lock *lock, enum error_code code, const char *sentence);
/* The turn has come to look at some (WORK_OBSERVERS), at most as many as that. Returns how many. */
int64_t observe_look(struct observation *o, int64_t steps);
/* Its turn has come (WORK_LEADER): notifies it of the present leader. */
void observe_tell(struct observer *o);
/* In a new process: the observer, which the former process had not notified of its leader yet, waits for that again. */
void observe_resume(struct observer *o);
/* The observer has been notified of the present leader. */
void observe_told(struct observer *o);
/* An OBSERVER for each, and OBSERVATION; in a snapshot. The observer of an OBSERVER; NULL: it is refused. */
void observation_snapshot(const struct lock *lock, struct bytes *out);
bool observation_restore(struct lock *lock, const struct entry *e);
void observer_snapshot(const struct observer *o, struct bytes *out);
struct observer *observer_restore(struct lock *lock, const struct entry *e);
void observe_record(struct observer *o);         /* it is not in the ledger (port/ledger.h) yet */
bool observe_recorded(const struct observer *o); /* that it is there as it is */
bool observe_knows(const struct observer *o); /* its latest notification has the present leader */
/* Sends the operations that are due, while connected and proving. Standalone: looks which grant leads. */
void observe_continue(struct lock *lock);
void observe_suspended(struct lock *lock);
/* Answers of OBSERVE_LIST and OBSERVE_GET. */
void observe_answered(const struct operation *op, const struct event *event);
/* A watch fired: on the directory (child NULL), or on that child. */
void observe_watched(struct lock *lock, const struct slice *child);
