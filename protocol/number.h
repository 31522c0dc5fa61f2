/*
 * Whole numbers as text, strictly: an optional minus and decimal digits, no plus, no spaces, no leading zeros, no
 * "-0", within int64_t.
 */
#pragma once

#include <stdint.h>

#include "slice.h"

enum number_result { NUMBER_MORE, NUMBER_DONE, NUMBER_BROKEN };

enum { NUMBER_CHARS_MAX = 20 };

/* Writes it so that it ends before `end`; returns where it begins, at most NUMBER_CHARS_MAX before. */
char *number_write(int64_t value, char *end);

/* The whole of `text` is one number. *value is untouched when not. */
bool number_parse(struct slice text, int64_t *value);
/*
 * A number and CR LF at input[*at]; *at is moved behind them when they are whole. What cannot become a number any
 * more is broken at once, so that a line without end is never waited for.
 */
enum number_result number_line(struct slice input, size_t *at, int64_t *value);
