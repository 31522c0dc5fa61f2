/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A slice is a borrowed run of bytes: never owned, never NUL-terminated by promise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
	const char *data;
	size_t len;
};

#define SLICE(literal) ((struct slice){ (literal), sizeof(literal) - 1 })

static inline struct slice slice_of(const char *text)
{
	return (struct slice){ text, strlen(text) };
}

static inline bool slice_eq(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Cuts off and returns the text before the first separator, or all of it. `rest` is the text behind that separator. */
static inline struct slice slice_cut(struct slice *rest, char separator)
{
	const char *end = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
	struct slice part = { rest->data, end ? (size_t)(end - rest->data) : rest->len };
	size_t used = end ? part.len + 1 : part.len;

	*rest = (struct slice){ rest->data + used, rest->len - used };
	return part;
}

/* The lengths of so many together. */
static inline size_t slice_sum(size_t count, const struct slice *list)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += list[i].len;
	return sum;
}

/* Below, at or above 0: `a` comes before `b`, is the same, or comes after it, by its bytes. */
static inline int slice_order(struct slice a, struct slice b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.data, b.data, len) : 0;

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* ASCII case is ignored, as Redis does for command words. */
static inline bool slice_is(struct slice a, const char *word)
{
	size_t i;

	for (i = 0; i < a.len && word[i]; i++) {
		char x = a.data[i], y = word[i];

		if (x >= 'A' && x <= 'Z')
			x = (char)(x + ('a' - 'A'));
		if (y >= 'A' && y <= 'Z')
			y = (char)(y + ('a' - 'A'));
		if (x != y)
			return false;
	}
	return i == a.len && word[i] == '\0';
}
