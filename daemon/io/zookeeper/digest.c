/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/digest.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/sha1.h"

/* 20 bytes: six groups of three, and two that are left. */
static void base64(const uint8_t hash[SHA1_BYTES], char ret[DIGEST_SHA1_CHARS + 1])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *to = ret;

	for (int i = 0; i < SHA1_BYTES; i += 3) {
		uint32_t group =
			(uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8 | (i + 2 < SHA1_BYTES ? hash[i + 2] : 0u);

		for (int shift = 18; shift >= 0; shift -= 6)
			*to++ = digits[group >> shift & 63];
	}
	ret[DIGEST_SHA1_CHARS - 1] = '=';
	ret[DIGEST_SHA1_CHARS] = '\0';
}

void digest_id(const char *secret, char *ret, size_t size)
{
	const char *colon = strchr(secret, ':');
	char text[DIGEST_SHA1_CHARS + 1];
	uint8_t hash[SHA1_BYTES];

	assert(colon && (size_t)(colon - secret) + 1 + sizeof(text) <= size);
	sha1_bytes(slice_of(secret), hash);
	base64(hash, text);
	snprintf(ret, size, "%.*s:%s", (int)(colon - secret), secret, text);
}
