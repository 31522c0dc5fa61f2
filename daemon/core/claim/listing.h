/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This module evaluates the list of a directory: which of our claims are entitled, who is before and behind them,
 * whose znodes are gone, and which child is an orphan of ours. The facts for the rule above are left in the directory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/flavour.h"
#include "core/znode/mode.h"
#include "protocol/slice.h"

struct claim;
struct directory;
struct event;
struct operation;

/* The classes of a directory's children: a child's class decides what may be done with it. */
enum child {
	CHILD_OURS,         /* a contender of the present session, and a live claim knows it */
	CHILD_STRAY,       /* a contender of the present session that no live claim knows */
	CHILD_OTHER,        /* somebody else's contender */
	CHILD_UNKNOWN,      /* may be a contender of an unknown kind: it is waited for */
	CHILD_UNRECOGNIZED, /* cannot be a contender */
};

/* The directory that is looked at, and the present session. */
struct listing_view {
	int64_t session;
	enum flavour flavour;
	const struct directory *directory; /* NULL: the host knows none of that directory */
};

/* *mode is set for OTHER and UNKNOWN. */
enum child listing_classify(struct listing_view view, struct slice child, enum mode *mode);
/* The answer of LIST. */
void listing_answered(const struct operation *op, const struct event *event);

/*
 * The look at a waiting claim: somebody may have deleted its znode, or a server may have missed something. A look comes
 * every 20 to 30 seconds, at random, so that claims that began to wait together do not look together.
 *
 * Two small reads are enough: one shows that its own znode is still the one it made, the other that its predecessor
 * still exists. They do not show the directory's other children; so every tenth look is a list, and every look at a claim
 * - in a directory whose data are not known to fit,
 * - of a semaphore: an orphan of ours among the permits would hold back the contender before us,
 * - behind a znode of our own session: if no claim knows that znode, only a list leads to its deletion,
 * - whose mode differs from the mode of the request: a reader that only readers keep waiting needs another claim.
 *
 * No look is due while the outcome of any operation is unknown: the list that follows shows all our znodes.
 *
 * A list also follows when either znode is missing or belongs to another session. The list decides, as it always does.
 */

enum { LOOKS_MAX = 10 };

/* A list has shown that the claim waits: the next look is not due for a while. */
void look_later(struct claim *c);
/* Looks, if that is due and its turn has come. `fits`: claim and request have the same mode. True: it sent a list. */
bool look_continue(struct claim *c, bool fits);
/* The answers of LOOK_OWN and LOOK_PRED. */
void look_answered(struct claim *c, const struct operation *op, const struct event *event);
