/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "protocol/slice.h"

enum { COLUMNS_MAX = 24 };
/* One character as it is shown, at most "\U" and eight digits, with its NUL. */
enum { SHOWN_MAX = 16 };

struct table {
	const struct lb_reply *rows;
	size_t columns;
	int widths[COLUMNS_MAX];
};

/* ---- characters ---- */

size_t cli_character(const char *text, size_t len, int32_t *ret)
{
	static const int32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned char c = (unsigned char)text[0];
	size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
	int32_t number = more ? c & (0x3f >> more) : c;
	size_t i;

	*ret = -1;
	if ((c >= 0x80 && c < 0xc0) || c >= 0xf8 || more >= len)
		return 1;
	for (i = 1; i <= more; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 1;
		number = number << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (number < least[more] || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff))
		return 1;
	*ret = number;
	return more + 1;
}

bool cli_is_harmful(int32_t c)
{
	/* Breaks of a line, and the class Default_Ignorable_Code_Point of Unicode, which has the marks of direction. */
	static const struct {
		int32_t first, last;
	} harmful[] = {
		{ INT32_MIN, 0x1f },  { 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },
		{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x2028, 0x202e },
		{ 0x2060, 0x206f },   { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfff8 },   { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]) && c >= harmful[i].first; i++)
		if (c <= harmful[i].last)
			return true;
	return false;
}

/*
 * What another process calls itself must not steer the reader's terminal. Writes the first character as it is to be
 * shown, NUL-terminated, with its width in columns. Returns how many bytes of `text` it has.
 */
