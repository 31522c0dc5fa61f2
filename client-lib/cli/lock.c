/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker lock runs a command while holding a lock, or several; lockbroker sem, while holding permits of a semaphore;
 * lockbroker campaign, while leading an election. This file parses the words and acquires; job.c does the rest.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/job.h"
#include "client-lib/cli/nested.h"
#include "client-lib/cli/say.h"
#include "client-lib/handle.h"
#include "client-lib/wire.h"
#include "protocol/limits.h"

/* A lost lock may be granted to another host after a third of the session timeout (15 s): the grace ends before that. */
#define GRACE_MS 3000
#define SECONDS_MAX 1e9
/* How long and how often a broker is tried that is not there at first. */
enum { CONNECT_MS = 5000, RETRY_MS = 100 };
/* How long a broker may take for its first answer, however short the wait. */
enum { PATIENCE_MIN_MS = 2000 };
/* A request that is answered later than that had been queued. */
enum { QUEUED_MS = 100 };

enum cli_held { HELD_LOCKS, HELD_PERMITS, HELD_LEADERSHIP };

static const struct verb {
	const char *word;
	enum cli_held held;
	const char *letters; /* of its options, for getopt; "-": other words may stand anywhere */
	const char *longs;   /* of options that only have a word */
	const char *wants;   /* the words before the command */
	int words_min, words_max;
} verbs[] = {
	{ "lock", HELD_LOCKS, "-:sxnw:k:r:d:L:o", "CO", "NAME...", 1, LIMIT_NAMES_MAX },
	{ "sem", HELD_PERMITS, "-:nw:k:r:l:c:L:o", "C", "NAME", 1, 1 },
	{ "campaign", HELD_LEADERSHIP, "-:nw:k:r:o", "C", "NAME DATA", 2, 2 },
};

struct order {
	const struct verb *verb;
	struct lb_options options; /* of locks; timeout_ms of all */
	int64_t limit, permits;
	int64_t connect_ms; /* -1: not given */
	char *names[LIMIT_NAMES_MAX]; /* and DATA; if `words` is larger, more were given than fit */
	int words;
	int64_t tokens[LIMIT_NAMES_MAX];
	struct cli_job job;
};

/* ---- the command line ---- */

static int parse_seconds(const char *text, int64_t *ret_ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0))
		return -EINVAL;
	*ret_ms = (int64_t)((seconds > SECONDS_MAX ? SECONDS_MAX : seconds) * 1000 + 0.999);
	return 0;
}

/* TERM, SIGTERM or 15; none. */
static int parse_signal(const char *text, int *ret)
{
	const char *word = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text || *end) {
		for (number = NSIG - 1; number > 0; number--) {
			const char *name = sigabbrev_np((int)number);

			if (name && strcasecmp(name, word) == 0)
				break;
		}
		if (number == 0 && strcasecmp(text, "none") != 0)
			return -EINVAL;
	}
	if (number < 0 || number >= NSIG)
		return -EINVAL;
	*ret = (int)number;
	return 0;
}

static int parse_permits(const char *text, int64_t *ret)
{
	char *end;
	long long value = strtoll(text, &end, 10);

	if (end == text || *end || value < 1 || value > 1000000)
		return -EINVAL;
	*ret = value;
	return 0;
}

static void add_word(struct order *o, char *word)
{
	if (o->words < LIMIT_NAMES_MAX)
		o->names[o->words] = word;
	o->words++;
}

static int parsed_word(int error, const char *option, const char *what)
{
	return error < 0 ? cli_usage("%s needs %s, not \"%s\".", option, what, optarg) : CLI_OK;
}

static int parsed(int error, int c, const char *what)
{
	return parsed_word(error, (char[]){ '-', (char)c, '\0' }, what);
}

