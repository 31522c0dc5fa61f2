/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <string.h>

/* FIPS 180-4. */
enum { BLOCK = 64, LENGTH_AT = 56, ROUNDS = 80, WORDS = 5 };

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

static void add_block(uint32_t hash[WORDS], const uint8_t block[BLOCK])
{
	uint32_t w[ROUNDS], s[WORDS];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < ROUNDS; i++)
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

void sha1_bytes(struct slice text, uint8_t ret[SHA1_BYTES])
{
	uint32_t hash[WORDS] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint64_t bits = (uint64_t)text.len * 8;
	uint8_t block[BLOCK];

	for (; text.len >= BLOCK; text.data += BLOCK, text.len -= BLOCK) {
		memcpy(block, text.data, BLOCK);
		add_block(hash, block);
	}
	memset(block, 0, BLOCK);
	if (text.len)
		memcpy(block, text.data, text.len);
	block[text.len] = 0x80;
	if (text.len >= LENGTH_AT) {
		add_block(hash, block);
		memset(block, 0, BLOCK);
	}
	for (int i = 0; i < 8; i++)
		block[LENGTH_AT + i] = (uint8_t)(bits >> (56 - 8 * i));
	add_block(hash, block);
	explicit_bzero(block, sizeof(block));
	for (int i = 0; i < SHA1_BYTES; i++)
		ret[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}

void sha1_hex(struct slice text, char ret[SHA1_HEX_CHARS + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t hash[SHA1_BYTES];

	sha1_bytes(text, hash);
	for (int i = 0; i < SHA1_BYTES; i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	ret[SHA1_HEX_CHARS] = '\0';
}
