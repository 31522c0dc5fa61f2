/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that grows with the objects of others is not done in the event that asks for it: it is left as an item, and done in
 * steps by later events (EVENT_TIME), between which everybody else is served. An item belongs to the user that it is done
 * for. Users with items take turns of WORK_TURN_STEPS; the items of one user are done one after the other, the oldest
 * first, but for one that others wait for. So there is one of the others under way for each user at most.
 *
 *   item     | means                                 | event -> next state
 *   none     | there is nothing to be done           | added -> waiting
 *   waiting  | its user's turn comes, or its items   | it is the user's oldest, and its turn -> under way
 *            |   before it                           | dropped -> none
 *   under way| it has had some steps                 | a turn -> under way; its last step -> none; dropped -> none
 *
 * kind        | a step                                     | the effect of a change in between
 * LIST        | a lock or a client is looked at and        | each row is true at its own instant; an item that is there all
 *             |   shown, or its row is put in its place    |   the time is shown once, another may be missing (list.h)
 * LEADER      | an observer is notified of the leader      | the leader at that time is named: one that has gone is not
 * OBSERVERS   | an observer is looked at                   | the leader counts when its turn comes (kind/observe.h)
 * ANSWER      | a holder, a waiter or a host is shown      | as for LIST (hosts/answer.h)
 * SCAN        | a name is looked at, or a holder shown     | as for LIST (hosts/scan.h)
 * AUDIT       | a name below a root is looked at           | as it was when ZooKeeper answered (hosts/audit.h)
 * MLOCK       | it asks for its next lock                  | it holds the locks before, and waits for none (client/mlock.h)
 * REVOKE      | a holder is asked for the lock, or loses   | it has lost the lock, or holds it and is not asked yet; new
 * LETTER_TASK |   it; LETTER_TASK: for another host        |   holders are not meant (hosts/revoke.h)
 * BID         | the next of its locks is tried             | as for MLOCK (client/bid.h)
 * LIFELINE    | a bearer's request or grant is ended       | as for RELEASE (lock/lifeline.h)
 * LOOKUP      | a request is carried out at last           | other hosts' facts are as they answered (hosts/lookup.h)
 * RELEASE     | something that a client has is ended       | the rest is as if the client had not ended yet
 * DELEGATIONS | a slot is looked at, or taken back         | later slots are delegated as before (lock/take_back.h)
 * HALT        | a lock is visited, a holder is asked to    | locks that were not visited keep their grants and
 *             |   release it                               |   delegations (client/halt.h)
 * LOCKS       | a lock is settled                          | the state of the connection counts already; a request for a
 *             |                                            |   lock settles that lock at once (core/recovery.c)
 * BATCH       | a reader gets the lock                     | waiting readers have not got it yet (lock/readers.h)
 *
 * Next to nothing of an item is in a snapshot: a list or an answer starts over; which observers are to be notified follows
 * from their latest notifications.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"

enum work_kind {
	WORK_LIST, WORK_ANSWER, WORK_SCAN, WORK_LEADER, WORK_OBSERVERS, WORK_AUDIT, WORK_MLOCK, WORK_RELEASE,
	WORK_REVOKE, WORK_LETTER_TASK, WORK_BID, WORK_LIFELINE, WORK_LOOKUP, WORK_BATCH,
	WORK_DELEGATIONS, WORK_HALT, WORK_LOCKS,
};

enum {
	WORK_TURN_STEPS = 64, /* some microseconds */
	WORK_PUSH_STEPS = 8,   /* that a push counts for, with its way through the kernel */
};

TAILQ_HEAD(work_queue, work_item);
TAILQ_HEAD(work_ring, work_user);

struct work_item {
	enum work_kind kind;
	struct work_user *worker; /* NULL: there is nothing to be done */
	TAILQ_ENTRY(work_item) link;
};

/* A user, as far as work is done for it. */
struct work_user {
	struct work_queue items;
	int64_t debt;             /* steps of its latest turn beyond WORK_TURN_STEPS */
	TAILQ_ENTRY(work_user) link; /* in the ring while it has items */
};

static inline void work_user_init(struct work_user *w)
{
	TAILQ_INIT(&w->items);
	w->debt = 0;
}

/* The item is to be done for that user; nothing is done if it is there already. */
void work_add(struct work_ring *ring, struct work_user *worker, struct work_item *item);
/* The same, before all that is to be done for that user: others wait for it. */
void work_hurry(struct work_ring *ring, struct work_user *worker, struct work_item *item);
/* It is done, or not to be done any longer. Takes one that is not there. */
void work_drop(struct work_ring *ring, struct work_item *item);
/* The item whose turn it is; NULL: there is nothing to be done. It stays there. */
struct work_item *work_next(struct work_ring *ring);
/* The turn of that user is over, in which it has had so many steps; it may have no items any longer. */
void work_turn_over(struct work_ring *ring, struct work_user *worker, int64_t steps);
