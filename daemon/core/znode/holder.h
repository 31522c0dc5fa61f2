/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other hosts may ask about the holder behind a claim, in the data of the claim's znode.
 *
 * Written lazily, so that a grant costs no write: only while a list has shown that somebody elsewhere waits, for a grant
 * older than 100 ms, and at most once a second per claim. Until then, and after the next hand-off, the data say less, or
 * what was true `written` ago.
 *
 * With them goes the text that the grant was given, `data`.
 *
 * Of an election they say who leads, `leader`, with its `data`: written before it is told (election.h), and not again.
 *
 * They also say, from the first on, what the host takes the name for, if not for a lock: `kind`. Where other software made
 * the directory nothing else tells.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/kind.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

struct locks;
struct claim;
struct grant;
struct lock;
struct request;

/* The data that a claim's znode is made with. */
void holder_begin(const struct lock *lock, struct bytes *data);
/* A contender with such data takes the name for one of that kind, or is no host's. */
bool holder_fits(enum kind kind, struct slice data);
/* Who stands behind a znode with such data need not ask for long: it is a holder's, or no broker's (try.h). */
bool holder_in_use(struct slice data);
/* Such data tell who holds it, or did. */
bool holder_tells(struct slice data);
/* Writes what is due about the lock's first grant. Its claim has rivals. Only while connected. */
void holder_write(struct lock *lock);
/* The same at once, with `held`, if somebody tries to have what is granted here and that was not said yet. */
void holder_say_held(struct lock *lock);
/* The data that tell of permits. */
void holder_permits(const struct grant *g, struct bytes *data);
/* The data of who is proclaimed with that token. */
void holder_leader(const struct request *r, int64_t token, struct bytes *data);
/* When that is due, of such a one; INT64_MAX: not at all, as things are. */
int64_t holder_due_ns(const struct lock *lock);
/* Milliseconds since 1970, by the clock that the daemon was started with. */
int64_t holder_wall_ms(const struct locks *locks, int64_t at_ns);
