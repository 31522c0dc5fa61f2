/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "commands.h"

const struct command_spec command_table[COMMAND_COUNT] = {
#define X(word, least, most, flags, summary) [COMMAND_##word] = { #word, sizeof(#word) - 1, least, most, flags, summary },
	PROTOCOL_COMMANDS(X)
#undef X
};

/* Two letters that differ in this bit only are the same letter. */
static const int CASE = 'a' - 'A';

static bool is_word(const struct command_spec *spec, struct slice word)
{
	if (word.len != spec->len)
		return false;
	for (size_t i = 0; i < word.len; i++)
		if ((word.data[i] ^ spec->word[i]) & ~CASE)
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
