/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The commands, in one table (commands.c): dispatch, the first screen, `CMD --help`, suggestions for misspelt words,
 * and the completion of shells come from it, and from the table of options (options.h).
 */
#pragma once

#include <stdbool.h>

#include "client-lib/cli/options.h"
#include "client-lib/lockbroker.h"

enum cli_group { GROUP_LOCK, GROUP_LOOK, GROUP_OPERATE, GROUP_COUNT };

struct cli_command {
	enum cli_word id;
	const char *word;
	enum cli_group group;
	const char *summary;  /* for the first screen: at most 23 characters, in the first group 62 */
	const char *sought;   /* words by which people look for it, with a space between; NULL: none */
	const char *usage;    /* the words behind its options; shells complete each by its name */
	const char *example;  /* the words of one */
	const char *about;    /* sentences, in lines of at most 78 characters */
	const char *operators; /* it is for operators: advice for other users; NULL: it is for everybody */
	int args_min, args_max;
	/* How it is run: by its own reader of the words behind it, */
	int (*whole)(const char *socket, const struct cli_command *command, int argc, char **argv);
	/* ... with its words, without a connection or with one, */
	int (*alone)(const struct cli_words *w);
	int (*run)(struct lb *lb, const struct cli_words *w);
	/* ... or by one request with its argument, whose reply is shown; without `json`, as JSON as it is. */
	const char *request;
	void (*show)(const struct lb_reply *reply);
	void (*json)(const struct lb_reply *reply);
	/* Of its options, if it looks at each that is given: as in struct cli_words, without a context. */
	int (*take)(void *context, enum cli_option_id id, char *value);
};

extern const struct cli_command cli_commands[WORD_COUNT];
/* The sections of info; NULL ends them. */
extern const char *const cli_sections[];

/* NULL: there is none. */
const struct cli_command *cli_command_find(const char *word);
/* There is no such command: says so, and which one was probably meant. Returns CLI_USAGE. */
int cli_no_command(const char *word);
/* Runs the command; argv[0] is its word. `before`: the words before it. Returns the exit status. */
int cli_command_run(const struct cli_words *before, const struct cli_command *command, int argc, char **argv);

/* The commands that have a file of their own. All return the exit status. */
int cli_lock(const char *socket, const struct cli_command *command, int argc, char **argv);
int cli_call(const struct cli_words *w);
int cli_check(const struct cli_words *w);
int cli_check_take(void *context, enum cli_option_id id, char *value);
int cli_http(const struct cli_words *w);
int cli_http_take(void *context, enum cli_option_id id, char *value);
int cli_history(const struct cli_words *w);
int cli_history_take(void *context, enum cli_option_id id, char *value);
int cli_ls(const struct cli_words *w);
int cli_top(const struct cli_words *w);
int cli_metrics(const struct cli_words *w);
int cli_access(struct lb *lb, const struct cli_words *w);
int cli_drain(struct lb *lb, const struct cli_words *w);
int cli_leader(struct lb *lb, const struct cli_words *w);
int cli_log(struct lb *lb, const struct cli_words *w);
int cli_observe(struct lb *lb, const struct cli_words *w);
int cli_who(struct lb *lb, const struct cli_words *w);

/* Prints the help of the command, on no more than a screen and a half. */
int cli_help(const struct cli_command *command);
int cli_version(void);
/* Prints the possible forms of the last word of a command line, for the completion of shells (client-lib/completion). */
int cli_complete(int argc, char **argv);
