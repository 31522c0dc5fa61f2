/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ensemble's past, by the numbers of its transactions (zxids): they only grow, and tokens are made of them. If an older
 * state of the ensemble is restored, they begin again behind what this host has seen, and tokens of before would repeat. So
 * nothing that was made since then is granted, until the numbers are above what was seen.
 *
 *   what is seen                                     | what follows
 *   a znode that the present session made, numbered  | the ensemble has gone back: it is refused
 *     no higher than what was seen before it began   |
 *   a heartbeat numbered no higher than what was     | the same holds for all that was seen before it
 *     seen before its answer                         |
 *
 * Within a session answers come in the order of sending, but a znode whose answer was lost may be found late: so its number
 * is compared with those from before the session alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ensemble;

struct past {
	int64_t seen; /* the highest number of a transaction of ours; 0: none yet */
	int64_t floor; /* what was seen before the session began, or before a heartbeat showed that the numbers went back */
	int64_t complain_ns; /* when that is to be said (again) */
};

void past_session(struct ensemble *zk);            /* another session begins */
void past_beat(struct ensemble *zk, int64_t zxid); /* a heartbeat was answered with that; 0: it has none */
/* A znode that the present session made has that number. False: tokens could repeat, it may not be used; that is said. */
bool past_allows(struct ensemble *zk, int64_t zxid);
