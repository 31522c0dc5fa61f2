/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether somebody on another host waits for permits, and telling it who has them.
 *
 * As of a lock (holder.h) nothing is written before somebody elsewhere waits: a lease is made with its host's name, and
 * in its data stands more once it is told of a grant: at most one pass in a second, of grants older than 100 ms, each
 * permit in a lease of its own. Which lease is which client's is settled by that, and only by that.
 *
 *   who waits elsewhere              | is known by
 *   while this host gathers: behind  | the watch on the mutex that it holds
 *   while another one gathers        | more leases than the limit: listed when a grant is older than a second, and with
 *                                    |   a children watch again when they change, at most once in a second
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct semaphore;

struct permit_holders {
	bool seen;          /* by the last list */
	int64_t looked_ns;  /* when that was asked for */
	int64_t checked_ns; /* what is told and what is not */
	int64_t told_ns;
};

/* The leases were listed: so many there are. */
void permit_holders_listed(struct semaphore *s, size_t children);
/* Looks, and tells what is due. Only while something may be asked of ZooKeeper. */
void permit_holders_continue(struct semaphore *s);
