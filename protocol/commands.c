#include "commands.h"

const struct command_spec command_table[COMMAND_COUNT] = {
#define X(word, least, most, flags, summary) [COMMAND_##word] = { #word, least, most, flags, summary },
	PROTOCOL_COMMANDS(X)
#undef X
};

enum command command_find(struct slice word)
{
	for (int i = 0; i < COMMAND_COUNT; i++)
		if (slice_is(word, command_table[i].word))
			return (enum command)i;
	return COMMAND_COUNT;
}
