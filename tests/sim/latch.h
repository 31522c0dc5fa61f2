/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of lock that only tests have: a count-down latch. It shows what a kind can do without a change of the product.
 *
 *   state  | means                                      | event -> next state
 *   CLOSED | nobody waits for it, and nobody has passed | a client arrives -> COUNTS, or OPEN if one is enough
 *   COUNTS | fewer have arrived than open it            | the last one arrives -> OPEN; nobody waits any longer -> CLOSED
 *   OPEN   | as many as open it have arrived, or more   | nobody waits, and who passed has left or lost it -> CLOSED
 *
 * ARRIVE name n [WAIT ms] [LEASE ms] arrives, and waits until n clients of this host have arrived, whatever became of
 * them; all name the same n. Who has passed holds the latch, shared, until LEAVE name. Its words are no command of the
 * protocol's, so they are the kind's own. An open latch lets everybody in at once. The arrivals are in snapshots and in
 * the ledger: a latch that is held is open after a kill, too.
 */
#pragma once

#include "core/lock/kind_rule.h"

enum { KIND_LATCH = KIND_SEMAPHORE + 1 };

struct latch {
	int64_t arrived, limit;
};

struct latch *latch_of(const struct lock *lock); /* NULL: it is closed, or the lock is none */
