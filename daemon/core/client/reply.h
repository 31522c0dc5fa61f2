/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: each request gets one. The bytes that were written to reply_out() before reply_end() are the reply; a short one
 * has a function of its own. A command that releases something is answered when all is settled (reply_end_settled()): the
 * next holder has waited longer and is answered first.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/lock/client.h"
#include "core/port/effect.h"
#include "core/port/pools.h"
#include "protocol/bytes.h"
#include "protocol/bytes_format.h"
#include "protocol/errors.h"
#include "protocol/resp.h"

/* Where replies and pushes are written. */
struct bytes *reply_out(struct client *c);
void reply_end(struct client *c);
void reply_end_whole(struct client *c); /* of bounded length, and given only once: limits.output_bytes does not refuse it */
void reply_end_settled(struct client *c);
void reply_settled(struct client *c); /* all is settled: sends the reply that waited for that, if there is one */
/* Makes a push of the written bytes; valid until the next effect. */
struct effect *reply_push(struct client *c);
/*
 * Ends with an array of `count` elements. `rows` has their text behind REPLY_HEAD_BYTES unused bytes, and is empty
 * afterwards: thousands of rows need not be copied.
 */
enum { REPLY_HEAD_BYTES = 32 };
void reply_rows(struct client *c, struct bytes *rows, size_t count);
void reply_begin_rows(struct bytes *rows); /* without any row yet, but with those unused bytes */
void reply_integer(struct client *c, int64_t value);
void reply_integer_settled(struct client *c, int64_t value);
void reply_nil(struct client *c);
void reply_nil_array(struct client *c);
void reply_status(struct client *c, const char *text);
bool reply_limit(struct client *c, const char *why); /* -LIMIT, and the refusal is counted; returns false */
/* False: the client's account may not have so much more of the pool, and -LIMIT is the reply. */
bool reply_affords(struct client *c, enum pool_number pool, size_t amount);
void reply_too_long(struct client *c); /* instead of a list that is longer than a reply may be */
/* The sentence with its values, as bytes_format() takes them. */
#define reply_error(c, code, format, ...) reply_error_values(c, code, format, BYTES_ARGUMENTS(__VA_ARGS__))
void reply_error_values(struct client *c, enum error_code code, const char *format, const struct bytes_value *values,
			size_t count);
/* With the phrase of the verb, the lock, the rule, and the place of the rule. */
#define DENIED_BY "this user may not %s %s: the rule \"%s\" (%s) denies that"
/* False: the client may not do that with that lock, and got an error; by default only operators may `what`. */
bool reply_permits(struct client *c, enum rule_verb verb, struct slice name, const char *what);
/* -DENIED: "only operators may <what>", and how one becomes one. */
void reply_denied(struct client *c, const char *what);
/* Bulks and integers one after the other, as bytes_format() takes values; and pairs of a map, "key", value, ... */
void reply_values(struct bytes *out, const struct bytes_value *values, size_t count);
#define reply_pairs(out, ...) reply_values(out, BYTES_ARGUMENTS(__VA_ARGS__))
