/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of our znodes: lines of text, the first the version ("1"), the others "key=value". Unknown lines are
 * another version's business and are kept. What does not begin with the version line is not ours and says nothing.
 */
#pragma once

#include "protocol/bytes.h"

enum { RECORD_VALUE_MAX = 512 }; /* the name of a lock is as long */

void record_begin(struct bytes *out);
void record_text(struct bytes *out, const char *key, const char *value);
/* `value` has no line breaks. */
void record_slice(struct bytes *out, const char *key, struct slice value);
void record_int(struct bytes *out, const char *key, int64_t value);
bool record_is_ours(struct slice data);
/* The value of the first line of that key, at most RECORD_VALUE_MAX bytes of it; empty when there is none. */
struct slice record_get(struct slice data, const char *key);
