/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlock detection inside the host: a LOCK or ACQUIRE that would wait for what its own owner holds is refused.
 *
 * A request waits for the owners of the grants that conflict with it, and of the conflicting requests before it in the
 * queue of its lock. An owner is a client, or several clients that declared themselves one (user.h).
 *
 *   an owner goes on waiting ...            | is it followed?
 *   by a LOCK, with or without WAIT         | yes: until that ends the owner releases nothing. A timeout or a lease
 *                                           |   would end it much later: the search does not count on either
 *   by a LOCK whose time has run out, a try | no: it ends as soon as the lock is known to be taken
 *   by what is set aside (aside.h)          | no: it may end by what its name is. Once it is queued, it is searched for
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
 * that have some release them. So for permits a cycle is not enough: what counts is the knot, the largest set of waits
 * in which each wait has its reason in the set:
 *
 *   a wait for ...           | stays in the set as long as
 *   a lock                   | an owner in the set holds it, or asked for it before, in a mode that conflicts
 *   k permits of n           | a client in the set is before it in line, or owners in the set have, or will have before
 *                            |   it, more than n - k
 *
 * An owner is in the set when one of its clients is. Other hosts and other software can always go on, and so can a
 * client that waits with another limit than the agreed one.
 *
 * The search is breadth first, so that it reports the shortest cycle; it needs no recursion, and visits each request at
 * most once in each of three walks: for a cycle of LOCKs, for all that a knot may be made of, for a cycle in the knot.
 * Beyond its limits it finds nothing: that is counted (deadlock_cuts_total), and the LOCK waits.
 *
 * The first piece is done when the LOCK arrives. If that is not enough, the request waits. The search then starts over,
 * and is done piece by piece in the turns of the user (core/port/work.h), while other waits begin and end. It misses
 * nothing: a deadlock lasts, all of it is there once the last of its waits has begun, and that wait's search meets it
 * whenever it looks. It reports nothing that is over: when an owner that it has met releases something or stops waiting,
 * what was found through that owner is in doubt (lock/search.h), and the search is done again. An owner of many clients
 * may change all the time, so after eight searches that ended in doubt the next one is done in one event.
 *
 *   state     | means                                    | event -> next state
 *   none      | no search is to be done                  | a wait begins, and a first piece is not enough -> waiting
 *   waiting   | it waits for the turns of its user       | its first turn -> in line
 *   in line   | one is under way at a time; turns of its | the one before it is over -> under way
 *             |   user do pieces of the one under way     |
 *   under way | a part of the waits was met              | over: a cycle that is so still -> the wait ends with -DEADLOCK;
 *             |                                          |   a doubt -> waiting; else -> none
 *   any       |                                          | the wait ends -> none
 */
#pragma once

#include <stdbool.h>

#include "core/lock/request.h"
#include "core/lock/search.h"
#include "protocol/bytes.h"

struct client;
struct lock;

enum {
	DEADLOCK_EDGES_MAX = 4096,   /* grants, requests and clients looked at, in a walk for a cycle */
	DEADLOCK_EDGES_GATHERED_MAX = 8192, /* the same, to find the knot */
	/* The same, in a whole search: in each of its three walks two more may be looked at before it is cut. */
	DEADLOCK_EDGES_IN_ALL = 2 * DEADLOCK_EDGES_MAX + DEADLOCK_EDGES_GATHERED_MAX + 6,
	DEADLOCK_EDGES_A_PIECE = 64, /* half a microsecond; some tens if each of them has to come from memory */
	DEADLOCK_EDGES_A_STEP = 1,   /* what they count for (core/port/work.h) */
	DEADLOCK_SEARCHES_IN_PIECES = 8, /* for one wait; one more is done in one event */
};

enum deadlock {
	DEADLOCK_NONE,
	DEADLOCK_CLOSES,  /* see `sentence` */
	DEADLOCK_UNKNOWN, /* it would take longer: to be searched once the client waits */
};

/* Whether this client's request, last in line for the lock (of a semaphore: its mutex), would close a cycle. */
enum deadlock deadlock_look(struct client *c, struct lock *lock, const struct request_terms *terms, struct bytes *sentence);
/* The client waits, and is searched for in its turns. If it closes a cycle, its wait ends with an error. */
void deadlock_search(struct client *c);
/* Its turn has come (WORK_DEADLOCK). Returns the steps. */
int64_t deadlock_continue(struct client *c);
void deadlock_forget(struct client *c); /* it is not searched for any longer */
