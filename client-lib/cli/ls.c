/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker ls: the locks of this host, or with --all of all hosts, once or again and again. On a terminal --watch draws
 * each picture over the one before; elsewhere one follows the other. A picture is shown only when all of it is there.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/holder.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/cli/shown.h"
#include "client-lib/lockbroker.h"
#include "client-lib/handle.h"
#include "protocol/slice.h"

/* Of one page: locks whose hosts are far away take a while. */
static const int64_t PAGE_PATIENCE_MS = 60000;
/* What is asked about a single lock only adds to the list. */
static const int64_t MORE_PATIENCE_MS = 1000;
enum { KINDS_ASKED_MAX = 16, QUEUES_ASKED_MAX = 256 };
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

static const struct sheet_column all_columns[] = {
	{ "NAME", NULL, 12, SHEET_ALWAYS, NULL },    { "MODE", NULL, 0, SHEET_ALWAYS, NULL },
	{ "HOST", NULL, 8, SHEET_ALWAYS, NULL },     { "HOLDER", NULL, 12, SHEET_ALWAYS, NULL },
	{ "SINCE", NULL, 0, SHEET_ALWAYS, NULL },    { "WAITERS", NULL, 0, SHEET_ALWAYS, NULL },
	{ "LONGEST", NULL, 0, SHEET_IF_ANY, NULL },  { "PID", "pid", 0, SHEET_WIDE, NULL },
	{ "CLIENT", "client", 0, SHEET_WIDE, NULL }, { "UID", "uid", 0, SHEET_WIDE, NULL },
	{ "TOKEN", "token", 0, SHEET_WIDE, NULL },   { "AGE", "age_ms", 0, SHEET_WIDE, NULL },
	{ "ZNODE", "znode", 12, SHEET_WIDE, NULL },
};

static const struct sheet_column here_columns[] = {
	{ "NAME", NULL, 12, SHEET_ALWAYS, NULL },        { "STATE", NULL, 0, SHEET_ALWAYS, NULL },
	{ "HOLDERS", "holders", 0, SHEET_ALWAYS, NULL }, { "WAITERS", "waiters", 0, SHEET_ALWAYS, NULL },
	{ "TOKEN", "token", 0, SHEET_ALWAYS, NULL },     { "DELEGATED", "delegated", 0, SHEET_WIDE, NULL },
};

static void add_mode(struct sheet *s, const struct lb_reply *lock, const struct lb_reply *holder)
{
	struct slice kind = reply_field(lock, "kind");
	long long limit = reply_number(lock, "limit");

	s->limit = slice_is(kind, "election") ? SHEET_ELECTION :
		   slice_is(kind, "semaphore") && !limit ? SHEET_SEMAPHORE : limit;
	if (holder)
		holder_mode_cell(s, holder);
	else
		sheet_text(s, SLICE(""));
}

static void add_waiters(struct sheet *s, const struct lb_reply *lock)
{
	long long here = reply_number(lock, "waiters"), hosts = reply_number(lock, "hosts_waiting");
	char text[96];

	if (hosts)
		snprintf(text, sizeof(text), "%lld + %lld host%s", here, hosts, hosts == 1 ? "" : "s");
	else
		snprintf(text, sizeof(text), "%lld", here);
	sheet_text(s, slice_of(text));
}

/* Nobody holds it, or who else does is not shown: a sentence takes the place of the holder. */
static void add_row(struct sheet *s, const struct lb_reply *lock, const struct lb_reply *holder, const char *instead,
		    long long longest_ms)
{
	sheet_text(s, reply_field(lock, "name"));
	add_mode(s, lock, holder);
	sheet_text(s, reply_field(holder, "host"));
	if (holder)
		holder_cell(s, holder);
	else
		sheet_text(s, slice_of(instead));
	holder_held_cell(s, holder);
	add_waiters(s, lock);
	sheet_duration(s, longest_ms);
	sheet_rest(s, holder);
}

