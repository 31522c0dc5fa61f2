/* SPDX-License-Identifier: Apache-2.0 */
/* What a forward (forward.h) asks for and what was found, and the words for it in letters and snapshots. */
#pragma once

#include "protocol/slice.h"

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
