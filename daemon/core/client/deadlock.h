/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlock detection inside the host: a LOCK or ACQUIRE that would wait for what its own owner holds is refused.
 *
 * Who waits for whom: a request waits for the owners of the grants that conflict with it, and of the earlier requests
 * for its lock that do. An owner is a client, or the clients that said they are one (group.h).
 *
 *   an owner goes on waiting ...            | is it followed?
 *   by a LOCK, with or without WAIT         | yes: until that ends the owner lets nothing go. It would end by itself only
 *                                           |   after all that time, and so would a lease: neither is waited for
 *   by a LOCK whose time has run out, a try | no: it ends as soon as the lock is known to be taken
 *   by an ACQUIRE                           | when no circle of LOCKs is found: who has the permits may be another one than
 *                                           |   the one who waits as well; so only among waits that tie each other up
 *                                           |   for good (deadlock_permits.h)
 *   by an ENQUEUE                           | no: its owner is free to let go, or to take it back. But who waits behind
 *                                           |   it waits for its owner, and what that owner's LOCK waits for is followed
 *
 * So a cycle that is found lasts until one in it gives up, and what a refused client has to do is let go of something.
 * Cycles that an ENQUEUE is part of, or another host, are not found.
 *
 * It is looked for when a LOCK or an ACQUIRE begins to wait, and only then, because nothing else can close a cycle: an
 * ENQUEUE blocks nobody, and nobody is behind it yet; a grant makes a holder of the first request in line, and all that
 * waits for the grant did wait for the request, in the same mode, or had counted on it; a downgrade, a loss, the end of a
 * wait only take away; owners do not change while they hold or wait. And a client that has neither a grant nor another
 * request is waited for by nobody.
 *
 * Breadth first, so that the shortest cycle is told, without recursion, each request at most once. Beyond the limits
 * nothing is found: that is counted (deadlock_cuts_total), and the LOCK waits.
 */
#pragma once

#include <stdbool.h>

#include "core/lock/request.h"
#include "protocol/bytes.h"

struct client;
struct lock;

enum {
	DEADLOCK_REQUESTS_MAX = 1024, /* followed in one search */
	DEADLOCK_EDGES_MAX = 16384,   /* grants, requests and clients looked at */
	DEADLOCK_HOPS_TOLD = 4,       /* of the cycle */
	DEADLOCK_NAME_TOLD = 32,      /* bytes of each name */
};

/* What this client asks of this lock (of a semaphore: its mutex), last in line, would close a cycle: `sentence` tells. */
bool deadlock_closes(struct client *c, const struct lock *lock, const struct request_terms *terms,
		     struct bytes *sentence);
