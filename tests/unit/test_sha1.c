/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (base/sha1.c): NIST's vectors, and lengths around a block. */

#include "tests/unit/unit.h"

#include "base/sha1.h"

/* The first three are FIPS 180's; the last lengths are those around a block. */
TEST(the_hash_is_sha1)
{
	static const struct {
		const char *text;
		const char *hash;
	} known[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
		{ "1234567890123456789012345678901234567890123456789012345",
		  "827a683fdfdbef225a2421078b7789b134c7eafa" },
		{ "123456789012345678901234567890123456789012345678901234567890123",
		  "98b4b1764ea88d6c3fa63b70799dbd0c03372d1a" },
		{ "1234567890123456789012345678901234567890123456789012345678901234",
		  "c71490fc24aa3d19e11282da77032dd9cdb33103" },
	};
	char hash[SHA1_HEX_CHARS + 1];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		sha1_hex(slice_of(known[i].text), hash);
		assert_string_equal(hash, known[i].hash);
	}
}

/* NIST's, too. */
TEST(a_million_bytes_are_hashed)
{
	static char text[1000000];
	char hash[SHA1_HEX_CHARS + 1];

	memset(text, 'a', sizeof(text));
	sha1_hex((struct slice){ text, sizeof(text) }, hash);
	assert_string_equal(hash, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}
