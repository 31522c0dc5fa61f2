/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `lockbroker --complete WORD...`, which shells call (client-lib/completion): what the last of the words of a command line
 * can be. Each line is a word, a tab and what it means; or, where the shell knows more than we do, one of
 *
 *     :command N -> from the N-th word on, counted from 0, it is a command line of its own
 *     :files, :users
 *
 * A broker that is away or slow holds up the line that is being typed for a second at most.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/operators.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/handle.h"
#include "client-lib/socket_path.h"
#include "protocol/commands.h"

struct line {
	const struct cli_command *command; /* NULL: not there yet */
	const struct cli_option *option;   /* its value is next; NULL: none is */
	const char *socket;
	bool ended;  /* by --, or by the first argument of a command that runs something */
	int count;   /* arguments of the command */
	int command_at; /* where the words of a command line of its own begin; -1: nowhere */
	const char *word;  /* the last one */
};

static void offer(const struct line *l, struct slice word, const char *about)
{
	size_t len = strlen(l->word);

	if (word.len < len || memcmp(word.data, l->word, len) != 0)
		return;
	printf("%.*s\t", (int)word.len, word.data);
	for (; *about; about++)
		putchar(*about == '\n' ? ' ' : *about);
	putchar('\n');
}

static void offer_words(const struct line *l, const char *const *words)
{
	for (; *words; words++)
		offer(l, slice_of(*words), "");
}

/* ---- what the broker knows ---- */

static void out_of_time(int number)
{
	_exit(CLI_OK);
}

/* The texts under `key` of the rows of an answer, or the keys of a map. */
static void offer_asked(const struct line *l, int argc, const char *const *words, const char *key)
{
	bool operators = strcmp(words[0], "CONFIG") == 0;
	const struct lb_reply *reply = NULL, *row;
	char path[OPERATORS_PATH_MAX];
	struct lb *lb;

	signal(SIGALRM, out_of_time);
	alarm(1);
	if (handle_open_now(operators ? operators_socket(l->socket, path) : l->socket, &lb) == LB_OK)
		lb_command(lb, argc, words, &reply);
	for (size_t i = 0; !key && i < lb_reply_count(reply); i++)
		offer(l, reply_text(lb_reply_key(reply, i)), "");
	row = key ? lb_reply_item(reply, 0) : NULL;
	for (size_t i = 0, count = lb_reply_count(reply); row && i < count; i++, row = i < count ? lb_reply_next(row) : row)
		offer(l, reply_field(row, key), "");
	lb_close(lb);
}

static void offer_names(const struct line *l)
{
	offer_asked(l, 1, (const char *[]){ "LOCKS" }, "name");
}

/* ---- what stands where ---- */

static void offer_value(const struct line *l)
{
	static const char *const signals[] = { "TERM", "INT", "HUP", "USR1", "USR2", "none", NULL };
	static const char *const times[] = { "now", "today", "yesterday", NULL };
	static const char *const limits[] = { "limit=", "wait=", "proof=", "answer=", NULL };

	if (l->option->value == VALUE_NAME)
		offer_names(l);
	else if (l->option->value == VALUE_HOST)
		offer_asked(l, 1, (const char *[]){ "HOSTS" }, "host");
	else if (l->option->value == VALUE_SIGNAL)
		offer_words(l, signals);
	else if (l->option->value == VALUE_LIMITS)
		offer_words(l, limits);
	else if (l->option->value == VALUE_TIME)
		offer_words(l, times);
	else if (l->option->value == VALUE_FILE || l->option->value == VALUE_SOCKET || l->option->value == VALUE_DIRECTORY)
		puts(":files");
}

static void offer_options(const struct line *l)
{
	char word[64];

	for (size_t i = 0; i < cli_option_count; i++) {
		const struct cli_option *o = &cli_options[i];

		if (!o->word || !o->about || o->id == OPT_LINE || !cli_option_is_of(o, l->command))
			continue;
		snprintf(word, sizeof(word), "--%s", o->word);
		offer(l, slice_of(word), o->about);
	}
}

static void offer_commands(const struct line *l)
{
	for (size_t i = 0; i < WORD_COUNT; i++)
		offer(l, slice_of(cli_commands[i].word), cli_commands[i].summary);
	offer(l, SLICE("help"), "show what a command does");
}

/* The argument that is next, by what the usage of the command calls it. */
static void offer_argument(const struct line *l)
{
	char what[CLI_ARGUMENT_MAX];

	cli_argument(l->command, l->count, what);
	if (strcmp(what, "NAME") == 0 || strcmp(what, "PATTERN") == 0)
		offer_names(l);
	else if (strcmp(what, "KEY") == 0)
		offer_asked(l, 3, (const char *[]){ "CONFIG", "GET", "*" }, NULL);
	else if (strcmp(what, "SECTION") == 0)
		offer_words(l, cli_sections);
	else if (strcmp(what, "USER") == 0)
		puts(":users");
	for (size_t i = 0; strcmp(what, "COMMAND") == 0 && i < COMMAND_COUNT; i++)
		offer(l, slice_of(command_table[i].word), command_table[i].summary);
}

/* ---- the words before it ---- */

static void read_option(struct line *l, const char *word)
{
	const char *letter = word;
	const struct cli_option *o = NULL;

	if (word[1] == '-')
		o = cli_option_find(l->command, 0, word + 2, strlen(word + 2));
	else
		/* A letter that has a value takes the rest of the word; at its end, the next word. */
		while (*++letter && (!(o = cli_option_find(l->command, *letter, NULL, 0)) || o->value == VALUE_NONE))
			o = NULL;
	if (o && o->id == OPT_USER)
		l->socket = SOCKET_PATH_USER;
	if (o && o->value != VALUE_NONE && !cli_value_may_lack(o->value) && (word[1] == '-' || !letter[1]))
		l->option = o;
}

static void read_word(struct line *l, const char *word, int at)
{
	bool runs = l->command && l->command->args_max < 0;

	if (l->option) {
		if (l->option->id == OPT_SOCKET)
			l->socket = word;
		l->option = NULL;
	} else if (!l->ended && strcmp(word, "--") == 0) {
		l->ended = true;
	} else if (!l->ended && word[0] == '-' && word[1]) {
		read_option(l, word);
	} else if (!l->command) {
		l->command = cli_command_find(word);
		if (!l->command && strcmp(word, "help") != 0)
			l->ended = true;
	} else {
		l->count++;
		l->ended |= runs;
		if (l->command->whole && l->count == l->command->args_min && l->command->id != WORD_HOLD)
			l->command_at = at + 1;
	}
}

int cli_complete(int argc, char **argv)
{
	struct line l = { .command_at = -1, .word = argc > 0 ? argv[argc - 1] : "" };

	for (int i = 0; i + 1 < argc; i++)
		if (l.command_at < 0)
			read_word(&l, argv[i], i);
	if (l.command_at >= 0)
		printf(":command %d\n", l.command_at);
	else if (l.option)
		offer_value(&l);
	else if (!l.ended && l.word[0] == '-')
		offer_options(&l);
	else if (l.command)
		offer_argument(&l);
	else if (!l.ended)
		offer_commands(&l);
	return cli_written(CLI_OK);
}
