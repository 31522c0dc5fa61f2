/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: a client waits for a lock. A blocking request is a LOCK that has no reply yet; a client has at most one.
 * A queued request was answered at once, by ENQUEUE, and an event tells its end. A client has at most one request for
 * each lock.
 *
 *   end            | blocked: the reply | queued: the event
 *   granted        | token              | granted name token
 *   wait ran out   | nil                | timeout name
 *   failed         | -CODE sentence     | failed name CODE sentence
 *   CANCEL         |                    | none: CANCEL answers 1
 *   CLIENT UNBLOCK | nil                |
 *   RESET, client gone: none
 *
 * A request has exactly one of these ends, and the client hears nothing about it afterwards. A request that ends leaves
 * its lock and its client's list at once, and lives on as an outcome (notification.h) until that is reported.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/heap.h"
#include "base/queue.h"
#include "core/lock/kind_rule.h"
#include "core/lock/notification.h"
#include "core/znode/kind.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

/* The terms of a request. */
struct request_terms {
	enum kind kind;
	enum mode mode;
	bool queued;       /* ENQUEUE, CAMPAIGN ENQUEUE */
	int64_t wait_ns;   /* below 0: without limit; 0: a try */
	int64_t lease_ns;  /* 0: none */
	struct slice data; /* borrowed; may be empty */
	int64_t limit, count; /* ACQUIRE */
	uint8_t slot; /* offered, to delegate the lock in it; 0: none */
	bool fresh;   /* no claim serves it that has served another */
};

#define REQUEST_UNCONNECTED "there is no connection to ZooKeeper, so it is not known whether the lock is taken"

struct request {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(request) link; /* lock->requests or lock->aside, in order of asking */
	TAILQ_ENTRY(request) client_link; /* client->requests, in order of asking */
	enum mode mode;
	bool queued, fresh;
	uint8_t aside;        /* 1 + the kind as which it asks, if it is set aside (client/ask.h); 0: it is not */
	bool said;            /* that it waits for long (hold.h) */
	bool expired;         /* its wait ran out: it ends as soon as it is known that the lock is taken */
	uint8_t slot;         /* offered for the grant, if that is made at once (delegated.h); 0: none */
	bool place;           /* it counts as one of the grants (pools.h), as long as it has none */
	int64_t asked_ns;
	int64_t lease_ns;
	int64_t limit, count; /* of permits, for a semaphore */
	struct timer timer;   /* the end of the wait; once expired, until when the answer may come */
	struct timer age;     /* hold.h */
	struct outcome outcome; /* from its sentence on, most requests are zero (mem.h) */
	TAILQ_ENTRY(request) expired_link; /* lock->expired */
	uint64_t search;      /* for a deadlock: the last walk that met it, or the knot that it is part of */
	uint32_t mark;        /* its number in a snapshot (lock_snapshot.h) */
	struct bytes data;
	struct proclamation proclamation; /* of an election */
	struct charge event;  /* if it is queued */
};

TAILQ_HEAD(request_list, request);

/* Queues a new request. */
void request_new(struct lock *lock, struct client *client, const struct request_terms *terms);
/* Puts a request, which has its client, its lock and `queued`, at the end of their lists. */
void request_add(struct request *r);
enum kind request_kind(const struct request *r); /* as which it asks for the name */
/* The client's request for the lock; NULL. */
struct request *request_find(const struct lock *lock, const struct client *client);
/* The next request. Requests before it end now if their client has left and they are yet to be ended (hosts/release.h). */
struct request *request_first(struct lock *lock);
/* The wait ran out, or is to end: the request ends as soon as it is known that the lock is taken. */
void request_expire(struct request *r);
void request_mark_expired(struct request *r);         /* it did before; for a snapshot */
void request_end(struct request *r);                  /* ends it without an outcome */
void request_grant(struct request *r, int64_t token); /* ends it with a new grant */
/* Ends it: its client has the grant, and gets `number` (notification.h). */
void request_granted(struct request *r, int64_t number);
void request_time_out(struct request *r); /* ends it: its wait ran out, and the lock is taken */
void request_fail(struct request *r, enum error_code code, const char *sentence); /* ends it with an error */
/* The same for all requests of the lock. */
void request_fail_all(struct lock *lock, enum error_code code, const char *sentence);
void request_free(struct request *r);        /* it has ended, and its outcome was reported or is dropped */
void request_forget_ended(struct client *c); /* drops the outcomes of the client's ended requests */
