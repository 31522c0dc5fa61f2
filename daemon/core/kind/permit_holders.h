/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This module finds out whether another host waits for permits, and then tells it which clients have them.
 *
 * As for a lock (holder.h), nothing is written before another host waits. A lease is created with its host's name. Later
 * its data may describe a grant: there is at most one pass per second, over grants older than 100 ms, and each permit is
 * written into a lease of its own. Only that write assigns a lease to a client.
 *
 *   the other host waits             | known from
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
	bool seen;          /* the last list showed that another host waits */
	int64_t looked_ns;  /* when that list was sent */
	int64_t checked_ns; /* what is told and what is not */
	int64_t told_ns;
};

/* A list showed that there are so many leases. */
void permit_holders_listed(struct semaphore *s, size_t children);
/* Looks, and writes the data that are due. It is called only while operations may be sent. */
void permit_holders_continue(struct semaphore *s);
