/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observers of an election, and what this host knows of its leader.
 *
 *   state   | means                                           | event -> next state
 *   IDLE    | no observers, or what is known may be old       | observed, connected and proving -> LISTING
 *   LISTING | the directory is being listed, with a watch     | the first contender -> READING; no contender -> KNOWN;
 *           |                                                 |   NONODE: make it -> IDLE
 *   READING | the first one's data are being read, with watch | answered -> KNOWN, or IDLE when the list is old by now;
 *           |                                                 |   NONODE -> IDLE
 *   KNOWN   | both watches are set                            | one fires -> IDLE
 *
 * From any state a lost connection leads to IDLE. If ZooKeeper refuses, or the directory is of another kind, the
 * observers are told that it failed, and are removed. A list is sent behind an answered write of its connection, so it
 * is never older than what was shown before: the leaders come in the order of their tokens, and the last is the present.
 *
 * The first contender leads once its data say so (holder.h). Until then, and without a contender, there is no leader
 * (token 0). A new observer is told what is known, then each change of the token. If several changes come before the
 * client has read one (RESP2), it is told only the latest; and so it is if they come before it is its turn to be told:
 * more than OBSERVERS_AT_ONCE are told in pieces, each user's in its turns (core/port/work.h). Whom a change concerns is
 * looked for in pieces, too, in turns of whoever is next; a further change begins another round where the one before is.
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

enum { OBSERVERS_AT_ONCE = 32 }; /* of one election, that are told in the event that changes its leader */

enum observe_state { OBSERVE_IDLE, OBSERVE_LISTING, OBSERVE_READING, OBSERVE_KNOWN };

struct observer {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(observer) link;        /* observation->observers */
	TAILQ_ENTRY(observer) client_link; /* client->observers */
	uint32_t mark;              /* its number in a snapshot (lock_snapshot.h) */
	bool told;                  /* it has been told a leader */
	int64_t token;              /* the token that it was told last */
	struct notification *notification; /* the one that it has not read, or NULL */
	struct outcome outcome;            /* LEADER, UNOBSERVED */
	struct work_item work;             /* LEADER: it is told later */
	struct ledger_observer *record;    /* NULL: there is no ledger */
};

struct observation {
	enum observe_state state;
	bool known;      /* there is something to tell */
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
/* The same, and it is told what is known, if anything is. */
void observe_begin(struct lock *lock, struct client *client);
void observe_end(struct observer *o);
/* Removes all observers of the lock, and they are told why. */
void observe_fail_all(struct lock *lock, enum error_code code, const char *sentence);
/* The turn has come to look at some (WORK_OBSERVERS), at most as many as that. Returns how many. */
int64_t observe_look(struct observation *o, int64_t steps);
/* Its turn has come (WORK_LEADER): it is told what is known now. */
void observe_tell(struct observer *o);
/* In a new process: the observer, which the former process had not told of its leader yet, waits for that again. */
void observe_resume(struct observer *o);
/* The observer has been told what is known now. */
void observe_told(struct observer *o);
/* An OBSERVER for each, and OBSERVATION; in a snapshot. The observer of an OBSERVER; NULL: it is refused. */
void observation_snapshot(const struct lock *lock, struct bytes *out);
bool observation_restore(struct lock *lock, const struct entry *e);
void observer_snapshot(const struct observer *o, struct bytes *out);
struct observer *observer_restore(struct lock *lock, const struct entry *e);
void observe_record(struct observer *o);         /* it is not in the ledger (port/ledger.h) yet */
bool observe_recorded(const struct observer *o); /* that it is there as it is */
bool observe_knows(const struct observer *o); /* it has been told that */
/* Sends the operations that are due, while connected and proving. Standalone: looks which grant leads. */
void observe_continue(struct lock *lock);
void observe_suspended(struct lock *lock);
/* Answers of OBSERVE_LIST and OBSERVE_GET. */
void observe_answered(const struct operation *op, const struct event *event);
/* A watch fired: on the directory (child NULL), or on that child. */
void observe_watched(struct lock *lock, const struct slice *child);
