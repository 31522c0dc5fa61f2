/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bytes.h"

#include <assert.h>

#include "number.h"

enum { BYTES_FIRST = 64 };

void bytes_grow(struct bytes *b, size_t more)
{
	size_t cap = b->cap ? b->cap : BYTES_FIRST;
	char *data;

	assert(b->len <= b->cap);
	if (more > SIZE_MAX / 2 - b->len)
		abort();
	while (cap < b->len + more)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data)
		abort();
	b->data = data;
	b->cap = cap;
}

void bytes_text(struct bytes *b, const char *text)
{
	bytes_append(b, text, strlen(text));
}

void bytes_int(struct bytes *b, int64_t value)
{
	char text[NUMBER_CHARS_MAX], *end = text + sizeof(text), *at = number_write(value, end);

	bytes_append(b, at, (size_t)(end - at));
}

void bytes_hex(struct bytes *b, uint64_t value, int digits)
{
	assert(digits >= 1 && digits <= 16);
	bytes_reserve(b, (size_t)digits);
	for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
		b->data[b->len++] = "0123456789abcdef"[value >> shift & 15];
}

void bytes_quote(struct bytes *b, struct slice text)
{
	bytes_char(b, '"');
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c < ' ' || c > '~') {
			bytes_text(b, "\\x");
			bytes_hex(b, c, 2);
			continue;
		}
		if (c == '"' || c == '\\')
			bytes_char(b, '\\');
		bytes_char(b, (char)c);
	}
	bytes_char(b, '"');
}

void bytes_fit(struct bytes *b)
{
	char *data = b->len ? realloc(b->data, b->len) : NULL;

	if (!data)
		return;
	b->data = data;
	b->cap = b->len;
}

void bytes_clear(struct bytes *b)
{
	b->len = 0;
}
