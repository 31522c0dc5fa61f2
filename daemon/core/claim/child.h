/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a lock's directory, as a list shows it. Whose it is decides what may be done with it. */
#pragma once

#include <stdint.h>

#include "core/znode/flavour.h"
#include "core/znode/mode.h"
#include "protocol/slice.h"

struct directory;

/* What a child of a lock's directory is to us. */
enum directory_child {
	DIRECTORY_CHILD_OURS,         /* a contender of the present session, and a live claim knows it */
	DIRECTORY_CHILD_ORPHAN,       /* the same, and none does */
	DIRECTORY_CHILD_OTHER,        /* somebody else's contender */
	DIRECTORY_CHILD_UNKNOWN,      /* could be one, of no known kind: it is waited for */
	DIRECTORY_CHILD_UNRECOGNIZED, /* cannot be one */
};

/* Whose directory is looked at. */
struct directory_view {
	int64_t session;
	enum flavour flavour;
	const struct directory *directory; /* NULL: the host knows none of that directory */
};

/* *mode: of OTHER and UNKNOWN. */
enum directory_child directory_classify(struct directory_view view, struct slice child, enum mode *mode);
