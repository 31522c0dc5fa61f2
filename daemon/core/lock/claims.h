/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the claims of a lock of any kind do for its requests and grants: rules 3 to 5 of lock.h, the hand-off rule with
 * the tokens, and the operations that the claims need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/mode.h"

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
/* Only then: sends what had to wait; then the reads and writes that the claims need. True: it listed the directory. */
void claims_ask_again(struct directory *d);
bool claims_watch(struct lock *lock);
