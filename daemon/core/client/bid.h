/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bid is the request of a connection for locks under a value (SET, and scripts): one lock or several, all or none, at once
 * or not at all. Each lock is tried by a bearer of its own (lock/bearer.h), one lock after the other in byte order of their
 * names, so that one of two bids for the same names gets them all.
 *
 *   state  | means                                | event -> next state
 *   TIED   | without a lease: the end of its      | it is watched -> TRYING; it has ended, or there is no room to watch
 *          |   process is not watched yet         |   it -> answered with the error
 *          |   (lock/lifeline.h)                  |
 *   TRYING | the bearer of `at` tries its lock    | granted -> NEXT, or the last: answered `granted`
 *          |                                      | taken -> answered `taken`; failed -> answered with the error;
 *          |                                      | taken, and kept for this value (lock/place.h) -> answered `granted`
 *   NEXT   | the locks up to `at` are held; it    | its turn -> TRYING the next lock
 *          |   waits for its user's turn          |
 *          |   (port/work.h)                      |
 *
 * A bid for one lock that is refused again and again gets a place in its queue. One for several does not: it would keep
 * locks for which it may not have all others.
 *
 * The locks that it took are given back unless the answer is `granted`: also when one of them is lost before the answer, and
 * when the connection ends or is reset. The leases of all locks begin with the answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/charge.h"
#include "core/lock/lifeline.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

struct entry;
struct grant;
struct refusal;

enum { BID_STEPS = 16 }; /* the steps that one lock counts for (port/work.h) */

/* The answer: +OK, nil, the number, OK as a bulk, or the first lock's token, which is the number once it is known. */
struct bid_answer {
	enum { BID_OK, BID_NIL, BID_NUMBER, BID_OK_TEXT, BID_TOKEN } kind;
	int64_t number;
};

struct bid_part {
	struct bytes name;
	struct client *bearer; /* NULL: none yet, or it was lost */
};

struct bid {
	struct client *client;
	struct work_item work; /* NEXT; TIED, and more is known of the process */
	struct lifeline_wait wait; /* TIED */
	struct bytes value;
	int64_t lease_ns;     /* 0: none, and one lock */
	struct bid_answer granted, taken;
	struct charge charge; /* for its memory */
	bool lost;            /* one of its locks was lost */
	size_t at, count;
	struct bid_part parts[]; /* in byte order, each name once */
};

/*
 * Of valid names, 1..LIMIT_NAMES_MAX. Duplicates are one. Answers now or later. A lease of 0: the grant, of one lock, is
 * tied to the process that asks.
 */
struct bid_terms {
	const struct slice *names;
	size_t count;
	struct slice value;
	int64_t lease_ns;
	struct bid_answer granted, taken;
};

void bid_begin(struct client *c, const struct bid_terms *terms);
void bid_reply(struct client *c, const struct bid_answer *answer);
void bid_reply_settled(struct client *c, const struct bid_answer *answer); /* when all is settled (reply_end_settled()) */
/* How the request of that bearer ended: of a bid, or of a place. */
void bid_granted(struct client *bearer);
void bid_timed_out(struct client *bearer);
void bid_failed(struct client *bearer, struct refusal *no); /* frees the sentence */
/* A grant of a bearer was just lost: both end, and the bid will end, too. */
void bid_lost(struct grant *g);
/* It is over, as if one lock were taken. */
void bid_end_wait(struct bid *b);
void bid_go_on(struct bid *b); /* its turn has come (WORK_BID) */
/* Gives its locks back, without an answer. */
void bid_free(struct bid *b);
/* Releases some of the locks that are tied to that process, which has ended. Returns its steps (port/work.h). */
int64_t bid_cut(struct lifeline *l, int64_t most);
size_t bid_memory(const struct bid *b);
void bid_snapshot(const struct bid *b, struct bytes *out);
bool bid_restore(struct locks *locks, const struct entry *e);

/* Changes of a grant under a value (bearer.h), for a client that shows the value or has set it. */

/* Ends it, and its bearer with it. */
void bid_release(struct grant *g);
/* The lease ends that long from now, above 0; `add`: the rest of the present lease, if there is one, is added. */
void bid_extend(struct grant *g, int64_t lease_ns, bool add);
