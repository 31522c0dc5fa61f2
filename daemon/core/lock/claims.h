/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the claims of a lock do for its requests and grants, whatever its kind: rules 3 to 5 of lock.h, the hand-off
 * rule with the tokens, and what is sent for them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/mode.h"

struct claim;
struct directory;
struct lock;

/* A held claim that nobody holds a grant on may serve a request of that mode. */
bool claims_may_hand_off(const struct lock *lock, const struct claim *c, enum mode mode);
/*
 * The token of the next grant on the claim, or of who is to get it. Readers who join readers share a number; `together`:
 * they also are one hand-off.
 */
int64_t claims_take_token(const struct lock *lock, struct claim *c, enum mode mode, bool together);
/* Rule 5. */
void claims_succeed(struct lock *lock);
/* Rules 3 and 4. True when what may be served has changed. */
bool claims_settle(struct lock *lock);
/* What answers have shown: what the lost znode held is void, and requests fail. */
void claims_learn(struct lock *lock, unsigned int facts);
/* Something may be asked of ZooKeeper for that directory, and answers are believed. */
bool claims_may_ask(const struct directory *d);
/* Only then: sends what had to wait; then what the claims want to know, or have to say. True: that listed it. */
void claims_ask_again(struct directory *d);
bool claims_watch(struct lock *lock);
