/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits that tie each other up for good, permits taken into account.
 *
 * Who waits for permits does not wait for one client rather than another: it goes on as soon as enough of those who have
 * some let go. So a circle is not enough, and this is the largest set of waits in which each has its reason in the set:
 *
 *   a wait for ...           | stays in the set as long as
 *   a lock                   | an owner in the set holds it, or asked for it before, in a mode that conflicts
 *   k permits of n           | one in the set is before it in line here, or owners in the set have, or will have before
 *                            |   it, more than n - k
 *
 * An owner is in the set when one of its clients is (deadlock.h). Other hosts and other software can always go on, and
 * so can who waits with another limit than the one that was agreed on. Beyond the limits nobody is in it.
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
 * This client's wait for that, last in line, would be in the set: the requests in it have `knot` set to the number, which
 * was never used before. *ret_cut: the limits were met.
 */
bool deadlock_permits_tie(const struct client *c, const struct lock *lock, const struct request_terms *terms,
			  uint64_t number, bool *ret_cut);
