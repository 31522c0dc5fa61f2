/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are set aside: they ask for a name as another kind than this host's lock of that name is of, and that kind
 * is not confirmed yet; or they came behind such a request. No claim is made for them, and they close no deadlock.
 *
 *   the first of them is of the kind of the lock | it is queued
 *   the kind is confirmed (lock_is_confirmed())  | those of that kind are queued, the others get MISMATCH
 *   nothing uses the lock any longer             | the name becomes of the kind of the first of them
 *
 * ASIDE_AT_ONCE of them are decided in an event, or as many as are searched for quickly (deadlock.h); the others in later
 * ones (port/work.h).
 */
#pragma once

struct lock;

enum { ASIDE_AT_ONCE = 8 };

void aside_settle(struct lock *lock); /* lock_rest(), unless some are set aside; after the rule of the lock was applied */
