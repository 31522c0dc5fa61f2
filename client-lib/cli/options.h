/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The options of all commands, in one table (options.c), and the words that were typed behind a command. A letter means
 * one thing inside a command. Options end at the first word that is none for commands that run something; elsewhere
 * they stand anywhere before "--".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* In the order of the summary. */
enum cli_word {
	WORD_LOCK, WORD_HOLD, WORD_SEM, WORD_CAMPAIGN,
	WORD_LS, WORD_TOP, WORD_WHO, WORD_WHY, WORD_HISTORY, WORD_LIMIT, WORD_LEADER, WORD_OBSERVE, WORD_HOSTS, WORD_INFO,
	WORD_CHECK, WORD_METRICS, WORD_HTTP, WORD_PING, WORD_CALL,
	WORD_REVOKE, WORD_FORCE_UNLOCK, WORD_DRAIN, WORD_RESTART, WORD_RELOAD, WORD_CONFIG, WORD_ACCOUNTS, WORD_ACCESS,
	WORD_AUDIT, WORD_LOG,
	WORD_COUNT
};

enum cli_option_id {
	OPT_SHARED, OPT_EXCLUSIVE, OPT_ALSO, OPT_ANY, OPT_NOW, OPT_WAIT, OPT_CONFLICT, OPT_LEASE, OPT_GRACE,
	OPT_ON_REVOKE, OPT_DATA, OPT_CLOSE, OPT_IN_PLACE, OPT_MIN_HOLD, OPT_SPLAY, OPT_OWNER, OPT_CONNECT,
	OPT_VERBOSE, OPT_UNLOCK, OPT_LIMIT, OPT_COUNT, OPT_LINE, OPT_ALL, OPT_WATCH, OPT_WIDE, OPT_LOCK,
	OPT_WARNING, OPT_CRITICAL, OPT_TEXTFILE, OPT_LISTEN, OPT_PAGE, OPT_HOST, OPT_ANYWHERE, OPT_DRAIN_WAIT,
	OPT_DRAIN_OFF, OPT_EVENTS, OPT_SINCE, OPT_UNTIL, OPT_AT, OPT_DIRECTORY, OPT_MERGE, OPT_SOCKET, OPT_USER, OPT_JSON,
	OPT_HELP, OPT_VERSION, OPT_END
};

/* The value behind an option: its name in help, and the advice if it is wrong (cli_values). */
enum cli_value {
	VALUE_NONE, VALUE_SECONDS, VALUE_LEASE, VALUE_STATUS, VALUE_SIGNAL, VALUE_TEXT, VALUE_OWNER, VALUE_PERMITS, VALUE_NAME,
	VALUE_LINE, VALUE_EVERY, VALUE_LIMITS, VALUE_FILE, VALUE_ADDRESS, VALUE_PAGE, VALUE_HOST, VALUE_SOCKET, VALUE_TIME,
	VALUE_DIRECTORY, VALUE_COUNT
};

/* The value may be left out: then it follows a word behind "=". */
bool cli_value_may_lack(enum cli_value value);

struct cli_option {
	enum cli_option_id id;
	char letter;          /* 0: none */
	const char *word;     /* NULL: none */
	enum cli_value value;
	uint32_t commands;    /* bits of its commands, by enum cli_word; the bit of WORD_COUNT: before a command */
	const char *about;    /* lines; NULL: another way to write it, which help does not show */
};

struct cli_value_kind {
	const char *called, *wanted;
};

extern const struct cli_option cli_options[];
extern const size_t cli_option_count;
extern const struct cli_value_kind cli_values[VALUE_COUNT];

enum { CLI_ARGUMENTS_MAX = 3 };

extern const char cli_given[];

struct cli_command;

struct cli_words {
	const struct cli_command *command; /* NULL: those before one */
	const char *socket;                /* NULL: not given */
	char *arguments[CLI_ARGUMENTS_MAX + 1]; /* NULL behind the last one; of commands that have at most so many */
	int count;
	char **rest; /* the words behind the options of commands that run or send something; NULL behind the last one */
	int rest_count;
	const char *given[OPT_END]; /* the last value; cli_given without one; NULL: not given */
	enum { ASKS_RUN, ASKS_HELP, ASKS_VERSION } asks;
	/* For each option, if the command is interested: 0; -EINVAL: the value is none; an exit status, after it said why. */
	int (*take)(void *context, enum cli_option_id id, char *value);
	void *context;
};

/*
 * Reads the words, of which the first is skipped. -1: go on, perhaps with another command that is asked for; otherwise
 * CLI_USAGE, after it said what is wrong. --json and --wide are noted where commands look (json.h, sheet.h).
 */
int cli_words_read(struct cli_words *w, int argc, char **argv);
/* That command has the option; NULL: it stands before a command. */
bool cli_option_is_of(const struct cli_option *option, const struct cli_command *command);
/* By its letter, or by its word of that length. NULL: there is none. */
const struct cli_option *cli_option_find(const struct cli_command *command, char letter, const char *word, size_t len);

/* The name of the argument of that number in its usage, from 0 on: NAME; "": it has none. Returns `ret`. */
enum { CLI_ARGUMENT_MAX = 16 };
const char *cli_argument(const struct cli_command *command, int number, char ret[CLI_ARGUMENT_MAX]);
/* Says that this argument is missing, how the command is used, and `then`; returns CLI_USAGE. */
int cli_missing(const struct cli_command *command, const char *what, const char *then);

/* The word that somebody meant who wrote `word`: the nearest of the candidates. */
struct cli_near {
	const char *word, *best; /* NULL: nothing is near */
	size_t distance;
};
/* `candidate` is compared, `result` is the word that it leads to. */
void cli_near_try(struct cli_near *n, const char *candidate, const char *result);
/* The sentence " Did you mean X?", or "". `dashes` stand before X. */
const char *cli_near_hint(const struct cli_near *n, const char *dashes, char *ret, size_t size);
