/* SPDX-License-Identifier: Apache-2.0 */
/* Entries (entry.h), the usual ones and those that are not; nothing above the port is linked. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "core/port/entry.h"

#define KEY_40 "a key that has as many as 40 characters!"

/* Entries that are read in one go end far from the end of the text. */
static const char ballast[] = "*1\r\n+and something comes behind it, which is no part of it\r\n";

/* A key and a value, with nothing behind them and with something. False: both are refused. */
static bool reads(const char *pair, const char *key, struct resp_value *ret, struct slice *ret_text)
{
	static struct bytes text, why;
	bool good[2];

	for (int behind = 0; behind < 2; behind++) {
		struct entry_reader r;
		struct entry e;

		bytes_clear(&text);
		bytes_clear(&why);
		bytes_text(&text, "*3\r\n+word\r\n");
		bytes_text(&text, pair);
		bytes_text(&text, behind ? ballast : "");
		entry_reader_init(&r, bytes_view(&text), &why);
		good[behind] = entry_next(&r, &e);
		assert_true(good[behind] == (why.len == 0));
		if (good[behind]) {
			assert_true(slice_eq(e.word, SLICE("word")) && e.pairs == 1);
			assert_true(slice_eq(e.values[0].text, slice_of(key)));
			*ret = e.values[1];
			*ret_text = e.values[1].text;
			assert_int_equal(r.rest.len, behind ? strlen(ballast) : 0);
		}
		entry_reader_deinit(&r);
	}
	assert_true(good[0] == good[1]);
	return good[0];
}

TEST(numbers_are_read_strictly)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} cases[] = {
		{ "0", true, 0 },
		{ "7", true, 7 },
		{ "-1", true, -1 },
		{ "999999999999999999", true, 999999999999999999 },
		{ "-999999999999999999", true, -999999999999999999 },
		{ "1000000000000000000", true, 1000000000000000000 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "", false, 0 },
		{ "-", false, 0 },
		{ "-0", false, 0 },
		{ "00", false, 0 },
		{ "01", false, 0 },
		{ "-07", false, 0 },
		{ "+1", false, 0 },
		{ "1 ", false, 0 },
		{ "1\r", false, 0 },
		{ "1\n", false, 0 },
		{ "--1", false, 0 },
		{ "12345678901234567890123456789012345678901234567890", false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct resp_value v;
		struct slice text;
		struct bytes pair = { 0 };

		bytes_text(&pair, "+key\r\n:");
		bytes_text(&pair, cases[i].text);
		bytes_append(&pair, "\r\n", 3);
		assert_true(reads(pair.data, "key", &v, &text) == cases[i].good);
		assert_true(!cases[i].good || (v.type == RESP_INTEGER && v.integer == cases[i].value && v.span == 1));
		bytes_free(&pair);
	}
}

TEST(texts_and_keys_of_any_length_are_read)
{
	struct resp_value v;
	struct slice text;

	assert_true(reads("+k\r\n$0\r\n\r\n", "k", &v, &text) && v.type == RESP_BULK && text.len == 0);
	assert_true(reads("+k\r\n$5\r\n\r\n+:*\r\n", "k", &v, &text) && slice_eq(text, SLICE("\r\n+:*")));
	assert_true(reads("+" KEY_40 "\r\n:1\r\n", KEY_40, &v, &text) && v.integer == 1);
	assert_true(reads("+" KEY_40 "x\r\n:1\r\n", KEY_40 "x", &v, &text) && v.integer == 1);
	assert_true(reads("+\r\n:1\r\n", "", &v, &text));
	assert_false(reads("+k\r\n$5\r\nlonger\r\n", "k", &v, &text));
	assert_false(reads("+k\r\n$9223372036854775807\r\nx\r\n", "k", &v, &text));
	assert_false(reads("+k\n:1\r\n", "k", &v, &text));
	assert_false(reads("+k\rx\r\n:1\r\n", "k", &v, &text));
	assert_false(reads("$1\r\nk\r\n:1\r\n", "k", &v, &text));
}

TEST(values_of_other_types_are_read)
{
	struct resp_value v;
	struct slice text;

	assert_true(reads("+k\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", "k", &v, &text) && v.type == RESP_ARRAY);
	assert_true(v.span == 4 && v.integer == 2);
	assert_true(reads("+k\r\n#t\r\n", "k", &v, &text) && v.type == RESP_BOOL);
	assert_true(reads("+k\r\n,1.5\r\n", "k", &v, &text) && v.type == RESP_DOUBLE);
	assert_true(reads("+k\r\n$-1\r\n", "k", &v, &text) && v.type == RESP_NIL);
}

/* With so many fields, to and fro: the number of values has one digit, two or three. */
TEST(any_number_of_fields_is_written_and_read)
{
	static const size_t counts[] = { 0, 1, 4, 5, 6, 49, 50, 63, 64, 65, 200 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct bytes text = { 0 }, why = { 0 };
		struct entry_writer w = entry_begin(&text, "word");
		struct entry_reader r;
		struct entry e;
		char key[32];

		for (size_t n = 0; n < counts[i]; n++) {
			snprintf(key, sizeof(key), "key %zu", n);
			entry_number(&w, key, (int64_t)n * 1000 - 50500);
		}
		entry_end(&w);
		bytes_text(&text, ballast);
		entry_reader_init(&r, bytes_view(&text), &why);
		assert_true(entry_next(&r, &e) && e.pairs == counts[i] && slice_eq(e.word, SLICE("word")));
		for (size_t n = 0; n < counts[i]; n++) {
			int64_t number;

			snprintf(key, sizeof(key), "key %zu", n);
			assert_true(entry_get_number(&e, key, INT64_MIN, INT64_MAX, &number));
			assert_int_equal(number, (int64_t)n * 1000 - 50500);
		}
		assert_true(entry_next(&r, &e) && e.pairs == 0);
		assert_true(!entry_next(&r, &e) && !why.len);
		entry_reader_deinit(&r);
		bytes_free(&text);
	}
}

/* Cut anywhere it is refused, with a sentence. */
TEST(an_entry_that_is_cut_short_is_refused)
{
	static const char whole[] = "*7\r\n+word\r\n+a\r\n:12345678901234\r\n+b\r\n$3\r\nxyz\r\n+" KEY_40 "\r\n:1\r\n";

	for (size_t len = 1; len < sizeof(whole) - 1; len++) {
		struct bytes why = { 0 };
		struct entry_reader r;
		struct entry e;

		entry_reader_init(&r, (struct slice){ whole, len }, &why);
		assert_false(entry_next(&r, &e));
		assert_true(why.len > 0);
		entry_reader_deinit(&r);
		bytes_free(&why);
	}
}

TEST(the_checksum_notices_each_byte_and_the_length)
{
	char text[100] = "what is in it does not matter";
	uint64_t whole = seal_checksum((struct slice){ text, sizeof(text) });

	for (size_t i = 0; i < sizeof(text); i++) {
		for (int bit = 0; bit < 8; bit++) {
			text[i] = (char)(text[i] ^ 1 << bit);
			assert_true(seal_checksum((struct slice){ text, sizeof(text) }) != whole);
			text[i] = (char)(text[i] ^ 1 << bit);
		}
		assert_true(seal_checksum((struct slice){ text, i }) != whole);
	}
	assert_true(seal_checksum((struct slice){ text, sizeof(text) }) == whole);
	assert_true(seal_checksum((struct slice){ NULL, 0 }) != seal_checksum((struct slice){ "\0", 1 }));
}
