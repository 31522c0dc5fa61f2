/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print: valid JSON, or tables for people, whatever others have written. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "client-lib/cli/json.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/cli/table.h"
#include "protocol/resp.h"

static char printed[4096];

/* The standard output goes to a file between these. */
static int kept, file;

static void begin(void)
{
	fflush(stdout);
	kept = dup(STDOUT_FILENO);
	file = memfd_create("printed", 0);
	dup2(file, STDOUT_FILENO);
}

static void expect_printed(const char *expected)
{
	ssize_t n;

	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	n = pread(file, printed, sizeof(printed) - 1, 0);
	printed[n > 0 ? n : 0] = '\0';
	close(file);
	close(kept);
	assert_string_equal(printed, expected);
}

static void expect_text(const char *text, size_t len, const char *expected)
{
	begin();
	cli_json_text((struct slice){ text, len });
	expect_printed(expected);
}

TEST(texts_are_escaped)
{
	expect_text("", 0, "\"\"");
	expect_text("a \"b\" \\ c", 9, "\"a \\\"b\\\" \\\\ c\"");
	expect_text("\n\x1b[2J\0", 6, "\"\\n\\u001b[2J\\u0000\"");
	expect_text("gr\xc3\xbc\xc3\x9f", 6, "\"gr\xc3\xbc\xc3\x9f\"");
	expect_text("\xe2\x80\xae", 3, "\"\\u202e\"");
	expect_text("a\xe2\x80\x8b\xf3\xa0\x81\x81", 8, "\"a\\u200b\\udb40\\udc41\"");
	/* The first of a thousand characters that have the same first half. */
	expect_text("\xf3\xa0\x80\x80", 4, "\"\\udb40\\udc00\"");
	expect_text("\xf0\x9f\x94\x92", 4, "\"\xf0\x9f\x94\x92\"");
	expect_text("x\xff\xc3", 3, "\"x\\ufffd\\ufffd\"");
}

TEST(values_are_printed_by_type)
{
	static const char text[] = "*4\r\n:-7\r\n_\r\n%2\r\n+a\r\n*0\r\n+b\r\n%0\r\n*2\r\n*1\r\n:1\r\n$1\r\nx\r\n";
	struct resp_replies r;
	size_t used;

	resp_replies_init(&r, 1024, 65536);
	assert_int_equal(resp_read_reply(&r, slice_of(text), &used), RESP_DONE);
	begin();
	cli_json_line((const struct lb_reply *)r.values);
	expect_printed("[-7,null,{\"a\":[],\"b\":{}},[[1],\"x\"]]\n");
	begin();
	cli_json_line(NULL);
	expect_printed("null\n");
	resp_replies_deinit(&r);
}

TEST(lines_are_texts_and_those_of_info_have_keys)
{
	begin();
	cli_json_lines(SLICE("a\r\nb \"c\"\n\nlast"));
	expect_printed("[\"a\",\"b \\\"c\\\"\",\"\",\"last\"]\n");
	begin();
	cli_json_lines(SLICE(""));
	expect_printed("[]\n");
	begin();
	cli_json_info(SLICE("# Server\r\nversion:7\r\nwhy:a: b\r\n\r\n# Locks\r\n"));
	expect_printed("{\"Server\":{\"version\":\"7\",\"why\":\"a: b\"},\"Locks\":{}}\n");
	begin();
	cli_json_info(SLICE(""));
	expect_printed("{}\n");
}

/* ---- tables ---- */

TEST(characters_are_those_of_unicode)
{
	static const struct {
		const char *text;
		int32_t number; /* -1: an invalid byte */
		size_t used;
	} all[] = {
		{ "a", 'a', 1 },
		{ "\x7f", 0x7f, 1 },
		{ "\xc2\x80", 0x80, 2 },
		{ "\xdf\xbf", 0x7ff, 2 },
		{ "\xe0\xa0\x80", 0x800, 3 },
		{ "\xed\x9f\xbf", 0xd7ff, 3 },
		{ "\xee\x80\x80", 0xe000, 3 },
		{ "\xef\xbf\xbf", 0xffff, 3 },
		{ "\xf0\x90\x80\x80", 0x10000, 4 },
		{ "\xf4\x8f\xbf\xbf", 0x10ffff, 4 },
		/* Longer than they have to be, half of a pair, or too large. */
		{ "\xc1\xbf", -1, 1 },
		{ "\xe0\x9f\xbf", -1, 1 },
		{ "\xf0\x8f\xbf\xbf", -1, 1 },
		{ "\xed\xa0\x80", -1, 1 },
		{ "\xed\xbf\xbf", -1, 1 },
		{ "\xf4\x90\x80\x80", -1, 1 },
		/* What does not begin one, or does not go on. */
		{ "\x80", -1, 1 },
		{ "\xbf\xbf", -1, 1 },
		{ "\xf8\x88\x80\x80\x80", -1, 1 },
		{ "\xc3", -1, 1 },
		{ "\xe2\x82", -1, 1 },
		{ "\xc3(", -1, 1 },
		{ "\xe2\x82(", -1, 1 },
	};
	int32_t c;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(cli_character(all[i].text, strlen(all[i].text), &c), all[i].used);
		assert_int_equal(c, all[i].number);
	}
}

