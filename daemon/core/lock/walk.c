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

/* What differs between the nouns is the type alone. `constant`: const, where the caller may not change what it visits. */
#define WALK_ALONG(noun, constant) \
	constant struct noun *walk_##noun(struct walk *w) \
	{ \
		constant struct noun *next = w->left ? w->noun : NULL; \
\
		if (next) { \
			w->left--; \
			w->noun = TAILQ_NEXT(next, link); \
		} \
		return next; \
	} \
\
	void walk_leave_##noun(struct locks *locks, const struct noun *leaves) \
	{ \
		struct walk *w; \
\
		TAILQ_FOREACH(w, &locks->walks, link) \
			if (w->noun == leaves) \
				w->noun = TAILQ_NEXT(leaves, link); \
	}

WALK_ALONG(lock, )
WALK_ALONG(client, const)
WALK_ALONG(grant, )
WALK_ALONG(request, const)

void walk_end(struct locks *locks, struct walk *w)
{
	if (w->begun)
		TAILQ_REMOVE(&locks->walks, w, link);
	w->begun = false;
}
