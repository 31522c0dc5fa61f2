/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tables for people: heads, then rows, each column as wide as its widest cell; an empty cell is "-". A character that
 * could steer a terminal is shown as its number.
 *
 *     at a terminal -> heads are bold, unless NO_COLOR is set; a table that is wider than the terminal has its longest
 *                      columns cut as far as they may be, and then its lines, each cut with an ellipsis
 *     elsewhere     -> nothing is ever cut, and nothing is bold
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client-lib/lockbroker.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

enum { SHEET_COLUMNS_MAX = 16 };

struct sheet;

struct sheet_column {
	const char *head;
	const char *key; /* of a map of sheet_rest(); NULL: `cell` adds it */
	size_t least;    /* it may be cut to so many characters; 0: never */
	enum { SHEET_ALWAYS, SHEET_IF_ANY, SHEET_WIDE } shown; /* IF_ANY: if one of its cells is not empty; WIDE: with --wide */
	void (*cell)(struct sheet *s, const struct lb_reply *row);
};

enum { SHEET_LOCK = 0, SHEET_ELECTION = -1, SHEET_SEMAPHORE = -2 /* its limit is not known */ };

struct sheet {
	const struct sheet_column *columns;
	size_t column_count, row_count;
	struct bytes cells; /* of all rows, as they are shown, each with a NUL */
	size_t widths[SHEET_COLUMNS_MAX];
	bool any[SHEET_COLUMNS_MAX];
	size_t at; /* the column of the next cell */
	long long limit; /* of the semaphore whose rows these are, for the cells; or one of these */
};

/* --wide was given. */
extern bool cli_wide_asked;

void sheet_begin(struct sheet *s, const struct sheet_column *columns, size_t count);
/* The cells of a row, one after the other. */
void sheet_text(struct sheet *s, struct slice text);
/* Of milliseconds; negative: empty. */
void sheet_duration(struct sheet *s, long long ms);
/*
 * The value of the map under the key, empty if it is null in JSON: a duration if the key ends with _ms, an instant for
 * `started`, yes or no for a boolean.
 */
void sheet_value(struct sheet *s, const struct lb_reply *map, const char *key);
/* The cells of the row that are left, by the keys of their columns. */
void sheet_rest(struct sheet *s, const struct lb_reply *map);
/* With a number of lines: the lines that are left on the terminal; a last one says how many rows do not fit, and each is
 * cleared behind its end. 0: all. Nothing is printed if there are no rows. */
void sheet_print(const struct sheet *s, size_t lines);
void sheet_end(struct sheet *s);
/* A table with a row for each of the maps; `limit` as in struct sheet. */
void sheet_show(const struct sheet_column *columns, size_t count, const struct lb_reply *maps, long long limit);

/* The columns of the terminal that is the standard output; 0: it is none. */
size_t cli_terminal_columns(void);
/* The standard output is a terminal that knows escape sequences. */
bool cli_terminal_is_smart(void);
