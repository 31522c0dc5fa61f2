/*
 * Tier 1: a lock inside the host: requests in a FIFO, grants, and the rule that decides about claims.
 *
 * lock_settle() is that rule. It looks only at state, after every event that touched the lock, and not at what was
 * done: a claim can become HELD after its request is gone.
 *
 *   1  a HELD claim serves the requests at the head as long as it may: the session is proven, the mode is covered,
 *      no grant conflicts, the hand-off rule allows it
 *   2  waits that ran out end as soon as it is known whether the lock is taken
 *   3  a HELD claim without grants that cannot serve the head goes back, *next* queued first; one without requests
 *      lingers, or goes back when somebody else wants it; any other claim that no request wants goes back
 *   4  requests without a claim join; *next* is queued when the held claim will not do for the head, or before its
 *      hand-offs run out
 *
 * Limits: at most two znodes of the host in the directory, those being deleted or of unknown outcome counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/queue.h"
#include "core/claim.h"
#include "core/directory.h"
#include "core/mode.h"
#include "protocol/errors.h"

struct broker;
struct client;

enum { LOCK_ZNODES_MAX = 2 };

/* A client waiting for a lock: its LOCK is not answered yet. */
struct request {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(request) link; /* lock->requests, in order of asking */
	enum mode mode;
	bool expired;         /* its wait ran out: it ends as soon as the lock is known to be taken */
	int64_t asked_ns;
	struct timer timer;   /* the wait; once expired, how long the answer may still take */
};

/* A client holding a lock; `lost` ones remain until the client was told. */
struct grant {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(grant) link;        /* lock->grants or lock->lost */
	TAILQ_ENTRY(grant) client_link; /* client->grants */
	enum mode mode;
	bool lost;
	int64_t depth; /* levels, at least 1 */
	int64_t token;
	int64_t granted_ns;
};

TAILQ_HEAD(request_list, request);
TAILQ_HEAD(grant_list, grant);
TAILQ_HEAD(claim_list, claim);

struct lock {
	struct broker *broker;
	struct map_node name_node, path_node;
	TAILQ_ENTRY(lock) link;         /* broker->locks_used or broker->locks_idle */
	TAILQ_ENTRY(lock) dirty_link, recover_link;
	bool idle, dirty, recovering;
	struct bytes name;
	struct request_list requests;
	struct grant_list grants, lost;
	struct claim_list leaving;
	struct claim *claim, *next;
	size_t request_count, expired_count, grant_count, claim_count;
	size_t operations;              /* open ones; they keep the struct */
	struct directory directory;
	struct timer timer;             /* the next instant at which time alone changes something */
	int64_t join_after_ns;          /* jitter under a new session, pause after a refusal */
};

/* The lock of that name; NULL when there is none and `make` is false, or a limit forbids one more. */
struct lock *lock_find(struct broker *b, struct slice name, bool make);
struct lock *lock_find_path(struct broker *b, struct slice path);
/* To be settled before the event ends. */
void lock_touch(struct lock *lock);
void lock_settle(struct lock *lock);
/* Frees or parks it if nothing refers to it. */
void lock_rest(struct lock *lock);
void lock_free(struct lock *lock);
/* When lock->timer is due. */
void lock_tick(struct lock *lock);
/* The client's grant, lost ones included; NULL. */
struct grant *lock_grant_of(const struct lock *lock, const struct client *client);
/* Queues a request. wait_ns < 0: for ever; 0: a try. */
void lock_request(struct lock *lock, struct client *client, enum mode mode, int64_t wait_ns);
/* The wait ran out, or is to end: nil as soon as the lock is known to be taken. */
void request_expire(struct request *r);
/* Ends it without a reply. */
void request_end(struct request *r);
/* Ends it with an error reply. */
void request_fail(struct request *r, enum error_code code, const char *sentence);
/* The same for all of the lock. */
void lock_fail_requests(struct lock *lock, enum error_code code, const char *sentence);
/* Lets go of all levels. */
void grant_end(struct grant *g);
/* Every grant of the lock is void: its holders are told. */
void lock_lose_grants(struct lock *lock);
/* The session is lost: the grants are, and the claims that were held are let go. */
void lock_lose(struct lock *lock);
/* Somebody of another session may want it: for HOLDERS, WHY and the hand-off rule. */
bool lock_contended(const struct lock *lock);
