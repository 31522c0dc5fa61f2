/* SPDX-License-Identifier: Apache-2.0 */
/* All directories in which this host has claims or may have some, and the numbers that claims are given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"
#include "core/claim/directory.h"
#include "core/claim/turn.h"
#include "core/session/ensemble.h"

TAILQ_HEAD(directory_list, directory);

struct directories {
	struct env *env;
	struct ensemble *ensemble;
	struct map paths;              /* by path */
	struct directory_list touched; /* to be settled before the event ends */
	struct turns turns;
	/* Sums, for INFO and the checks. */
	size_t claim_count, remembered_count, orphan_count;
	uint64_t last_claim, last_nonce;
	int64_t token_next, token_limit; /* standalone: claim numbers */
	bool token_asked;
};