static int parse_option(struct order *o, int c)
{
	switch (c) {
	case 1: /* a word that is no option */
		add_word(o, optarg);
		return CLI_OK;
	case 's':
	case 'x':
		o->options.shared = c == 's';
		return CLI_OK;
	case 'n':
		o->options.timeout_ms = 0;
		return CLI_OK;
	case 'd':
		o->options.data = optarg;
		return CLI_OK;
	case 'O':
		o->job.owner = optarg;
		return CLI_OK;
	case 'o':
		o->job.closes = true;
		return CLI_OK;
	case 'C':
		return parsed_word(parse_seconds(optarg, &o->connect_ms), "--connect", "a number of seconds");
	case 'w':
		return parsed(parse_seconds(optarg, &o->options.timeout_ms), c, "a number of seconds");
	case 'k':
		return parsed(parse_seconds(optarg, &o->job.grace_ms), c, "a number of seconds");
	case 'L':
		if (parse_seconds(optarg, &o->options.lease_ms) < 0 || o->options.lease_ms == 0)
			return parsed(-EINVAL, c, "a number of seconds greater than 0");
		return CLI_OK;
	case 'r':
		return parsed(parse_signal(optarg, &o->job.on_revoke), c, "a signal");
	case 'l':
		return parsed(parse_permits(optarg, &o->limit), c, "a number of permits");
	case 'c':
		return parsed(parse_permits(optarg, &o->permits), c, "a number of permits");
	}
	return CLI_OK;
}

static int parse_options(struct order *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "shared", no_argument, NULL, 's' },	       { "exclusive", no_argument, NULL, 'x' },
		{ "on-revoke", required_argument, NULL, 'r' }, { "lease", required_argument, NULL, 'L' },
		{ "owner", required_argument, NULL, 'O' },     { "connect", required_argument, NULL, 'C' },
		{ "close", no_argument, NULL, 'o' },	       { 0 },
	};
	const char *verb = o->verb->word;
	int c, at = -1, status = CLI_OK;

	/* 0 makes getopt forget the command line that it is parsing. */
	optind = 0;
	opterr = 0;
	while (status == CLI_OK && (c = getopt_long(argc, argv, o->verb->letters, options, &at)) != -1) {
		if (c == '?' && (optopt == 0 || strncmp(argv[optind - 1], "--", 2) == 0))
			return cli_usage("%s has no option %s.", verb, argv[optind - 1]);
		if (c == '?')
			return cli_usage("%s has no option -%c.", verb, optopt);
		/* The short options are the verb's own; the long ones are those of all verbs. */
		if (c != ':' && c != 1 && !strchr(o->verb->letters, c) && !strchr(o->verb->longs, c))
			return cli_usage("%s has no option --%s.", verb, options[at].name);
		if (c == ':')
			return cli_usage("%s needs a %s.", argv[optind - 1],
					 strchr("dO", optopt) ? "text" : optopt == 'r' ? "signal" :
					 strchr("lc", optopt) ? "number" : "number of seconds");
		status = parse_option(o, c);
	}
	return status;
}

/* The index of the next "--"; argc: there is none. */
static int find_dashes(int argc, char **argv, int from)
{
	while (from < argc && strcmp(argv[from], "--") != 0)
		from++;
	return from;
}

static int wrong_words(const struct verb *verb, const char *missing)
{
	return cli_usage("%s is missing: lockbroker %s [OPTION...] %s -- CMD [ARG...].", missing, verb->word, verb->wants);
}

/*
 * The words before the first "--" are ours, options and names in any order; all words after it belong to the command.
 * If no name precedes it, that "--" ended the options, and names that begin with a dash may follow, up to the next "--".
 */
