/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of lock that readers share and a writer holds alone; and rules 1 and 2 of lock.h, which other kinds use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lock/kind_rule.h"

extern const struct kind_rule lock_rule;

/* Applies rules 1 to 5. Everything that touched the lock so far is settled then. */
void rwlock_decide(struct lock *lock);
void rwlock_serve(struct lock *lock);
bool rwlock_is_taken(const struct lock *lock, enum mode mode, bool behind);
/* The claim is held and covers the request, no grant conflicts with that, and the session is proven. */
bool rwlock_may_serve(const struct lock *lock, const struct claim *c, const struct request *r);
/* Ends the request with a grant on the claim. */
void rwlock_grant(struct lock *lock, struct claim *c, struct request *r, int64_t token);
