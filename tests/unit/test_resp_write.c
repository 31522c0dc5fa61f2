/* SPDX-License-Identifier: Apache-2.0 */
/* What the codec writes: replies in both versions, numbers, quoted words, and the bytes that grow under them. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "protocol/number.h"
#include "protocol/resp.h"

enum { ARGS_MAX = 8 };

static void written(struct bytes *out, const char *expected)
{
	bytes_char(out, '\0');
	assert_string_equal(out->data, expected);
	bytes_clear(out);
}

TEST(replies_are_written_as_both_versions_have_them)
{
	struct bytes out = { 0 };

	resp_status(&out, "OK");
	resp_integer(&out, INT64_MIN);
	resp_bulk(&out, SLICE("hi"));
	resp_bulk(&out, (struct slice){ NULL, 0 });
	resp_array(&out, 2);
	written(&out, "+OK\r\n:-9223372036854775808\r\n$2\r\nhi\r\n$0\r\n\r\n*2\r\n");
	resp_nil(&out, 2);
	resp_nil_array(&out, 2);
	resp_map(&out, 3, 2);
	resp_push(&out, 4, 2);
	written(&out, "$-1\r\n*-1\r\n*6\r\n*4\r\n");
	resp_nil(&out, 3);
	resp_nil_array(&out, 3);
	resp_map(&out, 3, 3);
	resp_push(&out, 4, 3);
	written(&out, "_\r\n_\r\n%3\r\n>4\r\n");
	bytes_free(&out);
}

TEST(an_error_is_one_line)
{
	struct bytes out = { 0 };

	resp_error(&out, ERROR_BADNAME, SLICE("a\r\n+OK\nb"));
	written(&out, "-BADNAME a  +OK b\r\n");
	resp_status(&out, "x\r\ny");
	written(&out, "+x  y\r\n");
	bytes_free(&out);
}

TEST(numbers_are_strict)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", "-", "+1", " 1", "1 ", "01", "-0", "-01", "1a", "0x1", "1.0", "9223372036854775808",
		"-9223372036854775809", "99999999999999999999", "18446744073709551616",
	};
	/* clang-format on */
	int64_t value = 42;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(number_parse(slice_of(bad[i]), &value));
	assert_int_equal(value, 42);
	assert_true(number_parse(SLICE("0"), &value) && value == 0);
	assert_true(number_parse(SLICE("-1"), &value) && value == -1);
	assert_true(number_parse(SLICE("9223372036854775807"), &value) && value == INT64_MAX);
	assert_true(number_parse(SLICE("-9223372036854775808"), &value) && value == INT64_MIN);
}

/* Whether more follows in the buffer or not, a line of a number means the same. */
TEST(lines_of_numbers_are_strict)
{
	static const struct {
		const char *line;
		enum number_result result;
		int64_t value;
	} lines[] = {
		{ "0\r\n", NUMBER_DONE, 0 },     { "7\r\n", NUMBER_DONE, 7 },     { "10\r\n", NUMBER_DONE, 10 },
		{ "99\r\n", NUMBER_DONE, 99 },   { "100\r\n", NUMBER_DONE, 100 }, { "-1\r\n", NUMBER_DONE, -1 },
		{ "-12\r\n", NUMBER_DONE, -12 }, { "00\r\n", NUMBER_BROKEN, 0 },  { "07\r\n", NUMBER_BROKEN, 0 },
		{ "-0\r\n", NUMBER_BROKEN, 0 },  { "1\n\r\n", NUMBER_BROKEN, 0 }, { "1\rx\n", NUMBER_BROKEN, 0 },
		{ "12\rx", NUMBER_BROKEN, 0 },   { "1x\r\n", NUMBER_BROKEN, 0 },  { "x\r\n", NUMBER_BROKEN, 0 },
		{ "\r\n", NUMBER_BROKEN, 0 },    { "+1\r\n", NUMBER_BROKEN, 0 },  { " 1\r\n", NUMBER_BROKEN, 0 },
		{ "1", NUMBER_MORE, 0 },         { "12\r", NUMBER_MORE, 0 },      { "", NUMBER_MORE, 0 },
		{ "1\r", NUMBER_MORE, 0 },       { "12", NUMBER_MORE, 0 },        { "123\r", NUMBER_MORE, 0 },
		{ "1:\r\n", NUMBER_BROKEN, 0 },  { "1/\r\n", NUMBER_BROKEN, 0 }, { ":1\r\n", NUMBER_BROKEN, 0 },
		{ "9223372036854775807\r\n", NUMBER_DONE, INT64_MAX },
		{ "-9223372036854775808\r\n", NUMBER_DONE, INT64_MIN },
		{ "9223372036854775808\r\n", NUMBER_BROKEN, 0 },
		{ "-9223372036854775809\r\n", NUMBER_BROKEN, 0 },
		{ "1000000000000000000\r\n", NUMBER_DONE, 1000000000000000000 },
		{ "10000000000000000000\r\n", NUMBER_BROKEN, 0 },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		const char *const behind[] = { "", "$", "$4\r\nLOCK\r\n" };

		for (size_t j = 0; j < sizeof(behind) / sizeof(*behind); j++) {
			struct bytes text = { 0 };
			struct number_line line;

			if (lines[i].result == NUMBER_MORE && j > 0)
				break;
			bytes_char(&text, '*');
			bytes_text(&text, lines[i].line);
			bytes_text(&text, behind[j]);
			line = number_line(bytes_view(&text), 1);
			assert_int_equal(line.result, lines[i].result);
			if (line.result == NUMBER_DONE)
				assert_true(line.value == lines[i].value && line.bytes == strlen(lines[i].line));
			bytes_free(&text);
		}
	}
}

