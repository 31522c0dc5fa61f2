/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sentences with values in them. The compiler sees the type of each value, so that none is misread:
 *
 *   conversion | takes
 *   %s         | a C string or a slice
 *   %q         | the same, in double quotes (bytes_quote())
 *   %n         | a name of somebody's, for a log: as %q has it, of at most BYTES_SHOWN_MAX bytes; if it has
 *              | more, "..." follows
 *   %v         | a value of key=value: as it is if it has only printable ASCII characters other than the blank, ", \ and =,
 *              | else as %n has it
 *   %d         | an integer of any type
 *   %x         | the same, as 16 hexadecimal digits
 *
 * Anything else behind a %, a value of another type, and one too few or too many fail an assertion.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "slice.h"

/* Of a text of somebody else's, in a log. */
enum { BYTES_SHOWN_MAX = 256 };

struct bytes_value {
	bool is_number;
	int64_t number;
	struct slice text;
};

/* Appends the sentence; at most ten values. */
#define bytes_format(b, format, ...) bytes_format_values(b, format, BYTES_ARGUMENTS(__VA_ARGS__))
/* For another function that takes a sentence: its values, and how many there are. */
#define BYTES_ARGUMENTS(...) \
	(const struct bytes_value[]){ BYTES_VALUES(__VA_ARGS__) { .is_number = false } }, BYTES_COUNT(__VA_ARGS__)

void bytes_format_values(struct bytes *b, const char *format, const struct bytes_value *values, size_t count);

static inline struct bytes_value bytes_value_number(int64_t number)
{
	return (struct bytes_value){ .is_number = true, .number = number };
}

static inline struct bytes_value bytes_value_slice(struct slice text)
{
	return (struct bytes_value){ .text = text };
}

static inline struct bytes_value bytes_value_text(const char *text)
{
	return (struct bytes_value){ .text = slice_of(text) };
}

/* clang-format off */
#define BYTES_VALUE(v) \
	_Generic((v), char *: bytes_value_text, const char *: bytes_value_text, struct slice: bytes_value_slice, \
		 default: bytes_value_number)(v),
#define BYTES_NTH(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, nth, ...) nth
#define BYTES_COUNT(...) BYTES_NTH(_, ##__VA_ARGS__, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define BYTES_VALUES(...) \
	BYTES_NTH(_, ##__VA_ARGS__, BYTES_10, BYTES_9, BYTES_8, BYTES_7, BYTES_6, BYTES_5, BYTES_4, BYTES_3, BYTES_2, \
		  BYTES_1, BYTES_0)(__VA_ARGS__)
#define BYTES_0(...)
#define BYTES_1(v, ...) BYTES_VALUE(v)
#define BYTES_2(v, ...) BYTES_VALUE(v) BYTES_1(__VA_ARGS__)
#define BYTES_3(v, ...) BYTES_VALUE(v) BYTES_2(__VA_ARGS__)
#define BYTES_4(v, ...) BYTES_VALUE(v) BYTES_3(__VA_ARGS__)
#define BYTES_5(v, ...) BYTES_VALUE(v) BYTES_4(__VA_ARGS__)
#define BYTES_6(v, ...) BYTES_VALUE(v) BYTES_5(__VA_ARGS__)
#define BYTES_7(v, ...) BYTES_VALUE(v) BYTES_6(__VA_ARGS__)
#define BYTES_8(v, ...) BYTES_VALUE(v) BYTES_7(__VA_ARGS__)
#define BYTES_9(v, ...) BYTES_VALUE(v) BYTES_8(__VA_ARGS__)
#define BYTES_10(v, ...) BYTES_VALUE(v) BYTES_9(__VA_ARGS__)
/* clang-format on */
