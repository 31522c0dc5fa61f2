/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `lockbroker history`: who held a lock, by what the daemon has written into systemd's journal. Everybody can write entries
 * with its fields, and the journal itself says which unit an entry is from: each match names the unit.
 */
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/history_rows.h"
#include "client-lib/cli/holder.h"
#include "client-lib/cli/instant.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/sheet.h"
#include "client-lib/cli/shown.h"
#include "client-lib/socket_path.h"
#include "protocol/bytes_format.h"
#include "protocol/name.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { UNIT_MAX = 512, WORDS_MAX = 32, WORD_MAX = 1024 };

/* ---- what is asked ---- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int cli_history_take(void *context, enum cli_option_id id, char *value)
{
	int64_t at, span;
	bool is_time = id == OPT_SINCE || id == OPT_UNTIL || id == OPT_AT;

	if (is_time && !cli_instant_read(value, now_ms(), &at, &span))
		return -EINVAL;
	return 0;
}

/* -1: go on. Otherwise the exit status. */
static int read_times(const struct cli_words *w, struct history *h)
{
	const char *since = w->given[OPT_SINCE], *until = w->given[OPT_UNTIL], *at = w->given[OPT_AT];
	int64_t now = now_ms(), span;

	if (at && (since || until))
		return cli_usage("--at is instead of --since and --until.");
	h->from_ms = 0;
	h->to_ms = INT64_MAX;
	if (at) {
		cli_instant_read(at, now, &h->from_ms, &span);
		h->to_ms = h->from_ms + span - 1;
	}
	if (since)
		cli_instant_read(since, now, &h->from_ms, &span);
	if (until)
		cli_instant_read(until, now, &h->to_ms, &span);
	return h->from_ms > h->to_ms ? cli_usage("--since %s is later than --until %s.", since, until) : -1;
}

/* Which broker's journal. */
struct source {
	char unit[UNIT_MAX];
	bool is_user;  /* of this user's systemd */
	bool is_known; /* the socket is that of a unit */
	const char *directory;
	bool merge;
};

static bool find_source(const struct cli_words *w, struct source *ret)
{
	static const char instance[] = "/run/lockbroker@", end[] = "/lockbroker.sock";
	struct socket_path socket, users;
	size_t len, before = sizeof(instance) - 1, behind = sizeof(end) - 1;

	*ret = (struct source){ .unit = "lockbrokerd.service",
				.directory = w->given[OPT_DIRECTORY],
				.merge = w->given[OPT_MERGE] };
	if (!socket_path_find(w->socket, &socket)) {
		cli_say("%s", socket.text);
		return false;
	}
	len = strlen(socket.text);
	if (strncmp(socket.text, instance, before) == 0 && len > before + behind && len < UNIT_MAX &&
	    strcmp(socket.text + len - behind, end) == 0) {
		snprintf(ret->unit, sizeof(ret->unit), "lockbrokerd@%.*s.service", (int)(len - before - behind),
			 socket.text + before);
		ret->is_known = !strchr(ret->unit, '/');
	}
	ret->is_user = socket_path_find(SOCKET_PATH_USER, &users) && strcmp(users.text, socket.text) == 0;
	ret->is_known |= ret->is_user || strcmp(socket.text, SOCKET_PATH_DEFAULT) == 0;
	return true;
}

/* ---- the journal ---- */

static bool may_read_one(const char *pattern)
{
	glob_t found = { 0 };
	bool may = false;

	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			may |= access(found.gl_pathv[i], R_OK) == 0;
	globfree(&found);
	return may;
}

/*
 * journalctl shows each user the entries that this user may read, and does not report that it leaves entries out. -1: go on.
 * Rotated files of a journal have an @ in their names.
 */
static int may_read(const struct source *s)
{
	static const char *const places[] = { "/run/log/journal", "/var/log/journal" };
	bool is_there = false;
	char path[128];

	for (size_t i = 0; i < COUNT(places); i++) {
		is_there |= access(places[i], F_OK) == 0;
		snprintf(path, sizeof(path), "%s/*/system[.@]*", places[i]);
		if (may_read_one(path))
			return -1;
		snprintf(path, sizeof(path), "%s/*/user-%u[.@]*", places[i], (unsigned)getuid());
		if (s->is_user && may_read_one(path))
			return -1;
	}
	if (!is_there || geteuid() == 0) {
		cli_say("There is no journal of systemd on this host: without one, lockbrokerd keeps no history.");
		return CLI_UNAVAILABLE;
	}
	cli_say("This user may not read the journal, which has the history: root may, and the members of the groups adm and "
		"systemd-journal.");
	return CLI_DENIED;
}

