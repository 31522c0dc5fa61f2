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

/* Two registers, so that its user's variables can be in registers too. */
struct number_line {
	enum number_result result;
	uint32_t bytes; /* when NUMBER_DONE: of the line, and the number */
	int64_t value;
};

/* The same as number_line(), for numbers of any length. */
struct number_line number_long_line(struct slice input, size_t at);

/*
 * A number and CR LF at input[at]. Input that cannot become a number any longer is broken at once, so that nobody waits
 * for the end of an endless line. Most counts and lengths have one digit or two.
 */
static inline struct number_line number_line(struct slice input, size_t at)
{
	const char *text = input.data + at;

	if (input.len - at >= 4) {
		unsigned int first = (unsigned char)text[0] - (unsigned int)'0';
		unsigned int second = (unsigned char)text[1] - (unsigned int)'0';

		if (first <= 9 && memcmp(text + 1, "\r\n", 2) == 0)
			return (struct number_line){ NUMBER_DONE, 3, first };
		if (first >= 1 && first <= 9 && second <= 9 && memcmp(text + 2, "\r\n", 2) == 0)
			return (struct number_line){ NUMBER_DONE, 4, first * 10 + second };
	}
	return number_long_line(input, at);
}
