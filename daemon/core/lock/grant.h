/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grant: a client holding a lock. A lost one is void, and stays with its client until that was told in a reply or
 * in an event it read, so that a loss cannot go unseen.
 *
 *   state  | means                             | left by
 *   held   | no lease, or its end is to come   | UNLOCK, RESET, client gone -> freed; lease ran out, session lost,
 *          |                                   |   znode deleted, taken by force, its path too long (budget.h) -> lost
 *   lost   | void; another may hold the lock   | told in a reply or a read event, RESET, client gone -> freed
 *
 * The lease is the instant at which the broker takes the lock back by itself. A re-entry never shortens it: the later
 * end counts, and none at all is later than any. RENEW sets it anew, earlier or later, from the instant of asking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/queue.h"
#include "core/lock/notification.h"
#include "core/lock/outcome.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"

struct client;
struct lock;

/* Why a grant was lost. */
enum loss { LOSS_SESSION, LOSS_DELETED, LOSS_LEASE, LOSS_LIMIT, LOSS_FORCED };

struct grant {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(grant) link;        /* lock->grants or lock->lost */
	TAILQ_ENTRY(grant) client_link; /* client->grants */
	enum mode mode;
	bool counted;              /* against the limits of its client and user */
	bool lost;
	enum loss loss;
	int64_t depth; /* levels, at least 1 */
	int64_t token;
	int64_t granted_ns;
	int64_t asked_back_ns; /* when its client was last told REVOKE; 0: never */
	int64_t told;       /* of permits: leases whose data tell of it (permit_holders.h) */
	struct timer lease; /* set: it has one, and this is its end */
	struct bytes data;  /* what its holder wants to be known; may be empty */
	struct outcome outcome;            /* LOST */
	struct notification *notification; /* REVOKE, or LOST once it is; NULL: none waits */
};

TAILQ_HEAD(grant_list, grant);

/* The word that tells it. */
const char *loss_word(enum loss loss);
/* lease_ns 0: none. Takes the memory of `data` over. */
void grant_new(struct lock *lock, struct client *client, enum mode mode, int64_t token, int64_t lease_ns,
	       struct bytes *data);
/* The client's grant of the lock, lost ones included; NULL. */
struct grant *grant_find(const struct lock *lock, const struct client *client);
/* The later end counts, and none at all (0) is later than any. */
void grant_extend(struct grant *g, int64_t lease_ns);
/* One level more. */
void grant_reenter(struct grant *g, int64_t lease_ns, struct slice data);
/* Its lease ends that long from now. */
void grant_renew(struct grant *g, int64_t lease_ns);
/* How long its lease still is; INT64_MAX: it has none. */
int64_t grant_lease_rest_ns(const struct grant *g);
/* Lets go of all levels, or forgets a lost one. */
void grant_end(struct grant *g);
/* The grant is void, and its holder is to be told. */
void grant_lose(struct grant *g, enum loss loss);
/* So is every grant of the lock. */
void grant_lose_all(struct lock *lock, enum loss loss);
