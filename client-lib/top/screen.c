/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curses.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/shown.h"
#include "client-lib/top/top.h"
#include "protocol/bytes.h"
#include "protocol/bytes_format.h"

enum { HEAD_LINES = 3, FOOT_LINES = 1, LATE_MS = 3000, FLEXIBLE_LEAST = 12 };

/* ---- texts ---- */

/* A text that does not fit ends with a sign. What others wrote does not steer the terminal (client-lib/cli/shown.h). */
static void put(int y, int x, int columns, struct slice text)
{
	char shown[CLI_SHOWN_MAX];
	int width, used = 0;
	struct bytes line = { 0 };
	size_t cut = 0; /* where the sign would stand */
	int cut_at = 0;

	columns = columns < COLS - x ? columns : COLS - x;
	if (y >= LINES || columns <= 0)
		return;
	for (size_t at = 0; at < text.len;) {
		at += cli_show_character(text.data + at, text.len - at, shown, &width);
		if (used + width > columns) {
			line.len = cut;
			bytes_text(&line, "…");
			used = cut_at + 1;
			break;
		}
		bytes_text(&line, shown);
		used += width;
		if (used < columns) {
			cut = line.len;
			cut_at = used;
		}
	}
	for (; used < columns; used++)
		bytes_char(&line, ' ');
	mvaddnstr(y, x, line.data, (int)line.len);
	bytes_free(&line);
}

static void put_line(int y, const struct bytes *text)
{
	put(y, 0, COLS, bytes_view(text));
}

