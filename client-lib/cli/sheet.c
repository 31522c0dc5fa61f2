/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/sheet.h"

#include <assert.h>
#include <string.h>

#include "client-lib/cli/table.h"

enum { CELL_BYTES_MAX = 8192, GAP = 2 };

/* Each character takes one column of the terminal. */
static size_t width_of(const char *shown)
{
	size_t width = 0;

	for (; *shown; shown++)
		width += ((unsigned char)*shown & 0xc0) != 0x80;
	return width;
}

static void add_cell(struct sheet *s, struct slice shown)
{
	size_t width;

	assert(s->at < SHEET_COLUMNS_MAX);
	bytes_slice(&s->cells, shown);
	bytes_char(&s->cells, '\0');
	width = width_of(s->cells.data + s->cells.len - shown.len - 1);
	if (width > s->widths[s->at])
		s->widths[s->at] = width;
	s->at++;
}

void sheet_heads(struct sheet *s, const char *words)
{
	while (*words) {
		size_t len = strcspn(words, " ");

		add_cell(s, (struct slice){ words, len });
		words += len + (words[len] == ' ');
	}
	s->columns = s->at;
}

void sheet_row(struct sheet *s)
{
	assert(s->at == s->columns);
	s->row_count++;
	s->at = 0;
}

void sheet_text(struct sheet *s, struct slice text)
{
	struct bytes whole = { 0 };
	char shown[CELL_BYTES_MAX];

	bytes_slice(&whole, text);
	bytes_char(&whole, '\0');
	cli_shown(whole.data, shown, sizeof(shown));
	add_cell(s, *shown ? slice_of(shown) : SLICE("-"));
	bytes_free(&whole);
}

/* So many characters of it. */
static size_t print_part(FILE *to, const char *shown, size_t most)
{
	size_t len = 0, width = 0;

	while (shown[len]) {
		width += ((unsigned char)shown[len] & 0xc0) != 0x80;
		if (width > most)
			break;
		len++;
	}
	fwrite(shown, 1, len, to);
	return width > most ? most : width;
}

/* Returns where the next one begins. `columns` 0: they are not bounded. */
static const char *print_line(const struct sheet *s, FILE *to, const char *cell, size_t columns)
{
	size_t left = columns ? columns : SIZE_MAX;

	for (size_t i = 0; i < s->columns; i++) {
		size_t used = print_part(to, cell, left), pad = s->widths[i] + GAP - used;

		left -= used;
		if (i + 1 == s->columns)
			pad = 0;
		if (pad > left)
			pad = left;
		fprintf(to, "%*s", (int)pad, "");
		left -= pad;
		cell += strlen(cell) + 1;
	}
	fputs(columns ? "\033[K\n" : "\n", to);
	return cell;
}

void sheet_print(const struct sheet *s, FILE *to, size_t lines, size_t columns)
{
	size_t rows = s->row_count + 1;
	const char *cell = s->cells.data;

	if (lines && rows > lines)
		rows = lines > 1 ? lines - 1 : 1;
	for (size_t i = 0; i < rows; i++)
		cell = print_line(s, to, cell, columns);
	if (rows < s->row_count + 1)
		fprintf(to, "(and %zu more)\033[K\n", s->row_count + 1 - rows);
}

void sheet_end(struct sheet *s)
{
	bytes_free(&s->cells);
}
