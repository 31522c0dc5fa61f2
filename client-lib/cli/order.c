/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/order.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client-lib/cli/say.h"

/* A lost lock may be granted to another host after a third of the session timeout (15 s): the grace ends before that. */
#define GRACE_MS 3000
#define SECONDS_MAX 1e9
enum { PERMITS_MAX = 1000000, STATUS_MAX = 255, OWNER_CHARACTERS_MAX = 64 };

/* Options that only have a word. */
enum { OWNER = 'O', CONNECT = 'C', MIN_HOLD = 'M', SPLAY = 'P', VERBOSE = 'v', JSON = 'j' };

/* + : getopt stops at the first word that is no option; : it tells a missing argument from an unknown option. */
static const struct cli_verb verbs[] = {
	{ "lock", HELD_LOCKS, true, "+:sxenw:E:oFk:r:L:d:a:uhV", "OCMPv", "NAME CMD [ARG...]" },
	{ "hold", HELD_LOCKS, false, "+:sxenw:E:L:d:a:uhV", "OCPvj", "NAME" },
	{ "sem", HELD_PERMITS, true, "+:nw:E:oFk:r:L:l:K:uhV", "CMPv", "NAME CMD [ARG...]" },
	{ "campaign", HELD_LEADERSHIP, true, "+:nw:E:oFk:r:uhV", "CMPv", "NAME DATA CMD [ARG...]" },
};

static const struct option options[] = {
	{ "shared", no_argument, NULL, 's' },
	{ "exclusive", no_argument, NULL, 'x' },
	{ "nb", no_argument, NULL, 'n' },
	{ "nonblock", no_argument, NULL, 'n' },
	{ "nonblocking", no_argument, NULL, 'n' },
	{ "wait", required_argument, NULL, 'w' },
	{ "timeout", required_argument, NULL, 'w' },
	{ "conflict-exit-code", required_argument, NULL, 'E' },
	{ "close", no_argument, NULL, 'o' },
	{ "no-fork", no_argument, NULL, 'F' },
	{ "unlock", no_argument, NULL, 'u' },
	{ "on-revoke", required_argument, NULL, 'r' },
	{ "lease", required_argument, NULL, 'L' },
	{ "count", required_argument, NULL, 'K' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "owner", required_argument, NULL, OWNER },
	{ "connect", required_argument, NULL, CONNECT },
	{ "min-hold", required_argument, NULL, MIN_HOLD },
	{ "splay", required_argument, NULL, SPLAY },
	{ "verbose", no_argument, NULL, VERBOSE },
	{ "json", no_argument, NULL, JSON },
	{ 0 },
};

const struct cli_verb *cli_verb_find(const char *word)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(word, verbs[i].word) == 0)
			return &verbs[i];
	return NULL;
}

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

