/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view goes along the holders of a lock, or of permits of a semaphore, or along the clients that wait for it, on all
 * hosts, as far as a query (query.h) has found out: each is a row (participant.h). It shows this host's clients by its own
 * knowledge, others by their znodes. It is made in steps, between which all may change: a row is true at its own instant. A
 * client that is there all the time is a row once; a client that comes or goes between the steps is a row, or is not.
 *
 *   stage     | a step                                                  | after the last one
 *   HERE      | holders: a grant of this host                           | GATHERING
 *   GATHERING | the znode of a holder elsewhere is read: no row         | ELSEWHERE
 *   ELSEWHERE | a holder elsewhere                                      | OVER
 *   BEFORE    | waiters: a host whose znode stands before this host's   | WAITING
 *   WAITING   | a request of this host                                  | BEHIND
 *   BEHIND    | a host whose znode stands behind this host's            | OVER
 *
 * Holders of this host come first. In the queue this host's requests stand where its znode stands, or before all others
 * while that is entitled: it serves its own first. The permits that one client of another host has are one row; each
 * permit of other software is a row by itself.
 */
#pragma once

#include <stdint.h>

#include "core/hosts/participant.h"
#include "core/lock/walk.h"

struct query;

enum view_stage { VIEW_HERE, VIEW_GATHERING, VIEW_ELSEWHERE, VIEW_BEFORE, VIEW_WAITING, VIEW_BEHIND, VIEW_OVER };
/* KEPT: no row, but a client that has the lock delegated and does not hold it. LAST: no row, and none is left. */
enum view_step { VIEW_ROW, VIEW_KEPT, VIEW_NO_ROW, VIEW_LAST };

/* The steps that a row counts for, and the reading of a znode (core/port/work.h). */
enum { VIEW_ROW_STEPS = 2, VIEW_READ_STEPS = 8 };

struct view {
	const struct query *query;
	bool permits; /* of a semaphore */
	enum view_stage stage;
	bool entered; /* the stage has begun */
	struct walk walk;
	size_t at, end, own; /* children of the query: the next one, the last one of this stage, this host's place among them */
	struct participant *others; /* ELSEWHERE: gathered */
	size_t other_count;
};

void view_begin_holders(struct view *v, const struct query *q);
void view_begin_waiters(struct view *v, const struct query *q);
/* The next step, whose row borrows from the objects that it shows until anything changes. Adds its steps to *steps. */
enum view_step view_step(struct view *v, struct participant *ret, int64_t *steps);
void view_end(struct view *v);

/* The lock, or semaphore, that the query asks about; NULL: this host knows none of that name and kind. */
const struct lock *view_lock(const struct query *q);
/* The number of other hosts before this host, holders of a lock included; and of hosts that wait. */
void view_hosts(const struct query *q, size_t *ret_before, size_t *ret_waiting);
