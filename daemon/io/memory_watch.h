/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the memory of the service, and at the account that is charged for most of it, once a second as long as
 * something happens.
 *
 *   - A thread reads the used memory and the limit (io/base/memory_limit.h), because the kernel may take a while.
 *     From MEMORY_WATCH_PERCENT on a warning is logged, before the kernel ends the process; and again after less than
 *     MEMORY_WATCH_FELL were used.
 *   - The memory of an account is not known, but its upper bound is, by its charges: as the MemoryMax= of the unit is
 *     calculated (lockbrokerd(8), ACCOUNTS). At most MEMORY_WATCH_LOOKS accounts and places of their tables are looked
 *     at in a second; where there are more, the largest of the latest pass counts until the next one ends, or finds a
 *     larger one.
 *   - The keeper, which says why the kernel has killed the process, gets the sentence each second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/bytes.h"

struct accounts;
struct feed;
struct keeper;
struct memory_watch;
struct worker;

enum { MEMORY_WATCH_PERCENT = 80, MEMORY_WATCH_FELL = 75, MEMORY_WATCH_LOOKS = 1024 };

/* A pass over the accounts of connections and of the core, and the largest account so far. */
struct memory_most {
	size_t at;
	uint64_t found, latest; /* bytes: in this pass; in the latest one that has ended */
	struct bytes found_text, latest_text;
};

/* Goes on with the pass. */
void memory_most_look(struct memory_most *m, const struct accounts *sockets, const struct accounts *core);
/* "user 1000 (up to 12 MiB: 120 connections, 3 names)"; "nobody": nothing is charged. It is valid until the next look. */
const char *memory_most_text(struct memory_most *m);
void memory_most_deinit(struct memory_most *m);

/* Whether to warn at that percentage; *warned: it was said, and less than MEMORY_WATCH_FELL were not used since then. */
bool memory_watch_warns(bool *warned, uint64_t percent);

/* `keeper` may be NULL. `worker` is to be stopped before this is freed; all else outlives its last event. */
struct memory_watch *memory_watch_new(struct feed *feed, const struct accounts *sockets, struct worker *worker,
				      struct keeper *keeper);
/* Takes NULL. */
void memory_watch_free(struct memory_watch *m);
/* Something has happened: it looks in a second, unless it is about to. */
void memory_watch_note(struct memory_watch *m);
