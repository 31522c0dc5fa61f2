/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/kinds.h"

#include "core/kind/election.h"
#include "core/kind/rwlock.h"
#include "core/kind/semaphore.h"

/* Weak: a test program may have a table of more kinds. */
__attribute__((weak)) const struct kind_rule *const kind_rules[KINDS_MAX] = {
	[KIND_LOCK] = &rwlock_rule,
	[KIND_ELECTION] = &election_rule,
	[KIND_SEMAPHORE] = &semaphore_rule,
};