static int parse(struct order *o, int argc, char **argv)
{
	const struct verb *verb = o->verb;
	int end = find_dashes(argc, argv, 1), status;

	if (end == argc)
		return wrong_words(verb, "The -- before CMD");
	status = parse_options(o, end, argv);
	if (status != CLI_OK)
		return status;
	if (o->words == 0) {
		int begin = end + 1;

		end = find_dashes(argc, argv, begin);
		while (begin < end)
			add_word(o, argv[begin++]);
	}
	if (end == argc)
		return wrong_words(verb, "The -- before CMD");
	if (o->words < verb->words_min)
		return wrong_words(verb, o->words == 0 ? "NAME" : "DATA");
	if (end + 1 >= argc)
		return wrong_words(verb, "CMD");
	if (o->words > verb->words_max)
		return cli_usage("%s takes at most %d word%s before the --, not %d.", verb->word, verb->words_max,
				 verb->words_max == 1 ? "" : "s", o->words);
	if (verb->held == HELD_PERMITS && !o->limit)
		return cli_usage("sem needs -l N, the number of permits that the semaphore has.");
	if (o->options.data && o->words > 1)
		return cli_usage("-d cannot be used with several NAMEs.");
	o->job.names = o->names;
	o->job.count = verb->held == HELD_LOCKS ? (size_t)o->words : 1;
	o->job.command = argv + end + 1;
	return CLI_OK;
}

/* ---- acquiring ---- */

/*
 * Names the connection, so that `who` shows more than "lockbroker". The broker may refuse that name, which does not
 * matter; an owner that it refuses is an error.
 */
static enum lb_result introduce(const struct order *o)
{
	const char *slash = strrchr(o->job.command[0], '/');
	const char *name[] = { "CLIENT", "SETNAME", slash ? slash + 1 : o->job.command[0] };
	const char *owner[] = { "CLIENT", "SETINFO", "OWNER", o->job.owner };
	enum lb_result r = lb_command(o->job.lb, 3, name, NULL);

	if (r == LB_CONNECTION)
		return r;
	return o->job.owner && *o->job.owner ? lb_command(o->job.lb, 4, owner, NULL) : LB_OK;
}

static enum lb_result take(struct order *o)
{
	const char *const *names = (const char *const *)o->job.names;
	struct lb *lb = o->job.lb;

	switch (o->verb->held) {
	case HELD_LEADERSHIP:
		return lb_campaign(lb, names[0], names[1], o->options.timeout_ms, o->tokens);
	case HELD_PERMITS:
		return lb_acquire_with(lb, names[0], o->limit, o->permits, &o->options, NULL);
	case HELD_LOCKS:
		break;
	}
	if (o->job.count > 1)
		return lb_lock_all(lb, o->job.count, names, &o->options, o->tokens);
	return lb_lock_with(lb, names[0], &o->options, o->tokens);
}

/* Only where it would wait: a try reports by itself that the lock is taken. */
static bool would_wait_for_itself(const struct order *o)
{
	size_t i;

	for (i = 0; o->verb->held == HELD_LOCKS && o->options.timeout_ms != 0 && i < o->job.count; i++) {
		if (!cli_nested(o->job.lb, o->names[i], o->options.shared))
			continue;
		cli_say("This already runs under the lock %s: a command around it holds the lock, so waiting for it would never "
			"end.", o->names[i]);
		return true;
	}
	return false;
}

/* Until when a broker is tried that is not there at first. */
static int64_t connect_end(const struct order *o)
{
	int64_t wait_ms = o->options.timeout_ms;

	if (o->connect_ms >= 0)
		return wire_deadline(o->connect_ms);
	return wire_deadline(wait_ms < 0 || wait_ms > CONNECT_MS ? CONNECT_MS : wait_ms);
}

/*
 * How long a broker may take for its first answer: if it hangs, the caller should not wait much longer than it asked to.
 */
static int64_t patience(const struct order *o)
{
	int64_t wait_ms = o->options.timeout_ms;

	if (wait_ms < 0 || wait_ms > HANDLE_PATIENCE_MS)
		return HANDLE_PATIENCE_MS;
	return wait_ms > PATIENCE_MIN_MS ? wait_ms : PATIENCE_MIN_MS;
}

/* The broker may be back in a moment: it is being restarted, for example. */
static bool is_away(enum lb_result r)
{
	return r == LB_CONNECTION || r == LB_DRAINING;
}

static void pause_a_moment(void)
{
	struct timespec pause = { .tv_nsec = (RETRY_MS + getpid() % RETRY_MS) * 1000000L };

	nanosleep(&pause, NULL);
}

/* True if the request had been queued: a broker that is already stopping says so at once. */
static bool was_queued(enum lb_result r, int64_t asked_ms)
{
	return r == LB_CONNECTION || wire_now_ms() >= asked_ms + QUEUED_MS;
}

