/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The messages of the command on its standard error output. A supervisor must not wait there: a pipe may be full, or a
 * terminal stopped, and its work for the lock that it holds would wait as well. So each message is one write of whole
 * lines, made only when there is room for all of it. The first message without room is kept and written later; the
 * messages after it are dropped, and their number is written with it.
 */
#include "client-lib/cli/say.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/shown.h"

/* A pipe takes that many bytes at once or none of them, so that messages of several processes do not mix. */
enum { MESSAGE_BYTES_MAX = PIPE_BUF };
/* How long a write waits if another process has meanwhile taken the room that poll() saw. */
enum { WRITE_NS = 20000000 };
/* The signal that ends that wait. It is not one of those that are forwarded, so that none of these gets lost. */
enum { WRITE_SIGNAL = SIGSYS };

static struct {
	char text[MESSAGE_BYTES_MAX]; /* the message that is kept */
	size_t len;
	size_t dropped;
	bool line_shown; /* by cli_show_line() */
} unsaid;

static void nothing(int number)
{
}

/* A write that a timer interrupts if it waits. The timer repeats, in case it fires before the write begins. */
static ssize_t write_briefly(const char *text, size_t len)
{
	const struct itimerspec often = { { .tv_nsec = WRITE_NS }, { .tv_nsec = WRITE_NS } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = WRITE_SIGNAL };
	struct sigaction action = { .sa_handler = nothing }, old_action;
	sigset_t set, old_set;
	timer_t timer;
	ssize_t n;
	int error;

	sigemptyset(&set);
	sigaddset(&set, WRITE_SIGNAL);
	/* If the user has used up RLIMIT_SIGPENDING, the kernel makes no timer. */
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return write(STDERR_FILENO, text, len);
	sigaction(WRITE_SIGNAL, &action, &old_action);
	sigprocmask(SIG_UNBLOCK, &set, &old_set);
	timer_settime(timer, 0, &often, NULL);
	n = write(STDERR_FILENO, text, len);
	error = errno;
	timer_delete(timer);
	sigprocmask(SIG_SETMASK, &old_set, NULL);
	sigaction(WRITE_SIGNAL, &old_action, NULL);
	errno = error;
	return n;
}

