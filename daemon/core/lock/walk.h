/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk goes along the locks in use, the clients, or the grants or the requests of one lock, in more than one event, while
 * they come and go: the walk steps over an item that leaves the list, and a new item is behind all others. There are as
 * many walks at a time as users that have one under way, because each has one of its items under way (core/port/work.h);
 * the others have not begun.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/queue.h"

struct client;
struct grant;
struct lock;
struct locks;
struct request;

TAILQ_HEAD(walk_list, walk);

struct walk {
	TAILQ_ENTRY(walk) link; /* locks->walks */
	bool begun;
	size_t left;                 /* how many are left of the items at its beginning */
	struct lock *lock;           /* the next one; NULL: none is left, or the walk visits something else */
	const struct client *client;
	struct grant *grant;
	const struct request *request;
};

void walk_begin(struct locks *locks, struct walk *w, bool of_clients);
/* Along the grants of that lock without lost ones; along its requests. Whatever becomes of the lock. */
void walk_begin_grants(struct walk *w, const struct lock *lock);
void walk_begin_requests(struct walk *w, const struct lock *lock);
/* The next one, which is behind it then; NULL: it has seen all that were there when it began. */
struct lock *walk_lock(struct walk *w);
const struct client *walk_client(struct walk *w);
struct grant *walk_grant(struct walk *w);
const struct request *walk_request(struct walk *w);
/* Takes one that has not begun. */
void walk_end(struct locks *locks, struct walk *w);
/* They leave the list. */
void walk_leave_lock(struct locks *locks, const struct lock *lock);
void walk_leave_client(struct locks *locks, const struct client *c);
void walk_leave_grant(struct locks *locks, const struct grant *g);
void walk_leave_request(struct locks *locks, const struct request *r);
