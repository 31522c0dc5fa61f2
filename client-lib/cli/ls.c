/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker ls: the locks of this host, or with --all of all hosts, once or again and again. On a terminal --watch draws
 * each picture over the one before; elsewhere one follows the other. A picture is shown only when all of it is there.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/cli/table.h"
#include "client-lib/lockbroker.h"
#include "client-lib/handle.h"
#include "protocol/slice.h"

/* Of one page: locks whose hosts are far away take a while. */
static const int64_t PAGE_PATIENCE_MS = 60000;
static const char PAGE_LOCKS[] = "1000";

static const double WATCH_S = 2, WATCH_LEAST_S = 0.1, WATCH_MOST_S = 86400;

enum { LINES = 24, COLUMNS = 80, NAME_MAX_BYTES = 2048 };

struct ls {
	const char *socket, *pattern; /* pattern NULL: all */
	bool all;
	double every_s; /* 0: once */
	bool drawn;     /* pictures are drawn over one another */
};

/* ---- a row for each holder ---- */

static long long number_of(const struct lb_reply *map, const char *key)
{
	return (long long)lb_reply_integer(lb_reply_field(map, key));
}

static bool is(struct slice text, const char *word)
{
	return slice_eq(text, slice_of(word));
}

static void add_since(struct sheet *s, long long ms)
{
	char text[CLI_DURATION_MAX];

	sheet_text(s, slice_of(cli_duration(ms, text)));
}

static void add_mode(struct sheet *s, const struct lb_reply *lock, const struct lb_reply *holder)
{
	struct slice kind = reply_field(lock, "kind");
	long long limit = number_of(lock, "limit");
	char text[64];

	if (is(kind, "semaphore") && limit)
		snprintf(text, sizeof(text), "%lld of %lld", number_of(holder, "depth"), limit);
	else if (is(kind, "semaphore"))
		snprintf(text, sizeof(text), "%lld permits", number_of(holder, "depth"));
	if (is(kind, "semaphore"))
		sheet_text(s, slice_of(text));
	else
		sheet_text(s, is(kind, "election") ? slice_of("leader") : reply_field(holder, "mode"));
}

/* The process, as far as it is known. */
static void add_holder(struct sheet *s, const struct lb_reply *holder)
{
	struct slice command = reply_field(holder, "command");
	long long pid = number_of(holder, "pid");
	char text[NAME_MAX_BYTES];

	if (!command.len)
		command = reply_field(holder, "name");
	if (pid)
		snprintf(text, sizeof(text), "%lld %.*s", pid, (int)command.len, command.data);
	else
		snprintf(text, sizeof(text), "%.*s", (int)command.len, command.data);
	sheet_text(s, slice_of(text));
}

static void add_waiters(struct sheet *s, const struct lb_reply *lock)
{
	long long here = number_of(lock, "waiters"), hosts = number_of(lock, "hosts_waiting");
	char text[96];

	if (hosts)
		snprintf(text, sizeof(text), "%lld + %lld host%s", here, hosts, hosts == 1 ? "" : "s");
	else
		snprintf(text, sizeof(text), "%lld", here);
	sheet_text(s, slice_of(text));
}

/* Nobody holds it, or who else does is not shown: a sentence takes the place of the holder. */
static void add_row(struct sheet *s, const struct lb_reply *lock, const struct lb_reply *holder, const char *instead)
{
	long long held_ms = number_of(holder, "held_ms");

	sheet_row(s);
	sheet_text(s, reply_field(lock, "name"));
	if (holder) {
		add_mode(s, lock, holder);
		sheet_text(s, reply_field(holder, "host"));
		add_holder(s, holder);
		add_since(s, held_ms < 0 ? held_ms : held_ms + number_of(holder, "age_ms"));
	} else {
		sheet_text(s, SLICE(""));
		sheet_text(s, SLICE(""));
		sheet_text(s, slice_of(instead));
		sheet_text(s, SLICE(""));
	}
	add_waiters(s, lock);
}

static void add_lock(struct sheet *s, const struct lb_reply *lock)
{
	const struct lb_reply *holders = lb_reply_field(lock, "holders"), *holder = lb_reply_item(holders, 0);
	size_t count = lb_reply_count(holders);

	for (size_t i = 0; i < count; i++, holder = i < count ? lb_reply_next(holder) : holder)
		add_row(s, lock, holder, "");
	if (number_of(lock, "more"))
		add_row(s, lock, NULL, "(more: lockbroker who)");
	else if (!number_of(lock, "known"))
		add_row(s, lock, NULL, "(ZooKeeper refuses to show others)");
	else if (!count)
		add_row(s, lock, NULL, "");
}

