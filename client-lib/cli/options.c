/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <sys/param.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/socket_path.h"

#define BIT(word) (UINT32_C(1) << WORD_##word)
#define LOCKS (BIT(LOCK) | BIT(HOLD))
#define RUNS (BIT(LOCK) | BIT(SEM) | BIT(CAMPAIGN))
#define HOLDS (LOCKS | RUNS)
#define BEFORE BIT(COUNT)
#define EACH (BEFORE | (BEFORE - 1))
#define NO_JSON (RUNS | BIT(TOP) | BIT(METRICS) | BIT(HTTP))
#define TABLES (BIT(LS) | BIT(WHO) | BIT(HOSTS) | BIT(HISTORY))

const struct cli_option cli_options[] = {
	{ OPT_LIMIT, 'l', "limit", VALUE_PERMITS, BIT(SEM), "how many permits there are in all (needed)" },
	{ OPT_COUNT, 'K', "count", VALUE_PERMITS, BIT(SEM), "how many of them CMD needs (1)" },
	{ OPT_SHARED, 's', "shared", VALUE_NONE, LOCKS, "share the lock with others that share it" },
	{ OPT_EXCLUSIVE, 'x', "exclusive", VALUE_NONE, LOCKS, "hold it alone (the default)" },
	{ OPT_EXCLUSIVE, 'e', NULL, VALUE_NONE, LOCKS, NULL },
	{ OPT_ALSO, 'a', "also", VALUE_NAME, LOCKS, "hold the lock NAME, too: all or none (up to 64)" },
	{ OPT_ALSO, 0, "a", VALUE_NAME, LOCKS, NULL }, /* which --a was before there was --any */
	{ OPT_ANY, 0, "any", VALUE_NONE, BIT(LOCK), "hold one of these locks: NAME... -- CMD (up to 64)" },
	{ OPT_ANY, 0, "any", VALUE_NONE, BIT(HOLD), "hold one of these locks: NAME... (up to 64)" },
	{ OPT_NOW, 'n', "nonblock", VALUE_NONE, HOLDS, "do not wait: exit with 75 if it is taken" },
	{ OPT_NOW, 0, "nb", VALUE_NONE, HOLDS, NULL },
	{ OPT_NOW, 0, "nonblocking", VALUE_NONE, HOLDS, NULL },
	{ OPT_WAIT, 'w', "wait", VALUE_SECONDS, HOLDS, "wait at most SEC, then exit with 75" },
	{ OPT_WAIT, 0, "timeout", VALUE_SECONDS, HOLDS, NULL },
	{ OPT_CONFLICT, 'E', "conflict-exit-code", VALUE_STATUS, HOLDS, "exit with STATUS instead of 75" },
	{ OPT_LEASE, 'L', "lease", VALUE_LEASE, LOCKS | BIT(SEM), "release it after SEC, as if it were lost" },
	{ OPT_LEASE, 0, "l", VALUE_LEASE, BIT(SEM), NULL }, /* which --l was before there was --limit */
	{ OPT_GRACE, 'k', "kill-after", VALUE_SECONDS, RUNS, "time from SIGTERM to SIGKILL after a loss (3)" },
	{ OPT_ON_REVOKE, 'r', "on-revoke", VALUE_SIGNAL, RUNS, "send SIGNAL to CMD when asked to release the lock" },
	{ OPT_DATA, 'd', "data", VALUE_TEXT, LOCKS, "a text that `who` and `ls` show with it" },
	{ OPT_CLOSE, 'o', "close", VALUE_NONE, RUNS, "background processes of CMD do not keep the lock" },
	{ OPT_IN_PLACE, 'F', "no-fork", VALUE_NONE, RUNS,
	  "CMD takes the place of lockbroker: nobody ends\nCMD when the lock is lost" },
	{ OPT_MIN_HOLD, 0, "min-hold", VALUE_SECONDS, RUNS, "hold it for SEC, even if CMD ends before" },
	{ OPT_SPLAY, 0, "splay", VALUE_SECONDS, HOLDS, "first sleep a random time of up to SEC" },
	{ OPT_OWNER, 0, "owner", VALUE_OWNER, LOCKS,
	  "commands of one OWNER are one group: exit with 70\nif one of them would wait for another" },
	{ OPT_CONNECT, 0, "connect", VALUE_SECONDS, HOLDS,
	  "how long to try to reach a broker that is away\n(5; with -n: one try)" },
	{ OPT_VERBOSE, 0, "verbose", VALUE_NONE, HOLDS, "say who holds it, and how long it took" },
	{ OPT_UNLOCK, 'u', "unlock", VALUE_NONE, HOLDS, NULL },
	{ OPT_LINE, 'c', "command", VALUE_LINE, RUNS, "after NAME: $SHELL runs LINE (one argument)" },
	{ OPT_ALL, 'a', NULL, VALUE_NONE, BIT(LS), NULL },
	{ OPT_ALL, 0, "all", VALUE_NONE, BIT(LS), "the locks of all hosts, with their holders" },
	{ OPT_WATCH, 'w', NULL, VALUE_EVERY, BIT(LS), NULL },
	{ OPT_WATCH, 0, "watch", VALUE_EVERY, BIT(LS), "show the list again every 2 seconds, or every SEC" },
	{ OPT_SINCE, 0, "since", VALUE_TIME, BIT(HISTORY), "only holds and waits at T or later" },
	{ OPT_UNTIL, 0, "until", VALUE_TIME, BIT(HISTORY), "only holds and waits at T or earlier" },
	{ OPT_AT, 0, "at", VALUE_TIME, BIT(HISTORY), "only holds and waits in that second (or minute, day)" },
	{ OPT_DIRECTORY, 0, "directory", VALUE_DIRECTORY, BIT(HISTORY), "read the journals in DIR, collected from other hosts" },
	{ OPT_MERGE, 0, "merge", VALUE_NONE, BIT(HISTORY), "also read journals that other hosts have sent here" },
	{ OPT_WIDE, 0, "wide", VALUE_NONE, TABLES, "all columns" },
	{ OPT_LOCK, 0, "lock", VALUE_NAME, BIT(CHECK),
	  "also take the lock NAME from ZooKeeper, and\nrelease it; wait for it for at most 5 s" },
	{ OPT_WARNING, 'w', NULL, VALUE_LIMITS, BIT(CHECK), NULL },
	{ OPT_WARNING, 0, "warning", VALUE_LIMITS, BIT(CHECK), "thresholds of a warning" },
	{ OPT_CRITICAL, 'c', NULL, VALUE_LIMITS, BIT(CHECK), NULL },
	{ OPT_CRITICAL, 0, "critical", VALUE_LIMITS, BIT(CHECK), "thresholds of critical" },
	{ OPT_TEXTFILE, 0, "textfile", VALUE_FILE, BIT(METRICS), "write the metrics to FILE, for a collector of files" },
	{ OPT_LISTEN, 0, "listen", VALUE_ADDRESS, BIT(HTTP), "serve the metrics there, such as 127.0.0.1:9764" },
	{ OPT_PAGE, 0, "page", VALUE_PAGE, BIT(HTTP),
	  "serve a page with all locks, at 127.0.0.1:9765, at\nADDRESS:PORT (loopback only) or at unix:PATH" },
	{ OPT_HOST, 0, "host", VALUE_HOST, BIT(HTTP), "also answer requests to this name of the host" },
	{ OPT_ANYWHERE, 0, "anywhere", VALUE_NONE, BIT(HTTP), "ADDRESS may be one where other hosts can connect" },
	{ OPT_DRAIN_WAIT, 0, "wait", VALUE_NONE, BIT(DRAIN), "wait until nothing is held; show what still is" },
	{ OPT_DRAIN_OFF, 0, "off", VALUE_NONE, BIT(DRAIN), "grant again" },
	{ OPT_EVENTS, 'e', "events", VALUE_NONE, BIT(CALL), "go on after the reply, and show events" },
	{ OPT_SOCKET, 'S', "socket", VALUE_SOCKET, EACH, "the broker's socket, not $LOCKBROKER_SOCKET" },
	{ OPT_USER, 0, "user", VALUE_NONE, EACH, "use a broker of your own, on this host alone" },
	{ OPT_JSON, 0, "json", VALUE_NONE, EACH & ~NO_JSON, "print JSON, a value in each line" },
	{ OPT_HELP, 'h', "help", VALUE_NONE, EACH, "print this help" },
	{ OPT_VERSION, 'V', "version", VALUE_NONE, EACH, "print the version" },
};
const char cli_given[] = "";

