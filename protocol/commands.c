/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "commands.h"

#include <stdint.h>

const struct command_spec command_table[COMMAND_COUNT] = {
#define X(word, least, most, flags, summary) \
	[COMMAND_##word] = { #word, sizeof(#word) - 1, least, most, flags, summary },
	PROTOCOL_COMMANDS(X)
#undef X
};

/* Two letters that differ in this bit only are the same letter. */
static const uint32_t CASE = 'a' - 'A';

static bool are_four(const char *a, const char *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return ((x ^ y) & ~(CASE * 0x01010101)) == 0;
}

static bool is_word(const struct command_spec *spec, struct slice word)
{
	size_t i = 0;

	if (word.len != spec->len)
		return false;
	for (; i + 4 <= word.len; i += 4)
		if (!are_four(word.data + i, spec->word + i))
			return false;
	for (; i < word.len; i++)
		if ((uint32_t)(word.data[i] ^ spec->word[i]) & ~CASE)
			return false;
	return true;
}

enum command command_find(struct slice word)
{
	for (int i = 0; i < COMMAND_COUNT; i++)
		if (is_word(&command_table[i], word))
			return (enum command)i;
	return COMMAND_COUNT;
}

bool command_shows_much(size_t argc, const struct slice *argv)
{
	static const bool much[COMMAND_COUNT + 1] = {
		[COMMAND_HOLDERS] = true, [COMMAND_QUEUE] = true, [COMMAND_WHY] = true,     [COMMAND_HOSTS] = true,
		[COMMAND_LOCKS] = true,   [COMMAND_AUDIT] = true, [COMMAND_CONFIG] = true,  [COMMAND_ACCOUNTS] = true,
		[COMMAND_ACCESS] = true,  [COMMAND_LOG] = true,   [COMMAND_METRICS] = true, [COMMAND_COMMAND] = true,
	};
	static const struct command_spec list = { .word = "LIST", .len = 4 };
	enum command command = argc ? command_find(argv[0]) : COMMAND_COUNT;

	return much[command] || (command == COMMAND_CLIENT && argc > 1 && is_word(&list, argv[1]));
}
