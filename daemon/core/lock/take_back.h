/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What delegated.c and take_back.c share: a grant ends through the former, and the latter ends grants.
 *
 *   event                                   | one exclusive    | shared ones
 *   a reader asks, and is let in at once    | it is taken back | stay; the new grant may be delegated, too
 *   a reader asks, and has to wait          | it is taken back | all are taken back
 *   a writer asks here, or somebody waits   | it is taken back | all are taken back, in one pass: nobody who only has a
 *     on another host, or may wait there    |                  |   word gets the lock before the writer does
 *   one of their clients names the lock     | it is taken back | that client's is taken back
 *   another client names the lock           | it is taken back | stay
 *   the lock is idle for one of the clients | it is taken back | that client's is taken back
 *
 * A pass takes back no more than SHARED_DELEGATIONS_MAX: further readers of the lock have ordinary grants.
 */
#pragma once

#include <stdint.h>

struct delegation_slot;
struct grant;

#define DELEGATED_IDLE_NS INT64_C(1000000000) /* between two looks at what is not used */

/* Of a grant that has one; NULL: its client has no page. */
struct delegation_slot *delegated_slot(const struct grant *g);
/* Since when its client says that it is inside, of a grant that has a slot: not before the grant, nor later than now. */
int64_t delegated_said_since_ns(const struct grant *g);
/* It is an ordinary grant from now on, or about to end. */
void delegated_leave(struct grant *g);
