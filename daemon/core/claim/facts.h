/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that answers have shown. The rule above acts on them when it settles the directory, before the event ends. */
#pragma once

#include "protocol/bytes.h"
#include "protocol/errors.h"

enum {
	FACT_LOST = 1,    /* somebody deleted the held znode: the grants on it are void */
	FACT_MISSING = 2, /* semaphore: the directory is gone */
	FACT_COUNTED = 4, /* SLOTS: a list showed so many `children`; each claim's `counted` tells whether it is one */
	FACT_FAILED = 8,  /* the requests that `failure` names cannot be served */
};

enum failed { FAILED_JOINER, FAILED_REQUESTS, FAILED_ALL }; /* the request of a new claim; all; observers, too */

struct failure {
	enum failed failed;
	enum error_code code;
	struct bytes sentence; /* a string */
};
