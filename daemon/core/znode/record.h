/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of our znodes are lines of text: the first is the version ("1"), the others are "key=value". Unknown lines
 * belong to another version and are kept. Data that do not begin with the version line are not ours and tell nothing.
 */
#pragma once

#include "protocol/bytes.h"
#include "protocol/bytes_format.h"

enum { RECORD_VALUE_MAX = 512 }; /* as long as a lock's name */

/* Lines like "key=%s\n" follow, by bytes_format(); a value has no line breaks. */
void record_begin(struct bytes *out);
bool record_is_ours(struct slice data);
/* The value of the first line of that key, at most RECORD_VALUE_MAX bytes of it; empty when there is none. */
struct slice record_get(struct slice data, const char *key);
