/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences with values in them: each conversion, values of each type, and what fails. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "protocol/bytes_format.h"

#define assert_formats(expected, ...) \
	do { \
		struct bytes b = { 0 }; \
		bytes_format(&b, __VA_ARGS__); \
		assert_int_equal(b.len, strlen(expected)); \
		assert_memory_equal(b.len ? b.data : "", expected, b.len); \
		bytes_free(&b); \
	} while (0)

TEST(texts_and_numbers_stand_where_the_sentence_has_them)
{
	char changeable[] = "a text";

	assert_formats("", "");
	assert_formats("no value", "no value");
	assert_formats("7", "%d", 7);
	assert_formats("lock a text of SLICE", "lock %s of %s", changeable, SLICE("SLICE"));
	assert_formats("ab", "%s%s", "a", ((struct slice){ "bcd", 1 }));
	assert_formats("", "%s", ((struct slice){ 0 }));
	assert_formats("12345678910", "%d%d%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
}

TEST(integers_of_each_type_keep_their_value)
{
	assert_formats("-1 4294967295 255 1", "%d %d %d %d", -1, UINT32_MAX, (uint8_t)255, true);
	assert_formats("-9223372036854775808 18", "%d %d", INT64_MIN, (size_t)18);
	assert_formats("session 0x00000000000000ff, 0xffffffffffffffff", "session 0x%x, 0x%x", 255, -1);
}

TEST(quotes_keep_whatever_was_written_apart)
{
	assert_formats("lock \"a\\\" \\\\\" and \"\\x0a\"", "lock %q and %q", "a\" \\", SLICE("\n"));
	assert_formats("\"%s\"", "%q", "%s");
}

TEST(a_value_for_tools_is_bare_or_quoted)
{
	char name[BYTES_SHOWN_MAX + 1], shown[BYTES_SHOWN_MAX + 8];

	assert_formats("a=x/y.z:1,2@%", "a=%v", "x/y.z:1,2@%");
	assert_formats("a=\"\" b=\"x y\" c=\"k=v\"", "a=%v b=%v c=%v", "", "x y", "k=v");
	assert_formats("d=\"\\\"\" e=\"\\\\\"", "d=%v e=%v", "\"", "\\");
	assert_formats("\"\\x0a\" \"\\x7f\" \"\\xc3\\xa9\"", "%v %v %v", "\n", "\x7f", "\xc3\xa9");
	/* At the limit it is shown as it is, and one past it cut. */
	memset(name, 'n', sizeof(name));
	assert_formats(((memset(shown, 'n', BYTES_SHOWN_MAX), shown[BYTES_SHOWN_MAX] = 0), shown), "%v",
		       ((struct slice){ name, BYTES_SHOWN_MAX }));
	snprintf(shown, sizeof(shown), "\"%.*s...\"", BYTES_SHOWN_MAX, name);
	assert_formats(shown, "%v", ((struct slice){ name, BYTES_SHOWN_MAX + 1 }));
	assert_formats(shown, "%n", ((struct slice){ name, BYTES_SHOWN_MAX + 1 }));
	assert_formats("\"short\"", "%n", "short");
}

static struct bytes unfit;

static void text_as_number(void)
{
	bytes_format(&unfit, "%d", "a");
}

static void number_as_text(void)
{
	bytes_format(&unfit, "%s", 1);
}

static void unknown_conversion(void)
{
	bytes_format(&unfit, "%u", 1);
}

static void too_few(void)
{
	bytes_format(&unfit, "%d %d", 1);
}

static void too_many(void)
{
	bytes_format(&unfit, "%d", 1, 2);
}

TEST(what_does_not_fit_its_sentence_fails)
{
	assert_true(unit_aborts(text_as_number));
	assert_true(unit_aborts(number_as_text));
	assert_true(unit_aborts(unknown_conversion));
	assert_true(unit_aborts(too_few));
	assert_true(unit_aborts(too_many));
}
