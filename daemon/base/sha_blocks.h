/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of SHA-1 and SHA-256 (FIPS 180-4): how a text is cut into blocks, and how a hash is written. */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

enum {
	SHA_BLOCK_BYTES = 64,
	SHA_BLOCK_WORDS = 16,
	SHA_HEX_CHARS_A_WORD = 8,
};

/* Adds a block, given as words whose highest byte came first, to the words of a hash. */
typedef void sha_add_fn(uint32_t *hash, const uint32_t block[SHA_BLOCK_WORDS]);

/* Adds the text and its padding. Leaves nothing of the text in memory, if `add` leaves nothing. */
void sha_blocks(struct slice text, uint32_t *hash, sha_add_fn *add);
/* Writes the hash as lower-case hexadecimal digits and a NUL: SHA_HEX_CHARS_A_WORD for each word, and one. */
void sha_hex(const uint32_t *hash, int words, char *ret);