static const char fields[] =
	"--output-fields=_MACHINE_ID,_HOSTNAME,LOCKBROKER_EVENT,LOCKBROKER_NAME,LOCKBROKER_KIND,LOCKBROKER_MODE,"
	"LOCKBROKER_TOKEN,LOCKBROKER_PERMITS,LOCKBROKER_CLIENT,LOCKBROKER_PID,LOCKBROKER_UID,LOCKBROKER_UNIT,"
	"LOCKBROKER_COMMAND,LOCKBROKER_DATA,LOCKBROKER_SINCE_MS,LOCKBROKER_UNTIL_MS,LOCKBROKER_WAITED_MS,LOCKBROKER_HELD_MS,"
	"LOCKBROKER_WHY,LOCKBROKER_BEFORE,LOCKBROKER_TAKINGS,LOCKBROKER_COUNT,LOCKBROKER_WAITS,LOCKBROKER_COMMANDS,"
	"LOCKBROKER_LONGEST_MS,LOCKBROKER_HOLDER,LOCKBROKER_HOLDER_PID,LOCKBROKER_HOLDER_COMMAND,LOCKBROKER_LINES,"
	"LOCKBROKER_OF,LOCKBROKER_STANDALONE";

/*
 * Reads the entries of the unit with one of the events, which NULL ends, and its entries with that name (NULL: none). An
 * entry has to match each field that is given, by any of the matches of this field; "+" begins another such set.
 */
static int read_entries(const struct source *s, const char *name, const char *const *events,
			bool (*take)(void *context, struct journal_entry *entry), void *context)
{
	char unit[WORD_MAX], uid[32], *words[WORDS_MAX];
	const char *user = s->is_user ? uid : NULL;
	const char *const before[] = { "journalctl", "--output=export", "--quiet", "--no-pager", fields,
				       s->directory ? "--directory" : NULL, s->directory, s->merge ? "--merge" : NULL, "--",
				       name ? unit : NULL, name ? user : NULL, name, name ? "+" : NULL, unit, user };
	size_t count = 0;

	snprintf(unit, sizeof(unit), "%s=%s", s->is_user ? "_SYSTEMD_USER_UNIT" : "_SYSTEMD_UNIT", s->unit);
	snprintf(uid, sizeof(uid), "_UID=%u", (unsigned)getuid());
	for (size_t i = 0; i < COUNT(before); i++)
		if (before[i])
			words[count++] = (char *)before[i];
	while (*events)
		words[count++] = (char *)*events++;
	words[count] = NULL;
	return journal_read(words, take, context);
}

static bool take_first(void *context, struct journal_entry *entry)
{
	*(int64_t *)context = journal_number(entry, "__REALTIME_TIMESTAMP") / 1000;
	return false;
}

/* Fills the history, and when the journal has its first line about a hold of any lock: -1: it has none. 0, or the status. */
static int read_journal(const struct source *s, struct history *h, int64_t *ret_first_ms)
{
	static const char *const holds[] = { "LOCKBROKER_EVENT=released", "LOCKBROKER_EVENT=lost",
					     "LOCKBROKER_EVENT=granted",  "LOCKBROKER_EVENT=delegated",
					     "LOCKBROKER_EVENT=summary",  NULL };
	static const char *const others[] = { "LOCKBROKER_EVENT=summary", "LOCKBROKER_EVENT=serves",
					      "LOCKBROKER_EVENT=unread", "LOCKBROKER_EVENT=held_back", NULL };
	char name[WORD_MAX];
	int status;

	*ret_first_ms = -1;
	snprintf(name, sizeof(name), "LOCKBROKER_NAME=%s", h->name);
	status = read_entries(s, NULL, holds, take_first, ret_first_ms);
	if (status == 0)
		status = read_entries(s, name, others, history_take, h);
	history_end(h);
	return status;
}