static void say(int y, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(int y, const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	put(y, 0, COLS, slice_of(text));
	free(text);
}

static void add_rate(struct bytes *text, double rate)
{
	char number[32];

	snprintf(number, sizeof(number), rate < 10 && rate > 0 ? "%.1f" : "%.0f", rate);
	bytes_text(text, number);
}

static void add_duration(struct bytes *text, long long ms)
{
	char duration[CLI_DURATION_MAX];

	bytes_text(text, cli_duration(ms, duration));
}

/* As `lockbroker who` calls a holder or a waiter: what it runs, and its text. */
static void add_person(struct bytes *text, const struct lb_reply *who)
{
	struct slice name = reply_field(who, "name"), data = reply_field(who, "data");

	bytes_slice(text, name.len ? name : reply_field(who, "command"));
	if (data.len)
		bytes_format(text, text->len ? " (%s)" : "(%s)", data);
}

static long long held_ms(const struct lb_reply *holder)
{
	long long held = reply_number(holder, "held_ms");

	return held < 0 ? -1 : held + reply_number(holder, "age_ms");
}

/* ---- the session ---- */

static void add_session(const struct top *t, struct slice info, struct bytes *text)
{
	struct slice state = reply_line(info, "\nsession_state:");
	size_t hosts = lb_reply_count(kept_reply(&t->hosts));
	char number[96];

	bytes_format(text, "%s: ", reply_line(info, "\nhost:"));
	if (slice_eq(state, SLICE("standalone"))) {
		bytes_text(text, "standalone, locks of this host only");
	} else {
		snprintf(number, sizeof(number), ", proof %.1fs of %.1fs",
			 (double)reply_line_number(info, "\nsafe_for_ms:") / 1000,
			 (double)reply_line_number(info, "\nsession_timeout_ms:") / 1000);
		bytes_format(text, "%s%s", state, slice_of(number));
		if (hosts)
			bytes_format(text, ", %d host%s", hosts, hosts == 1 ? "" : "s");
	}
	if (t->grants_rate >= 0) {
		bytes_text(text, ", ");
		add_rate(text, t->grants_rate);
		bytes_text(text, " grants/s");
	}
	if (t->round_trip_ms >= 0) {
		snprintf(number, sizeof(number), ", ZooKeeper %.1fms", t->round_trip_ms);
		bytes_text(text, number);
	}
}

static void add_totals(const struct top *t, struct slice info, struct bytes *text)
{
	static const char *const orders[TOP_ORDERS] = { "longest wait", "waiters", "grants a second", "name" };
	long long longest = reply_line_number(info, "\nlongest_wait_ms:"), locks = reply_line_number(info, "\nlocks:");

	bytes_format(text, "%d lock%s, %d held, %d waiting", locks, locks == 1 ? "" : "s",
		     reply_line_number(info, "\ngrants:"), reply_line_number(info, "\nrequests:"));
	if (longest) {
		bytes_text(text, " for up to ");
		add_duration(text, longest);
	}
	bytes_format(text, "; by %s", orders[t->order]);
	if (*t->filter)
		bytes_format(text, "; with \"%s\"", t->filter);
	if (t->stopped)
		bytes_text(text, "; STOPPED");
}

static void draw_head(const struct top *t, int64_t now_ms)
{
	struct slice info = reply_text(kept_reply(&t->info));
	struct bytes first = { 0 }, second = { 0 };
	int64_t silent_ms = t->local.asked_ms ? now_ms - t->local.asked_ms : 0;

	if (info.len)
		add_session(t, info, &first);
	if (info.len)
		add_totals(t, info, &second);
	if (t->local.fd < 0) {
		bytes_clear(&first);
		bytes_format(&first, "NO BROKER: %s; trying again", t->local.why);
	} else if (silent_ms > LATE_MS) {
		bytes_clear(&first);
		bytes_text(&first, "THE BROKER HAS NOT ANSWERED for ");
		add_duration(&first, silent_ms);
	}
	attron(A_BOLD);
	put_line(0, &first);
	attroff(A_BOLD);
	put_line(1, &second);
	bytes_free(&first);
	bytes_free(&second);
}

/* ---- columns ---- */

struct column {
	const char *title;
	int columns; /* 0: what is left, in parts */
	int parts;
	bool right;
};

/* Of a narrow screen the last columns are left out, so that names and holders can be read. */
static size_t count_columns(const struct column *columns, size_t count, int *ret_left, int *ret_parts)
{
	for (; count; count--) {
		int flexible = 0;

		*ret_left = COLS + 1;
		*ret_parts = 0;
		for (size_t i = 0; i < count; i++) {
			*ret_left -= columns[i].columns + 1;
			*ret_parts += columns[i].parts;
			flexible += columns[i].parts > 0;
		}
		if (*ret_left >= FLEXIBLE_LEAST * flexible || (columns[count - 1].parts && flexible == 1) || count == 1)
			break;
	}
	return count;
}

static void put_row(int y, const struct column *columns, size_t count, const struct bytes *cells)
{
	int parts, x = 0, left;

	count = count_columns(columns, count, &left, &parts);
	for (size_t i = 0; i < count; i++) {
		int width = columns[i].columns ? columns[i].columns : left * columns[i].parts / parts;
		struct slice text = cells ? bytes_view(&cells[i]) : slice_of(columns[i].title);
		int indent = columns[i].right && (int)text.len < width ? width - (int)text.len : 0;

		put(y, x, indent, SLICE(""));
		put(y, x + indent, width - indent, text);
		put(y, x + width, 1, SLICE(""));
		x += width + 1;
	}
	put(y, x - 1, COLS - x + 1, SLICE(""));
}

static void end_cells(struct bytes *cells, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes_free(&cells[i]);
}

/* ---- the list ---- */

enum { CELL_NAME, CELL_WAIT, CELL_WAITERS, CELL_HOLDER, CELL_HOST, CELL_HELD, CELL_RATE, CELLS };

static const struct column list_columns[CELLS] = {
	{ "LOCK", 0, 4, false }, { "WAIT", 6, 0, true }, { "WAITERS", 7, 0, true }, { "HOLDER", 0, 5, false },
	{ "HOST", 9, 0, false }, { "HELD", 6, 0, true }, { "GRANT/S", 7, 0, true },
};

static void draw_lock(const struct top *t, int y, const struct top_row *row)
{
	const struct lb_reply *holder = top_holder(t, row);
	long long holders = reply_number(row->lock, "holders"), waiters = reply_number(row->lock, "waiters");
	struct bytes cells[CELLS] = { 0 };

	bytes_slice(&cells[CELL_NAME], reply_field(row->lock, "name"));
	if (waiters) {
		add_duration(&cells[CELL_WAIT], reply_number(row->lock, "waited_ms"));
		bytes_int(&cells[CELL_WAITERS], waiters);
	}
	if (row->rate >= 0)
		add_rate(&cells[CELL_RATE], row->rate);
	if (holder) {
		add_person(&cells[CELL_HOLDER], holder);
		if (holders > 1)
			bytes_format(&cells[CELL_HOLDER], ", and %d more", holders - 1);
		bytes_slice(&cells[CELL_HOST], reply_field(holder, "host"));
		add_duration(&cells[CELL_HELD], held_ms(holder));
	} else if (reply_number(row->lock, "delegated")) {
		bytes_text(&cells[CELL_HOLDER], "(free, delegated)");
	}
	put_row(y, list_columns, CELLS, cells);
	end_cells(cells, CELLS);
}

size_t top_page(void)
{
	return LINES > HEAD_LINES + FOOT_LINES ? (size_t)(LINES - HEAD_LINES - FOOT_LINES) : 1;
}

static void draw_list(struct top *t)
{
	size_t selected = top_selected(t), page = top_page();

	if (selected < t->offset)
		t->offset = selected;
	if (selected >= t->offset + page)
		t->offset = selected - page + 1;
	if (t->offset + page > t->row_count)
		t->offset = t->row_count > page ? t->row_count - page : 0;
	attron(A_REVERSE);
	put_row(2, list_columns, CELLS, NULL);
	attroff(A_REVERSE);
	for (size_t i = 0; i < page && t->offset + i < t->row_count; i++) {
		bool is_selected = t->offset + i == selected;

		if (is_selected)
			attron(A_BOLD | A_UNDERLINE);
		draw_lock(t, HEAD_LINES + (int)i, &t->rows[t->offset + i]);
		attroff(A_BOLD | A_UNDERLINE);
	}
	if (!t->row_count && t->locks_ms)
		say(HEAD_LINES, *t->filter ? "no lock of this host has that in its name" : "no locks on this host");
}

/* ---- the open lock ---- */

/* Its lines are counted, and those on the screen are drawn. */
struct sheet {
	size_t first, line, page;
};

static int next_line(struct sheet *s)
{
	size_t line = s->line++;

	return line >= s->first && line < s->first + s->page ? HEAD_LINES - 1 + (int)(line - s->first) : -1;
}

static void sheet_text(struct sheet *s, struct slice text)
{
	int y = next_line(s);

	if (y >= 0)
		put(y, 0, COLS, text);
}

/* A sentence on as many lines as it needs, broken between words. */
static void sheet_sentence(struct sheet *s, struct slice text)
{
	while (text.len) {
		size_t at = 0, space = 0;
		char shown[CLI_SHOWN_MAX];
		int width, used = 0;

		while (at < text.len) {
			size_t len = cli_show_character(text.data + at, text.len - at, shown, &width);

			if (used + width > COLS)
				break;
			used += width;
			at += len;
			if (at < text.len && text.data[at] == ' ')
				space = at;
		}
		if (at < text.len && space)
			at = space;
		if (!at) /* the screen is narrower than a character */
			return;
		sheet_text(s, (struct slice){ text.data, at });
		while (at < text.len && text.data[at] == ' ')
			at++;
		text = (struct slice){ text.data + at, text.len - at };
	}
}

enum { WHO_PLACE, WHO_NAME, WHO_FOR, WHO_HOST, WHO_PID, WHO_MODE, WHO_SINCE, WHO_CELLS };

static const struct column holder_columns[WHO_CELLS] = {
	{ "", 4, 0, true },    { "HOLDER", 0, 1, false }, { "HELD", 6, 0, true },   { "HOST", 12, 0, false },
	{ "PID", 7, 0, true }, { "MODE", 9, 0, false },   { "SINCE", 8, 0, false },
};

static const struct column waiter_columns[WHO_CELLS] = {
	{ "", 4, 0, true },    { "WAITER", 0, 1, false }, { "WAITED", 6, 0, true }, { "HOST", 12, 0, false },
	{ "PID", 7, 0, true }, { "MODE", 9, 0, false },   { "SINCE", 8, 0, false },
};

/* As this host's clock shows it: the time of day, or a day. */
static void add_since(struct bytes *text, long long ago_ms)
{
	time_t at = time(NULL) - ago_ms / 1000;
	char shown[32];
	struct tm tm;

	if (ago_ms >= 0 && localtime_r(&at, &tm) &&
	    strftime(shown, sizeof(shown), ago_ms < 86400000 ? "%H:%M:%S" : "%m-%d", &tm))
		bytes_text(text, shown);
}

static void sheet_who(struct sheet *s, const struct lb_reply *who, bool holds)
{
	struct bytes cells[WHO_CELLS] = { 0 };
	long long ms = holds ? held_ms(who) : reply_number(who, "waited_ms");
	int y = next_line(s);

	if (y < 0)
		return;
	if (!holds)
		bytes_int(&cells[WHO_PLACE], reply_number(who, "position"));
	bytes_slice(&cells[WHO_HOST], reply_field(who, "host"));
	if (reply_number(who, "pid"))
		bytes_int(&cells[WHO_PID], reply_number(who, "pid"));
	add_person(&cells[WHO_NAME], who);
	bytes_slice(&cells[WHO_MODE], reply_field(who, "mode"));
	add_duration(&cells[WHO_FOR], ms);
	add_since(&cells[WHO_SINCE], ms);
	put_row(y, holds ? holder_columns : waiter_columns, WHO_CELLS, cells);
	end_cells(cells, WHO_CELLS);
}

static void sheet_people(struct sheet *s, const struct lb_reply *people, bool hold)
{
	const struct lb_reply *who = lb_reply_item(people, 0);
	int y = next_line(s);

	attron(A_REVERSE);
	if (y >= 0)
		put_row(y, hold ? holder_columns : waiter_columns, WHO_CELLS, NULL);
	attroff(A_REVERSE);
	if (!who)
		sheet_text(s, hold ? SLICE("nobody holds it") : SLICE("nobody waits for it"));
	for (; who; who = reply_row_after(people, who))
		sheet_who(s, who, hold);
}

static size_t draw_sheet(const struct top *t, size_t first)
{
	const struct lb_reply *why = kept_reply(&t->why), *queue = kept_reply(&t->queue);
	struct sheet s = { .first = first, .page = top_page() + 1 };
	struct bytes text = { 0 };

	bytes_format(&text, "%s: ", t->opened);
	if (why)
		bytes_slice(&text, reply_field(why, "why"));
	attron(A_BOLD);
	sheet_sentence(&s, bytes_view(&text));
	attroff(A_BOLD);
	bytes_free(&text);
	if (why)
		sheet_people(&s, lb_reply_field(why, "holders"), true);
	if (queue)
		sheet_people(&s, queue, false);
	return s.line;
}

static void draw_open(struct top *t)
{
	size_t lines = draw_sheet(t, t->detail_offset), page = top_page() + 1;

	if (t->detail_offset && t->detail_offset + page > lines) {
		t->detail_offset = lines > page ? lines - page : 0;
		erase();
		draw_sheet(t, t->detail_offset);
	}
}

/* ---- help, and the last line ---- */

static void draw_help(void)
{
	static const char *const lines[] = {
		"w n g a   sort by longest wait, number of waiters, grants a second, name",
		"/         show the locks with a text in their name (Enter keeps it, Esc drops it)",
		"up, down, Page Up, Page Down, Home, End   another lock",
		"Enter     open the lock: why it is not granted, holders, the queue in its order",
		"Esc, Left go back",
		"r         ask the holders of the lock to release it (operators, and whom a rule allows it)",
		"space     stop, or go on",
		"q         end",
		"",
		"WAIT: the longest wait of this host. GRANT/S: grants of this host a second, without grants of delegated locks.",
		"Of the locks of this host the first 200 are shown; by grants a second, of the 1000 with most grants in all.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		put(HEAD_LINES - 1 + (int)i, 0, COLS, slice_of(lines[i]));
}

static void draw_foot(const struct top *t)
{
	static const char keys[] =
		"w wait  n waiters  g grants/s  a name  / filter  Enter open  r release  space stop  q end";
	static const char short_keys[] = "w n g a sort  / filter  Enter open  r release  space stop  ? help  q end";
	static const char open_keys[] = "Esc back  r ask to release  space stop  ? help  q end";
	const char *text = t->open || t->helps ? open_keys : COLS < (int)sizeof(keys) ? short_keys : keys;

	switch (t->prompt) {
	case PROMPT_FILTER:
		say(LINES - 1, "/%s_", t->filter);
		return;
	case PROMPT_RELEASE:
		say(LINES - 1, "y: ask the holders to release %s; any other key: do not", t->releasing);
		return;
	case PROMPT_NONE:
		break;
	}
	say(LINES - 1, "%s", *t->message ? t->message : text);
}

void top_draw(struct top *t, int64_t now_ms)
{
	erase();
	draw_head(t, now_ms);
	if (t->helps)
		draw_help();
	else if (t->open)
		draw_open(t);
	else
		draw_list(t);
	draw_foot(t);
	move(LINES - 1, 0);
	refresh();
}
