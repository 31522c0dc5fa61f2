/* SPDX-License-Identifier: Apache-2.0 */
/* The locks that this host knows, and the clients that hold or want them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"
#include "core/claim/directories.h"
#include "core/lock/client.h"
#include "core/lock/lifeline.h"
#include "core/lock/lock.h"
#include "core/lock/place.h"
#include "core/lock/walk.h"
#include "core/port/env.h"
#include "core/session/ensemble.h"

TAILQ_HEAD(lock_list, lock);
TAILQ_HEAD(mlock_list, mlock);
TAILQ_HEAD(lifeline_list, lifeline);

enum { DEADLOCK_REQUESTS_MAX = 1024 }; /* followed in one walk of a search for a deadlock (client/deadlock.h) */

/* A request that is followed, and how it was reached: the step before waits for `met`, whose owner has this request. */
struct followed {
	struct request *request; /* in the first: the request that is checked */
	const struct client *met;
	size_t before;
	bool behind; /* `met` waits for the lock of the step before; else it holds that lock */
};

/* A pass over the locks in use (client/halt.h). */
struct halting {
	bool on;
	struct walk walk;
	struct work_item work;
	struct work_user worker; /* the owner of `work`: no user */
};

struct locks {
	struct env *env;
	struct ensemble *ensemble;
	struct directories *directories;

	/* The fields that each pair of LOCK and UNLOCK writes are together. First sums, for INFO and the checks: */
	size_t idle_count, request_count, blocked_count, grant_count; /* blocked: requests whose client waits for the reply */
	void *spare_grant; /* mem.h */
	/* In this event: MLOCKs that got one of their locks and go on (mlock.h); edges that searches saw (deadlock.h). */
	size_t mlock_steps, searched, said, lost_said; /* said, lost_said: hold.h */
	struct outcome_list outcomes; /* they are reported before the event ends */
	struct client *after;         /* answered, or its EVENTS ended, once all is settled; NULL: none */
	struct lock_list used, idle;

	struct client **conns; /* by connection number */
	size_t conns_cap, client_count; /* bearers included, of which there are: */
	size_t bearer_count, bearers_hold; /* ... and bearers that hold something */
	struct lifeline_list lifelines; /* processes that some of them are tied to */
	struct map lifeline_pids;       /* the same, by process number */
	uint64_t last_lifeline;
	uint64_t last_client;
	struct client_list clients, closing;
	struct client_list told; /* pushes for them may not have been carried out (client_ledger.h) */
	struct mlock_list mlocks;     /* they take their next step before the event ends */
	struct client *restarter;     /* its RESTART waits for the outcome; NULL: nobody's does */
	uint64_t last_search;
	struct followed followed[DEADLOCK_REQUESTS_MAX]; /* memory of a search */
	struct map users, groups;
	struct map places, attempted; /* place.h; of keyed hashes */
	struct attempt_list attempts;
	struct map ids; /* clients, by id: numbers that nobody chooses are their own hashes */

	const struct kind_rule *const *rules; /* one for each kind */
	struct map names;                     /* locks, by name */
	struct lock *named;                   /* the one last found by name, or NULL */
	struct walk_list walks;
	struct halting halting;
	bool restoring;    /* from a snapshot: all that was within the limits stays, whatever they are now */
	size_t lost_count, delegated_count, page_count; /* sums, too; page: clients with a page of delegations */
	int64_t oldest_ns, looked_ns; /* when the oldest waiting request was made, INT64_MAX: none; and when that was seen */
};

/* The clients with a connection. */
static inline size_t locks_conns(const struct locks *locks)
{
	return locks->client_count - locks->bearer_count;
}

/* For how long the oldest waiting request has waited: as of now, or of a look at all clients at most a second ago. */
int64_t locks_longest_wait_ns(struct locks *locks);