const size_t cli_option_count = sizeof(cli_options) / sizeof(cli_options[0]);

const struct cli_value_kind cli_values[VALUE_COUNT] = {
	[VALUE_NONE] = { "", "" },
	[VALUE_SECONDS] = { "SEC", "a number of seconds" },
	[VALUE_LEASE] = { "SEC", "a number of seconds greater than 0" },
	[VALUE_STATUS] = { "STATUS", "an exit status of 0 to 255" },
	[VALUE_SIGNAL] = { "SIGNAL", "a signal, such as TERM" },
	[VALUE_TEXT] = { "TEXT", "a text of 1 to 512 bytes" },
	[VALUE_OWNER] = { "OWNER", "a text of at most 64 printable ASCII characters without spaces" },
	[VALUE_PERMITS] = { "N", "a number of permits, from 1 on" },
	[VALUE_NAME] = { "NAME", "a name" },
	[VALUE_LINE] = { "LINE", "a line" },
	[VALUE_EVERY] = { "SEC", "a number of seconds, 0.1 to 86400" },
	[VALUE_LIMITS] = { "LIMITS", "limit=PERCENT, wait=SEC, proof=SEC or answer=SEC, separated by commas" },
	[VALUE_FILE] = { "FILE", "a file" },
	[VALUE_ADDRESS] = { "ADDRESS:PORT", "an address and a port" },
	[VALUE_PAGE] = { "ADDRESS:PORT", "a loopback address and a port, or unix:PATH" },
	[VALUE_HOST] = { "NAME", "a name of this host" },
	[VALUE_SOCKET] = { "SOCKET", "a path" },
	[VALUE_TIME] = { "T", "a time, such as 20:31, \"2026-11-30 20:31:05\", yesterday, -2h or @1796077865" },
	[VALUE_DIRECTORY] = { "DIR", "a directory" },
};

