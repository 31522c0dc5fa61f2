/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of this host hold a lock together: this module decides whether another reader may join them.
 *
 * A late reader may hold for hours, so a bound on the number of readers would not help a contender on another host.
 * Therefore no reader passes a contender that is known to wait and conflicts with our claim, in any mode of the claim
 * (a downgraded one is still exclusive). It depends on the children watch:
 *
 *   children watch     | a reader at the head of the queue
 *   UNCONTENDED        | joins, without a request to ZooKeeper
 *   CONTENDED          | waits; *next* is queued for it behind the contenders. It joins when all of them have gone, or
 *                      |   when the contenders before next have: later ones wait for next
 *   NONE, FIRED        | waits for one list with watch; the answer decides for all readers that wait when it comes,
 *                      |   even if the watch fires right after it: contenders that come and go delay no reader
 *   (no connection)    | joins if the watch was UNCONTENDED when the connection was lost; otherwise waits
 *
 * If nobody holds the lock, the hand-off rule applies instead (rwlock.c).
 *
 * Once one reader may have the lock, all readers that wait then and are next may. They get it together, as a batch: they are
 * one hand-off, have one token, and nothing is asked anew for each. There may be thousands, so a batch is granted in pieces,
 * the first of which is READERS_AT_ONCE, and the others are in the turns of the head's user, before all else of that user.
 *
 *   batch   | means                                       | event -> next state
 *   none    | nobody is next who may have the lock        | a reader may -> granted, with the readers behind it
 *   granted | as many as a piece has get the lock         | one more is next -> waits; else -> none
 *   waits   | there is a work item; others hold the lock, | its turn, nobody holds the lock any longer, or a request of the
 *           |   and no other event grants it              |   item's user has ended -> granted
 *   stopped | the proof is too short for a grant          | it is long enough -> granted
 *
 * From any state, if the claim goes: none. A request that comes after the batch began is not of it: a writer waits until it
 * has gone, a reader as the table above says. In the simulator a piece is one reader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/work.h"
#include "core/znode/mode.h"

struct lock;
struct request;

enum { READERS_AT_ONCE = 33 }; /* the first, and the readers that follow in the event that lets it in */

struct batch {
	struct work_item work; /* BATCH: it waits */
	int64_t until_ns;      /* readers that waited at that instant are of it; 0: there is none */
};

/* Readers hold the lock: another one may join them now. */
bool readers_may_join(const struct lock *lock);
/* Readers hold the lock, and it is known that no other one may join them. */
bool readers_are_closed(const struct lock *lock);
/* Readers hold the lock, and the head of the queue is a reader that may not join them now, nor is of their batch. */
bool readers_hold_back(const struct lock *lock);

/* A request that is next is of the batch. */
bool batch_has(const struct lock *lock, const struct request *r);
/* The next piece of it is left for later. */
bool batch_waits(const struct lock *lock);
/* How many may be granted now. One that waited waits no longer. */
size_t batch_piece(struct lock *lock);
/* The head is granted the lock in that mode: of a reader, it is the first of a batch. */
void batch_begin(struct lock *lock, enum mode mode);
/* The next piece comes later: that request, which is the head, is the first of it. */
void batch_leave(struct lock *lock, const struct request *r);
void batch_end(struct lock *lock); /* takes one that is over */
/* Its turn has come: it is granted when the lock is settled. */
void batch_turn(struct batch *b);
void batch_resume(struct lock *lock); /* in a new process: it may have waited */
/* The request leaves the lock, and perhaps its user has no other that waits. */
void batch_lacks(struct lock *lock, const struct request *r);