static void add_lock(struct sheet *s, const struct lb_reply *lock, long long longest_ms)
{
	const struct lb_reply *holders = lb_reply_field(lock, "holders"), *holder = lb_reply_item(holders, 0);
	size_t count = lb_reply_count(holders);

	for (size_t i = 0; i < count; i++, holder = i < count ? lb_reply_next(holder) : holder)
		add_row(s, lock, holder, "", longest_ms);
	if (reply_number(lock, "more"))
		add_row(s, lock, NULL, "(more: lockbroker who)", longest_ms);
	else if (!reply_number(lock, "known"))
		add_row(s, lock, NULL, "(ZooKeeper refuses to show others)", longest_ms);
	else if (!count)
		add_row(s, lock, NULL, "", longest_ms);
}

/* ---- pictures ---- */

/* What is to be printed: a table, or JSON. */
struct picture {
	struct sheet sheet;
	char *json;
	size_t json_len;
	FILE *to; /* JSON */
	bool any; /* ... a lock is there already */
	struct lb *more; /* asks about a lock of a list; NULL: not needed yet */
	bool deaf;       /* ... and was not answered in time: what it would add is left out */
	int kinds_asked, queues_asked;
};

/* What is asked about one lock of a list, on a connection of its own: the list stays. `text` is its name. */
static const struct lb_reply *ask_about(const struct ls *ls, struct picture *p, const char *command, struct slice text)
{
	char name[NAME_MAX_BYTES];
	const char *words[] = { command, name };
	const struct lb_reply *reply = NULL;

	snprintf(name, sizeof(name), "%.*s", (int)text.len, text.data);
	if (!p->more) {
		p->deaf = handle_open_now(ls->socket, &p->more) != LB_OK;
		lb_set_patience(p->more, MORE_PATIENCE_MS);
	}
	if (!p->deaf)
		p->deaf = lb_command(p->more, 2, words, &reply) == LB_CONNECTION;
	return reply;
}

/*
 * For how long the request of this host has waited that has waited longest; -1: none waits, or it is not known. The queue of
 * a lock is read from ZooKeeper: that is done for so many only.
 */
static long long longest_wait_ms(const struct ls *ls, struct picture *p, const struct lb_reply *lock)
{
	const struct lb_reply *queue, *row;
	long long longest = -1;

	if (!reply_number(lock, "waiters") || ++p->queues_asked > QUEUES_ASKED_MAX)
		return -1;
	queue = ask_about(ls, p, "QUEUE", reply_field(lock, "name"));
	row = lb_reply_item(queue, 0);
	for (size_t i = 0, count = lb_reply_count(queue); i < count; i++, row = i < count ? lb_reply_next(row) : row)
		longest = MAX(longest, reply_number(row, "waited_ms"));
	return longest;
}

static void take_locks(const struct ls *ls, struct picture *p, const struct lb_reply *locks)
{
	const struct lb_reply *lock = lb_reply_item(locks, 0);
	size_t count = lb_reply_count(locks);

	for (size_t i = 0; i < count; i++, lock = i < count ? lb_reply_next(lock) : lock) {
		long long longest_ms = longest_wait_ms(ls, p, lock);

		if (!cli_json_asked) {
			add_lock(&p->sheet, lock, longest_ms);
			continue;
		}
		fputs(p->any ? "," : "[", p->to);
		cli_json_into(p->to);
		cli_json_open(lock);
		cli_json_into(NULL);
		fprintf(p->to, longest_ms < 0 ? ",\"longest_wait_ms\":null}" : ",\"longest_wait_ms\":%lld}", longest_ms);
		p->any = true;
	}
}

static enum lb_result take_all(const struct ls *ls, struct lb *lb, struct picture *p)
{
	const char *words[] = { "LOCKS", ls->pattern ? ls->pattern : "*", "ALL", "COUNT", PAGE_LOCKS, "AFTER", NULL };
	char *after = NULL;
	enum lb_result r;

