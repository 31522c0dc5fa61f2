/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions that differ between the kinds of locks. Everything else (the FIFO, the grants, the claims) is the same
 * for all kinds. kind/ has one rule for each kind; a lock has the rule of its kind, and lock/ calls nothing else of a kind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rule.h"
#include "core/znode/kind.h"
#include "core/znode/mode.h"
#include "protocol/slice.h"

struct bytes;
struct claim;
struct client;
struct entry;
struct event;
struct grant;
struct lock;
struct locks;
struct operation;
struct request;
struct request_terms;

struct kind_rule {
	enum kind kind;
	enum rule_verb verb; /* of access rules for its requests; a request to share a lock has another one */
	bool counts; /* its requests say how many they want, and of which limit */
	/* The sentences that refuse a client that lost its grant, has one, or waits for it; and if its lease ran out. */
	const char *lost, *held, *waits, *lease_over;
	size_t data_bytes; /* so long a text of a request's has to have room in the data of a claim's znode */
	bool lingers;     /* a held claim stays for a while after its last grant */
	bool follows;     /* next may follow a held claim without tokens, without a gap (claim.h) */
	bool tells_holder; /* a held claim's data describe the first grant on it when others wait (claims.h) */
	bool marks_tries; /* the name of a claim that only tries want says so (sighting.h) */
	/* The lock of that name, made if need be: lock_make(), perhaps with another directory. NULL: a limit forbids it. */
	struct lock *(*make)(struct locks *locks, struct slice name, const struct client *client);
	/* Takes the facts of its directory; and of its second one, the slots'. NULL: it has none. */
	void (*learn)(struct lock *lock, unsigned int facts);
	void (*learn_slots)(struct lock *lock, unsigned int facts);
	/* Applies the whole rule to a touched lock, whose facts have been taken. */
	void (*settle)(struct lock *lock);
	/* The same for its second directory, the slots'. NULL: it has none. */
	void (*settle_slots)(struct lock *lock);
	/* Grants the requests that the held claim may serve (rule 1). */
	void (*serve)(struct lock *lock);
	/* How many may have it at once, as far as is known; 0: that is not known. NULL: no limit is agreed. */
	int64_t (*limit)(const struct lock *lock);
	/* Why the lock, which is entitled to more, grants nothing now: a sentence for WHY, or NULL. */
	const char *(*obstacle)(const struct lock *lock);
	/* Our claim does not wait: the lock is taken for a request of that mode; `behind`: another request is before it. */
	bool (*is_taken)(const struct lock *lock, enum mode mode, bool behind);
	/* The held claim has no grants, and will serve the head without being given back. */
	bool (*serves_soon)(const struct lock *lock, const struct claim *c);
	/* The kind allows a claim to join. NULL: always. */
	bool (*may_join)(const struct lock *lock);
	/* A client that has some of it may ask for that besides. NULL: it would have to enter it again (REENTER). */
	bool (*may_add)(const struct grant *g, const struct request_terms *terms);
	/* A request has begun. NULL: the kind need not know; likewise below. */
	void (*begun)(struct lock *lock, const struct request *r);
	/* A request has ended, for any reason. */
	void (*ended)(struct lock *lock, const struct request *r);
	/* Words that are no command of the protocol's may be one of the kind's. False: they are not, and are not answered. */
	bool (*command)(struct client *c, size_t argc, const struct slice *argv);
	/* The connection is lost, and with it the answers and the watches that the kind itself asked for. */
	void (*suspended)(struct lock *lock);
	/* An operation that the kind itself asked for is answered. */
	void (*answered)(const struct operation *op, const struct event *event);
	/* The children of the lock's directory, or its child of that name, have changed: a watch has fired. */
	void (*watched)(struct lock *lock, const struct slice *child);
	/* Frees the lock's state of that kind, before the lock is freed. */
	void (*free)(struct lock *lock);
	/*
	 * Appends entries of that state to the lock's snapshot, behind all others of the lock; and takes one whose word is
	 * none of the snapshot's own, which it skips if it does not know it. False: it is refused.
	 */
	void (*snapshot)(const struct lock *lock, struct bytes *out);
	bool (*restore)(struct lock *lock, const struct entry *e);
	/* The part of that state that is in the ledger, so that it survives a kill; and then the entries of that part alone. */
	uint64_t (*keeps)(const struct lock *lock);
	void (*salvage)(uint64_t kept, struct bytes *out);
	/* The invariants of its state hold. NULL: there are none. */
	bool (*is_sound)(const struct lock *lock);
	/* Nothing uses the lock: frees it if nothing refers to it. NULL: the lock is remembered for a while. */
	void (*rest)(struct lock *lock);
};

enum proclamation_state { PROCLAMATION_AGAIN, PROCLAMATION_SENT, PROCLAMATION_DONE };

/* The state that an election keeps in a request (election.h). */
struct proclamation {
	enum proclamation_state state;
	int64_t token; /* 0: none */
	uint64_t op;   /* SENT */
};
