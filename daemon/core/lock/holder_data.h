/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder of a lock is written into the data of its claim's znode (znode/holder.h), for hosts that ask.
 *
 * The write is lazy, so that a grant costs none: it is sent only while a list has shown that somebody elsewhere waits,
 * for a grant older than 100 ms, and at most once a second per claim. Until then, and after the next hand-off, the data
 * say less, or what was true `written` ago. A try of another host is answered at once: by `held`, once per connection.
 *
 * The data of an election name the leader: they are written before the leader is told (election.h), and not again.
 */
#pragma once

#include <stdint.h>


struct grant;
struct lock;
struct request;

/* When the data of the lock's first grant are due. Its claim has rivals. INT64_MAX: not at all for now. */
int64_t holder_data_due_ns(const struct lock *lock);
void holder_data_write(struct lock *lock); /* writes them if they are due. It is called only while connected */
/* Writes them at once, with `held`, if another host tries to get the lock, and `held` was not written yet. */
void holder_data_say_held(struct lock *lock);
/* The data of the next operation (operation_data()) describe the holder of permits. */
void holder_data_permits(const struct grant *g);
/* They proclaim the request's client with that token. */
void holder_data_leader(const struct request *r, int64_t token);
