/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences with values in them: each conversion, values of each type, and what fails. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* In a child, which must not leave a core file. */
static bool fails(void (*call)(struct bytes *b))
{
	struct bytes b = { 0 };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		call(&b);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void text_as_number(struct bytes *b)
{
	bytes_format(b, "%d", "a");
}

static void number_as_text(struct bytes *b)
{
	bytes_format(b, "%s", 1);
}

static void unknown_conversion(struct bytes *b)
{
	bytes_format(b, "%u", 1);
}

static void too_few(struct bytes *b)
{
	bytes_format(b, "%d %d", 1);
}

static void too_many(struct bytes *b)
{
	bytes_format(b, "%d", 1, 2);
}

TEST(what_does_not_fit_its_sentence_fails)
{
	assert_true(fails(text_as_number));
	assert_true(fails(number_as_text));
	assert_true(fails(unknown_conversion));
	assert_true(fails(too_few));
	assert_true(fails(too_many));
}
