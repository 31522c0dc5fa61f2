/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1, where others have chosen it: ZooKeeper for its ACLs, Redis for the names of scripts. Do not use it to prove that
 * two texts are the same: an attacker can make two with one hash.
 */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

enum {
	SHA1_BYTES = 20,
	SHA1_HEX_CHARS = 40,
};

void sha1_bytes(struct slice text, uint8_t ret[SHA1_BYTES]);
/* As lower-case hexadecimal digits, which end with 0. */
void sha1_hex(struct slice text, char ret[SHA1_HEX_CHARS + 1]);
