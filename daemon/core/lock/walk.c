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

const struct lock *walk_lock(struct walk *w)
{
	const struct lock *lock = w->left ? w->lock : NULL;

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
