/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view shows who holds and who waits for a lock, or permits of a semaphore, on all hosts, as far as a query (query.h)
 * has found out: each is a row (participant.h). It shows this host's by its own knowledge, others' by their znodes.
 *
 * Holders of this host come first. In the queue this host's requests stand where its znode stands, or before all others
 * while that is entitled: it serves its own first. The permits that one client of another host has are one row; each
 * permit of other software is a row by itself.
 */
#pragma once

#include "core/hosts/participant.h"

struct lock;
struct query;

struct view {
	const struct query *query;
	bool permits;                    /* of a semaphore */
	const struct lock *lock;         /* NULL: this host knows none of that name and kind */
	struct participant *holders, *waiters;
	size_t holder_count, waiter_count;
	int64_t permits_held; /* all together */
	size_t hosts_before;  /* other hosts before this one, holders of a lock included */
	size_t hosts_waiting; /* other hosts that wait */
	const struct request *own; /* the asking client's; NULL: it does not wait */
	int64_t position;          /* ... from 1, among those of this host; 0 */
};

/* Borrows from the query. */
struct view view_gather(const struct query *q);
void view_free(struct view *v);