/* ---- what is not shown ---- */

struct gap {
	const char *word;
	char sentence[512];
};

enum { GAPS_MAX = 16 };

struct gaps {
	struct gap gaps[GAPS_MAX];
	size_t count;
};

static void add_gap(struct gaps *gaps, const char *word, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add_gap(struct gaps *gaps, const char *word, const char *format, ...)
{
	struct gap *gap = &gaps->gaps[gaps->count++];
	va_list args;

	gap->word = word;
	va_start(args, format);
	vsnprintf(gap->sentence, sizeof(gap->sentence), format, args);
	va_end(args);
}

#define LLU(number) ((unsigned long long)(number))

static bool has_older(const struct history_rows *rows)
{
	size_t i = 0;

	while (i < rows->count && !(rows->rows[i].state == HISTORY_OPEN && rows->rows[i].is_older))
		i++;
	return i < rows->count;
}

static void find_lines_left_out(const struct history *h, struct gaps *gaps)
{
	if (h->delegations > 0)
		add_gap(gaps, "delegated",
			"Times that a process took the lock by delegation, without a line of their own: %llu.",
			LLU(h->takings));
	if (h->summaries > 0)
		add_gap(gaps, "summary", "Holds and long waits beyond log.grants_mb_per_day: %llu.", LLU(h->summed));
	if (h->others_summed > 0)
		add_gap(gaps, "others",
			"Holds and long waits beyond log.grants_mb_per_day whose lock is not known: %llu. Some may be of this lock.",
			LLU(h->others_summed));
	if (h->unread + h->held_back > 0)
		add_gap(gaps, "left_out",
			"Lines of its log that lockbrokerd left out: %llu. Some may be about this lock.",
			LLU(h->unread + h->held_back));
	if (h->holds.left_out + h->waits.left_out > 0)
		add_gap(gaps, "rows",
			"Earlier rows that are not shown: %llu. --since and --until choose a shorter time.",
			LLU(h->holds.left_out + h->waits.left_out));
}

static void find_gaps(const struct source *s, const struct history *h, int64_t first_ms, struct gaps *gaps)
{
	char when[CLI_DURATION_MAX];

	find_lines_left_out(h, gaps);
	if (first_ms < 0)
		add_gap(gaps, "not_logged",
			"The journal has no hold of any lock by %s: perhaps its log.grants is 0. A hold is logged when it ends, or has "
			"lasted 10 s.",
			s->unit);
	else if (h->from_ms < first_ms)
		add_gap(gaps, "before", "The journal begins to have holds at %s: earlier ones are not known.",
			cli_instant_ms(first_ms, -1, when));
	if (has_older(&h->holds))
		add_gap(gaps, "restarted",
			"lockbrokerd was started again after a hold had begun whose end is not logged: `lockbroker who` shows "
			"whether it is still held.");
	if (!s->directory && !s->merge && !h->standalone)
		add_gap(gaps, "hosts",
			"Other hosts have journals of their own: --directory and --merge read the journals that were collected from "
			"them.");
	if (!s->is_known)
		add_gap(gaps, "unit", "No unit has this socket, so these are the entries of %s in the journal.", s->unit);
}

/* ---- for people ---- */

static void cell(struct sheet *s, const struct journal_entry *entry, const char *field)
{
	sheet_text(s, journal_field(entry, field));
}

static void holder_of(struct sheet *s, const struct journal_entry *entry)
{
	struct slice command = journal_field(entry, "LOCKBROKER_COMMAND");

	holder_text_cell(s, command.len > 0 ? command : journal_field(entry, "LOCKBROKER_COMMANDS"),
			 journal_field(entry, "LOCKBROKER_DATA"));
}

/* `role`: of an election, as `who` shows it. */
static void mode_of(struct sheet *s, const struct history_row *row, struct slice role)
{
	struct slice mode = journal_field(&row->entry, "LOCKBROKER_MODE");
	char text[64];

	if (row->permits) {
		snprintf(text, sizeof(text), "%llu permit%s", LLU(row->permits), row->permits == 1 ? "" : "s");
		mode = slice_of(text);
	} else if (slice_eq(journal_field(&row->entry, "LOCKBROKER_KIND"), SLICE("election"))) {
		mode = role;
	}
	sheet_text(s, mode);
}

/* -1: that is not known. Those of a summary have only the longest. */
static int64_t lasted_ms(const struct history_row *row)
{
	bool is_one = journal_number(&row->entry, "LOCKBROKER_COUNT") < 0;

	return row->state == HISTORY_ENDED && is_one ? row->until_ms - row->since_ms : -1;
}

/* How it ended, or what stands in for that. */
static void end_of(struct sheet *s, const struct history_row *row, const char *open)
{
	const struct journal_entry *e = &row->entry;
	struct slice event = journal_field(e, "LOCKBROKER_EVENT"), why = journal_field(e, "LOCKBROKER_WHY");
	long long count = (long long)journal_number(e, "LOCKBROKER_COUNT"),
		  taken = (long long)journal_number(e, "LOCKBROKER_TAKINGS");
	char text[128];

	if (row->state == HISTORY_OPEN)
		snprintf(text, sizeof(text), "%s", open);
	else if (row->state == HISTORY_UNKNOWN)
		snprintf(text, sizeof(text), "not logged");
	else if (slice_eq(event, SLICE("delegated")))
		snprintf(text, sizeof(text), "delegated: %lld taking%s", taken, taken == 1 ? "" : "s");
	else if (slice_eq(event, SLICE("summary")))
		snprintf(text, sizeof(text), "%lld hold%s", count, count == 1 ? "" : "s");
	else
		snprintf(text, sizeof(text), "%s%.*s", slice_eq(event, SLICE("lost")) ? "lost: " : "", (int)why.len,
			 why.data);
	sheet_text(s, slice_of(text));
}

/* The cells that a row of each table begins with. */
static void begin_row(struct sheet *s, const struct history_row *row, struct slice role, const char *open)
{
	char text[CLI_DURATION_MAX];

	sheet_text(s, slice_of(cli_instant_ms(row->since_ms, -1, text)));
	sheet_text(s, row->state == HISTORY_ENDED ? slice_of(cli_instant_ms(row->until_ms, row->since_ms, text))
						  : SLICE(""));
	sheet_duration(s, lasted_ms(row));
	cell(s, &row->entry, "_HOSTNAME");
	cell(s, &row->entry, "LOCKBROKER_PID");
	holder_of(s, &row->entry);
	cell(s, &row->entry, "LOCKBROKER_UID");
	mode_of(s, row, role);
	end_of(s, row, open);
}

static void show_holds(const struct history *h)
{
	static const struct sheet_column columns[] = {
		{ "SINCE", NULL, 0, SHEET_ALWAYS, NULL },   { "UNTIL", NULL, 0, SHEET_ALWAYS, NULL },
		{ "HELD", NULL, 0, SHEET_ALWAYS, NULL },    { "HOST", NULL, 8, SHEET_ALWAYS, NULL },
		{ "PID", NULL, 0, SHEET_ALWAYS, NULL },     { "HOLDER", NULL, 12, SHEET_ALWAYS, NULL },
		{ "UID", NULL, 0, SHEET_ALWAYS, NULL },     { "MODE", NULL, 0, SHEET_ALWAYS, NULL },
		{ "END", NULL, 0, SHEET_ALWAYS, NULL },     { "WAITED", NULL, 0, SHEET_IF_ANY, NULL },
		{ "BEFORE", NULL, 8, SHEET_IF_ANY, NULL },  { "TOKEN", NULL, 0, SHEET_IF_ANY, NULL },
		{ "LONGEST", NULL, 0, SHEET_IF_ANY, NULL }, { "UNIT", NULL, 12, SHEET_IF_ANY, NULL },
		{ "CLIENT", NULL, 0, SHEET_WIDE, NULL },
	};
	struct sheet s;

	sheet_begin(&s, columns, COUNT(columns));
	for (size_t i = 0; i < h->holds.count; i++) {
		const struct history_row *row = &h->holds.rows[i];
		const struct journal_entry *e = &row->entry;
		bool has_token = journal_number(e, "LOCKBROKER_TOKEN") > 0;

		begin_row(&s, row, SLICE("leader"), "still held");
		sheet_duration(&s, journal_number(e, "LOCKBROKER_WAITED_MS"));
		cell(&s, e, "LOCKBROKER_BEFORE");
		cell(&s, e, has_token ? "LOCKBROKER_TOKEN" : "");
		sheet_duration(&s, journal_number(e, "LOCKBROKER_LONGEST_MS"));
		cell(&s, e, "LOCKBROKER_UNIT");
		cell(&s, e, "LOCKBROKER_CLIENT");
	}
	sheet_print(&s, 0);
	sheet_end(&s);
}

/* Who held what was waited for: the entry that says that the wait is long has it. */
static const struct journal_entry *told_by(const struct history_row *row)
{
	return row->state == HISTORY_ENDED ? &row->begin : &row->entry;
}

static void show_waits(const struct history *h)
{
	static const struct sheet_column columns[] = {
		{ "SINCE", NULL, 0, SHEET_ALWAYS, NULL },  { "UNTIL", NULL, 0, SHEET_ALWAYS, NULL },
		{ "WAITED", NULL, 0, SHEET_ALWAYS, NULL }, { "HOST", NULL, 8, SHEET_ALWAYS, NULL },
		{ "PID", NULL, 0, SHEET_ALWAYS, NULL },    { "WAITER", NULL, 12, SHEET_ALWAYS, NULL },
		{ "UID", NULL, 0, SHEET_ALWAYS, NULL },    { "MODE", NULL, 0, SHEET_ALWAYS, NULL },
		{ "END", NULL, 0, SHEET_ALWAYS, NULL },    { "HELD BY", NULL, 12, SHEET_IF_ANY, NULL },
	};
	struct sheet s;

	sheet_begin(&s, columns, COUNT(columns));
	for (size_t i = 0; i < h->waits.count; i++) {
		const struct history_row *row = &h->waits.rows[i];
		struct slice host = journal_field(told_by(row), "LOCKBROKER_HOLDER"),
			     pid = journal_field(told_by(row), "LOCKBROKER_HOLDER_PID"),
			     command = journal_field(told_by(row), "LOCKBROKER_HOLDER_COMMAND");
		struct bytes by = { 0 };

		begin_row(&s, row, SLICE("candidate"), "still waits");
		bytes_slice(&by, host);
		if (pid.len > 0)
			bytes_format(&by, "%s%v %v", by.len > 0 ? ": " : "", command, pid);
		sheet_text(&s, bytes_view(&by));
		bytes_free(&by);
	}
	sheet_print(&s, 0);
	sheet_end(&s);
}

static void show(const struct history *h, const struct gaps *gaps)
{
	if (h->holds.count == 0) {
		fputs("No hold of ", stdout);
		cli_text(slice_of(h->name));
		puts(h->from_ms > 0 || h->to_ms < INT64_MAX ? " in that time is in the journal."
							    : " is in the journal.");
	}
	show_holds(h);
	if (h->waits.count > 0)
		puts("\nlong waits:");
	show_waits(h);
	if (gaps->count > 0)
		putchar('\n');
	for (size_t i = 0; i < gaps->count; i++)
		cli_lines(slice_of(gaps->gaps[i].sentence));
}

/* ---- JSON ---- */

struct json_field {
	const char *key, *field;
	bool is_number;
};

static const struct json_field hold_fields[] = {
	{ "host", "_HOSTNAME", false },
	{ "event", "LOCKBROKER_EVENT", false },
	{ "kind", "LOCKBROKER_KIND", false },
	{ "mode", "LOCKBROKER_MODE", false },
	{ "token", "LOCKBROKER_TOKEN", true },
	{ "client", "LOCKBROKER_CLIENT", true },
	{ "pid", "LOCKBROKER_PID", true },
	{ "uid", "LOCKBROKER_UID", true },
	{ "unit", "LOCKBROKER_UNIT", false },
	{ "command", "LOCKBROKER_COMMAND", false },
	{ "data", "LOCKBROKER_DATA", false },
	{ "waited_ms", "LOCKBROKER_WAITED_MS", true },
	{ "why", "LOCKBROKER_WHY", false },
	{ "before", "LOCKBROKER_BEFORE", false },
	{ "takings", "LOCKBROKER_TAKINGS", true },
	{ "count", "LOCKBROKER_COUNT", true },
	{ "commands", "LOCKBROKER_COMMANDS", false },
	{ "longest_ms", "LOCKBROKER_LONGEST_MS", true },
};

static const struct json_field wait_fields[] = {
	{ "host", "_HOSTNAME", false },       { "kind", "LOCKBROKER_KIND", false },
	{ "mode", "LOCKBROKER_MODE", false }, { "client", "LOCKBROKER_CLIENT", true },
	{ "pid", "LOCKBROKER_PID", true },    { "uid", "LOCKBROKER_UID", true },
	{ "unit", "LOCKBROKER_UNIT", false }, { "command", "LOCKBROKER_COMMAND", false },
	{ "why", "LOCKBROKER_WHY", false },
};

static const struct json_field holder_fields[] = {
	{ "holder", "LOCKBROKER_HOLDER", false },
	{ "holder_pid", "LOCKBROKER_HOLDER_PID", true },
	{ "holder_command", "LOCKBROKER_HOLDER_COMMAND", false },
};

/* -1: null */
static void print_number(const char *key, int64_t number)
{
	if (number < 0)
		printf(",\"%s\":null", key);
	else
		printf(",\"%s\":%lld", key, (long long)number);
}

static void print_fields(const struct journal_entry *entry, const struct json_field *all, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct slice text = journal_field(entry, all[i].field);
		int64_t number = journal_number(entry, all[i].field);

		if (all[i].is_number || text.len == 0) {
			print_number(all[i].key,
				     text.len == 0 || (number == 0 && strcmp(all[i].key, "token") == 0) ? -1 : number);
			continue;
		}
		printf(",\"%s\":", all[i].key);
		cli_json_text(text);
	}
}

