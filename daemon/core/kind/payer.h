/* SPDX-License-Identifier: Apache-2.0 */
/* The payer of a lock (port/pools.h): a rule over its state, which is applied once the lock is settled. */
#pragma once

#include <stddef.h>

#include "core/lock/lock.h"

/* The payer by the state alone; NULL: nobody uses the lock, so the last payer pays. */
struct account *payer_of(const struct lock *lock);
/*
 * The permits of a semaphore, in order: the n first belong to the first grant, which has n, and so on; the next ones are
 * gathered, and the rest keeps its payer (NULL). Its mutex is for the request that gathers with it.
 */
struct payer_permits {
	const struct lock *lock;
	const struct grant *grant;
	size_t left; /* of its permits */
};

struct payer_permits payer_permits(const struct lock *lock);
struct account *payer_of_next(struct payer_permits *p);
void payer_settle(struct lock *lock); /* not needed unless users are mixed (lock.h) */

