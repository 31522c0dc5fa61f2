/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking for a lock: whether a client may wait for it, and the sentence if it may not.
 */
#pragma once

#include <stdbool.h>

#include "core/lock/request.h"
#include "protocol/bytes.h"
#include "protocol/bytes_format.h"
#include "protocol/errors.h"

/* Why a request is refused before it is queued. */
struct refusal {
	enum error_code code;
	struct bytes sentence;
};

/* The sentence with its values, as bytes_format() takes them. */
#define refusal_of(code, format, ...) refusal_of_values(code, format, BYTES_ARGUMENTS(__VA_ARGS__))
struct refusal refusal_of_values(enum error_code code, const char *format, const struct bytes_value *values, size_t count);
/* The answer for a lost grant, which ends with it: `else_told` unless its lease ran out; NULL: the client asks for it. */
struct refusal refusal_lost(struct grant *g, const char *else_told);
/* Ends the sentence with the name that it is about; a deadlock and a
 * denial name their locks themselves, and a stop concerns all. */
void refusal_name(struct refusal *no, struct slice name);
/* Answers with it, and frees the sentence. */
void refusal_reply(struct client *c, struct refusal *no);

/* The name is of that kind, or can become so. False: it is of another kind, and *ret says so. */
bool ask_fits(const struct lock *lock, enum kind kind, struct refusal *ret);
/* False: a grant or request of the client for that lock forbids to ask for it on these terms, and *ret says so. */
bool ask_may(struct lock *lock, struct client *c, struct grant *g, const struct request_terms *terms, bool reenter,
	     struct refusal *ret);
/* False: a rule of access denies it, and *ret names that. */
bool ask_permits(struct client *client, struct slice name, const struct request_terms *terms, struct refusal *ret);
/*
 * Queues a request of a client that neither holds that lock nor waits for it. False: refused, and *ret says why. An MLOCK
 * that goes on was permitted when it began: new rules apply to later requests, and the groups of its process may
 * not be known after a hand-over.
 */
bool ask_lock(struct client *client, struct slice name, const struct request_terms *terms, struct refusal *ret);

/*
 * Requests that are set aside: they ask for a name as another kind than this host's lock of that name is of, and that kind
 * is not confirmed yet; or they came behind such a request. No claim is made for them, and they close no deadlock.
 *
 *   the first of them is of the kind of the lock | it is queued
 *   the kind is confirmed (lock_is_confirmed())  | requests of that kind are queued, the others get MISMATCH
 *   nothing uses the lock any longer             | the name becomes of the kind of the first of them
 *
 * ASIDE_AT_ONCE of them are decided in an event, or as many as are searched for quickly (deadlock.h); the others in later
 * ones (port/work.h).
 */

enum { ASIDE_AT_ONCE = 8 };

/* lock_rest(), unless some are set aside. It is called after the rule of the lock was applied. */
void ask_settle_aside(struct lock *lock);
