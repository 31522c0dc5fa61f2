/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources that all clients of the core share, in pools (base/account.h): the charges, and their accounts:
 *
 *   pool      | charged                                                          | to the account of
 *   REQUESTS  | a request: 1                                                     | its client
 *   GRANTS    | a request: 1; a grant that counts: 1                             | its client
 *   LOCKS     | a lock that is in use: 1                                         | its payer
 *   PATHS     | a claim, with ZooKeeper: the bytes of its path                   | the payer; of a permit: its holder
 *             | a letter: the bytes of its path                                  | its client; an answer: nobody
 *   WATCHES   | a directory: the bytes that its watches count for                | the payer of its lock
 *   OBSERVERS | an observer: 1                                                   | its client
 *   MEMORY    | an unread event, a queued request (for its event), an MLOCK, a   | its client
 *             | long list that is being made, a bearer, a bid, a lookup, the    |
 *             | note of a value that was refused: about as many bytes as it needs |
 *   LETTERS   | a letter: 1                                                      | as PATHS
 *   NAMES     | a directory that was made of late: 1 (core/claim/names.h)        | the payer of its lock
 *   LASTING   | a directory that this host has made and that may stay for good:  | the payer of its lock then
 *             | 1 (core/claim/lasting.h)                                         |
 *
 * The *payer* of a lock is the client of its first grant; else of its first request; else of its first observer; else the
 * last payer. So nobody pays for a lock that only others use.
 */
#pragma once

#include "core/port/account_text.h"

struct env;

enum pool_number {
	POOL_REQUESTS,
	POOL_GRANTS,
	POOL_LOCKS,
	POOL_PATHS,
	POOL_WATCHES,
	POOL_OBSERVERS,
	POOL_MEMORY,
	POOL_LETTERS,
	POOL_NAMES,
	POOL_LASTING,
	POOLS,
};

/* For the event that tells the end of a queued request, besides the name of its lock. */
enum { POOL_EVENT_BYTES = 256 };

extern const struct pool_words pools_words[POOLS];

/* Totals and share as the configuration has them; the totals of PATHS and WATCHES are set by the budget (budget.h). */
void pools_configure(struct env *env);
/* Why one more is not admitted, as text that ends with 0. It is the environment's until the next one. */
const char *pools_refusal(struct env *env, const struct account *a, enum pool_number pool, bool privileged);
