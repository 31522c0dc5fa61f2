/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands and errors, and that PROTOCOL.md speaks of each of them. Runs in the project's directory. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "protocol/bytes.h"
#include "protocol/commands.h"
#include "protocol/answers.h"
#include "protocol/errors.h"

TEST(commands_are_found_in_any_case)
{
	for (int i = 0; i < COMMAND_COUNT; i++)
		assert_int_equal(command_find(slice_of(command_table[i].word)), i);
	assert_int_equal(command_find(SLICE("lock")), COMMAND_LOCK);
	assert_int_equal(command_find(SLICE("pInG")), COMMAND_PING);
	assert_int_equal(command_find(SLICE("LOC")), COMMAND_COUNT);
	assert_int_equal(command_find(SLICE("LOCKSS")), COMMAND_COUNT);
	assert_int_equal(command_find(SLICE("")), COMMAND_COUNT);
	assert_int_equal(command_find(SLICE("LOCK\0")), COMMAND_COUNT);
}

TEST(commands_have_sane_bounds)
{
	for (int i = 0; i < COMMAND_COUNT; i++) {
		const struct command_spec *c = &command_table[i];

		assert_true(c->args_min >= 1);
		assert_true(c->args_max == -1 || c->args_max >= c->args_min);
		assert_true(*c->flags && *c->summary);
	}
}

TEST(errors_have_words)
{
	assert_string_equal(error_word(ERROR_ERR), "ERR");
	assert_string_equal(error_word(ERROR_NOTHELD), "NOTHELD");
	assert_string_equal(error_word(ERROR_NOPROTO), "NOPROTO");
	for (int i = 0; i < ERROR_COUNT; i++)
		assert_non_null(error_word((enum error_code)i));
}

static char *document(void)
{
	FILE *file = fopen("protocol/PROTOCOL.md", "re");
	struct bytes text = { 0 };
	char piece[4096];
	size_t len;

	assert_non_null(file);
	while ((len = fread(piece, 1, sizeof(piece), file)) > 0)
		bytes_append(&text, piece, len);
	fclose(file);
	bytes_char(&text, '\0');
	return text.data;
}

/* The lines between "<!-- <list> -->" and "<!-- end -->" are "| `WORD` | least | most | ..." and nothing else. */
static char *listed(char *text, const char *list)
{
	struct bytes mark = { 0 };
	char *begin, *end;

	bytes_text(&mark, "<!-- ");
	bytes_text(&mark, list);
	bytes_text(&mark, " -->\n");
	bytes_char(&mark, '\0');
	begin = strstr(text, mark.data);
	assert_non_null(begin);
	begin += mark.len - 1;
	bytes_free(&mark);
	end = strstr(begin, "<!-- end -->");
	assert_non_null(end);
	*end = '\0';
	return begin;
}

TEST(the_document_lists_each_command_with_its_bounds)
{
	char *text = document(), *line = listed(text, "commands");
	int rows = 0;

	for (line = strtok(line, "\n"); line; line = strtok(NULL, "\n")) {
		const struct command_spec *c;
		char word[32], most[8];
		int least;

		if (sscanf(line, "| `%31[A-Z]` | %d | %7[0-9-] |", word, &least, most) != 3)
			continue;
		assert_true(command_find(slice_of(word)) != COMMAND_COUNT);
		c = &command_table[command_find(slice_of(word))];
		assert_int_equal(least, c->args_min);
		assert_int_equal(strcmp(most, "-") ? atoi(most) : -1, c->args_max);
		rows++;
	}
	assert_int_equal(rows, COMMAND_COUNT);
	free(text);
}

static int source_of(const char *word)
{
	if (strcmp(word, "failed") == 0)
		return SOURCE_FAILED;
	if (strcmp(word, "unobserved") == 0)
		return SOURCE_UNOBSERVED;
	return command_find(slice_of(word)) == COMMAND_COUNT ? -1 : (int)command_find(slice_of(word));
}

/* Where it comes from by the last column: "any", or words in backquotes, of which the first tells the command. */
static void expect_sources(enum error_code code, char *line)
{
	bool listed_as[SOURCE_COUNT] = { false };
	char *at, *end = strrchr(line, '|');

	assert_non_null(end);
	*end = '\0';
	at = strrchr(line, '|');
	assert_int_equal(strncmp(at, "| any", 5) == 0, answers_any(code));
	while (!answers_any(code) && (at = strchr(at, '`'))) {
		size_t len = strcspn(++at, "` ");
		char word[32];

		snprintf(word, sizeof(word), "%.*s", (int)len, at);
		assert_true(source_of(word) >= 0);
		listed_as[source_of(word)] = true;
		at = strchr(at, '`') + 1;
	}
	for (int i = 0; i < SOURCE_COUNT && !answers_any(code); i++)
		if (listed_as[i] != answers_error(i, code))
			fail_msg("%s and its source %d", error_word(code), i);
}

TEST(the_document_lists_each_error)
{
	char *text = document(), *line = listed(text, "errors");
	int rows = 0;

	for (line = strtok(line, "\n"); line; line = strtok(NULL, "\n")) {
		char word[32];
		int known = 0;

		if (sscanf(line, "| `%31[A-Z]` |", word) != 1)
			continue;
		for (int i = 0; i < ERROR_COUNT; i++) {
			if (strcmp(word, error_word((enum error_code)i)))
				continue;
			known++;
			expect_sources((enum error_code)i, line);
		}
		assert_int_equal(known, 1);
		rows++;
	}
	assert_int_equal(rows, ERROR_COUNT);
	free(text);
}