static int parse_status(const char *text, int *ret)
{
	int64_t number = 0;
	int r = parse_number(text, 0, STATUS_MAX, &number);

	if (r == 0)
		*ret = (int)number;
	return r;
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

/* As it was given: by its letter or by its word. */
static const char *option_name(int c, int at, char ret[40])
{
	size_t used = 0;

	if (at >= 0)
		ret[used++] = '-';
	ret[used++] = '-';
	if (at >= 0)
		strncpy(ret + used, options[at].name, 40 - used - 1)[40 - used - 1] = '\0';
	else
		memcpy(ret + used, (char[]){ (char)c, '\0' }, 2);
	return ret;
}

static const char *argument_of(int c)
{
	switch (c) {
	case 'E':
		return "an exit status of 0 to 255";
	case 'l':
	case 'K':
		return "a number of permits, from 1 on";
	case 'r':
		return "a signal, such as TERM";
	case 'd':
		return "a text of 1 to 512 bytes";
	case OWNER:
		return "a text of at most 64 printable ASCII characters without spaces";
	case 'a':
		return "a name";
	case 'L':
		return "a number of seconds greater than 0";
	}
	return "a number of seconds";
}

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

/* 0; -EINVAL: its argument is wrong. */
static int take_with_argument(struct cli_order *o, int c)
{
	switch (c) {
	case 'w':
		return parse_seconds(optarg, &o->options.timeout_ms);
	case 'E':
		return parse_status(optarg, &o->conflict);
	case 'k':
		return parse_seconds(optarg, &o->grace_ms);
	case 'L':
		return parse_lease(optarg, &o->options.lease_ms);
	case 'r':
		return parse_signal(optarg, &o->on_revoke);
	case 'l':
		return parse_number(optarg, 1, PERMITS_MAX, &o->limit);
	case 'K':
		return parse_number(optarg, 1, PERMITS_MAX, &o->permits);
	case CONNECT:
		return parse_seconds(optarg, &o->connect_ms);
	case MIN_HOLD:
		return parse_seconds(optarg, &o->min_hold_ms);
	case SPLAY:
		return parse_seconds(optarg, &o->splay_ms);
	case 'd':
		o->options.data = optarg;
		return *optarg && strlen(optarg) <= LIMIT_DATA_BYTES_MAX ? 0 : -EINVAL;
	case OWNER:
		o->owner = optarg;
		return is_owner(optarg) ? 0 : -EINVAL;
	case 'a':
		/* The first place is NAME's. */
		if (++o->count <= LIMIT_NAMES_MAX)
			o->names[o->count - 1] = optarg;
		break;
	}
	return 0;
}

static void take_flag(struct cli_order *o, int c)
{
	switch (c) {
	case 's':
	case 'x':
	case 'e':
		o->options.shared = c == 's';
		break;
	case 'n':
		o->options.timeout_ms = 0;
		break;
	case 'o':
		o->closes = true;
		break;
	case 'F':
		o->in_place = true;
		break;
	case 'h':
		o->asks = ORDER_HELP;
		break;
	case 'V':
		o->asks = ORDER_VERSION;
		break;
	case VERBOSE:
		o->verbose = true;
		break;
	case JSON:
		o->json = true;
		break;
	}
}

/* Somebody has to stay to do what they ask for. */
static void note_excluded(struct cli_order *o, int c)
{
	if (o->excluded)
		return;
	if (c == MIN_HOLD)
		o->excluded = "--min-hold";
	else if (strchr("okrL", c))
		o->excluded = c == 'o' ? "-o" : c == 'k' ? "-k" : c == 'r' ? "-r" : "-L";
}

static int unknown_option(const struct cli_verb *verb, char **argv)
{
	if (optopt == 0 || strncmp(argv[optind - 1], "--", 2) == 0)
		return cli_usage("%s has no option %s.", verb->word, argv[optind - 1]);
	return cli_usage("%s has no option -%c.", verb->word, optopt);
}

static int read_options(struct cli_order *o, int argc, char **argv)
{
	const struct cli_verb *verb = o->verb;
	char name[40];
	int c, at = -1;

	/* 0 makes getopt forget the command line that it is parsing. */
	optind = 0;
	opterr = 0;
	for (; (c = getopt_long(argc, argv, verb->letters, options, &at)) != -1; at = -1) {
		if (c == '?')
			return unknown_option(verb, argv);
		if (c == ':')
			return cli_usage("%s needs %s.", argv[optind - 1], argument_of(optopt));
		/* The letters are the verb's own; the words are those of all verbs. */
		if (!strchr(verb->letters, c) && !strchr(verb->longs, c))
			return cli_usage("%s has no option --%s.", verb->word, options[at].name);
		if (c == 'u')
			return cli_usage("%s has no %s: a lock is released when CMD ends, or the `lockbroker hold` that holds "
					 "it.", verb->word, option_name(c, at, name));
		if (take_with_argument(o, c) < 0)
			return cli_usage("%s needs %s, not \"%s\".", option_name(c, at, name), argument_of(c), optarg);
		take_flag(o, c);
		note_excluded(o, c);
		if (o->asks != ORDER_RUN)
			break;
	}
	return CLI_OK;
}

/* ---- words ---- */

static int missing(const struct cli_verb *verb, const char *what)
{
	if (strcmp(what, "CMD") == 0)
		return cli_usage("CMD is missing: lockbroker %s [OPTION...] %s.%s", verb->word, verb->wants,
				 verb->held == HELD_LOCKS ? " Without a command, `lockbroker hold NAME` holds a lock." : "");
	return cli_usage("%s is missing: lockbroker %s [OPTION...] %s.", what, verb->word, verb->wants);
}

static int read_line(struct cli_order *o, int argc, char **argv)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	char *chosen = getenv("SHELL");

	if (argc != 2)
		return cli_usage("%s needs exactly one word, LINE: put it in quotes.", argv[0]);
	o->line[0] = chosen && *chosen ? chosen : shell;
	o->line[1] = option;
	o->line[2] = argv[1];
	o->command = o->line;
	return CLI_OK;
}

/* The words behind NAME, and DATA. */
static int read_command(struct cli_order *o, int argc, char **argv)
{
	if (!o->verb->runs)
		return argc == 0 ? CLI_OK : cli_usage("hold runs no command, and takes one NAME (-a NAME for each further one): "
						      "it does not take \"%s\".", argv[0]);
	if (argc > 0 && (strcmp(argv[0], "-c") == 0 || strcmp(argv[0], "--command") == 0))
		return read_line(o, argc, argv);
	if (argc > 0 && strcmp(argv[0], "--") == 0) {
		argc--;
		argv++;
	}
	if (argc == 0)
		return missing(o->verb, "CMD");
	o->command = argv;
	for (int i = 1; i < argc; i++)
		o->with_dashes |= strcmp(argv[i], "--") == 0;
	return CLI_OK;
}

static int check(const struct cli_order *o)
{
	if (o->count > LIMIT_NAMES_MAX)
		return cli_usage("%s takes at most %d names, not %zu.", o->verb->word, LIMIT_NAMES_MAX, o->count);
	if (o->verb->held == HELD_PERMITS && !o->limit)
		return cli_usage("sem needs -l N, the number of permits that the semaphore has.");
	if (o->verb->held == HELD_PERMITS && o->permits > o->limit)
		return cli_usage("-K asks for %lld permits, and -l says that the semaphore has %lld.", (long long)o->permits,
				 (long long)o->limit);
	if (o->options.data && o->count > 1)
		return cli_usage("-d cannot be used with several names (-a).");
	if (o->in_place && o->excluded)
		return cli_usage("-F does not go with %s: CMD takes our place, and nobody is left to see to that.", o->excluded);
	return CLI_OK;
}

int cli_order_read(struct cli_order *o, const struct cli_verb *verb, int argc, char **argv)
{
	int status;

	*o = (struct cli_order){ .verb = verb, .options = LB_OPTIONS, .permits = 1, .connect_ms = -1,
				 .grace_ms = GRACE_MS, .conflict = CLI_TAKEN, .count = 1 };
	status = read_options(o, argc, argv);
	if (status != CLI_OK || o->asks != ORDER_RUN)
		return status;
	argc -= optind;
	argv += optind;
	if (argc == 0)
		return missing(verb, "NAME");
	o->names[0] = *argv++;
	argc--;
	if (verb->held == HELD_LEADERSHIP) {
		if (argc == 0 || strcmp(argv[0], "--") == 0)
			return missing(verb, "DATA");
		o->data = *argv++;
		argc--;
	}
	status = read_command(o, argc, argv);
	return status == CLI_OK ? check(o) : status;
}