TEST(durations_have_their_two_largest_units)
{
	static const struct {
		long long ms;
		const char *shown;
	} all[] = {
		{ -1, "" },
		{ 0, "0s" },
		{ 999, "0s" },
		{ 1000, "1s" },
		{ 59999, "59s" },
		{ 60000, "1m00s" },
		{ 61000, "1m01s" },
		{ 3599999, "59m59s" },
		{ 3600000, "1h00m" },
		{ 86399999, "23h59m" },
		{ 86400000, "1d00h" },
		{ 90061000, "1d01h" },
	};
	char shown[CLI_DURATION_MAX];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		assert_string_equal(cli_duration(all[i].ms, shown), all[i].shown);
}

static void expect_table(const char *reply, const char *expected)
{
	struct resp_replies r;
	size_t used;

	resp_replies_init(&r, 1024, 65536);
	assert_int_equal(resp_read_reply(&r, slice_of(reply), &used), RESP_DONE);
	begin();
	cli_table((const struct lb_reply *)r.values);
	expect_printed(expected);
	resp_replies_deinit(&r);
}

TEST(a_table_has_the_keys_as_heads_and_durations_under_those_that_say_so)
{
	expect_table("*2\r\n"
		     "%5\r\n+name\r\n+ab\r\n+held_ms\r\n:999\r\n+pid\r\n:7\r\n+_ms\r\n:1500\r\n+zA~ \r\n+\r\n"
		     "%5\r\n+name\r\n+x\x1b\r\n+held_ms\r\n:1000\r\n+pid\r\n:-1\r\n+_ms\r\n:5\r\n+zA~ \r\n+\xc3\xbc\r\n",
		     "NAME     HELD   PID  _MS   ZA~?\n"
		     "ab       999ms  7    1500  -\n"
		     "x\\u001b  1s     -1   5     \xc3\xbc\n");
	expect_table("*1\r\n%2\r\n+a_ms\r\n:0\r\n+b_ms\r\n:-1\r\n", "A    B\n0ms  -\n");
	expect_table("*1\r\n+ab\r\n", "");
	expect_table("*0\r\n", "");
	setenv("TZ", "UTC", 1);
	tzset();
	expect_table("*1\r\n%1\r\n+started\r\n:86399\r\n", "STARTED\n1970-01-01 23:59:59\n");
}

static void expect_sheet(const struct sheet *s, size_t lines, size_t columns, const char *expected)
{
	begin();
	sheet_print(s, stdout, lines, columns);
	expect_printed(expected);
}

TEST(a_sheet_fits_the_lines_and_columns_that_are_left)
{
	static const char *const cells[] = { "a", "h1", "\xc3\x9f", "", "ccc", "h3" };
	struct sheet s = { 0 };

	sheet_heads(&s, "NAME HOST");
	for (size_t i = 0; i < 6; i++) {
		if (i % 2 == 0)
			sheet_row(&s);
		sheet_text(&s, slice_of(cells[i]));
	}
	expect_sheet(&s, 0, 0, "NAME  HOST\na     h1\n\xc3\x9f     -\nccc   h3\n");
	expect_sheet(&s, 4, 0, "NAME  HOST\na     h1\n\xc3\x9f     -\nccc   h3\n");
	expect_sheet(&s, 3, 0, "NAME  HOST\na     h1\n(and 2 more)\033[K\n");
	expect_sheet(&s, 2, 0, "NAME  HOST\n(and 3 more)\033[K\n");
	expect_sheet(&s, 1, 0, "NAME  HOST\n(and 3 more)\033[K\n");
	expect_sheet(&s, 2, 7, "NAME  H\033[K\n(and 3 more)\033[K\n");
	expect_sheet(&s, 4, 5, "NAME \033[K\na    \033[K\n\xc3\x9f    \033[K\nccc  \033[K\n");
	expect_sheet(&s, 2, 3, "NAM\033[K\n(and 3 more)\033[K\n");
	expect_sheet(&s, 2, 10, "NAME  HOST\033[K\n(and 3 more)\033[K\n");
	sheet_end(&s);
}

TEST(a_character_takes_one_column_however_many_bytes_it_has)
{
	struct sheet s = { 0 };

	sheet_heads(&s, "N H");
	sheet_row(&s);
	sheet_text(&s, SLICE("\xc3\x9f\xc3\xbc\xe2\x82\xac"));
	sheet_text(&s, SLICE("x"));
	expect_sheet(&s, 0, 0, "N    H\n\xc3\x9f\xc3\xbc\xe2\x82\xac  x\n");
	expect_sheet(&s, 2, 2, "N \033[K\n\xc3\x9f\xc3\xbc\033[K\n");
	expect_sheet(&s, 1, 0, "N    H\n(and 1 more)\033[K\n");
	sheet_end(&s);
}
