/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What `CMD --help` prints, out of the row of the command and the table of options. */
#include <stdio.h>
#include <string.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/say.h"
#include "client-lib/lockbroker.h"

/* Where the text of an option begins. */
enum { OPTION_COLUMNS = 28 };

/* Further lines of a text are printed below its first one. */
static void print_lines(const char *text, int indent)
{
	const char *end;

	for (; *(end = strchrnul(text, '\n')); text = end + 1)
		printf("%.*s\n%*s", (int)(end - text), text, indent, "");
	puts(text);
}

static void print_option(const struct cli_option *o)
{
	int used = 2;

	printf("  ");
	if (o->letter)
		used += printf("-%c%s", o->letter, o->word ? ", " : "");
	if (o->word)
		used += printf("--%s", o->word);
	if (cli_value_may_lack(o->value))
		used += printf("[=%s]", cli_values[o->value].called);
	else if (o->value != VALUE_NONE)
		used += printf(" %s", cli_values[o->value].called);
	printf("%*s", used < OPTION_COLUMNS - 1 ? OPTION_COLUMNS - used : 2, "");
	print_lines(o->about, OPTION_COLUMNS);
}

static const char exit_of_runs[] =
	"Exit status: the status of CMD, or 128 + its signal; 64 usage; 69 no broker, or\n"
	"it cannot tell whether the lock is free; 70 it would deadlock; 71 a system call\n"
	"failed; 75 taken; 77 not allowed; 79 lost before CMD ended; 126 CMD cannot be\n"
	"run; 127 CMD is not found. More in lockbroker(1).";

int cli_help(const struct cli_command *command)
{
	bool runs = command->whole && command->id != WORD_HOLD;

	printf("Example: lockbroker %s%s%s\n", command->word, *command->example ? " " : "", command->example);
	printf("Usage:   lockbroker %s [OPTION]...%s%s\n\n%s\n", command->word, *command->usage ? " " : "", command->usage,
	       command->about);
	if (command->operators)
		printf("%sor operators: root and the members of daemon.operator_group.\n%s\n",
		       command->group == GROUP_OPERATE ? "F" : "N is f", command->operators);
	putchar('\n');
	for (size_t i = 0; i < cli_option_count; i++)
		if (cli_options[i].about && cli_option_is_of(&cli_options[i], command))
			print_option(&cli_options[i]);
	printf("\n%s\n", runs ? exit_of_runs : "More in lockbroker(1).");
	return cli_written(CLI_OK);
}

int cli_version(void)
{
	puts("lockbroker " LOCKBROKER_VERSION);
	return cli_written(CLI_OK);
}
