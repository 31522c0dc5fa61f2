/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits that block each other for good, with permits taken into account.
 *
 * A client that waits for permits does not wait for a certain other client: it goes on as soon as enough of the clients
 * that have some release them. So a cycle is not enough: what counts is the largest set of waits in which each wait has
 * its reason in the set:
 *
 *   a wait for ...           | stays in the set as long as
 *   a lock                   | an owner in the set holds it, or asked for it before, in a mode that conflicts
 *   k permits of n           | a client in the set is before it in line, or owners in the set have, or will have before
 *                            |   it, more than n - k
 *
 * An owner is in the set when one of its clients is (deadlock.h). Other hosts and other software can always go on, and
 * so can a client that waits with another limit than the agreed one. Beyond the limits of the search the set is empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lock/request.h"

struct client;
struct lock;

enum {
	DEADLOCK_PERMITS_WAITS_MAX = 1024,  /* in one search */
	DEADLOCK_PERMITS_LOOKS_MAX = 65536, /* at grants, requests and clients */
};

/*
 * This client's wait for that lock, last in line, would be in the set: the requests in the set have `deadlock` set to
 * `number`, which was never used before. *ret_cut: the search met its limits.
 */
bool deadlock_permits_tie(const struct client *c, const struct lock *lock, const struct request_terms *terms,
			  uint64_t number, bool *ret_cut);
