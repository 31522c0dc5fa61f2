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
 *                      |   when those before next have: contenders that came later wait for next
 *   NONE, FIRED        | waits for one list with watch; the answer decides for all readers that wait when it comes,
 *                      |   even if the watch fires right after it: contenders that come and go delay no reader
 *   (no connection)    | joins if the watch was UNCONTENDED when the connection was lost; otherwise waits
 *
 * If nobody holds the lock, the hand-off rule applies instead (rwlock.c).
 */
#pragma once

#include <stdbool.h>

struct lock;

/* Readers hold the lock: another one may join them now. */
bool readers_may_join(const struct lock *lock);
/* Readers hold the lock, and it is known that no other one may join them. */
bool readers_are_closed(const struct lock *lock);
/* Readers hold the lock, and the head of the queue is a reader that may not join them now. */
bool readers_hold_back(const struct lock *lock);
