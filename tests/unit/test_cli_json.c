/* SPDX-License-Identifier: Apache-2.0 */
/* What --json prints: valid JSON, whatever others have written. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "client-lib/cli/json.h"
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
