/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first line of a snapshot (snapshot.h): "lockbroker state <version> <bytes> <checksum>", of what follows it. A version
 * can be read by the one before it and by the one after it (entry.h says how). The checksum tells garbled from whole, and
 * nothing of who wrote it: everybody can make one. Nobody is served while it is made, so it is a fast one.
 */
#pragma once

#include <stdint.h>

#include "protocol/bytes.h"

enum { SEAL_VERSION = 1 };

/* Of any bytes, for such a purpose. */
uint64_t seal_checksum(struct slice bytes);
/* Leaves room for the line; then it is written, for all that was appended since. Returns where the room is. */
size_t seal_begin(struct bytes *text);
void seal_end(struct bytes *text, size_t begin);
/* What follows the line; without data if it is not that, and *why says why. */
struct slice seal_open(struct slice text, struct bytes *why);
