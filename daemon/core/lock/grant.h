/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grant: a client holds a lock. A lost one is void, and stays with its client until a reply, or an event that the
 * client read, has told the loss; so no loss goes unseen.
 *
 *   state  | means                             | left by
 *   held   | no lease, or it has not ended yet | UNLOCK, RESET, client gone -> freed; lease ran out, session lost,
 *          |                                   |   znode deleted, taken by force, its path too long (budget.h) -> lost
 *   lost   | void; another may hold the lock   | reported in a reply or a read event, RESET, client gone -> freed
 *
 * At the end of the lease the broker itself takes the lock back. A re-entry never shortens it: the later end counts,
 * and no lease counts as the latest end. RENEW sets it again, earlier or later, from the instant of the command.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/queue.h"
#include "core/lock/delegated.h"
#include "core/lock/notification.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"

struct request;

/* Why a grant was lost. */
enum loss { LOSS_SESSION, LOSS_DELETED, LOSS_LEASE, LOSS_LIMIT, LOSS_FORCED };

struct grant {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(grant) link;        /* lock->grants or lock->lost */
	TAILQ_ENTRY(grant) client_link; /* client->grants */
	enum mode mode;
	bool counted; /* it counts against the limits of its client, and is charged (pools.h) */
	bool lost;
	uint8_t slot;   /* of its client's page, from 1; 0: it has none (delegated.h) */
	bool delegated, recalled; /* recalled: it was delegated, and has become a hold of its process again */
	int64_t depth; /* levels, at least 1 */
	int64_t token;
	int64_t granted_ns, asked_ns; /* asked: 0: not known */
	struct ledger_grant *record; /* in the ledger; NULL: none */
	struct timer age;   /* hold.h */
	struct timer lease; /* the end of its lease; not set: it has none. Behind it, most grants are zero (mem.h) */
	LIST_ENTRY(grant) delegated_link; /* lock->delegated */
	enum loss loss;
	uint32_t mark;      /* its number in a snapshot (lock_snapshot.h) */
	int64_t asked_back_ns; /* when its client last got REVOKE; 0: never */
	int64_t told;       /* permits: the number of leases whose data describe it (semaphore.h) */
	struct bytes data;  /* the text that its holder gave; may be empty */
	struct bytes before; /* the host that had the lock before; empty: this host, or it is not known */
	struct outcome outcome;            /* LOST */
	struct notification *notification; /* REVOKE, or LOST once it is lost; NULL: none waits */
};

TAILQ_HEAD(grant_list, grant);

const char *loss_word(enum loss loss); /* the word for it in logs and events */
/* For that request, whose data and place among the grants (pools.h) become its own. */
void grant_new(struct request *r, enum mode mode, int64_t token);
/* Puts a grant, which has its client, its lock, `counted` and `lost`, at the end of their lists. */
void grant_add(struct grant *g);
/* The client's grant of the lock, lost ones included; NULL. */
struct grant *grant_find(const struct lock *lock, const struct client *client);
void grant_extend(struct grant *g, int64_t lease_ns); /* the later end counts; no lease (0) counts as the latest */
void grant_reenter(struct grant *g, int64_t lease_ns, struct slice data); /* adds one level */
void grant_set_depth(struct grant *g, int64_t depth); /* at least 1 */
void grant_downgrade(struct grant *g); /* readers may join it from now on */
void grant_renew(struct grant *g, int64_t lease_ns); /* the lease ends that long from now */
int64_t grant_lease_rest_ns(const struct grant *g); /* the rest of its lease; INT64_MAX: it has none */
void grant_end(struct grant *g); /* releases all levels, or forgets a lost grant */
/* The grant becomes void, and its holder will be notified. A delegated one that is free ends. */
void grant_lose(struct grant *g, enum loss loss);
void grant_lose_all(struct lock *lock, enum loss loss); /* the same for every grant of the lock */
