/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lockbroker command: the first screen, and the words before a command, which commands.c runs. */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/process_one.h"
#include "client-lib/cli/say.h"

/* Where the text of a command begins, and the second column. */
enum { COMMAND_COLUMNS = 16, HALF_COLUMNS = 40 };

static const char *const groups[GROUP_COUNT] = { "Lock:", "Look:", "Operate (for operators):" };

static void summary(FILE *to)
{
	fputs("Usage: lockbroker [-S SOCKET|--user] [--json] COMMAND [OPTION]... [ARGUMENT]...\n", to);
	for (int g = 0; g < GROUP_COUNT; g++) {
		bool left = true;

		fprintf(to, "%s\n", groups[g]);
		for (size_t i = 0; i < WORD_COUNT; i++) {
			const struct cli_command *c = &cli_commands[i];

			if ((int)c->group != g)
				continue;
			/* Those that run something have a line each, the others stand in two columns. */
			if (g == GROUP_LOCK || !left || i + 1 == WORD_COUNT || cli_commands[i + 1].group != c->group)
				fprintf(to, "  %-*s%s\n", COMMAND_COLUMNS - 2, c->word, c->summary);
			else
				fprintf(to, "  %-*s%-*s", COMMAND_COLUMNS - 2, c->word, HALF_COLUMNS - COMMAND_COLUMNS, c->summary);
			left = !left;
		}
	}
	fputs("`lockbroker COMMAND --help`: an example, and the options. More: lockbroker(1).\n", to);
}

/* Of the command that is named, or of all. */
static int help(int argc, char **argv)
{
	const struct cli_command *command = argc > 0 ? cli_command_find(argv[0]) : NULL;

	if (argc > 1)
		return cli_usage("help does not take the argument \"%s\".", argv[1]);
	if (argc == 1 && !command)
		return cli_no_command(argv[0]);
	if (command)
		return cli_help(command);
	summary(stdout);
	return cli_written(CLI_OK);
}

/*
 * If a standard descriptor is closed, the socket would take its number, and the command would write into the socket. What
 * takes its place fails as the closed one would.
 */
static int open_standard(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct cli_words before = { 0 };
	const struct cli_command *command;
	int status;

	process_one_ends_by_signals();
	if (open_standard() < 0)
		return CLI_OSERR;
	/* For the widths of characters, which are UTF-8 whatever the user has set; nothing else depends on it. */
	setlocale(LC_CTYPE, "C.UTF-8");
	if (argc > 1 && strcmp(argv[1], "--complete") == 0)
		return cli_complete(argc - 2, argv + 2);
	status = cli_words_read(&before, argc, argv);
	if (status >= 0)
		return status;
	if (before.asks == ASKS_VERSION)
		return cli_version();
	argc = before.rest_count;
	argv = before.rest;
	if (before.asks == ASKS_HELP)
		return help(argc, argv);
	if (argc == 0) {
		summary(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[0], "help") == 0)
		return help(argc - 1, argv + 1);
	command = cli_command_find(argv[0]);
	return command ? cli_command_run(&before, command, argc, argv) : cli_no_command(argv[0]);
}
