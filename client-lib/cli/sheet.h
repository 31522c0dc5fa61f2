/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A table that is put together cell by cell, and printed as cli_table() prints one: heads, then the rows, as wide as their
 * widest cells; an empty cell is "-". What could steer a terminal is printed as its number.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "protocol/bytes.h"
#include "protocol/slice.h"

enum { SHEET_COLUMNS_MAX = 8 };

struct sheet {
	struct bytes cells; /* of the heads and all rows, as they are shown, each with a NUL */
	size_t columns, row_count;
	size_t widths[SHEET_COLUMNS_MAX];
	size_t at; /* the column of the next cell */
};

/* Words with a space between; each is a column. */
void sheet_heads(struct sheet *s, const char *words);
/* A row begins; a cell of it follows for each column. */
void sheet_row(struct sheet *s);
void sheet_text(struct sheet *s, struct slice text);
/*
 * With a number of lines and of columns: on a terminal of which so much is left. A last line tells how many rows do not fit,
 * and each line is cleared behind its end. With 0: everything.
 */
void sheet_print(const struct sheet *s, FILE *to, size_t lines, size_t columns);
void sheet_end(struct sheet *s);