/* Around each power of ten, of two, and at random, of any length. */
TEST(numbers_are_written_as_printf_does)
{
	uint64_t seed = 1, power = 1;

	for (int i = 0; i < 20000; i++) {
		char text[NUMBER_CHARS_MAX], expected[32], *end = text + sizeof(text), *at;
		int64_t value;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (i % 5 == 0)
			power = power > UINT64_MAX / 10 ? 1 : power * 10;
		value = i < 200 ? (int64_t)(power + (uint64_t)(i % 5) - 2) : (int64_t)(seed >> i % 64);
		if (i % 2)
			value = (int64_t)(0 - (uint64_t)value);
		at = number_write(value, end);
		snprintf(expected, sizeof(expected), "%lld", (long long)value);
		assert_int_equal(end - at, strlen(expected));
		assert_memory_equal(at, expected, end - at);
	}
}

TEST(bytes_grow_and_spell_numbers)
{
	struct bytes b = { 0 };

	for (int i = 0; i < 1000; i++)
		bytes_char(&b, 'x');
	assert_int_equal(b.len, 1000);
	bytes_clear(&b);
	bytes_int(&b, 0);
	bytes_char(&b, ' ');
	bytes_int(&b, INT64_MAX);
	bytes_char(&b, ' ');
	bytes_int(&b, -10);
	bytes_char(&b, ' ');
	bytes_hex(&b, 0x0123456789abcdef, 16);
	bytes_hex(&b, 0xfff, 2);
	bytes_append(&b, NULL, 0);
	written(&b, "0 9223372036854775807 -10 0123456789abcdefff");
	bytes_free(&b);
	assert_null(b.data);
}

/* Every byte there is comes back from an inline request, and none of them ends the quote or the line. */
TEST(what_is_quoted_is_one_word_of_letters)
{
	struct bytes all = { 0 }, line = { 0 };
	struct resp_reader r;
	size_t used;

	for (int c = 0; c < 256; c++)
		bytes_char(&all, (char)c);
	bytes_quote(&line, bytes_view(&all));
	for (size_t i = 0; i < line.len; i++)
		assert_true(line.data[i] >= ' ' && line.data[i] <= '~');
	bytes_char(&line, '\n');
	resp_reader_init(&r, ARGS_MAX, line.len);
	assert_int_equal(resp_read_request(&r, bytes_view(&line), &used), RESP_DONE);
	assert_int_equal(r.argc, 1);
	assert_true(slice_eq(r.argv[0], bytes_view(&all)));
	resp_reader_deinit(&r);
	bytes_clear(&line);
	bytes_quote(&line, SLICE("a \"b\\ \xe2\x80\xa8"));
	written(&line, "\"a \\\"b\\\\ \\xe2\\x80\\xa8\"");
	bytes_free(&line);
	bytes_free(&all);
}
