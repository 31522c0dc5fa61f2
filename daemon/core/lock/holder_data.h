/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a claim's znode is told who holds the lock (znode/holder.h), for hosts that ask.
 *
 * Written lazily, so that a grant costs no write: only while a list has shown that somebody elsewhere waits, for a grant
 * older than 100 ms, and at most once a second per claim. Until then, and after the next hand-off, the data say less, or
 * what was true `written` ago. A try of another host's is answered at once: by `held`, once on each connection.
 *
 * Of an election they say who leads: written before it is told (election.h), and not again.
 */
#pragma once

#include <stdint.h>

#include "protocol/bytes.h"

struct grant;
struct lock;
struct request;

/* When the data of the lock's first grant are due, whose claim has rivals; INT64_MAX: not at all, as things are. */
int64_t holder_data_due_ns(const struct lock *lock);
/* Writes them if they are due. Only while connected. */
void holder_data_write(struct lock *lock);
/* The same at once, with `held`, if somebody tries to have what is granted here and that was not said yet. */
void holder_data_say_held(struct lock *lock);
/* The data that tell of permits. */
void holder_data_permits(const struct grant *g, struct bytes *data);
/* The data of who is proclaimed with that token. */
void holder_data_leader(const struct request *r, int64_t token, struct bytes *data);
