/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This module evaluates the list of a directory: which of our claims are entitled, who is before and behind them,
 * whose znodes are gone, and which child is an orphan of ours. The facts for the rule above are left in the directory.
 */
#pragma once

#include <stdint.h>

#include "core/znode/flavour.h"
#include "core/znode/mode.h"
#include "protocol/slice.h"

struct directory;
struct event;
struct operation;

/* The classes of a directory's children: a child's class decides what may be done with it. */
enum child {
	CHILD_OURS,         /* a contender of the present session, and a live claim knows it */
	CHILD_ORPHAN,       /* a contender of the present session that no live claim knows */
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
