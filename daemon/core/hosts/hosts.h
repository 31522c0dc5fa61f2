/* SPDX-License-Identifier: Apache-2.0 */
/* What this host asks of other hosts and is asked by them: queries, revocations, letters and audits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "core/hosts/audit.h"
#include "core/hosts/inbox.h"
#include "core/hosts/outbox.h"
#include "core/hosts/query.h"
#include "core/hosts/revocation.h"
#include "core/lock/locks.h"

TAILQ_HEAD(query_list, query);

struct hosts {
	struct env *env;
	struct ensemble *ensemble;
	struct locks *locks;
	struct query_list queries;
	uint64_t last_query;
	size_t query_open; /* their operations without an answer, also of those that are gone */
	struct revocation_list revocations;
	uint64_t last_revocation;
	struct inbox inbox;
	struct letter_list letters;
	size_t outbox_count;
	uint64_t outbox_last;
	struct audit audit;
};
