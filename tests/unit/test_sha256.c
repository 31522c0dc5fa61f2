/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (base/sha256.c): NIST's vectors, and lengths around a block. */
#include <string.h>

#include "tests/unit/unit.h"

#include "base/sha256.h"

/* The first three are FIPS 180's; the last lengths are those around a block. */
TEST(the_hash_is_sha256)
{
	static const struct {
		const char *text;
		const char *hash;
	} known[] = {
		{ "",
		  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc",
		  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "1234567890123456789012345678901234567890123456789012345",
		  "03c3a70e99ed5eeccd80f73771fcf1ece643d939d9ecc76f25544b0233f708e9" },
		{ "12345678901234567890123456789012345678901234567890123456",
		  "0be66ce72c2467e793202906000672306661791622e0ca9adf4a8955b2ed189c" },
		{ "123456789012345678901234567890123456789012345678901234567890123",
		  "b97f6a278ef6a159ba660dc99fc5426ae3c1e4e08c471827d660bf36cfb236e7" },
		{ "1234567890123456789012345678901234567890123456789012345678901234",
		  "676491965ed3ec50cb7a63ee96315480a95c54426b0b72bca8a0d4ad1285ad55" },
	};
	char hash[SHA256_HEX_CHARS + 1];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		sha256_hex(slice_of(known[i].text), hash);
		assert_string_equal(hash, known[i].hash);
	}
}

/* NIST's, too. */
TEST(a_million_bytes_are_hashed)
{
	static char text[1000000];
	char hash[SHA256_HEX_CHARS + 1];

	memset(text, 'a', sizeof(text));
	sha256_hex((struct slice){ text, sizeof(text) }, hash);
	assert_string_equal(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
