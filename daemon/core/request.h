/* A request: a client waiting for a lock. Its LOCK is not answered yet. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/queue.h"
#include "core/mode.h"
#include "protocol/errors.h"

struct client;
struct lock;

struct request {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(request) link; /* lock->requests, in order of asking */
	enum mode mode;
	bool expired;         /* its wait ran out: it ends as soon as the lock is known to be taken */
	int64_t asked_ns;
	struct timer timer;   /* the wait; once expired, how long the answer may still take */
};

TAILQ_HEAD(request_list, request);

/* Queues one. wait_ns < 0: for ever; 0: a try. */
void request_new(struct lock *lock, struct client *client, enum mode mode, int64_t wait_ns);
/* The wait ran out, or is to end: nil as soon as the lock is known to be taken. */
void request_expire(struct request *r);
/* Ends it without a reply. */
void request_end(struct request *r);
/* Ends it with an error reply. */
void request_fail(struct request *r, enum error_code code, const char *sentence);
/* The same for all of the lock. */
void request_fail_all(struct lock *lock, enum error_code code, const char *sentence);
