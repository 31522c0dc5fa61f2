/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Lock names. A name is 1..NAME_BYTES_MAX bytes of UTF-8 without control characters (below 0x20, 0x7f, and
 * U+0080..U+009F), not "." or "..". It is mapped to one znode name by percent-encoding, upper-case hex, of every
 * byte outside [A-Za-z0-9._-] and of a leading dot; the mapping is reversible.
 */
#pragma once

#include "bytes.h"
#include "slice.h"

enum { NAME_BYTES_MAX = 512 };

bool name_valid(struct slice name);
/* UTF-8 without those control characters, of any length. */
bool name_is_text(struct slice text);
/* Appends the znode name. `name` is valid, or the end of a valid name. */
void name_encode(struct slice name, struct bytes *znode);
/*
 * Appends the name that name_encode() makes `znode` of: a lock name, or the end of one if it is valid (only the caller
 * knows the whole). False, and nothing appended, when name_encode() makes no such znode name.
 */
bool name_decode(struct slice znode, struct bytes *name);
