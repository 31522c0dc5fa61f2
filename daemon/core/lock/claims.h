/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the claims of a lock of any kind serve its requests and grants: rules 3 to 5 of lock.h, the hand-off rule with
 * the tokens, and the operations that the claims need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/mode.h"

struct grant;
struct request;
struct claim;
struct directory;
struct lock;

/* A held claim without grants may serve a request of that mode. */
bool claims_may_hand_off(const struct lock *lock, const struct claim *c, enum mode mode);
/*
 * Takes the token of the next grant on the claim, or of the request that is proclaimed. Readers that join readers share
 * a number; `together`: they also are one hand-off.
 */
int64_t claims_take_token(const struct lock *lock, struct claim *c, enum mode mode, bool together);
void claims_succeed(struct lock *lock); /* applies rule 5 */
bool claims_settle(struct lock *lock);  /* applies rules 3 and 4. True: other requests may be served now */
/* A request wants *next*, or the held claim comes to the end of its tokens. */
bool claims_want_next(const struct lock *lock);
/* Acts on the facts: the grants on a lost znode are void, and requests fail. */
void claims_learn(struct lock *lock, unsigned int facts);
/* Operations may be sent for that directory, and their answers are believed. */
bool claims_may_ask(const struct directory *d);
/* Only then: sends the operations that had to wait; then the reads and writes that the claims need. True: it listed the
 * directory. */
void claims_ask_again(struct directory *d);
bool claims_watch(struct lock *lock);

/*
 * The holder of a lock is written into the data of its claim's znode (znode/holder.h), for hosts that ask.
 *
 * The write is lazy, so that a grant costs none: it is sent only while a list has shown that somebody elsewhere waits,
 * for a grant older than 100 ms, and at most once a second per claim. Until then, and after the next hand-off, the data
 * say less, or were true `written` ago. A try of another host is answered at once: by `held`, once per connection.
 *
 * The data of an election name the leader: they are written before the leader is notified (election.h), and not again.
 */

/* The data of the next operation (operation_data()) describe the holder of permits. */
void claims_tell_permits(const struct grant *g);
/* They proclaim the request's client with that token. */
void claims_tell_leader(const struct request *r, int64_t token);
