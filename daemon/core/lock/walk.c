/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/walk.h"

#include "core/lock/locks.h"

void walk_begin(struct locks *locks, struct walk *w, bool of_clients)
{
	w->begun = true;
	w->left = of_clients ? locks->client_count : locks->names.count - locks->idle_count;
	w->lock = of_clients ? NULL : TAILQ_FIRST(&locks->used);
	w->client = of_clients ? TAILQ_FIRST(&locks->clients) : NULL;
	TAILQ_INSERT_TAIL(&locks->walks, w, link);
}

void walk_begin_grants(struct walk *w, const struct lock *lock)
{
	w->begun = true;
	w->left = lock->grant_count;
	w->grant = TAILQ_FIRST(&lock->grants);
	TAILQ_INSERT_TAIL(&lock->locks->walks, w, link);
}

void walk_begin_requests(struct walk *w, const struct lock *lock)
{
	w->begun = true;
	w->left = lock->request_count;
	w->request = TAILQ_FIRST(&lock->requests);
	TAILQ_INSERT_TAIL(&lock->locks->walks, w, link);
}

struct lock *walk_lock(struct walk *w)
{
	struct lock *lock = w->left ? w->lock : NULL;

	if (lock) {
		w->left--;
		w->lock = TAILQ_NEXT(lock, link);
	}
	return lock;
}

const struct client *walk_client(struct walk *w)
{
	const struct client *c = w->left ? w->client : NULL;

	if (c) {
		w->left--;
		w->client = TAILQ_NEXT(c, link);
	}
	return c;
}

struct grant *walk_grant(struct walk *w)
{
	struct grant *g = w->left ? w->grant : NULL;

	if (g) {
		w->left--;
		w->grant = TAILQ_NEXT(g, link);
	}
	return g;
}

const struct request *walk_request(struct walk *w)
{
	const struct request *r = w->left ? w->request : NULL;

	if (r) {
		w->left--;
		w->request = TAILQ_NEXT(r, link);
	}
	return r;
}

void walk_end(struct locks *locks, struct walk *w)
{
	if (w->begun)
		TAILQ_REMOVE(&locks->walks, w, link);
	w->begun = false;
}

void walk_leave_lock(struct locks *locks, const struct lock *lock)
{
	struct walk *w;

	TAILQ_FOREACH(w, &locks->walks, link)
		if (w->lock == lock)
			w->lock = TAILQ_NEXT(lock, link);
}

void walk_leave_client(struct locks *locks, const struct client *c)
{
	struct walk *w;

	TAILQ_FOREACH(w, &locks->walks, link)
		if (w->client == c)
			w->client = TAILQ_NEXT(c, link);
}

void walk_leave_grant(struct locks *locks, const struct grant *g)
{
	struct walk *w;

	TAILQ_FOREACH(w, &locks->walks, link)
		if (w->grant == g)
			w->grant = TAILQ_NEXT(g, link);
}

void walk_leave_request(struct locks *locks, struct request *r)
{
	struct walk *w;

	TAILQ_FOREACH(w, &locks->walks, link)
		if (w->request == r)
			w->request = TAILQ_NEXT(r, link);
}
