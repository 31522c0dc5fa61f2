/* SPDX-License-Identifier: Apache-2.0 */
/* What answers have shown, for the rule above to act on when it settles the directory: never kept beyond the event. */
#pragma once

#include "protocol/bytes.h"
#include "protocol/errors.h"

enum {
	FACT_LOST = 1,    /* somebody deleted the held znode: what was granted on it is void */
	FACT_MISSING = 2, /* of a semaphore: the directory is gone */
	FACT_COUNTED = 4, /* SLOTS: it was listed, and has so many `children`; which claims are among them, they say */
	FACT_FAILED = 8,  /* those whom `failure` names cannot be served */
};

enum failed { FAILED_JOINER, FAILED_REQUESTS, FAILED_ALL }; /* for whom a claim was made; all; and observers, too */

struct failure {
	enum failed failed;
	enum error_code code;
	struct bytes sentence; /* a string */
};
