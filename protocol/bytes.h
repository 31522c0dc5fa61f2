/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A growable run of bytes that somebody owns. Zero-initialised is empty and valid. Running out of memory ends
 * the process (abort): what can grow is bounded by limits long before that.
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

/* Room for `more` bytes, of which there is not enough. */
void bytes_grow(struct bytes *b, size_t more);
void bytes_text(struct bytes *b, const char *text);
void bytes_int(struct bytes *b, int64_t value);
/* Lower-case hexadecimal, exactly `digits` long (1..16). */
void bytes_hex(struct bytes *b, uint64_t value, int digits);
/*
 * In double quotes, as an inline request could have it: " and \ behind a \, and each byte outside of printable ASCII as
 * \xHH. Whatever somebody else wrote ends where its quote ends, and is one line of letters.
 */
void bytes_quote(struct bytes *b, struct slice text);
/* Forgets the content and keeps the memory. */
void bytes_clear(struct bytes *b);

/* Frees, if there is anything; the struct is empty and valid again. */
static inline void bytes_free(struct bytes *b)
{
	if (b->data)
		free(b->data);
	*b = (struct bytes){ 0 };
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

static inline void bytes_char(struct bytes *b, char c)
{
	bytes_reserve(b, 1);
	b->data[b->len++] = c;
}

static inline struct slice bytes_view(const struct bytes *b)
{
	return (struct slice){ b->data, b->len };
}
