/* SPDX-License-Identifier: Apache-2.0 */
/* Who pays for a lock (port/pools.h): a rule over its state, which is applied once the lock is settled. */
#pragma once

#include <stddef.h>

#include "core/lock/lock.h"

/* Who it is by the state alone; NULL: nobody uses it, so that whoever paid last pays. */
struct account *payer_of(const struct lock *lock);
/*
 * The permits of a semaphore, in order: the n first are those of the first grant, which has n, and so on; the next ones are
 * gathered, and what is left stays whose it was (NULL). Its mutex is for the request that gathers with it.
 */
struct payer_permits {
	const struct lock *lock;
	const struct grant *grant;
	size_t left; /* of its permits */
};

struct payer_permits payer_permits(const struct lock *lock);
struct account *payer_of_next(struct payer_permits *p);
void payer_settle(struct lock *lock); /* not needed unless users are mixed (lock.h) */