/* ---- pictures ---- */

/* What is to be printed: a table, or JSON. */
struct picture {
	struct sheet sheet;
	char *json;
	size_t json_len;
	FILE *to; /* JSON */
	bool any; /* ... a lock is there already */
};

static void take_locks(struct picture *p, const struct lb_reply *locks)
{
	const struct lb_reply *lock = lb_reply_item(locks, 0);
	size_t count = lb_reply_count(locks);

	for (size_t i = 0; i < count; i++, lock = i < count ? lb_reply_next(lock) : lock) {
		if (!cli_json_asked) {
			add_lock(&p->sheet, lock);
			continue;
		}
		fputs(p->any ? "," : "[", p->to);
		cli_json_to(p->to, lock);
		p->any = true;
	}
}

static enum lb_result take_all(const struct ls *ls, struct lb *lb, struct picture *p)
{
	const char *words[] = { "LOCKS", ls->pattern ? ls->pattern : "*", "ALL", "COUNT", PAGE_LOCKS, "AFTER", NULL };
	char *after = NULL;
	enum lb_result r;

	sheet_heads(&p->sheet, "NAME MODE HOST HOLDER SINCE WAITERS");
	for (;;) {
		const struct lb_reply *reply;
		struct slice next;

		words[6] = after;
		r = lb_command(lb, after ? 7 : 5, words, &reply);
		free(after);
		after = NULL;
		if (r != LB_OK)
			return r;
		take_locks(p, lb_reply_field(reply, "locks"));
		next = reply_field(reply, "next");
		if (!next.len)
			break;
		after = strndup(next.data, next.len);
		if (!after)
			abort();
	}
	if (cli_json_asked)
		fputs(p->any ? "]\n" : "[]\n", p->to);
	return LB_OK;
}

static void add_fields(struct sheet *s, const struct lb_reply *row)
{
	char number[24];

	sheet_row(s);
	for (size_t i = 0; i < lb_reply_count(row); i++) {
		const struct lb_reply *value = lb_reply_item(row, i);
		struct slice text = reply_text(value);

		if (lb_reply_type(value) == LB_REPLY_INTEGER) {
			snprintf(number, sizeof(number), "%lld", (long long)lb_reply_integer(value));
			text = slice_of(number);
		}
		sheet_text(s, text);
	}
}

static enum lb_result take_here(const struct ls *ls, struct lb *lb, struct picture *p)
{
	const char *words[] = { "LOCKS", ls->pattern };
	const struct lb_reply *reply, *row;
	enum lb_result r = lb_command(lb, ls->pattern ? 2 : 1, words, &reply);
	size_t count;

	if (r != LB_OK)
		return r;
	count = lb_reply_count(reply);
	sheet_heads(&p->sheet, "NAME STATE HOLDERS WAITERS TOKEN DELEGATED");
	if (cli_json_asked) {
		cli_json_to(p->to, reply);
		fputc('\n', p->to);
		return LB_OK;
	}
	row = lb_reply_item(reply, 0);
	for (size_t i = 0; i < count; i++, row = i < count ? lb_reply_next(row) : row)
		add_fields(&p->sheet, row);
	return LB_OK;
}

static void end(struct picture *p)
{
	fclose(p->to);
	free(p->json);
	sheet_end(&p->sheet);
}

/* Asks for the whole list, on a new connection: the last one may have ended. A failure is told once, not each time. */
static int take(const struct ls *ls, struct picture *p, bool said)
{
	struct lb *lb;
	enum lb_result r = handle_open_now(ls->socket, &lb);
	int status = CLI_OK;

	*p = (struct picture){ 0 };
	p->to = open_memstream(&p->json, &p->json_len);
	if (!p->to)
		abort();
	if (r == LB_OK) {
		lb_set_patience(lb, PAGE_PATIENCE_MS);
		r = ls->all ? take_all(ls, lb, p) : take_here(ls, lb, p);
	}
	if (r != LB_OK)
		status = cli_exit_of(r);
	if (r != LB_OK && !said)
		cli_say("%s", lb_error(lb));
	fflush(p->to);
	lb_close(lb);
	return status;
}

