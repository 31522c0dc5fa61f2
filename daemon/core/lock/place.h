/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place is a request of a bearer (bearer.h) that no connection waits for. Programs of Redis do not wait: they ask again
 * and again under one value. So a value that was refused, and is refused again within a second, gets a place in the queue
 * of the lock, and finds it there whenever it asks. Each poller is served in its order. To ZooKeeper a poller costs as much
 * as a client that waits.
 *
 *   state | means                                      | event -> next state
 *   NOTED | the value was refused of late: there is no | refused again -> WAITS, or NOTED without room; a second without
 *         |   bearer, only a note of the attempt       |   being asked -> gone
 *   WAITS | it has a request                           | its turn -> KEPT; refused again -> WAITS, for a second more; a
 *         |                                            |   second without being asked, failed -> freed
 *   KEPT  | it has a grant that nobody knows of yet:   | asked -> a bearer that HOLDS, and no place any longer; the
 *         |   the lock is kept for it                  |   second is over -> freed, and all places of the lock are; lost
 *         |                                            |   -> freed
 *
 * A value that is asked once gets no place, so that a try keeps the lock from nobody. A turn that ends unused ends all
 * places, so that programs that give up cost at most a second between two holders: requests that wait on connections are
 * served, and otherwise the lock is free for the first that asks.
 *
 * A place counts as a request of its user, and its value as memory; a note counts as memory. There is a new place only
 * while its user uses less than half of the waits and of the memory that it may, and while fewer wait for the lock than
 * half of limits.requests_per_lock; beyond that, and without room for a note, a refusal leaves nothing. A snapshot has
 * both, and a kill forgets both; after it the lease of a kept grant goes on, and ends with the second.
 */
#pragma once

#include <stdbool.h>

#include "base/charge.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/queue.h"
#include "protocol/bytes.h"

struct client;
struct entry;
struct lock;
struct locks;

struct place { /* of a bearer */
	struct client *bearer;
	struct lock *lock;    /* NULL: it is none */
	struct timer timer;   /* the end of its second */
	struct map_node node; /* locks->places */
};

/* The user, the lock and the value of an attempt are known by their hash alone. */
struct attempt {
	struct locks *locks;
	TAILQ_ENTRY(attempt) link; /* locks->attempts */
	struct map_node node;    /* locks->attempted, whose key is in a snapshot: so the hash stays the same */
	struct timer timer;
	struct charge charge;
};

TAILQ_HEAD(attempt_list, attempt);

/* The place of that client's user under that value; NULL. */
struct client *place_find(const struct lock *lock, const struct client *by, struct slice value);
/* It was refused. True: it was so within the last second, too. Notes it. */
bool place_attempt(const struct lock *lock, const struct client *by, struct slice value);
/* The bearer, which neither holds nor waits, gets one behind all others. False: there is no room for it. */
bool place_begin(struct client *bearer, struct lock *lock);
void place_renew(struct client *bearer); /* it was asked: another second */
bool place_is_kept(const struct client *bearer);
void place_granted(struct client *bearer);                       /* its turn has come */
void place_take(struct client *bearer, const struct client *by); /* KEPT: that client's process has it from now on */
void place_due(struct place *p);                                 /* its second is over */
void place_end(struct client *bearer); /* the bearer's request or grant ends, and its place with it */
void place_attempt_due(struct attempt *k);

void place_forget_notes(struct locks *locks);
void place_snapshot_notes(const struct locks *locks, struct bytes *out);
bool place_restore_note(struct locks *locks, const struct entry *e);
void place_enter(struct client *bearer, struct lock *lock); /* its lock was restored, too; nothing if it is none */
