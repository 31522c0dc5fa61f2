/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha_blocks.h"

#include <string.h>

enum { LENGTH_AT = 56 };

static void add_bytes(uint32_t *hash, const uint8_t bytes[SHA_BLOCK_BYTES], sha_add_fn *add)
{
	uint32_t block[SHA_BLOCK_WORDS];

	for (int i = 0; i < SHA_BLOCK_WORDS; i++)
		block[i] = (uint32_t)bytes[4 * i] << 24 | (uint32_t)bytes[4 * i + 1] << 16 |
			   (uint32_t)bytes[4 * i + 2] << 8 | bytes[4 * i + 3];
	add(hash, block);
	explicit_bzero(block, sizeof(block));
}

void sha_blocks(struct slice text, uint32_t *hash, sha_add_fn *add)
{
	uint64_t bits = (uint64_t)text.len * 8;
	uint8_t bytes[SHA_BLOCK_BYTES];

	for (; text.len >= SHA_BLOCK_BYTES; text.data += SHA_BLOCK_BYTES, text.len -= SHA_BLOCK_BYTES) {
		memcpy(bytes, text.data, SHA_BLOCK_BYTES);
		add_bytes(hash, bytes, add);
	}
	memset(bytes, 0, SHA_BLOCK_BYTES);
	if (text.len)
		memcpy(bytes, text.data, text.len);
	bytes[text.len] = 0x80;
	if (text.len >= LENGTH_AT) {
		add_bytes(hash, bytes, add);
		memset(bytes, 0, SHA_BLOCK_BYTES);
	}
	for (int i = 0; i < 8; i++)
		bytes[LENGTH_AT + i] = (uint8_t)(bits >> (56 - 8 * i));
	add_bytes(hash, bytes, add);
	explicit_bzero(bytes, sizeof(bytes));
}

void sha_hex(const uint32_t *hash, int words, char *ret)
{
	static const char digits[] = "0123456789abcdef";
	int chars = words * SHA_HEX_CHARS_A_WORD;

	for (int i = 0; i < chars; i++)
		ret[i] = digits[hash[i / 8] >> (28 - 4 * (i % 8)) & 15];
	ret[chars] = '\0';
}
