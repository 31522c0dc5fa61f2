/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that delegated.c and take_back.c share: delegated.c cleans up after a grant's end, take_back.c ends grants.
 *
 *   event                                   | one exclusive    | shared ones
 *   a reader asks, and is let in at once    | it is taken back | stay; the new grant may be delegated, too
 *   a reader asks, and has to wait          | it is taken back | all are taken back
 *   a writer asks here, or somebody waits   | it is taken back | all are taken back, in one pass: no client can take the
 *     on another host, or may wait there    |                  |   lock by its word before the writer gets it
 *   its client sends a command of OWN       | it is taken back | that client's is taken back
 *     (command/call.h) about the lock       |                  |
 *   another client sends one                | it stays         | stay
 *   the lock is idle for one of the clients | it is taken back | that client's is taken back
 *
 * A pass takes back at most SHARED_DELEGATIONS_MAX grants: further readers of the lock have ordinary grants.
 */
#pragma once

#include <stdint.h>

struct delegation_slot;
struct grant;

#define DELEGATED_IDLE_NS INT64_C(1000000000) /* between two looks at what is not used */

/* Of a grant that has one; NULL: its client has no page. */
struct delegation_slot *delegated_slot(const struct grant *g);
/* The grant has a slot. The instant since which its client says that it holds the lock, from the grant's to now. */
int64_t delegated_said_since_ns(const struct grant *g);
/* It is an ordinary grant from now on, or about to end. */
void delegated_leave(struct grant *g);