/* True if nothing is kept any longer. A message that nobody can ever read is dropped. */
static bool write_unsaid(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	while (unsaid.len > 0) {
		ssize_t n;

		if (poll(&p, 1, 0) == 0)
			return false;
		n = write_briefly(unsaid.text, unsaid.len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return false;
		if (n < 0)
			n = (ssize_t)unsaid.len;
		unsaid.len -= (size_t)n;
		memmove(unsaid.text, unsaid.text + n, unsaid.len);
	}
	return true;
}

/*
 * Adds a line, but leaves room for `rest` bytes; characters that would steer the terminal, or break the line, are
 * escaped.
 */
static void add_line(const char *text, size_t rest)
{
	cli_shown(text, unsaid.text + unsaid.len, sizeof(unsaid.text) - unsaid.len - rest);
	unsaid.len += strlen(unsaid.text + unsaid.len);
	unsaid.text[unsaid.len++] = '\n';
}

void cli_show_line(const char *text)
{
	char shown[MESSAGE_BYTES_MAX - 8], line[MESSAGE_BYTES_MAX];
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	int len;

	if ((!*text && !unsaid.line_shown) || unsaid.len > 0 || poll(&p, 1, 0) <= 0)
		return;
	/* To the first column, and clear to the end of the line. */
	len = snprintf(line, sizeof(line), "\r%s\033[K", cli_shown(text, shown, sizeof(shown)));
	write_briefly(line, (size_t)len);
	unsaid.line_shown = *text;
}

void cli_say_unsaid(void)
{
	char text[128];

	if (!write_unsaid() || unsaid.dropped == 0)
		return;
	snprintf(text, sizeof(text), "lockbroker: %zu message%s could not be written.", unsaid.dropped,
		 unsaid.dropped == 1 ? "" : "s");
	unsaid.dropped = 0;
	add_line(text, 0);
	write_unsaid();
}

/* `hint`: a sentence that is not cut, behind the message; "": none. */
static void say(const char *hint, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void say(const char *hint, const char *format, va_list args)
{
	char text[MESSAGE_BYTES_MAX] = "lockbroker: ";
	size_t begin = strlen(text);

	cli_show_line("");
	cli_say_unsaid();
	if (unsaid.len > 0) {
		unsaid.dropped++;
		return;
	}
	vsnprintf(text + begin, sizeof(text) - begin, format, args);
	add_line(text, strlen(hint));
	memcpy(unsaid.text + unsaid.len - 1, hint, strlen(hint));
	unsaid.len += strlen(hint);
	unsaid.text[unsaid.len - 1] = '\n';
	write_unsaid();
}

void cli_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
}

/* The command at hand, and the name that it is about; "": none. */
static const char *the_command = "", *the_name = "";

void cli_say_about(const char *command, const char *name)
{
	the_command = command;
	the_name = name;
}

int cli_usage(const char *format, ...)
{
	char hint[128];
	va_list args;

	snprintf(hint, sizeof(hint), " Try `lockbroker %s%s--help`.", the_command, *the_command ? " " : "");
	va_start(args, format);
	say(hint, format, args);
	va_end(args);
	return CLI_USAGE;
}

const char *cli_stop(const char *sentence)
{
	size_t len = strlen(sentence);

	return len > 0 && sentence[len - 1] == '.' ? "" : ".";
}

int cli_exit_of(enum lb_result result)
{
	switch (result) {
	case LB_OK:
		return CLI_OK;
	case LB_TAKEN:
	case LB_NONE:
		return CLI_TAKEN;
	case LB_BADNAME:
	case LB_REFUSED:
	case LB_MISMATCH:
		return CLI_USAGE;
	case LB_DENIED:
		return CLI_DENIED;
	case LB_DEADLOCK:
		return CLI_DEADLOCK;
	case LB_LOST:
		return CLI_LOST;
	case LB_NOTHELD:
	case LB_LIMIT:
	case LB_UNAVAILABLE:
	case LB_DRAINING:
	case LB_CONNECTION:
		break;
	}
	return CLI_UNAVAILABLE;
}

/* ---- why it failed ---- */

/* What a name is, as the daemon calls it in its two ways, and what follows for a command of another kind. */
static const struct {
	const char *noun, *word, *cannot, *command;
} kinds[] = {
	{ "a lock", "\"lock\"", "cannot be locked", "lock" },
	{ "a semaphore", "\"semaphore\"", "has no permits", "sem" },
	{ "an election", "\"election\"", "has no leader", "campaign" },
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* The kind whose noun or word begins there; KINDS: none does. */
static size_t kind_at(const char *text)
{
	size_t i = 0;

	while (i < KINDS && strncmp(text, kinds[i].noun, strlen(kinds[i].noun)) != 0 &&
	       strncmp(text, kinds[i].word, strlen(kinds[i].word)) != 0)
		i++;
	return i;
}

static size_t kind_behind(const char *text, const char *const *marks)
{
	for (; *marks; marks++) {
		const char *at = strstr(text, *marks);

		if (at && kind_at(at + strlen(*marks)) < KINDS)
			return kind_at(at + strlen(*marks));
	}
	return KINDS;
}

/* The name is of another kind than the command is for. False: that is not what the daemon says. */
static bool say_mismatch(const char *text)
{
	static const char *const is[] = { "in use as ", "that of ", "of kind ", NULL };
	static const char *const should[] = { ", not as ", ", not of ", "\", not ", NULL };
	size_t kind = kind_behind(text, is), wanted = kind_behind(text, should);
	const char *limit = strstr(text, "has a limit of ");

	if (limit)
		cli_say("The semaphore %s %.*s: every user names the same limit; `lockbroker limit %s` shows it.", the_name,
			(int)strcspn(limit, ":"), limit, the_name);
	else if (kind < KINDS && wanted < KINDS && kind != wanted)
		cli_say("%s is %s, so it %s; use `lockbroker %s`, or another name.", the_name, kinds[kind].noun,
			kinds[wanted].cannot, kinds[kind].command);
	return limit || (kind < KINDS && wanted < KINDS && kind != wanted);
}

/* The answer is too long: how to get it in parts. */
static const char *in_parts(void)
{
	if (strcmp(the_command, "ls") == 0)
		return "`lockbroker ls PATTERN` lists fewer, and `lockbroker ls --all` reads all in pages";
	if (strcmp(the_command, "log") == 0)
		return "`lockbroker log 100` shows the latest 100 records";
	return "operators can raise that limit";
}

/* The sentence names the name, or adds it; and it says what to do where the daemon cannot know that. */
int cli_failed(const struct lb *lb, enum lb_result result)
{
	static const char to_operators[] = " (lockbroker does so by itself for root)";
	const char *text = lb_error(lb), *end = strstr(text, to_operators);

	if (result == LB_DENIED && end) {
		cli_say("%.*s: give it with -S, as root or as a user whom daemon.operator_group admits.", (int)(end - text), text);
		return cli_exit_of(result);
	}
	if (result == LB_MISMATCH && *the_name && say_mismatch(text))
		return cli_exit_of(result);
	if (result == LB_LIMIT && strstr(text, "longer than limits.output_bytes"))
		cli_say("The answer is longer than limits.output_bytes: %s.", in_parts());
	else if (*the_name && result != LB_CONNECTION && !strstr(text, the_name))
		cli_say("%s: %s", the_name, text);
	else
		cli_say("%s", text);
	return cli_exit_of(result);
}

int cli_written(int status)
{
	if (fflush(stdout) != EOF && !ferror(stdout))
		return status;
	cli_say("Cannot write the output: %s.", strerror(errno));
	return CLI_OSERR;
}

int cli_ask_words(struct lb *lb, int count, const char *const *words, const struct lb_reply **ret)
{
	enum lb_result r = lb_command(lb, count, words, ret);

	return r == LB_OK ? CLI_OK : cli_failed(lb, r);
}

int cli_ask(struct lb *lb, const char *command, const char *argument, const struct lb_reply **ret)
{
	return cli_ask_words(lb, argument ? 2 : 1, (const char *[]){ command, argument }, ret);
}

const struct lb_reply *cli_reply(struct lb *lb, const char *command, const char *argument)
{
	const struct lb_reply *reply = NULL;

	lb_command(lb, argument ? 2 : 1, (const char *[]){ command, argument }, &reply);
	return reply;
}
