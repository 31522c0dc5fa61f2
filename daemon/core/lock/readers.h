/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of this host who hold a lock together, and whether another one may join them.
 *
 * A late reader may hold for hours, so that no bound on their number would help who waits on another host: nobody joins
 * past a contender that is known to wait and that conflicts with our claim, whatever mode that has (a downgraded one is
 * still exclusive). What is known:
 *
 *   children watch     | a reader at the head of the queue
 *   ARMED, and quiet   | joins, without a word to ZooKeeper
 *   ARMED, somebody is | waits; *next* is queued for it behind whoever waits. It joins when all have gone, or when
 *   there              |   those have that stood before next: who came later waits for it
 *   NONE, FIRED        | waits for a list with watch, one for all; its answer decides for all who wait when it comes,
 *                      |   also when the watch fires right after: others who come and go keep nobody waiting
 *   (no connection)    | joins if the watch was ARMED and quiet when the connection went; else waits
 *
 * Where nobody holds the lock there is nobody to join: there the hand-off rule applies (rwlock.c).
 */
#pragma once

#include <stdbool.h>

struct lock;

/* Readers hold it: another one may join them now. */
bool readers_may_join(const struct lock *lock);
/* The same, and it is known that nobody may. */
bool readers_are_closed(const struct lock *lock);
/* Readers hold it, and the head of the queue is one who may not join them now. */
bool readers_hold_back(const struct lock *lock);