/* Its begin, its end if it is known, and how long it lasted. */
static void print_times(const struct history_row *row, const char *lasted)
{
	static const char *const states[] = { "ended", "open", "unknown" };

	printf("{\"state\":\"%s\"", states[row->state]);
	print_number("since_ms", row->since_ms);
	print_number("until_ms", row->state == HISTORY_ENDED ? row->until_ms : -1);
	print_number(lasted, lasted_ms(row));
}

static void print_json(const struct history *h, const struct gaps *gaps)
{
	fputs("{\"holds\":[", stdout);
	for (size_t i = 0; i < h->holds.count; i++) {
		fputs(i > 0 ? "," : "", stdout);
		print_times(&h->holds.rows[i], "held_ms");
		print_number("permits", h->holds.rows[i].permits ? (int64_t)h->holds.rows[i].permits : -1);
		print_fields(&h->holds.rows[i].entry, hold_fields, COUNT(hold_fields));
		putchar('}');
	}
	fputs("],\"waits\":[", stdout);
	for (size_t i = 0; i < h->waits.count; i++) {
		fputs(i > 0 ? "," : "", stdout);
		print_times(&h->waits.rows[i], "waited_ms");
		print_fields(&h->waits.rows[i].entry, wait_fields, COUNT(wait_fields));
		print_fields(told_by(&h->waits.rows[i]), holder_fields, COUNT(holder_fields));
		putchar('}');
	}
	fputs("],\"gaps\":[", stdout);
	for (size_t i = 0; i < gaps->count; i++) {
		printf("%s{\"gap\":\"%s\",\"text\":", i > 0 ? "," : "", gaps->gaps[i].word);
		cli_json_text(slice_of(gaps->gaps[i].sentence));
		putchar('}');
	}
	puts("]}");
}

int cli_history(const struct cli_words *w)
{
	struct history h = { .name = w->arguments[0] };
	struct gaps gaps = { 0 };
	struct source source;
	int64_t first_ms;
	int status = read_times(w, &h);

	if (status >= 0)
		return status;
	if (!name_valid(slice_of(h.name)))
		return cli_usage("\"%s\" is no name of a lock.", h.name);
	if (!find_source(w, &source))
		return CLI_UNAVAILABLE;
	status = source.directory ? -1 : may_read(&source);
	if (status >= 0)
		return status;
	status = read_journal(&source, &h, &first_ms);
	if (status == CLI_OK) {
		find_gaps(&source, &h, first_ms, &gaps);
		(cli_json_asked ? print_json : show)(&h, &gaps);
	}
	history_free(&h);
	return status;
}