bool cli_option_is_of(const struct cli_option *option, const struct cli_command *command)
{
	return option->commands >> (command ? command->id : WORD_COUNT) & 1;
}

const struct cli_option *cli_option_find(const struct cli_command *command, char letter, const char *word, size_t len)
{
	for (size_t i = 0; i < cli_option_count; i++) {
		const struct cli_option *o = &cli_options[i];

		if (!cli_option_is_of(o, command))
			continue;
		if (letter ? o->letter == letter : o->word && strlen(o->word) == len && memcmp(o->word, word, len) == 0)
			return o;
	}
	return NULL;
}

/* ---- what was meant ---- */

enum { NEAR_CHARACTERS_MAX = 64 };

/*
 * How many characters have to be added, left out or replaced, or exchanged with their neighbour, to make one word of the
 * other one (Damerau and Levenshtein; nothing is changed twice). Capitals of the first one are as good as small letters.
 */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NEAR_CHARACTERS_MAX + 1], a_len = strlen(a), b_len = strlen(b);

	if (a_len > NEAR_CHARACTERS_MAX || b_len > NEAR_CHARACTERS_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *row = rows[i % 3], *above = rows[(i - 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = MIN(MIN(above[j], row[j - 1]) + 1, above[j - 1] + (tolower((unsigned char)a[i - 1]) != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = MIN(row[j], rows[(i - 2) % 3][j - 2] + 1);
		}
	}
	return rows[a_len % 3][b_len];
}

void cli_near_try(struct cli_near *n, const char *candidate, const char *result)
{
	size_t found = distance(n->word, candidate), least = MIN(strlen(n->word), strlen(candidate));

	/* A word of which hardly a letter stays was not meant. */
	if (found > 1 + least / 4 || found >= least || (n->best && found >= n->distance))
		return;
	n->best = result;
	n->distance = found;
}

const char *cli_near_hint(const struct cli_near *n, const char *dashes, char *ret, size_t size)
{
	if (n->best)
		snprintf(ret, size, " Did you mean %s%s?", dashes, n->best);
	else
		*ret = '\0';
	return ret;
}

/* ---- reading ---- */

/* getopt_long() returns the letter, or for a word this and the id of its option. */
enum { BY_WORD = 256 };

struct syntax {
	char letters[2 + 3 * OPT_END];
	struct option words[2 * OPT_END];
};

bool cli_value_may_lack(enum cli_value value)
{
	return value == VALUE_EVERY || value == VALUE_PAGE;
}

static int arguments_of(const struct cli_option *o)
{
	if (o->value == VALUE_NONE)
		return no_argument;
	return cli_value_may_lack(o->value) ? optional_argument : required_argument;
}

static void syntax_of(struct syntax *s, const struct cli_command *command)
{
	size_t used = 0, count = 0;

	*s = (struct syntax){ 0 };
	/* Options end at the first word that is none, or stand anywhere; ':' has a missing value told apart. */
	s->letters[used++] = command && command->args_max >= 0 ? '-' : '+';
	s->letters[used++] = ':';
	for (size_t i = 0; i < cli_option_count; i++) {
		const struct cli_option *o = &cli_options[i];

		if (!cli_option_is_of(o, command) || o->id == OPT_LINE)
			continue;
		if (o->letter)
			s->letters[used++] = o->letter;
		for (int colons = arguments_of(o); o->letter && colons > 0; colons--)
			s->letters[used++] = ':';
		if (o->word)
			s->words[count++] = (struct option){ o->word, arguments_of(o), NULL, BY_WORD + (int)o->id };
	}
}

/* The options of the command that begin with the word, "--all, --also"; and of all, the nearest to it. */
static void compare(const struct cli_words *w, struct cli_near *near, char *ret_several, size_t size)
{
	size_t used = 0, len = strlen(near->word);

	*ret_several = '\0';
	for (size_t i = 0; i < cli_option_count; i++) {
		const char *word = cli_options[i].word;

		if (!word || !cli_options[i].about || !cli_option_is_of(&cli_options[i], w->command))
			continue;
		cli_near_try(near, word, word);
		if (len > 0 && strncmp(word, near->word, len) == 0 && used < size)
			used += (size_t)snprintf(ret_several + used, size - used, "%s--%s", used ? ", " : "", word);
	}
}

static int unknown(const struct cli_words *w, const char *typed)
{
	char letter[3] = { '-', (char)optopt, '\0' }, hint[128] = "", several[256] = "", name[NEAR_CHARACTERS_MAX + 1] = "";
	struct cli_near near = { .word = name };
	bool by_word = optopt == 0;

	if (optopt >= BY_WORD)
		return cli_usage("%.*s takes no value.", (int)strcspn(typed, "="), typed);
	if (by_word) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
		compare(w, &near, several, sizeof(several));
		cli_near_hint(&near, "--", hint, sizeof(hint));
	}
	/* The beginning of one would have been taken for it. */
	if (*several)
		return cli_usage("--%s is the beginning of several options: %s.", name, several);
	if (!w->command)
		return cli_usage("There is no option %s.%s", by_word ? typed : letter, hint);
	return cli_usage("%s has no option %s.%s", w->command->word, by_word ? typed : letter, hint);
}

/* What getopt_long() has returned, or could not read. */
static const struct cli_option *option_of(const struct cli_command *command, int code)
{
	for (size_t i = 0; i < cli_option_count; i++) {
		const struct cli_option *o = &cli_options[i];

		if (cli_option_is_of(o, command) && (code < BY_WORD ? o->letter == code : o->word && (int)o->id == code - BY_WORD))
			return o;
	}
	return NULL;
}

/* `by_word`: the word by which it was given; NULL: its letter. -1: go on. Otherwise the exit status. */
static int take(struct cli_words *w, const struct cli_option *o, const char *by_word)
{
	int status = 0;

	if (o->id == OPT_UNLOCK)
		return cli_usage("%s has no %s: a lock is released when CMD ends, or the `lockbroker hold` that holds it.",
				 w->command->word, by_word ? "--unlock" : "-u");
	if (o->id == OPT_SOCKET && !*optarg)
		return cli_usage("-S needs a path, not \"\".");
	if (o->id == OPT_SOCKET)
		w->socket = optarg;
	else if (o->id == OPT_USER)
		w->socket = SOCKET_PATH_USER;
	else if (o->id == OPT_JSON)
		cli_json_asked = true;
	else if (o->id == OPT_WIDE)
		cli_wide_asked = true;
	else if (o->id == OPT_HELP)
		w->asks = ASKS_HELP;
	else if (o->id == OPT_VERSION)
		w->asks = ASKS_VERSION;
	else if (w->take)
		status = w->take(w->context, o->id, optarg);
	w->given[o->id] = optarg ? optarg : cli_given;
	if (status > 0)
		return status;
	if (status == 0)
		return -1;
	return cli_usage("%s%.*s needs %s, not \"%s\".", by_word ? "--" : "-", by_word ? INT_MAX : 1,
			 by_word ? by_word : &o->letter, cli_values[o->value].wanted, optarg);
}

static int add_argument(struct cli_words *w, char *word)
{
	if (w->count >= w->command->args_max)
		return cli_usage("%s does not take the argument \"%s\".", w->command->word, word);
	w->arguments[w->count++] = word;
	return -1;
}

const char *cli_argument(const struct cli_command *command, int number, char ret[CLI_ARGUMENT_MAX])
{
	const char *at = command->usage;

	for (; number > 0 && *at; number--)
		at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
	at += strspn(at, "[{");
	snprintf(ret, CLI_ARGUMENT_MAX, "%.*s", (int)strcspn(at, "]} "), at);
	return ret;
}

int cli_missing(const struct cli_command *command, const char *what, const char *then)
{
	return cli_usage("%s is missing: lockbroker %s [OPTION...] %s.%s", what, command->word, command->usage, then);
}

static int read_rest(struct cli_words *w)
{
	char what[CLI_ARGUMENT_MAX];
	int status = -1;

	if (!w->command || w->command->args_max < 0)
		return -1;
	for (int i = 0; status < 0 && i < w->rest_count; i++)
		status = add_argument(w, w->rest[i]);
	if (status >= 0)
		return status;
	return w->count < w->command->args_min ? cli_missing(w->command, cli_argument(w->command, w->count, what), "") : -1;
}

int cli_words_read(struct cli_words *w, int argc, char **argv)
{
	struct syntax syntax;
	int c, at = -1, status = -1;

	syntax_of(&syntax, w->command);
	/* 0 makes getopt forget the command line that it is parsing. */
	optind = 0;
	opterr = 0;
	for (; status < 0 && (c = getopt_long(argc, argv, syntax.letters, syntax.words, &at)) != -1; at = -1) {
		const char *typed = optind > 0 ? argv[optind - 1] : "";

		if (c == '?')
			return unknown(w, typed);
		if (c == ':')
			return cli_usage("%s needs %s.", typed, cli_values[option_of(w->command, optopt)->value].wanted);
		if (c == 1) {
			status = add_argument(w, optarg);
			continue;
		}
		status = take(w, option_of(w->command, c), at >= 0 ? syntax.words[at].name : NULL);
		if (w->asks != ASKS_RUN)
			break;
	}
	w->rest = argv + optind;
	w->rest_count = argc - optind;
	if (w->asks != ASKS_RUN)
		return -1;
	return status < 0 ? read_rest(w) : status;
}