static void print(const struct picture *p)
{
	if (cli_json_asked)
		fwrite(p->json, 1, p->json_len, stdout);
	else if (p->sheet.row_count)
		sheet_print(&p->sheet, stdout, 0, 0);
}

/* ---- again and again ---- */

/* A terminal shows ^C in a line that the shell would go on with. */
static void stop(int number)
{
	static const char line_end = '\n';

	if (isatty(STDOUT_FILENO) && write(STDOUT_FILENO, &line_end, 1) < 0)
		_exit(CLI_OSERR);
	_exit(CLI_OK);
}

static void wake(int number)
{
}

static void listen_to_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction end_action = { .sa_handler = stop }, wake_action = { .sa_handler = wake };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &end_action, NULL);
	sigaction(SIGWINCH, &wake_action, NULL);
}

/* What fits on the terminal: one row more would scroll the first one away. */
static void draw(const struct picture *p)
{
	struct winsize size = { 0 };
	char now[32] = "";
	time_t t = time(NULL);
	struct tm tm;
	size_t lines, columns;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = LINES, .ws_col = COLUMNS };
	lines = size.ws_row > 4 ? size.ws_row - 3U : 1;
	columns = size.ws_col;
	if (localtime_r(&t, &tm))
		strftime(now, sizeof(now), "%H:%M:%S", &tm);
	/* To the first place; each line is cleared behind its end, and all below the last one. */
	printf("\033[H%.*s\033[K\n\033[K\n", (int)columns, now);
	if (p->sheet.row_count)
		sheet_print(&p->sheet, stdout, lines, columns);
	else
		printf("no locks\033[K\n");
	printf("\033[J");
}

static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static void show(const struct ls *ls, const struct picture *p)
{
	if (ls->drawn) {
		draw(p);
		return;
	}
	print(p);
	if (!cli_json_asked)
		putchar('\n');
}

static void rest(double seconds)
{
	const struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

/* Of what fails for a while one line tells, until it works again. */
static int watch(struct ls *ls)
{
	bool begun = false, away = false;

	ls->drawn = !cli_json_asked && is_terminal();
	listen_to_signals();
	for (;;) {
		struct picture p;
		int status = take(ls, &p, away);

		if (status == CLI_OK)
			show(ls, &p);
		end(&p);
		away = status != CLI_OK;
		if (away && (!begun || status != CLI_UNAVAILABLE))
			return status;
		begun = true;
		if (fflush(stdout) == EOF || ferror(stdout))
			return CLI_OK; /* who called tells why it cannot be written */
		rest(ls->every_s);
	}
}

static int once(const struct ls *ls)
{
	struct picture p;
	int status = take(ls, &p, false);

	if (status == CLI_OK)
		print(&p);
	end(&p);
	return status;
}

/* ---- words ---- */

static bool read_seconds(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	return end != text && !*end && *ret >= WATCH_LEAST_S && *ret <= WATCH_MOST_S;
}

/* -1: go on. Else the exit status. */
static int read_option(struct ls *ls, const char *word)
{
	static const char watch_is[] = "--watch=";

	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return cli_help("ls");
	if (strcmp(word, "--json") == 0)
		cli_json_asked = true;
	else if (strcmp(word, "--all") == 0 || strcmp(word, "-a") == 0)
		ls->all = true;
	else if (strcmp(word, "--watch") == 0 || strcmp(word, "-w") == 0)
		ls->every_s = WATCH_S;
	else if (strncmp(word, watch_is, strlen(watch_is)) != 0)
		return cli_usage("ls has no option %s.", word);
	else if (!read_seconds(word + strlen(watch_is), &ls->every_s))
		return cli_usage("--watch needs a number of seconds, 0.1 to 86400, not \"%s\".",
				 word + strlen(watch_is));
	return -1;
}

int cli_ls(const char *socket, int argc, char **argv)
{
	struct ls ls = { .socket = socket };
	bool options = true;
	int status;

	for (int i = 1; i < argc; i++) {
		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			status = read_option(&ls, argv[i]);
			if (status >= 0)
				return status;
		} else if (ls.pattern) {
			return cli_usage("ls does not take the argument \"%s\".", argv[i]);
		} else {
			ls.pattern = argv[i];
		}
	}
	return ls.every_s > 0 ? watch(&ls) : once(&ls);
}
