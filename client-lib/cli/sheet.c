/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/sheet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <unistd.h>

#include "client-lib/cli/json.h"
#include "client-lib/cli/reply_text.h"
#include "client-lib/cli/shown.h"

enum { CELL_BYTES_MAX = 8192, GAP = 2, COLUMNS_USUAL = 80 };

bool cli_wide_asked;

size_t cli_terminal_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS_USUAL;
}

bool cli_terminal_is_smart(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static bool is_bold(void)
{
	const char *none = getenv("NO_COLOR");

	return cli_terminal_is_smart() && (!none || !*none);
}

/* ---- cells ---- */

static size_t width_of(const char *shown)
{
	char one[CLI_SHOWN_MAX];
	size_t width = 0, len = strlen(shown);
	int columns;

	for (size_t at = 0; at < len; width += (size_t)columns)
		at += cli_show_character(shown + at, len - at, one, &columns);
	return width;
}

void sheet_begin(struct sheet *s, const struct sheet_column *columns, size_t count)
{
	assert(count <= SHEET_COLUMNS_MAX);
	*s = (struct sheet){ .columns = columns, .column_count = count };
	for (size_t i = 0; i < count; i++)
		s->widths[i] = strlen(columns[i].head);
}

void sheet_text(struct sheet *s, struct slice text)
{
	char whole[CELL_BYTES_MAX], shown[CELL_BYTES_MAX];

	snprintf(whole, sizeof(whole), "%.*s", (int)text.len, text.len ? text.data : "");
	cli_shown(whole, shown, sizeof(shown));
	s->any[s->at] |= *shown != '\0';
	if (!*shown)
		memcpy(shown, "-", 2);
	bytes_append(&s->cells, shown, strlen(shown) + 1);
	s->widths[s->at] = MAX(s->widths[s->at], width_of(shown));
	s->at = (s->at + 1) % s->column_count;
	s->row_count += s->at == 0;
}

void sheet_duration(struct sheet *s, long long ms)
{
	char text[CLI_DURATION_MAX];

	sheet_text(s, slice_of(cli_duration(ms, text)));
}

void sheet_value(struct sheet *s, const struct lb_reply *map, const char *key)
{
	const struct lb_reply *value = lb_reply_field(map, key);
	long long number = (long long)lb_reply_integer(value);
	size_t len = strlen(key);
	char text[CLI_DURATION_MAX];

	if (lb_reply_type(value) != LB_REPLY_INTEGER || cli_is_null(map, slice_of(key), value)) {
		sheet_text(s, reply_text(value));
	} else if (cli_is_flag(map, slice_of(key))) {
		sheet_text(s, number ? SLICE("yes") : SLICE("no"));
	} else if (len > 3 && strcmp(key + len - 3, "_ms") == 0) {
		sheet_duration(s, number);
	} else if (strcmp(key, "started") == 0) {
		sheet_text(s, slice_of(cli_instant(number, text)));
	} else {
		snprintf(text, sizeof(text), "%lld", number);
		sheet_text(s, slice_of(text));
	}
}

void sheet_rest(struct sheet *s, const struct lb_reply *map)
{
	do {
		const struct sheet_column *column = &s->columns[s->at];

		if (column->cell)
			column->cell(s, map);
		else
			sheet_value(s, map, column->key);
	} while (s->at > 0);
}

/* ---- printing ---- */

/* The widths in which the columns are printed; 0: this one is not. `columns`: of the terminal; 0: as many as are needed. */
static void fit(const struct sheet *s, size_t columns, size_t widths[SHEET_COLUMNS_MAX])
{
	size_t sum = 0;

	for (size_t i = 0; i < s->column_count; i++) {
		bool wide = s->columns[i].shown == SHEET_WIDE, rare = s->columns[i].shown == SHEET_IF_ANY;

		widths[i] = (wide && !cli_wide_asked) || (rare && !s->any[i]) ? 0 : s->widths[i];
		sum += widths[i] ? widths[i] + GAP : 0;
	}
	for (; columns && sum > columns + GAP; sum--) {
		size_t longest = s->column_count;

		for (size_t i = 0; i < s->column_count; i++)
			if (s->columns[i].least && widths[i] > s->columns[i].least &&
			    (longest == s->column_count || widths[i] > widths[longest]))
				longest = i;
		if (longest == s->column_count)
			break;
		widths[longest]--;
	}
}

/* Adds as much of it as fits in `most` columns, with an ellipsis if that is not all; returns how many it takes. */
static size_t add_part(struct bytes *line, const char *shown, size_t most)
{
	size_t width = width_of(shown), at = 0, used = 0, len = strlen(shown);
	char one[CLI_SHOWN_MAX];
	int columns;

	if (width <= most) {
		bytes_text(line, shown);
		return width;
	}
	for (;;) {
		size_t next = cli_show_character(shown + at, len - at, one, &columns);

		if (used + (size_t)columns + 1 > most)
			break;
		bytes_text(line, one);
		used += (size_t)columns;
		at += next;
	}
	bytes_text(line, "…");
	return used + 1;
}

/* `cells`: NULL for the heads. Returns where those of the next row begin. */
static const char *print_line(const struct sheet *s, const char *cells, const size_t *widths, size_t columns)
{
	struct bytes whole = { 0 }, line = { 0 };
	size_t pad = 0;

	for (size_t i = 0; i < s->column_count; i++) {
		const char *cell = cells ? cells : s->columns[i].head;

		cells = cells ? cells + strlen(cells) + 1 : NULL;
		if (!widths[i])
			continue;
		while (pad-- > 0)
			bytes_char(&whole, ' ');
		pad = widths[i] + GAP - add_part(&whole, cell, widths[i]);
	}
	bytes_char(&whole, '\0');
	add_part(&line, whole.data, columns ? columns : SIZE_MAX);
	fwrite(line.data, 1, line.len, stdout);
	bytes_free(&whole);
	bytes_free(&line);
	return cells;
}

void sheet_print(const struct sheet *s, size_t lines)
{
	size_t widths[SHEET_COLUMNS_MAX], rows = s->row_count, columns = cli_terminal_columns();
	const char *cells = s->cells.data, *end = lines ? "\033[K\n" : "\n";
	bool bold = is_bold();

	if (rows == 0)
		return;
	if (lines && rows + 1 > lines)
		rows = lines > 2 ? lines - 2 : 0;
	fit(s, columns, widths);
	fputs(bold ? "\033[1m" : "", stdout);
	print_line(s, NULL, widths, columns);
	fputs(bold ? "\033[0m" : "", stdout);
	fputs(end, stdout);
	for (size_t i = 0; i < rows; i++) {
		cells = print_line(s, cells, widths, columns);
		fputs(end, stdout);
	}
	if (rows < s->row_count)
		printf("(and %zu more)%s", s->row_count - rows, end);
}

void sheet_end(struct sheet *s)
{
	bytes_free(&s->cells);
}

void sheet_show(const struct sheet_column *columns, size_t count, const struct lb_reply *maps, long long limit)
{
	const struct lb_reply *map = lb_reply_item(maps, 0);
	size_t rows = lb_reply_count(maps);
	struct sheet s;

	sheet_begin(&s, columns, count);
	s.limit = limit;
	for (size_t i = 0; i < rows; i++, map = i < rows ? lb_reply_next(map) : map)
		sheet_rest(&s, map);
	sheet_print(&s, 0);
	sheet_end(&s);
}
