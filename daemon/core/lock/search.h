/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for a deadlock (client/deadlock.h) that goes on in later events: how far it has come, and what each change
 * between two pieces means for it. There is one such search at a time (locks->search). The first piece, in the event that
 * asks, has a state of its own (locks->first_piece).
 *
 *   what changes                     | what that means for the search
 *   a request or a grant comes       | nothing: it is behind all that the search goes along, or met when that is reached
 *   it leaves, or a client its group | what the search goes along is gone on with at the next one
 *   an owner has or waits for less   | it is `loosened`: what was found through it has to be found once more
 *   a wait that is followed ends     | likewise; and if another wait counted on it and it was not expanded, something may
 *                                    |   have been `missed`: when nothing is found, it is searched once more; so it is
 *                                    |   in a knot, in which it may have been what another wait was tied by
 *   the wait that is checked ends    | the search is over
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lock/request.h"
#include "core/lock/walk.h"

struct client;
struct grant;
struct locks;

enum { SEARCH_REQUESTS_MAX = 1024 }; /* followed in one walk */

enum search_stage {
	SEARCH_CYCLE,  /* a walk for a cycle of LOCKs */
	SEARCH_GATHER, /* a walk for all that the first wait may depend on, and for no cycle */
	SEARCH_UNTIE,  /* waits that can end leave that set, pass by pass */
	SEARCH_KNOT,   /* a walk for a cycle in what is left */
};

/* A request that is followed, and how it was reached: the step before waits for `met`, whose owner has this request. */
struct search_step {
	struct request *request; /* in the first: the one that is checked; NULL: it has ended */
	const struct client *met;
	size_t before;
	bool behind;   /* `met` waits for the lock of the step before; else it holds that lock */
	bool relied;   /* another one was not expanded any further, because this one waits for the same */
	bool loosened; /* its client has less than when it was met */
};

struct search {
	struct client *client; /* the one that asks; NULL: there is none */
	struct request *asked; /* NULL: it has ended */
	struct request planned; /* what is asked, if that does not wait yet: last in line */
	bool later;            /* it goes on in later events, and has marks of its own (request.h) */
	bool whole;            /* it is done in one event */
	enum search_stage stage;
	uint64_t number; /* mark of the requests and groups that were met in this walk */
	uint64_t knot;   /* not 0: only the requests with that mark are followed, those for permits too */
	size_t count, edges;
	size_t searched, until; /* edges of all walks; where this piece ends */
	bool cut, found;
	bool permits;                 /* a wait for permits was met */
	bool missed, loosened, group_loosened;
	/* Where it is: a step, and whom that waits for: first those before it in line, then those that hold. */
	size_t at;
	bool opened, in_line;
	const struct request *line;   /* the next one to look at, as are: */
	const struct grant *holder;
	const struct client *member;  /* of a group, met as in: */
	struct search_step how;
	bool left_one;                /* in this pass a wait left the set */
	int64_t left;                 /* permits that owners outside the set have */
	struct search_step last;      /* of a cycle that was found: it leads back to the client */
	struct walk walk;             /* so that it is told */
	struct search_step steps[SEARCH_REQUESTS_MAX];
};

/* The request has that mark: it is one of those that the search is about. */
bool search_has(const struct search *s, const struct request *r);
/* It is not in the set any longer. */
void search_untie(struct search *s, struct request *r);

/* ---- what locks->search is told, while it goes on ---- */

void search_leave_request(struct locks *locks, struct request *r);
void search_leave_grant(struct locks *locks, const struct grant *g);
void search_leave_group(struct locks *locks, const struct client *c);
/* It has, or waits for, less than before, or a wait of its will end. */
void search_loosen(struct locks *locks, const struct client *c);
