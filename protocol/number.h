/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whole numbers as text, strictly: an optional minus and decimal digits, no plus, no spaces, no leading zeros, no
 * "-0", within int64_t.
 */
#pragma once

#include <stdint.h>

#include "slice.h"

enum number_result { NUMBER_MORE, NUMBER_DONE, NUMBER_BROKEN };

enum { NUMBER_CHARS_MAX = 20 };

/* Writes the number so that it ends before `end`; returns its beginning, at most NUMBER_CHARS_MAX before `end`. */
char *number_write(int64_t value, char *end);

/* The whole of `text` is one number. *value is untouched when not. */
bool number_parse(struct slice text, int64_t *value);

/* What number_line() does, for numbers of any length. */
enum number_result number_long_line(struct slice input, size_t at, size_t *end, int64_t *value);

/*
 * A number and CR LF at input[at]; when they are whole, *end is behind them. Input that cannot become a number any
 * longer is broken at once, so that nobody waits for the end of an endless line. *end and *value are untouched when
 * not NUMBER_DONE. Most counts and lengths have one digit or two.
 */
static inline enum number_result number_line(struct slice input, size_t at, size_t *end, int64_t *value)
{
	const char *text = input.data + at;

	if (input.len - at >= 4) {
		unsigned int first = (unsigned char)text[0] - (unsigned int)'0';
		unsigned int second = (unsigned char)text[1] - (unsigned int)'0';

		if (first <= 9 && memcmp(text + 1, "\r\n", 2) == 0) {
			*end = at + 3;
			*value = first;
			return NUMBER_DONE;
		}
		if (first >= 1 && first <= 9 && second <= 9 && memcmp(text + 2, "\r\n", 2) == 0) {
			*end = at + 4;
			*value = first * 10 + second;
			return NUMBER_DONE;
		}
	}
	return number_long_line(input, at, end, value);
}
