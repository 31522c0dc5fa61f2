/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The values in replies; texts are valid as long as the reply. A value that is missing, or is not of that type, gives
 * an empty text, or 0.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

static inline struct slice reply_text(const struct lb_reply *value)
{
	struct slice s;

	s.data = lb_reply_text(value, &s.len);
	return s;
}

/* The text under that key of a map. */
static inline struct slice reply_field(const struct lb_reply *map, const char *key)
{
	return reply_text(lb_reply_field(map, key));
}

static inline long long reply_number(const struct lb_reply *map, const char *key)
{
	return (long long)lb_reply_integer(lb_reply_field(map, key));
}

/* The text behind "\nKEY:", up to the end of its line, in the answer of INFO; empty: it is not there. */
static inline struct slice reply_line(struct slice info, const char *key)
{
	const char *at = info.len ? memmem(info.data, info.len, key, strlen(key)) : NULL, *end = info.data + info.len;
	struct slice line = { at ? at + strlen(key) : end, 0 };

	while (line.data + line.len < end && line.data[line.len] != '\r' && line.data[line.len] != '\n')
		line.len++;
	return line;
}

enum { REPLY_NUMBER_MAX = 64 };

/* A copy of reply_line(), of a number, which ends with NUL. */
static inline void reply_line_copy(struct slice info, const char *key, char text[REPLY_NUMBER_MAX])
{
	struct slice line = reply_line(info, key);

	snprintf(text, REPLY_NUMBER_MAX, "%.*s", line.len < REPLY_NUMBER_MAX ? (int)line.len : REPLY_NUMBER_MAX - 1, line.data);
}

/* The number behind "\nKEY:", likewise; 0: it is not there. */
static inline long long reply_line_number(struct slice info, const char *key)
{
	char text[REPLY_NUMBER_MAX];

	reply_line_copy(info, key, text);
	return strtoll(text, NULL, 10);
}

/* The row that follows `row` in an array of rows; NULL: there is none. */
static inline const struct lb_reply *reply_row_after(const struct lb_reply *rows, const struct lb_reply *row)
{
	const struct lb_reply *next = lb_reply_next(row);

	return next == lb_reply_next(rows) ? NULL : next;
}
