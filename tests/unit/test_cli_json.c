/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print: valid JSON, or tables for people, whatever others have written. */
#include <fcntl.h>
#include <locale.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "client-lib/cli/json.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/cli/shown.h"
#include "protocol/resp.h"

static void begin(void)
{
	unit_capture(STDOUT_FILENO);
}

static void expect_printed(const char *expected)
{
	assert_string_equal(unit_captured(), expected);
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

/* Its value; it is valid until the next one is read. */
static const struct lb_reply *parsed(const char *text)
{
	static struct resp_replies r;
	size_t used;

	resp_replies_deinit(&r);
	resp_replies_init(&r, 1024, 65536);
	assert_int_equal(resp_read_reply(&r, slice_of(text), &used), RESP_DONE);
	return (const struct lb_reply *)r.values;
}

static void expect_reply(const char *text, void (*print)(const struct lb_reply *reply), const char *expected)
{
	begin();
	print(parsed(text));
	expect_printed(expected);
}

TEST(values_are_printed_by_type)
{
	expect_reply("*4\r\n:-7\r\n_\r\n%2\r\n+a\r\n*0\r\n+b\r\n%0\r\n*2\r\n*1\r\n:1\r\n$1\r\nx\r\n", cli_json_line,
		     "[-7,null,{\"a\":[],\"b\":{}},[[1],\"x\"]]\n");
	begin();
	cli_json_line(NULL);
	expect_printed("null\n");
}

TEST(what_is_true_is_true_and_what_is_not_known_is_null)
{
	static const char holder[] =
		"%6\r\n+self\r\n:1\r\n+pid\r\n:0\r\n+uid\r\n:0\r\n+held_ms\r\n:-1\r\n+data\r\n"
		"$0\r\n\r\n+waiters\r\n:0\r\n";

	expect_reply(holder, cli_json, "{\"self\":true,\"pid\":null,\"uid\":null,\"held_ms\":null,\"data\":null,\"waiters\":0}");
	expect_reply(holder, cli_json_open,
		     "{\"self\":true,\"pid\":null,\"uid\":null,\"held_ms\":null,\"data\":null,\"waiters\":0");
	expect_reply(holder, cli_json_plain, "{\"self\":1,\"pid\":0,\"uid\":0,\"held_ms\":-1,\"data\":\"\",\"waiters\":0}");
	expect_reply("%2\r\n+pid\r\n:7\r\n+uid\r\n:0\r\n", cli_json, "{\"pid\":7,\"uid\":0}");
}

static void expect_field(const char *key, const char *text, const char *expected)
{
	begin();
	cli_json_field(true, slice_of(key), slice_of(text));
	expect_printed(expected);
}

TEST(a_text_that_is_a_number_is_one_unless_somebody_has_chosen_it)
{
	expect_field("locks", "42", "\"locks\":42");
	expect_field("locks", "-1", "\"locks\":-1");
	expect_field("locks", "0", "\"locks\":0");
	expect_field("mode", "0660", "\"mode\":\"0660\"");
	expect_field("mode", "-", "\"mode\":\"-\"");
	expect_field("mode", "12345678901234567890", "\"mode\":12345678901234567890");
	expect_field("host", "42", "\"host\":\"42\"");
	expect_field("connected", "0", "\"connected\":false");
	expect_field("connected", "1", "\"connected\":true");
	expect_field("trouble", "", "\"trouble\":null");
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
	expect_printed("{\"Server\":{\"version\":7,\"why\":\"a: b\"},\"Locks\":{}}\n");
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
		{ 0, "0ms" },
		{ 999, "999ms" },
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

static void expect_table(const char *reply, const struct sheet_column *columns, size_t count, const char *expected)
{
	begin();
	sheet_show(columns, count, parsed(reply), 0);
	expect_printed(expected);
}

TEST(a_table_has_durations_instants_and_answers_under_keys_that_say_so)
{
	static const struct sheet_column columns[] = {
		{ "NAME", "name", 0, SHEET_ALWAYS, NULL }, { "HELD", "held_ms", 0, SHEET_ALWAYS, NULL },
		{ "COUNT", "count", 0, SHEET_ALWAYS, NULL }, { "_MS", "_ms", 0, SHEET_ALWAYS, NULL },
		{ "Z", "z", 0, SHEET_ALWAYS, NULL }, { "RARE", "rare", 0, SHEET_IF_ANY, NULL },
		{ "WIDE", "count", 0, SHEET_WIDE, NULL },
	};
	static const struct sheet_column others[] = {
		{ "STARTED", "started", 0, SHEET_ALWAYS, NULL }, { "SELF", "self", 0, SHEET_ALWAYS, NULL },
		{ "ALLOWED", "allowed", 0, SHEET_ALWAYS, NULL }, { "RARE", "rare", 0, SHEET_IF_ANY, NULL },
	};

	expect_table("*2\r\n"
		     "%5\r\n+name\r\n+ab\r\n+held_ms\r\n:999\r\n+count\r\n:7\r\n+_ms\r\n:1500\r\n+z\r\n+\r\n"
		     "%5\r\n+name\r\n+x\x1b\r\n+held_ms\r\n:1000\r\n+count\r\n:-1\r\n+_ms\r\n:5\r\n+z\r\n+\xc3\xbc\r\n",
		     columns, 7,
		     "NAME     HELD   COUNT  _MS   Z\n"
		     "ab       999ms  7      1500  -\n"
		     "x\\u001b  1s     -1     5     \xc3\xbc\n");
	expect_table("*0\r\n", columns, 7, "");
	setenv("TZ", "UTC", 1);
	tzset();
	expect_table("*1\r\n%4\r\n+started\r\n:86399\r\n+self\r\n:1\r\n+allowed\r\n:0\r\n+rare\r\n:5\r\n", others, 4,
		     "STARTED              SELF  ALLOWED  RARE\n1970-01-01 23:59:59  yes   no       5\n");
	/* Of an account it is a number. */
	expect_table("*1\r\n%2\r\n+allowed\r\n:9\r\n+used\r\n:1\r\n", others + 2, 1, "ALLOWED\n9\n");
}

/* What it prints to a terminal of so many columns that does not show bold text; 0: into a file. */
static void expect_sheet(const struct sheet *s, size_t lines, size_t columns, const char *expected)
{
	struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
	struct termios raw;
	char printed[4096];
	int master, slave, out;
	ssize_t n;

	if (!columns) {
		begin();
		sheet_print(s, lines);
		expect_printed(expected);
		return;
	}
	setenv("TERM", "dumb", 1);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	assert_int_equal(tcgetattr(slave, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
	fflush(stdout);
	out = dup(STDOUT_FILENO);
	dup2(slave, STDOUT_FILENO);
	sheet_print(s, lines);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	n = read(master, printed, sizeof(printed) - 1);
	printed[n > 0 ? n : 0] = '\0';
	close(out);
	close(slave);
	close(master);
	assert_string_equal(printed, expected);
}

#define CLEAR "\033[K\n"
#define DOTS "\xe2\x80\xa6"

TEST(a_sheet_fits_the_lines_and_columns_that_are_left)
{
	static const struct sheet_column columns[] = {
		{ "NAME", NULL, 0, SHEET_ALWAYS, NULL }, { "HOST", NULL, 0, SHEET_ALWAYS, NULL }
	};
	static const char *const cells[] = { "a", "h1", "\xc3\x9f", "", "ccc", "h3" };
	struct sheet s;

	sheet_begin(&s, columns, 2);
	for (size_t i = 0; i < 6; i++)
		sheet_text(&s, slice_of(cells[i]));
	expect_sheet(&s, 0, 0, "NAME  HOST\na     h1\n\xc3\x9f     -\nccc   h3\n");
	expect_sheet(&s, 4, 10, "NAME  HOST" CLEAR "a     h1" CLEAR "\xc3\x9f     -" CLEAR "ccc   h3" CLEAR);
	expect_sheet(&s, 3, 10, "NAME  HOST" CLEAR "a     h1" CLEAR "(and 2 more)" CLEAR);
	expect_sheet(&s, 2, 10, "NAME  HOST" CLEAR "(and 3 more)" CLEAR);
	expect_sheet(&s, 1, 10, "NAME  HOST" CLEAR "(and 3 more)" CLEAR);
	/* No line, and no column, goes without a sign of it. */
	expect_sheet(&s, 2, 8, "NAME  H" DOTS CLEAR "(and 3 more)" CLEAR);
	expect_sheet(&s, 4, 7, "NAME  " DOTS CLEAR "a     " DOTS CLEAR "\xc3\x9f     -" CLEAR "ccc   " DOTS CLEAR);
	expect_sheet(&s, 4, 6, "NAME " DOTS CLEAR "a    " DOTS CLEAR "\xc3\x9f    " DOTS CLEAR "ccc  " DOTS CLEAR);
	expect_sheet(&s, 4, 5, "NAME" DOTS CLEAR "a   " DOTS CLEAR "\xc3\x9f   " DOTS CLEAR "ccc " DOTS CLEAR);
	expect_sheet(&s, 2, 3, "NA" DOTS CLEAR "(and 3 more)" CLEAR);
	expect_sheet(&s, 2, 1, DOTS CLEAR "(and 3 more)" CLEAR);
	sheet_end(&s);
}

TEST(a_long_column_is_cut_as_far_as_it_may_be)
{
	static const struct sheet_column columns[] = {
		{ "NAME", NULL, 4, SHEET_ALWAYS, NULL }, { "HOST", NULL, 0, SHEET_ALWAYS, NULL }
	};
	struct sheet s;

	sheet_begin(&s, columns, 2);
	sheet_text(&s, SLICE("abcdefgh"));
	sheet_text(&s, SLICE("h1"));
	expect_sheet(&s, 0, 14, "NAME      HOST\nabcdefgh  h1\n");
	expect_sheet(&s, 0, 13, "NAME     HOST\nabcdef" DOTS "  h1\n");
	expect_sheet(&s, 0, 10, "NAME  HOST\nabc" DOTS "  h1\n");
	expect_sheet(&s, 0, 9, "NAME  HO" DOTS "\nabc" DOTS "  h1\n");
	sheet_end(&s);
}

TEST(a_character_takes_the_columns_that_it_has_however_many_bytes_they_are)
{
	static const struct sheet_column columns[] = {
		{ "N", NULL, 0, SHEET_ALWAYS, NULL }, { "H", NULL, 0, SHEET_ALWAYS, NULL }
	};
	struct sheet s;

	setlocale(LC_CTYPE, "C.UTF-8");
	sheet_begin(&s, columns, 2);
	sheet_text(&s, SLICE("\xc3\x9f\xe8\xaa\x9e\xe2\x82\xac"));
	sheet_text(&s, SLICE("x"));
	expect_sheet(&s, 0, 0, "N     H\n\xc3\x9f\xe8\xaa\x9e\xe2\x82\xac  x\n");
	/* The second one has two columns, and there is no room for half of it. */
	expect_sheet(&s, 0, 3, "N " DOTS "\n\xc3\x9f" DOTS "\n");
	expect_sheet(&s, 0, 4, "N  " DOTS "\n\xc3\x9f\xe8\xaa\x9e" DOTS "\n");
	sheet_end(&s);
}