	sheet_begin(&p->sheet, all_columns, sizeof(all_columns) / sizeof(all_columns[0]));
	for (;;) {
		const struct lb_reply *reply;
		struct slice next;

		words[6] = after;
		r = lb_command(lb, after ? 7 : 5, words, &reply);
		free(after);
		after = NULL;
		if (r != LB_OK)
			return r;
		take_locks(ls, p, lb_reply_field(reply, "locks"));
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

/*
 * A grant of a lock has a token: what is held without one are permits. What is only waited for is a semaphore if it has a
 * limit, which ZooKeeper knows: that is asked of so many only.
 */
static bool is_semaphore(const struct ls *ls, struct picture *p, const struct lb_reply *row)
{
	if (reply_number(row, "token") || reply_number(row, "holders") || ++p->kinds_asked > KINDS_ASKED_MAX)
		return !reply_number(row, "token") && reply_number(row, "holders");
	return lb_reply_type(ask_about(ls, p, "LIMIT", reply_field(row, "name"))) == LB_REPLY_INTEGER;
}

static void add_here(const struct ls *ls, struct picture *p, const struct lb_reply *row)
{
	sheet_text(&p->sheet, reply_field(row, "name"));
	sheet_text(&p->sheet, is_semaphore(ls, p, row) ? SLICE("semaphore") : reply_field(row, "state"));
	sheet_rest(&p->sheet, row);
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
	sheet_begin(&p->sheet, here_columns, sizeof(here_columns) / sizeof(here_columns[0]));
	if (cli_json_asked) {
		cli_json_into(p->to);
		cli_json_line(reply);
		cli_json_into(NULL);
		return LB_OK;
	}
	row = lb_reply_item(reply, 0);
	for (size_t i = 0; i < count; i++, row = i < count ? lb_reply_next(row) : row)
		add_here(ls, p, row);
	return LB_OK;
}

static void end(struct picture *p)
{
	lb_close(p->more);
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
		status = said ? cli_exit_of(r) : cli_failed(lb, r);
	fflush(p->to);
	lb_close(lb);
	return status;
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
	char now[CLI_DURATION_MAX];
	size_t lines, columns;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = LINES, .ws_col = COLUMNS };
	lines = size.ws_row > 4 ? size.ws_row - 3U : 1;
	columns = size.ws_col;
	cli_instant(time(NULL), now);
	/* To the first place; each line is cleared behind its end, and all below the last one. The day is left out. */
	printf("\033[H%.*s\033[K\n\033[K\n", (int)columns, now + sizeof("2026-11-30"));
	if (p->sheet.row_count)
		sheet_print(&p->sheet, lines);
	else
		printf("no locks\033[K\n");
	printf("\033[J");
}

static void show(const struct ls *ls, const struct picture *p)
{
	if (ls->drawn) {
		draw(p);
	} else if (cli_json_asked) {
		fwrite(p->json, 1, p->json_len, stdout);
	} else {
		sheet_print(&p->sheet, 0);
		fputs(ls->every_s > 0 ? "\n" : "", stdout);
	}
}

static void rest(double seconds)
{
	const struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

/*
 * Shows the list once, or (--watch) again and again. If the list fails several times, one line reports that, until the list
 * works again.
 */
static int run(const struct ls *ls)
{
	bool begun = false, away = false;

	for (;;) {
		struct picture p;
		int status = take(ls, &p, away);

		if (status == CLI_OK)
			show(ls, &p);
		end(&p);
		away = status != CLI_OK;
		if (ls->every_s == 0 || (away && (!begun || status != CLI_UNAVAILABLE)))
			return status;
		begun = true;
		if (fflush(stdout) == EOF || ferror(stdout))
			return CLI_OK; /* who called tells why it cannot be written */
		rest(ls->every_s);
	}
}

/* ---- words ---- */

static bool read_seconds(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	return end != text && !*end && *ret >= WATCH_LEAST_S && *ret <= WATCH_MOST_S;
}

int cli_ls(const struct cli_words *w)
{
	struct ls ls = { .socket = w->socket, .pattern = w->arguments[0], .all = w->given[OPT_ALL] };
	const char *every = w->given[OPT_WATCH];

	if (every)
		ls.every_s = WATCH_S;
	if (every && every != cli_given && !read_seconds(every, &ls.every_s))
		return cli_usage("--watch needs a number of seconds, 0.1 to 86400, not \"%s\".", every);
	ls.drawn = every && !cli_json_asked && cli_terminal_is_smart();
	if (every)
		listen_to_signals();
	return run(&ls);
}
