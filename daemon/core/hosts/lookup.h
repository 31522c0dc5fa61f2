/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lookup is a request that cannot be carried out before other hosts have been asked who holds a lock: a release that
 * finds nothing here must not answer that there is nothing. The request's words are kept; once the answer is there, its
 * command runs again with them, as if it had just come, and finds the answer among the facts. It may then ask for another
 * name.
 *
 *   state  | means                                  | event -> next state
 *   ASKING | a query (query.h) is under way for the | the query has finished: one more fact -> READY; it was not fresh
 *          |   client, or a forward (forward.h)     |   and found no holder: a fresh query -> ASKING
 *          |                                        | the forward is answered: likewise; it fails -> freed
 *   READY  | its user's turn comes (port/work.h)    | the turn: the command runs; it asks again -> ASKING; else freed
 *
 * "Nobody holds the lock" is a fact only after a fresh query, because a client with this answer goes on without the lock. A
 * holder may come from an old list: the command then asks that host, which knows whether it still holds the lock.
 *
 * The locks of this host are looked at when the command runs; the facts about other hosts are as these answered, moments
 * ago. A hand-over keeps the request and the acts of other hosts for it. Answers that only show holders are asked for
 * again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/charge.h"
#include "core/client/args.h"
#include "core/port/work.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

struct forward;
struct query;

/* The acts of a forward (forward.h) and its findings, and their words in letters and snapshots. */

enum forward_act { FORWARD_LOOK, FORWARD_RELEASE, FORWARD_EXTEND, FORWARD_ACTS };

/* How the lock was found where it was granted, as the act found it. */
enum forward_found {
	FORWARD_UNASKED,
	FORWARD_OURS,   /* held under that value: it is done */
	FORWARD_FREE,   /* not held any longer: at some instant since the request came nobody held it */
	FORWARD_THEIRS, /* held in another way; or without a lease, if only one is to be extended that has one */
};

const char *forward_act_word(enum forward_act act);
const char *forward_found_word(enum forward_found found);
/* FORWARD_ACTS and FORWARD_UNASKED: it is no such word. */
enum forward_act forward_act_of(struct slice word);
enum forward_found forward_found_of(struct slice word);

enum { LOOKUP_FACTS_MAX = 64 };

/* How other hosts hold a name. */
struct lookup_fact {
	struct bytes name;
	bool held, unknown; /* `unknown`: they could not be asked */
	bool fresh;         /* it comes from a fresh query */
	struct bytes host;  /* held: where; empty: by other software */
	struct bytes said;  /* held: the holder, as a sentence has it (participant_say()) */
	int64_t session;    /* held: of that host */
	enum forward_found found[FORWARD_ACTS]; /* the findings of forwards there */
};

struct lookup {
	struct client *client;
	struct work_item work; /* READY */
	bool asks;             /* in this run */
	size_t argc;
	struct slice *argv;
	struct bytes text; /* to which they point; it may have secrets */
	struct charge charge;
	struct lookup_fact facts[LOOKUP_FACTS_MAX];
	size_t fact_count;
	struct forward *forward; /* NULL: nothing was asked for so far */
};

/*
 * The fact about that name. NULL: it is asked for, or that was refused and answered: the command returns without an
 * answer of its own.
 */
const struct lookup_fact *lookup_look(struct call *call, struct slice name);
/* Asks others about that name; a fresh query's result replaces the fact that is known. */
void lookup_ask(struct call *call, struct slice name, bool fresh);
/* One of its facts, which it has. */
struct lookup_fact *lookup_find(struct lookup *i, struct slice name);
/* The fact about that name, if other hosts have acted on it for the lookup; otherwise NULL. `i` may be NULL. */
const struct lookup_fact *lookup_done(struct lookup *i, struct slice name);
/* Its command runs again, in its turn. */
void lookup_ready(struct lookup *i);
/* The query of its client has finished, and is freed. */
void lookup_answered(struct query *q);
/* It has no forward. See forward_end(). */
void lookup_free(struct lookup *i);
size_t lookup_memory(const struct lookup *i);
void lookup_snapshot(const struct lookup *i, struct bytes *out);
bool lookup_restore(struct hosts *h, const struct entry *e);
