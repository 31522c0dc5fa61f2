/* SPDX-License-Identifier: Apache-2.0 */
/* The locks that this host knows, and the clients that hold and want them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"
#include "core/claim/directories.h"
#include "core/lock/client.h"
#include "core/lock/group.h"
#include "core/lock/lock.h"
#include "core/port/env.h"
#include "core/session/ensemble.h"

TAILQ_HEAD(lock_list, lock);
TAILQ_HEAD(mlock_list, mlock);

struct locks {
	struct env *env;
	struct ensemble *ensemble;
	struct directories *directories;

	struct client **conns; /* by connection number */
	size_t conns_cap, client_count;
	uint64_t last_client;
	struct client_list clients, closing;
	struct outcome_list outcomes; /* to be told before the event ends */
	struct mlock_list mlocks;     /* to be gone on with */
	struct client *after;         /* it is answered, or its EVENTS ends, once all is settled; NULL: nobody is */
	uint64_t last_search;
	struct map users, groups;

	const struct kind_rule *const *rules; /* of each kind */
	struct map names;                     /* locks, by name */
	struct lock *named;                   /* the latest found by name; NULL */
	struct lock_list used, idle;
	size_t idle_count;
	void *spare_grant; /* mem.h */
	/* Sums, for INFO and the checks; blocked: requests that hold back their client. */
	size_t request_count, blocked_count, grant_count, lost_count;
};
