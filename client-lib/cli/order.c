/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/order.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/say.h"

/* A lost lock may be granted to another host after a third of the session timeout (15 s): the grace ends before that. */
#define GRACE_MS 3000
#define SECONDS_MAX 1e9
enum { PERMITS_MAX = 1000000, STATUS_MAX = 255, OWNER_CHARACTERS_MAX = 64 };

/* ---- values ---- */

static int parse_seconds(const char *text, int64_t *ret_ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if ((!isdigit((unsigned char)*text) && *text != '.') || end == text || *end || !isfinite(seconds))
		return -EINVAL;
	*ret_ms = (int64_t)((seconds > SECONDS_MAX ? SECONDS_MAX : seconds) * 1000 + 0.999);
	return 0;
}

static int parse_number(const char *text, long least, long most, int64_t *ret)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || value < least || value > most)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* TERM, SIGTERM or 15; none. */
static int parse_signal(const char *text, int *ret)
{
	const char *word = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	int64_t number;

	if (parse_number(text, 0, NSIG - 1, &number) < 0) {
		for (number = NSIG - 1; number > 0; number--) {
			const char *name = sigabbrev_np((int)number);

			if (name && strcasecmp(name, word) == 0)
				break;
		}
		if (number == 0 && strcasecmp(text, "none") != 0)
			return -EINVAL;
	}
	*ret = (int)number;
	return 0;
}

/* ---- options ---- */

static bool is_owner(const char *text)
{
	size_t len = strlen(text);

	while (isgraph((unsigned char)*text))
		text++;
	return len <= OWNER_CHARACTERS_MAX && !*text;
}

static int parse_lease(const char *text, int64_t *ret_ms)
{
	int r = parse_seconds(text, ret_ms);

	return r == 0 && *ret_ms == 0 ? -EINVAL : r;
}

/* 0; -EINVAL: its value is wrong. */
static int take(void *context, enum cli_option_id id, char *text)
{
	struct cli_order *o = context;

	switch ((int)id) {
	case OPT_WAIT:
		return parse_seconds(text, &o->options.timeout_ms);
	case OPT_CONNECT:
		return parse_seconds(text, &o->connect_ms);
	case OPT_SPLAY:
		return parse_seconds(text, &o->splay_ms);
	case OPT_GRACE:
		return parse_seconds(text, &o->grace_ms);
	case OPT_MIN_HOLD:
		return parse_seconds(text, &o->min_hold_ms);
	case OPT_LEASE:
		return parse_lease(text, &o->options.lease_ms);
	case OPT_CONFLICT:
		return parse_number(text, 0, STATUS_MAX, &o->conflict);
	case OPT_ON_REVOKE:
		return parse_signal(text, &o->on_revoke);
	case OPT_LIMIT:
		return parse_number(text, 1, PERMITS_MAX, &o->limit);
	case OPT_COUNT:
		return parse_number(text, 1, PERMITS_MAX, &o->permits);
	case OPT_DATA:
		o->options.data = text;
		return *text && strlen(text) <= LIMIT_DATA_BYTES_MAX ? 0 : -EINVAL;
	case OPT_OWNER:
		o->owner = text;
		return is_owner(text) ? 0 : -EINVAL;
	case OPT_ALSO:
		/* The first place is NAME's. */
		if (++o->count <= LIMIT_NAMES_MAX)
			o->names[o->count - 1] = text;
		break;
	case OPT_SHARED:
	case OPT_EXCLUSIVE:
		o->options.shared = id == OPT_SHARED;
		break;
	case OPT_NOW:
		o->options.timeout_ms = 0;
		break;
	}
	return 0;
}

/* ---- words ---- */

static int read_line(struct cli_order *o, char **words)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	char *chosen = getenv("SHELL");

	if (!words[1] || words[2])
		return cli_usage("%s needs exactly one word, LINE: put it in quotes.", words[0]);
	o->line[0] = chosen && *chosen ? chosen : shell;
	o->line[1] = option;
	o->line[2] = words[1];
	o->command = o->line;
	return CLI_OK;
}

static bool is_line(const char *word)
{
	return strcmp(word, "-c") == 0 || strcmp(word, "--command") == 0;
}

