/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlock detection inside the host: a LOCK or ACQUIRE that would wait for its own owner is refused.
 *
 * A request waits for the owners of the grants that conflict with it, and of the conflicting requests before it in the
 * queue of its lock. An owner is a client, or several clients that declared themselves one (user.h).
 *
 *   an owner goes on waiting ...            | is it followed?
 *   by a LOCK, with or without WAIT         | yes: until that ends the owner releases nothing. A timeout or a lease
 *                                           |   would end it much later: the search does not count on either
 *   by a LOCK whose time has run out, a try | no: it ends as soon as the lock is known to be taken
 *   by a request that is set aside (ask.h)  | no: it may end when its name's kind is known. It is searched for once queued
 *   by an ACQUIRE                           | when no cycle of LOCKs is found, and only inside a knot (see below)
 *   by an ENQUEUE                           | no: its owner is free to release, or to withdraw it. But a request behind
 *                                           |   it waits for its owner, whose own LOCK is followed
 *
 * So a cycle that is found lasts until one of its owners gives up, and a refused client has to release something.
 * A cycle that an ENQUEUE or another host is part of is not found.
 *
 * The search runs when a LOCK or an ACQUIRE begins to wait, and only then, because nothing else can close a cycle: an
 * ENQUEUE blocks nobody, and nobody is behind it yet; a grant makes a holder of the first request in line, and whatever
 * waits for the grant waited for the request, in the same mode, or had counted on it; a downgrade, a loss and the end
 * of a wait only remove edges; owners do not change while they hold or wait. And nobody waits for a client that has
 * neither a grant nor another request.
 *
 * A client that waits for permits does not wait for a certain other client: it goes on as soon as enough of the clients
 * that have some release them. So for permits a cycle is not enough: a deadlock is a knot, the largest set of waits
 * in which each wait has its reason in the set:
 *
 *   a wait for ...           | stays in the set as long as
 *   a lock                   | an owner in the set holds it, or asked for it before, in a mode that conflicts
 *   k permits of n           | a client in the set is before it in line, or owners in the set have, or will have before
 *                            |   it, more than n - k
 *
 * An owner is in the set when one of its clients is. Other hosts, other software, and a client that waits with another
 * limit than the agreed one can always go on.
 *
 * The search is breadth first, so that it reports the shortest cycle; it needs no recursion, and visits each request at
 * most once in each of three walks: for a cycle of LOCKs, for all that a knot may be made of, for a cycle in the knot.
 * Beyond its limits it finds nothing: that is counted (deadlock_cuts_total), and the LOCK waits.
 *
 * The search is done in one event, so that it sees one state of the waits. It is bounded, and each edge that it looks at
 * counts as steps of the turn in which it is done (locks->searched): after many, other waits begin in later events
 * (mlock.h, ask.h). Thousands of MLOCKs that begin again with a lost session cannot wait: all searches of one event look at
 * no more edges than one search may, and searches beyond that are given up.
 */
#pragma once

#include <stdbool.h>

#include "core/lock/request.h"
#include "protocol/bytes.h"

enum {
	/* Grants, requests and clients looked at, in a walk for a cycle: 0.1 us each if it comes from memory. */
	DEADLOCK_EDGES_MAX = 2048,
	DEADLOCK_EDGES_GATHERED_MAX = 4096, /* the same, to find the knot */
	DEADLOCK_EDGES_IN_ALL = 2 * DEADLOCK_EDGES_MAX + DEADLOCK_EDGES_GATHERED_MAX, /* in all searches of an event */
	DEADLOCK_EDGES_AT_ONCE = 64, /* when an event has looked at that many, it begins no other search that can wait */
	DEADLOCK_EDGES_A_STEP = 1,   /* edges that count as one step (core/port/work.h) */
};

/* True: this client's request, last in line for the lock (of a semaphore: its mutex), would close a cycle, and why. */
bool deadlock_look(struct client *c, struct lock *lock, const struct request_terms *terms, struct bytes *sentence);
/* The same, of a client that waits already, if it does: its wait ends with that error. */
void deadlock_look_at(struct client *c);
