/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kind of lock decides in its own way. Everything else (the FIFO, the grants, the claims) is the same for all of
 * them. There is one for each kind in kind/; a lock has that of its kind, and lock/ calls nothing else of a kind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/znode/kind.h"
#include "core/znode/mode.h"
#include "protocol/slice.h"

struct claim;
struct lock;
struct locks;
struct request;

struct kind_rule {
	enum kind kind;
	size_t data_bytes; /* so long a text of a request's has to have room in the data of a claim's znode */
	bool lingers;     /* a held claim stays a while after its last grant */
	bool follows;     /* a held claim without tokens may be followed without a gap (rollover.h) */
	bool tells_holder; /* the data of a held claim tell of the first grant on it when others wait (holder_data.h) */
	bool marks_tries; /* a claim that only tries want says so in its name (try.h) */
	/* The lock of that name, made if need be: lock_make(), or what makes a directory more. NULL: a limit forbids it. */
	struct lock *(*make)(struct locks *locks, struct slice name);
	/* Takes the facts of its directory; and of its second one, of slots. NULL: it has none. */
	void (*learn)(struct lock *lock, unsigned int facts);
	void (*learn_slots)(struct lock *lock, unsigned int facts);
	/* The whole rule, for a touched lock, which has no facts any longer. */
	void (*settle)(struct lock *lock);
	/* The same for what its second directory, of slots, asks for. NULL: it has none. */
	void (*settle_slots)(struct lock *lock);
	/* Grants what the held claim may serve (rule 1). */
	void (*serve)(struct lock *lock);
	/* Our claim does not wait: the lock is taken for a request of that mode; `behind`: another one stands before it. */
	bool (*is_taken)(const struct lock *lock, enum mode mode, bool behind);
	/* The held claim, without grants, will serve the head without being given back. */
	bool (*serves_soon)(const struct lock *lock, const struct claim *c);
	/* A claim may join, as far as the kind knows. NULL: always. */
	bool (*may_join)(const struct lock *lock);
	/* A request has ended, for whatever reason. NULL: nothing rests on it. */
	void (*ended)(struct lock *lock, const struct request *r);
	/* Nothing uses the lock: frees it if nothing refers to it. NULL: it is remembered for a while. */
	void (*rest)(struct lock *lock);
};

enum proclamation_state { PROCLAMATION_AGAIN, PROCLAMATION_SENT, PROCLAMATION_DONE };

/* What an election keeps in a request (election.h). */
struct proclamation {
	enum proclamation_state state;
	int64_t token; /* 0: none */
	uint64_t op;   /* SENT */
};
