/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <string.h>

#include "base/sha_blocks.h"

/* FIPS 180-4. */
enum { ROUNDS = 80, WORDS = 5 };

static uint32_t rotate(uint32_t word, int by)
{
	return word << by | word >> (32 - by);
}

static uint32_t mix(int round, const uint32_t s[WORDS])
{
	if (round < 20)
		return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5a827999;
	if (round < 40)
		return (s[1] ^ s[2] ^ s[3]) + 0x6ed9eba1;
	if (round < 60)
		return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8f1bbcdc;
	return (s[1] ^ s[2] ^ s[3]) + 0xca62c1d6;
}

static void add_block(uint32_t *hash, const uint32_t block[SHA_BLOCK_WORDS])
{
	uint32_t w[ROUNDS], s[WORDS];

	memcpy(w, block, SHA_BLOCK_WORDS * sizeof(w[0]));
	for (int i = SHA_BLOCK_WORDS; i < ROUNDS; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(s, hash, sizeof(s));
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t next = rotate(s[0], 5) + mix(i, s) + s[4] + w[i];

		s[4] = s[3];
		s[3] = s[2];
		s[2] = rotate(s[1], 30);
		s[1] = s[0];
		s[0] = next;
	}
	for (int i = 0; i < WORDS; i++)
		hash[i] += s[i];
	/* It may have a password. */
	explicit_bzero(w, sizeof(w));
}

static void sha1(struct slice text, uint32_t hash[WORDS])
{
	static const uint32_t begin[WORDS] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };

	memcpy(hash, begin, sizeof(begin));
	sha_blocks(text, hash, add_block);
}

void sha1_bytes(struct slice text, uint8_t ret[SHA1_BYTES])
{
	uint32_t hash[WORDS];

	sha1(text, hash);
	for (int i = 0; i < SHA1_BYTES; i++)
		ret[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}

void sha1_hex(struct slice text, char ret[SHA1_HEX_CHARS + 1])
{
	uint32_t hash[WORDS];

	sha1(text, hash);
	sha_hex(hash, WORDS, ret);
}
