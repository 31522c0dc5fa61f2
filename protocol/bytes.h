/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A growable run of bytes that its user owns. A zero-initialised one is empty and valid. Running out of memory ends
 * the process (abort): limits bound whatever can grow long before that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "slice.h"

struct bytes {
	char *data;
	size_t len, cap;
};

/* Makes room for `more` bytes; there is not enough of it. */
void bytes_grow(struct bytes *b, size_t more);
void bytes_text(struct bytes *b, const char *text);
void bytes_int(struct bytes *b, int64_t value);
/* Lower-case hexadecimal, exactly `digits` long (1..16). */
void bytes_hex(struct bytes *b, uint64_t value, int digits);
/*
 * Appends the text in double quotes, as an inline request could have it: " and \ follow a \, and a byte outside
 * printable ASCII is \xHH. So a text of somebody else's ends with its closing quote, and stays one line of printable
 * characters.
 */
void bytes_quote(struct bytes *b, struct slice text);
/* It will stay as it is: frees the memory behind the content. */
void bytes_fit(struct bytes *b);
/* Forgets the content and keeps the memory. */
void bytes_clear(struct bytes *b);

/* Frees, if there is anything; the struct is empty and valid again. */
static inline void bytes_free(struct bytes *b)
{
	if (!b->data)
		return;
	free(b->data);
	*b = (struct bytes){ 0 };
}

/* Gives the content to another one, which is empty. */
static inline void bytes_move(struct bytes *to, struct bytes *from)
{
	if (!from->data)
		return;
	*to = *from;
	*from = (struct bytes){ 0 };
}

static inline void bytes_reserve(struct bytes *b, size_t more)
{
	if (more > b->cap - b->len)
		bytes_grow(b, more);
}

static inline void bytes_append(struct bytes *b, const void *data, size_t len)
{
	if (len == 0)
		return;
	bytes_reserve(b, len);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static inline void bytes_slice(struct bytes *b, struct slice s)
{
	bytes_append(b, s.data, s.len);
}

/* Replaces the content. */
static inline void bytes_set(struct bytes *b, struct slice s)
{
	bytes_clear(b);
	bytes_slice(b, s);
}

static inline void bytes_char(struct bytes *b, char c)
{
	bytes_reserve(b, 1);
	b->data[b->len++] = c;
}

static inline struct slice bytes_view(const struct bytes *b)
{
	return (struct slice){ b->data, b->len };
}
