/* SPDX-License-Identifier: Apache-2.0 */
/* What semaphores and elections keep besides a lock, in a snapshot (snapshot.h): behind the lock's own entries. */
#pragma once

#include <stdbool.h>

struct bytes;
struct entry;
struct lock;
struct observer;

/* SEMAPHORE; or an OBSERVER for each, and OBSERVATION. */
void kind_snapshot(const struct lock *lock, struct bytes *out);
void observer_snapshot(const struct observer *o, struct bytes *out);
/* One entry but OBSERVER; a word that no kind has is skipped. False: it is refused. */
bool kind_restore(struct lock *lock, const struct entry *e);
/* NULL: it is refused. */
struct observer *observer_restore(struct lock *lock, const struct entry *e);