static size_t show(const char *text, size_t len, char ret_shown[SHOWN_MAX], int *ret_width)
{
	int32_t c;
	size_t used = cli_character(text, len, &c);

	if (cli_is_harmful(c)) {
		if (c < 0)
			*ret_width = snprintf(ret_shown, SHOWN_MAX, "\\x%02x", (unsigned)(unsigned char)text[0]);
		else
			*ret_width = snprintf(ret_shown, SHOWN_MAX, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
		return used;
	}
	memcpy(ret_shown, text, used);
	ret_shown[used] = '\0';
	*ret_width = 1;
	return used;
}

const char *cli_shown(const char *text, char *ret, size_t size)
{
	size_t len = strlen(text), at = 0, to = 0;
	char shown[SHOWN_MAX];
	int width;

	while (at < len) {
		at += show(text + at, len - at, shown, &width);
		if (to + strlen(shown) >= size)
			break;
		memcpy(ret + to, shown, strlen(shown));
		to += strlen(shown);
	}
	ret[to] = '\0';
	return ret;
}

void cli_quoted(const char *text, size_t len)
{
	static const char escaped[] = "\"\"\\\\\nn\rr\tt";
	size_t at, used;
	int32_t c;

	putchar('"');
	for (at = 0; at < len; at += used) {
		const char *letter = escaped;

		used = cli_character(text + at, len - at, &c);
		while (*letter && *letter != text[at])
			letter += 2;
		if (*letter)
			printf("\\%c", letter[1]);
		else if (!cli_is_harmful(c) && c >= 0)
			printf("%.*s", (int)used, text + at);
		else
			for (size_t i = 0; i < used; i++)
				printf("\\x%02x", (unsigned)(unsigned char)text[at + i]);
	}
	putchar('"');
}

/* ---- cells ---- */

struct cell {
	const char *text;
	size_t len;
	char number[CLI_DURATION_MAX];
};

const char *cli_duration(long long ms, char ret[CLI_DURATION_MAX])
{
	long long seconds = ms / 1000;

	if (ms < 0)
		ret[0] = '\0';
	else if (seconds < 60)
		snprintf(ret, CLI_DURATION_MAX, "%llds", seconds);
	else if (seconds < 3600)
		snprintf(ret, CLI_DURATION_MAX, "%lldm%02llds", seconds / 60, seconds % 60);
	else if (seconds < 86400)
		snprintf(ret, CLI_DURATION_MAX, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
	else
		snprintf(ret, CLI_DURATION_MAX, "%lldd%02lldh", seconds / 86400, seconds / 3600 % 24);
	return ret;
}

/* So many bytes of the key stand as the head of its column. */
static size_t head_of(struct slice key)
{
	const struct slice ending = SLICE("_ms");
	bool is_duration = key.len > ending.len && memcmp(key.data + key.len - ending.len, ending.data, ending.len) == 0;

	return is_duration ? key.len - ending.len : key.len;
}

static void instant(long long seconds, char *ret, size_t size)
{
	time_t at = (time_t)seconds;
	struct tm tm;

	if (!localtime_r(&at, &tm) || !strftime(ret, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(ret, size, "%lld", seconds);
}

static void cell_number(struct cell *cell, struct slice key, long long number)
{
	if (head_of(key) < key.len && number < 1000 && number >= 0)
		snprintf(cell->number, sizeof(cell->number), "%lldms", number);
	else if (head_of(key) < key.len)
		cli_duration(number, cell->number);
	else if (slice_eq(key, SLICE("started")))
		instant(number, cell->number, sizeof(cell->number));
	else
		snprintf(cell->number, sizeof(cell->number), "%lld", number);
	cell->text = cell->number;
	cell->len = strlen(cell->number);
}

/* `key`: of the column, or empty. */
static void cell_set(struct cell *cell, struct slice key, const struct lb_reply *value)
{
	cell->text = lb_reply_text(value, &cell->len);
	if (lb_reply_type(value) == LB_REPLY_INTEGER)
		cell_number(cell, key, (long long)lb_reply_integer(value));
	if (cell->len == 0) {
		cell->text = "-";
		cell->len = 1;
	}
}

static int cell_width(const struct cell *cell)
{
	int width, sum = 0;
	char shown[SHOWN_MAX];
	size_t at;

	for (at = 0; at < cell->len; sum += width)
		at += show(cell->text + at, cell->len - at, shown, &width);
	return sum;
}

static void cell_print(const struct cell *cell)
{
	char shown[SHOWN_MAX];
	size_t at;
	int width;

	for (at = 0; at < cell->len;) {
		at += show(cell->text + at, cell->len - at, shown, &width);
		fputs(shown, stdout);
	}
}

/* ---- tables ---- */

static struct slice key_of(const struct table *t, size_t column)
{
	struct slice key;

	key.data = lb_reply_text(lb_reply_key(t->rows, column), &key.len);
	return key;
}

static void table_measure(struct table *t, const struct lb_reply *row)
{
	struct cell cell;
	size_t i;

	for (i = 0; i < t->columns; i++) {
		cell_set(&cell, key_of(t, i), lb_reply_item(row, i));
		t->widths[i] = MAX(t->widths[i], MAX((int)head_of(key_of(t, i)), cell_width(&cell)));
	}
}

static void print_head(const struct table *t)
{
	size_t i, k, len;

	for (i = 0; i < t->columns; i++) {
		const char *key = key_of(t, i).data;

		len = head_of(key_of(t, i));
		for (k = 0; k < len; k++)
			putchar(key[k] >= 'a' && key[k] <= 'z' ? key[k] - 'a' + 'A' :
				key[k] > ' ' && key[k] <= '~'  ? key[k] : '?');
		printf("%*s", i + 1 < t->columns ? t->widths[i] - (int)len + 2 : 0, "");
	}
	putchar('\n');
}

static void print_row(const struct table *t, const struct lb_reply *row)
{
	struct cell cell;
	size_t i;

	for (i = 0; i < t->columns; i++) {
		cell_set(&cell, key_of(t, i), lb_reply_item(row, i));
		cell_print(&cell);
		printf("%*s", i + 1 < t->columns ? t->widths[i] - cell_width(&cell) + 2 : 0, "");
	}
	putchar('\n');
}

void cli_text(const char *text, size_t len)
{
	struct cell cell = { .text = len ? text : "-", .len = len ? len : 1 };

	cell_print(&cell);
}

void cli_lines(const char *text, size_t len)
{
	const char *end, *stop = text + len;

	for (; text < stop; text = end + 1) {
		end = memchr(text, '\n', (size_t)(stop - text));
		if (!end)
			end = stop;
		len = (size_t)(end - text);
		if (len > 0 && text[len - 1] == '\r')
			len--;
		if (len > 0)
			cli_text(text, len);
		putchar('\n');
	}
}

void cli_line(const struct lb_reply *value)
{
	struct cell cell;

	cell_set(&cell, SLICE(""), value);
	cell_print(&cell);
	putchar('\n');
}

void cli_table(const struct lb_reply *reply)
{
	struct table t = { .rows = lb_reply_item(reply, 0) };
	size_t i, count = lb_reply_count(reply);
	const struct lb_reply *row;

	if (lb_reply_type(t.rows) != LB_REPLY_MAP)
		return;
	t.columns = MIN(lb_reply_count(t.rows), (size_t)COLUMNS_MAX);
	for (i = 0, row = t.rows; i < count; i++, row = lb_reply_next(row))
		table_measure(&t, row);
	print_head(&t);
	for (i = 0, row = t.rows; i < count; i++, row = lb_reply_next(row))
		print_row(&t, row);
}
