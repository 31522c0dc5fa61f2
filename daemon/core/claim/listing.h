/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a list of a directory says: which of our claims are entitled, who is before and behind them, whose znodes are gone,
 * and which child is an orphan of ours. What somebody above has to act on is left in the directory's facts.
 */
#pragma once

#include <stdint.h>

#include "core/znode/flavour.h"
#include "core/znode/mode.h"
#include "protocol/slice.h"

struct directory;
struct event;
struct operation;

/* What a child of a directory is to us: that decides what may be done with it. */
enum child {
	CHILD_OURS,         /* a contender of the present session, and a live claim knows it */
	CHILD_ORPHAN,       /* the same, and none does */
	CHILD_OTHER,        /* somebody else's contender */
	CHILD_UNKNOWN,      /* could be one, of no known kind: it is waited for */
	CHILD_UNRECOGNIZED, /* cannot be one */
};

/* Whose directory is looked at. */
struct listing_view {
	int64_t session;
	enum flavour flavour;
	const struct directory *directory; /* NULL: the host knows none of that directory */
};

/* *mode: of OTHER and UNKNOWN. */
enum child listing_classify(struct listing_view view, struct slice child, enum mode *mode);
/* The answer of LIST. */
void listing_answered(const struct operation *op, uint64_t number, const struct event *event);
