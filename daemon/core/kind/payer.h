/* SPDX-License-Identifier: Apache-2.0 */
/* Who pays for a lock (port/pools.h): a rule over its state, which is applied once the lock is settled. */
#pragma once

#include <stdbool.h>

#include "core/lock/lock.h"

/* Who it is by the state alone; NULL: nobody uses it, so that whoever paid last pays. */
struct account *payer_of(const struct lock *lock);
/*
 * The permits of a semaphore: the n first are those of the first grant, which has n, and so on; the next ones are gathered,
 * and what is left stays whose it was. Its mutex is for the request that gathers with it.
 */
struct account *payer_of_permit(const struct lock *lock, size_t number);
void payer_settle(struct lock *lock); /* not needed unless users are mixed (lock.h) */

