/* SPDX-License-Identifier: Apache-2.0 */
/* All directories in which this host has claims or may have claims, and the numbers that claims are given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"
#include "core/claim/claim.h"
#include "core/claim/directory.h"
#include "core/claim/lasting.h"
#include "core/claim/turn.h"
#include "core/port/work.h"
#include "core/session/ensemble.h"

TAILQ_HEAD(directory_list, directory);

struct directories {
	struct env *env;
	struct ensemble *ensemble;
	struct map paths;              /* by path */
	struct directory_list later;   /* later events touch these, in this order */
	struct work_user worker;       /* the owner of `work`, which touches them */
	struct work_item work;
	struct turns turns;
	struct names names;
	struct lasting_list lasting;
	bool token_asked;
	/* Sums, for INFO and the checks. */
	size_t remembered_count, stray_count, left_count, claim_count;
	uint64_t last_nonce, last_claim;
	int64_t token_limit, token_next; /* standalone: claim numbers */
	void *spare_claim; /* mem.h */
	struct directory_list touched; /* to be settled before the event ends */
};

void directory_init(struct directory *d, struct directories *all, struct lock *lock);
void directory_deinit(struct directory *d);
/* The directory's path is known: it can be found from now on. */
void directory_add(struct directory *d);
struct directory *directory_find(const struct directories *all, struct slice path);
void directory_touch(struct directory *d);   /* to be settled before the event ends */
void directory_untouch(struct directory *d); /* the reason for the touch is settled */
void directory_touch_later(struct directory *d); /* a later event settles it (port/work.h) */
/* Called for each of many directories: touches the first WORK_TURN_STEPS now, and the others later. Counts in *count. */
void directory_touch_one(struct directory *d, size_t *count);
int64_t directory_touch_some(struct directories *all, int64_t steps); /* of `later`; returns the number touched */
/* `remembered`: the outcome of the directory's claims is unknown. They are verified when that is known. */
void directory_remember(struct directory *d, bool remembered);
void directory_verified(struct directory *d);
void directory_pause(struct directory *d); /* before ZooKeeper, which refused or did not answer, is asked again */
void directory_retry(struct directory *d); /* the same, when it is busy: longer and longer */
/* ZooKeeper refused something: it is asked again after such a pause. Unless it is only busy, that fails the requests. */
void directory_refused(struct directory *d, enum zk_code code, enum failed failed, const char *sentence);
void directory_delay(struct directory *d, int64_t pause_ns); /* sends ZooKeeper nothing for it for that long */
bool directory_may_send(const struct directory *d);          /* the session is connected, and no pause lasts */

/* The present session made a znode of that name. */
static inline bool directory_is_ours(const struct directory *d, struct slice name)
{
	return contender_of_session(name, d->flavour, d->directories->ensemble->session.id);
}

/*
 * It is no container: ZooKeeper keeps it when it is empty. Kazoo remembers that a directory exists, and fails without it;
 * and a server may lack containers, or have lacked them when this host made the directory.
 */
static inline bool directory_lasts(const struct directory *d)
{
	return d->flavour == FLAVOUR_KAZOO || d->maker || (d->directories->ensemble->lacks & ZK_LACKS_CONTAINERS);
}

/* Visits all claims of a directory. The LEAVING claims come last. */
#define CLAIM_FOREACH(c, d) for ((c) = claim_first(d); (c); (c) = claim_after(c))

static inline struct claim *claim_first(const struct directory *d)
{
	if (d->claim)
		return d->claim;
	return TAILQ_EMPTY(&d->slots) ? TAILQ_FIRST(&d->leaving) : TAILQ_FIRST(&d->slots);
}

static inline struct claim *claim_after(const struct claim *c)
{
	const struct directory *d = c->directory;

	if (c == d->claim && d->next)
		return d->next;
	if (c == d->claim || c == d->next)
		return TAILQ_FIRST(&d->leaving);
	return TAILQ_NEXT(c, link) || c->state == CLAIM_LEAVING ? TAILQ_NEXT(c, link) : TAILQ_FIRST(&d->leaving);
}