/* Behind the first NAME of --any: the other ones, up to the words of the command, which it returns. */
static char **read_names(struct cli_order *o, char **words)
{
	for (; *words && strcmp(*words, "--") != 0 && !is_line(*words); words++)
		if (++o->count <= LIMIT_NAMES_MAX)
			o->names[o->count - 1] = *words;
	return words;
}

/* The words behind NAME, and DATA. */
static int read_command(struct cli_order *o, char **words)
{
	if (!o->runs)
		return !*words ? CLI_OK
			       : cli_usage("hold runs no command%s: it does not take \"%s\".",
					   o->any ? "" : ", and takes one NAME (-a NAME for each further one)", *words);
	if (*words && is_line(*words))
		return read_line(o, words);
	if (*words && strcmp(*words, "--") == 0)
		words++;
	if (!*words)
		return cli_missing(o->verb, "CMD",
				   o->any ? " With --any, all words up to \"--\" are names: `lockbroker lock --any NAME... -- CMD`." :
				   o->held == HELD_LOCKS ? " Without a command, `lockbroker hold NAME` holds a lock." : "");
	o->command = words;
	while (*++words)
		o->with_dashes |= strcmp(*words, "--") == 0;
	return CLI_OK;
}

static int check(const struct cli_order *o, const char *const *given)
{
	/* Somebody has to stay to do what they ask for. */
	static const struct {
		enum cli_option_id id;
		const char *called;
	} excluded[] = { { OPT_CLOSE, "-o" }, { OPT_GRACE, "-k" }, { OPT_ON_REVOKE, "-r" }, { OPT_LEASE, "-L" },
			 { OPT_MIN_HOLD, "--min-hold" } };

	if (o->count > LIMIT_NAMES_MAX)
		return cli_usage("%s takes at most %d names, not %zu.", o->verb->word, LIMIT_NAMES_MAX, o->count);
	if (o->held == HELD_PERMITS && !o->limit)
		return cli_usage("sem needs -l N, the number of permits that the semaphore has.");
	if (o->held == HELD_PERMITS && o->permits > o->limit)
		return cli_usage("-K asks for %lld permits, and -l says that the semaphore has %lld.", (long long)o->permits,
				 (long long)o->limit);
	if (o->options.data && o->count > 1 && !o->any)
		return cli_usage("-d cannot be used with several names (-a).");
	for (size_t i = 0; o->in_place && i < sizeof(excluded) / sizeof(excluded[0]); i++)
		if (given[excluded[i].id])
			return cli_usage("-F does not go with %s: CMD takes our place, and nobody is left to see to that.",
					 excluded[i].called);
	return CLI_OK;
}

static enum cli_held held_by(const struct cli_command *verb)
{
	return verb->id == WORD_SEM ? HELD_PERMITS : verb->id == WORD_CAMPAIGN ? HELD_LEADERSHIP : HELD_LOCKS;
}

int cli_order_read(struct cli_order *o, const struct cli_command *verb, int argc, char **argv)
{
	struct cli_words w = { .command = verb, .take = take, .context = o };
	char **words;
	int status;

	*o = (struct cli_order){ .verb = verb, .held = held_by(verb), .runs = verb->id != WORD_HOLD,
				 .options = LB_OPTIONS, .permits = 1, .connect_ms = -1, .grace_ms = GRACE_MS,
				 .conflict = CLI_TAKEN, .count = 1 };
	status = cli_words_read(&w, argc, argv);
	o->socket = w.socket;
	o->asks = w.asks;
	o->closes = w.given[OPT_CLOSE];
	o->in_place = w.given[OPT_IN_PLACE];
	o->verbose = w.given[OPT_VERBOSE];
	o->any = w.given[OPT_ANY];
	if (status >= 0 || o->asks != ASKS_RUN)
		return status >= 0 ? status : CLI_OK;
	words = w.rest;
	if (!*words)
		return cli_missing(o->verb, "NAME", "");
	o->names[0] = *words++;
	if (o->held == HELD_LEADERSHIP) {
		if (!*words || strcmp(*words, "--") == 0)
			return cli_missing(o->verb, "DATA", "");
		o->data = *words++;
	}
	if (o->any)
		words = read_names(o, words);
	status = read_command(o, words);
	return status == CLI_OK ? check(o, w.given) : status;
}
