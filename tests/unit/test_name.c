/* SPDX-License-Identifier: Apache-2.0 */
/* Lock names: what is one, and how it becomes a znode name and back. */
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "protocol/name.h"

TEST(names_are_utf8_without_control_characters)
{
	/* clang-format off */
	static const char *const good[] = {
		"a", "orders/42", "/", "a b", " ", "...", ".a", "a.", "%41", "\"", "*", "\xc2\xa0", "\xc3\xa4", "\xdf\xbf",
		"\xe0\xa0\x80", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf",
	};
	static const char *const bad[] = {
		"", ".", "..", "\n", "a\tb", "\x1f", "\x7f", "a\r",
		/* Control characters beyond ASCII. */
		"\xc2\x80", "\xc2\x9f",
		/* No lead byte. */
		"\x80", "\xbf", "\xff", "\xfe",
		/* Overlong. */
		"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
		/* Surrogates. */
		"\xed\xa0\x80", "\xed\xbf\xbf",
		/* Beyond U+10FFFF. */
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80",
		/* Cut short. */
		"\xc3", "a\xe2\x82", "\xf0\x90\x80", "\xc3(", "\xe2(\xa1", "\xe2\x82(",
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(name_valid(slice_of(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(name_valid(slice_of(bad[i])));
	assert_false(name_valid(SLICE("a\0b")));
	assert_false(name_valid((struct slice){ NULL, 0 }));
}

TEST(a_name_may_have_512_bytes)
{
	char text[NAME_BYTES_MAX + 1];

	memset(text, 'x', sizeof(text));
	assert_true(name_valid((struct slice){ text, NAME_BYTES_MAX }));
	assert_false(name_valid((struct slice){ text, NAME_BYTES_MAX + 1 }));
	/* The limit is of bytes: a character of two that straddles it is cut. */
	memcpy(text + NAME_BYTES_MAX - 1, "\xc3\xa4", 2);
	assert_false(name_valid((struct slice){ text, NAME_BYTES_MAX + 1 }));
	assert_false(name_valid((struct slice){ text, NAME_BYTES_MAX }));
}

static const struct {
	const char *name, *znode;
} encodings[] = {
	{ "a", "a" },
	{ "AZaz09._-", "AZaz09._-" },
	{ "orders/42", "orders%2F42" },
	{ "/", "%2F" },
	{ ".a", "%2Ea" },
	{ "..a", "%2E.a" },
	{ "...", "%2E.." },
	{ "a.b.", "a.b." },
	{ "a b", "a%20b" },
	{ "100%", "100%25" },
	{ "%2F", "%252F" },
	{ "~!@", "%7E%21%40" },
	{ "\xc3\xa4", "%C3%A4" },
	{ "\xf4\x8f\xbf\xbf", "%F4%8F%BF%BF" },
};

/* Names are looked at by eight bytes at once where they may be: a byte counts wherever it stands. */
TEST(every_byte_counts_at_every_place)
{
	char text[26];

	for (size_t len = 1; len <= sizeof(text); len++) {
		for (size_t at = 0; at < len; at++) {
			for (int c = 0; c < 256; c++) {
				memset(text, '~', sizeof(text));
				text[at] = (char)c;
				assert_int_equal(name_is_text((struct slice){ text, len }), c >= 0x20 && c < 0x7f);
				memset(text, ' ', sizeof(text));
				text[at] = (char)c;
				assert_int_equal(name_is_text((struct slice){ text, len }), c >= 0x20 && c < 0x7f);
			}
		}
		for (size_t at = 0; at + 1 < len; at++) {
			memset(text, 'a', sizeof(text));
			memcpy(text + at, "\xc3\xbc", 2);
			assert_true(name_is_text((struct slice){ text, len }));
		}
	}
}

TEST(names_and_znodes_map_one_to_one)
{
	for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++) {
		struct bytes znode = { 0 }, name = { 0 };

		bytes_text(&znode, "/x/");
		name_encode(slice_of(encodings[i].name), &znode);
		assert_true(slice_eq((struct slice){ znode.data + 3, znode.len - 3 }, slice_of(encodings[i].znode)));
		bytes_text(&name, "=");
		assert_true(name_decode(slice_of(encodings[i].znode), &name));
		assert_true(slice_eq((struct slice){ name.data + 1, name.len - 1 }, slice_of(encodings[i].name)));
		bytes_free(&znode);
		bytes_free(&name);
	}
}

TEST(every_byte_survives_a_round_trip)
{
	struct bytes znode = { 0 }, name = { 0 };

	for (int lead = 0x20; lead < 0x7f; lead++)
		for (int c = 0x20; c < 0x7f; c++) {
			char text[] = { (char)lead, (char)c };
			struct slice two = { text, 2 };

			if (!name_valid(two))
				continue;
			bytes_clear(&znode);
			bytes_clear(&name);
			name_encode(two, &znode);
			assert_true(name_decode(bytes_view(&znode), &name));
			assert_true(slice_eq(bytes_view(&name), two));
		}
	bytes_free(&znode);
	bytes_free(&name);
}

TEST(the_longest_name_survives_a_round_trip)
{
	char text[NAME_BYTES_MAX];
	struct bytes znode = { 0 }, name = { 0 };

	memset(text, '/', sizeof(text));
	name_encode((struct slice){ text, sizeof(text) }, &znode);
	assert_int_equal(znode.len, NAME_BYTES_MAX * 3);
	assert_true(name_decode(bytes_view(&znode), &name));
	assert_int_equal(name.len, NAME_BYTES_MAX);
	bytes_text(&znode, "a");
	bytes_clear(&name);
	assert_false(name_decode(bytes_view(&znode), &name));
	assert_int_equal(name.len, 0);
	bytes_free(&znode);
	bytes_free(&name);
}

TEST(foreign_znodes_are_no_names)
{
	/* clang-format off */
	static const char *const foreign[] = {
		"", ".", "..", ".hosts", ".mail", "a/b", "a b", "%", "%2", "a%2", "%2f", "%zz", "%41", "a%2E", "%5F",
		"caf\xc3\xa9", "a\n",
	};
	/* clang-format on */
	struct bytes name = { 0 };

	bytes_text(&name, "kept");
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++) {
		assert_false(name_decode(slice_of(foreign[i]), &name));
		assert_int_equal(name.len, 4);
	}
	bytes_free(&name);
}