static enum lb_result take_by(struct order *o, int64_t end)
{
	int64_t now = wire_now_ms();

	if (end < INT64_MAX && o->options.timeout_ms > 0)
		o->options.timeout_ms = end > now ? end - now : 0;
	return take(o);
}

static const char *word_of(const struct lb_reply *holder, const char *key, int *ret_len)
{
	size_t len;
	const char *text = lb_reply_text(lb_reply_field(holder, key), &len);

	*ret_len = (int)len;
	return text;
}

/* Says who holds the lock, if the broker knows that without asking ZooKeeper, however many processes try. */
static void say_taken(const struct order *o)
{
	const char *words[] = { "HOLDERS", o->names[0], "KNOWN" }, *host, *command;
	const struct lb_reply *reply, *holder;
	int host_len, command_len;
	char error[1024];

	snprintf(error, sizeof(error), "%s", lb_error(o->job.lb));
	if (lb_command(o->job.lb, 3, words, &reply) != LB_OK || lb_reply_count(reply) == 0) {
		cli_say("%s", error);
		return;
	}
	holder = lb_reply_item(reply, 0);
	host = word_of(holder, "host", &host_len);
	command = word_of(holder, "command", &command_len);
	cli_say("The lock %s is held on host %.*s by pid %lld (%.*s).", o->names[0], host_len, host,
		(long long)lb_reply_integer(lb_reply_field(holder, "pid")), command_len, command);
}

/*
 * Connects and acquires (CLI_OK), or says why that failed. A request that has been queued goes on waiting for as long as
 * was asked, although the broker goes away: the next broker has a new queue, where we ask again.
 */
static int acquire(struct order *o, const char *socket)
{
	int64_t end = wire_deadline(o->options.timeout_ms), limit = connect_end(o);
	bool queued = false;

	for (;;) {
		int64_t asked_ms;
		enum lb_result r = handle_open(socket, patience(o), &o->job.lb);

		if (r == LB_OK)
			r = introduce(o);
		if (r == LB_OK && would_wait_for_itself(o))
			return CLI_DEADLOCK;
		asked_ms = wire_now_ms();
		if (r == LB_OK) {
			r = take_by(o, end);
			if (is_away(r) && !queued && wire_now_ms() < end && was_queued(r, asked_ms)) {
				queued = true;
				limit = end;
				cli_say("%s Waiting for the broker to come back.", lb_error(o->job.lb));
			}
		}
		if (r == LB_OK)
			return CLI_OK;
		if (r == LB_TAKEN && o->verb->held == HELD_LOCKS && o->job.count == 1) {
			say_taken(o);
			return CLI_TAKEN;
		}
		if (!is_away(r) || wire_now_ms() >= limit) {
			cli_say("%s", lb_error(o->job.lb));
			return cli_exit_of(r);
		}
		lb_close(o->job.lb);
		pause_a_moment();
	}
}

int cli_lock(const char *socket, int argc, char **argv)
{
	const char *owner = getenv("LOCKBROKER_OWNER");
	struct order o = { .verb = verbs, .options = LB_OPTIONS, .permits = 1, .connect_ms = -1 };
	int status;

	while (strcmp(o.verb->word, argv[0]) != 0)
		o.verb++;
	o.job.grace_ms = GRACE_MS;
	/* Perhaps nobody is left to read our messages: that must end neither us nor the command. */
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, &o.job.pipe_action);
	/* The search for deadlocks ignores leaderships. */
	o.job.owner = o.verb->held == HELD_LEADERSHIP ? NULL : owner;
	status = parse(&o, argc, argv);
	if (status != CLI_OK)
		return status;
	status = acquire(&o, socket);
	o.job.tokens = o.verb->held == HELD_PERMITS ? NULL : o.tokens;
	o.job.leased = o.options.lease_ms > 0;
	if (status == CLI_OK)
		status = cli_job_run(&o.job);
	lb_close(o.job.lb);
	return status;
}
