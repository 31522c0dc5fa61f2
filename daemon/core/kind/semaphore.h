/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counting semaphore, in the layout of Curator's InterProcessSemaphoreV2:
 *
 *   <name>/         kind=semaphore, limit=<n>, one for all; a request with another limit gets MISMATCH
 *   <name>/locks/   an InterProcessMutex: its holder is the next to get permits, and nobody passes it
 *   <name>/leases/  one ephemeral sequential znode for each permit; a new one counts once there are no more than n
 *
 * Both directories are locks of their own inside the broker (struct lock): a request for permits waits in the FIFO of
 * the mutex; when its host holds that, and it is the first, it *gathers*: `count` claims join leases/ for it,
 * and wait for room together. Each permit is a claim (claim.h) with its states: JOINING, WAITING for room, HELD,
 * UNSURE, LEAVING. A client's permits are a grant on the leases, whose depth is their number; the permits of one host are
 * alike. The leases alone ensure that the limit is kept: the held lease that was made last was listed with all other held
 * ones.
 *
 * The rule runs over state, after every event:
 *
 *   1  the first request gathers while its host holds the mutex, the hand-off rule lets it, and the limit is its own
 *   2  it is granted when that many more permits are HELD than clients have, and the session is proven
 *   3  permits leave if neither a client has them nor the gathering request wants them, first permits that only wait;
 *      missing ones join
 *   4  if fewer are HELD than clients have, somebody deleted one: the last granted client has lost its permits
 *   5  if a client that waits for more loses its permits, the answer to that request says so
 *
 * Standalone mode has no leases: a request is granted when the limit leaves room. The limit lives as long as anybody
 * uses the semaphore, here as between hosts (the directories are containers).
 *
 * If another host waits for permits, the leases show it which clients have them. As for a lock (holder.h), nothing is
 * written before another host waits. A lease is created with its host's name. Later its data may describe a grant: there is
 * at most one pass per second, over grants older than 100 ms, and each permit is written into a lease of its own. Only that
 * write assigns a lease to a client.
 *
 *   the other host waits             | known from
 *   while this host gathers: behind  | the watch on the mutex that it holds
 *   while another one gathers        | more leases than the limit: listed when a grant is older than a second, and with
 *                                    |   a children watch again when they change, at most once in a second
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/kind/permit_limit.h"
#include "core/lock/lock.h"
#include "protocol/bytes.h"

/* The holders that the leases' data show to another host that waits. */
struct permit_holders {
	bool seen;          /* the last list showed that another host waits */
	int64_t looked_ns;  /* when that list was sent */
	int64_t checked_ns; /* when all grants were last compared with the data */
	int64_t told_ns;    /* when data were last written */
};

struct semaphore {
	struct locks *locks;
	struct lock *lock;      /* its directory is the mutex */
	struct directory slots;
	enum semaphore_state state;
	bool incomplete; /* its directories must be made */
	bool made;       /* permits were made, and not listed since */
	int tries;       /* how often its directories were made without a permit being got */
	int64_t limit;   /* 0: nobody has set it yet */
	int32_t version; /* KNOWN: of the data */
	struct request *gathering;
	struct permit_holders holders;
	struct bytes path;
};

extern const struct kind_rule semaphore_rule;

/* NULL: the lock is none. */
static inline struct semaphore *semaphore_of(const struct lock *lock)
{
	return lock->rule->kind == KIND_SEMAPHORE ? lock->own : NULL;
}

