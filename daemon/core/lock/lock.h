/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tier 1, a lock inside the host: its requests in a FIFO, its grants, and the rule that decides about its claims.
 *
 * lock_settle() is that rule. It runs after every event that touched the lock, and looks only at state, not at the
 * event: a claim can become HELD after its request is gone.
 *
 *   1  a HELD claim serves the requests at the head as long as it may: the session is proven, the mode is covered,
 *      no grant conflicts, and the hand-off rule or, if readers hold it, the rule for joining them (readers.h) allows
 *      it; readers at the head get it together and are one hand-off, in pieces if they are many
 *   2  waits that ran out end as soon as it is known whether the lock is taken
 *   3  a HELD claim without grants that cannot serve the head goes back, once *next* is queued; one without requests
 *      lingers, or goes back when another host wants it; any other claim that no request wants goes back. A claim that does
 *      not suit the head goes back, too: a shared one when a writer is first, or, when a reader is first, an exclusive
 *      one that only readers keep waiting
 *   4  requests without a claim join, in the mode of the head; *next* is queued when the held claim does not suit the
 *      head, before its hand-offs run out, or when a contender elsewhere keeps a reader from joining others
 *   5  a *next* right behind a held claim without tokens, which no other host waits for, follows it without a gap
 *      (claim.h)
 *
 * Limits: the host has at most two znodes in the directory. Those being deleted or of unknown outcome count; but a
 * spent one does not count if its delete is sent before the create of another, unless the delete is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/queue.h"
#include "core/claim/directory.h"
#include "core/claim/turn.h"
#include "core/lock/grant.h"
#include "core/lock/kind_rule.h"
#include "core/lock/readers.h"
#include "core/lock/request.h"
#include "core/znode/flavour.h"

struct lock {
	struct locks *locks;
	struct map_node name_node;
	struct bytes name;
	const struct kind_rule *rule;
	void *own; /* its state as a lock of its kind, or NULL */
	struct directory *slots; /* of a semaphore: the directory that its grants rest on; otherwise NULL */
	struct request_list expired, aside; /* client/ask.h */
	struct grant_list lost;
	size_t expired_count, aside_count, observer_count;
	struct batch batch; /* each pair of LOCK and UNLOCK writes the fields from its end to the beginning of `directory` */
	struct delegated_list delegated; struct delegability delegability; /* grants; delegated.h */
	uint32_t granted; /* so many grants were made, since this process knows the lock */
	bool idle, mixed; /* mixed: somebody of another account than `charge` has come, so that the payer may change */
	struct request_list requests;
	struct grant_list grants;
	size_t request_count, grant_count;
	int64_t token; /* of the latest grant in this session; 0: none yet */
	int64_t ended_ns; /* when a grant last ended, unless a client that waited then has had one since: 0 */
	struct charge charge; /* while it is in use: of its payer (port/pools.h) */
	TAILQ_ENTRY(lock) link; /* locks->used or locks->idle */
	struct directory directory;
};

/* The lock of that name; NULL: this host knows none. */
struct lock *lock_find(struct locks *locks, struct slice name);
/*
 * The same for a valid name: it is made if need be, and touched. If nobody uses it yet, it is charged to that client's
 * account, or for NULL to nobody's. NULL: that is not admitted.
 */
struct lock *lock_make(struct locks *locks, struct slice name, const struct client *client);
/*
 * Its kind is confirmed: by grants; or, in a directory that fits it, by a claim that holds or whose predecessor was read, or
 * by observers, who watch it.
 */
bool lock_is_confirmed(const struct lock *lock);
bool lock_refuses(const struct lock *lock, enum kind kind); /* it is in use as another kind, and that is confirmed */
bool lock_sets_aside(const struct lock *lock, enum kind kind); /* it is not confirmed yet: the request waits for that */
void lock_become(struct lock *lock, enum kind kind); /* from now on it is of that kind */
/* A new lock, whose directories have no path yet; else likewise. At most a remembered lock has that name. */
struct lock *lock_new(struct locks *locks, struct slice name, enum kind kind, const struct client *client);
void lock_pay(struct lock *lock, struct account *payer); /* from now on that account pays for it */
bool lock_in_use(const struct lock *lock); /* something needs the struct */
bool lock_is_tried(const struct lock *lock); /* only tries want it: its claim is marked as theirs */
void lock_learn(struct directory *d);  /* takes the facts of a touched directory, before it is settled */
void lock_settle(struct directory *d); /* applies the rule, for that touched directory */
void lock_take_turn(struct directory *d, enum turn turn); /* its turn has come: it sends the operations that go first */
void lock_rest(struct lock *lock);                      /* frees or parks it if nothing refers to it */
void lock_tidy(struct lock *lock); /* idle, and touched: the time may have come to remove its directory */
void lock_park(struct lock *lock); /* nothing uses it: it is remembered for a while */
void lock_free(struct lock *lock);
/* Touches the locks that are waited for, because they may be granted now: some at once, the others in later events. */
void lock_touch_waiting(struct locks *locks);
void lock_lose(struct lock *lock); /* the session is lost, and with it the grants and claims */
const char *lock_state_word(const struct lock *lock); /* the state of the host's claim; `lock` may be NULL */

struct account *lock_user(const struct lock *lock); /* of the first holder, or the first that waits; NULL: there is none */

/* Visits each directory of the lock. */
#define LOCK_DIRECTORIES(d, lock) \
	for ((d) = &(lock)->directory; (d); (d) = (d) == &(lock)->directory ? (lock)->slots : NULL)

/* How many may have it at once; 0: that is not known, or nobody has to agree on it. `lock` may be NULL. */
static inline int64_t lock_limit(const struct lock *lock)
{
	return lock && lock->rule->limit ? lock->rule->limit(lock) : 0;
}

/* The directory whose claims its grants rest on. */
static inline struct directory *lock_held(struct lock *lock)
{
	return lock->slots ? lock->slots : &lock->directory;
}

/*
 * The directories that idle locks leave in ZooKeeper. Containers are removed by the servers; the directory of flavour kazoo
 * is persistent, because a living Lock object of kazoo makes it once and fails without it. Where remove_idle_s says that no
 * such object lives, this host removes a directory that it has used, once the lock was idle here for that long. A
 * persistent directory that stands in for a container is removed after a minute.
 *
 *   directory.left | means                                           | event -> next
 *   false          | the lock is in use; or there is none to remove  | parked, its directory fits -> true
 *   true           | idle: nobody else removes it                    | used, removed or forgotten (counted) -> false
 *
 * `refused`: the latest delete was. The lock is in use while it is under way.
 *
 * The timer of a directory that is left is the instant of its removal. ZooKeeper deletes an empty one and no other, so this
 * may come between any two steps of another host, which then meets NONODE and makes the directory again. A refusal
 * (somebody is in it) and an unknown outcome are tried again as much later. With more idle locks than are remembered, the
 * oldest directory goes earlier: so at most that many stay, and directories for which nothing can be sent.
 */

void lock_restore_idle_directory(struct lock *lock); /* a parked one, whose timer is as it was */
