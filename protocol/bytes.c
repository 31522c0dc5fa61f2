#include "bytes.h"

#include <assert.h>
#include <stdlib.h>

enum { BYTES_FIRST = 64 };

void bytes_reserve(struct bytes *b, size_t more)
{
	size_t cap = b->cap ? b->cap : BYTES_FIRST;
	char *data;

	assert(b->len <= b->cap);
	if (more <= b->cap - b->len)
		return;
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

void bytes_append(struct bytes *b, const void *data, size_t len)
{
	if (len == 0)
		return;
	bytes_reserve(b, len);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void bytes_slice(struct bytes *b, struct slice s)
{
	bytes_append(b, s.data, s.len);
}

void bytes_text(struct bytes *b, const char *text)
{
	bytes_append(b, text, strlen(text));
}

void bytes_char(struct bytes *b, char c)
{
	bytes_reserve(b, 1);
	b->data[b->len++] = c;
}

void bytes_int(struct bytes *b, int64_t value)
{
	/* The magnitude of INT64_MIN fits in an unsigned only. */
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (value < 0)
		*--at = '-';
	bytes_append(b, at, (size_t)(digits + sizeof(digits) - at));
}

void bytes_hex(struct bytes *b, uint64_t value, int digits)
{
	assert(digits >= 1 && digits <= 16);
	bytes_reserve(b, (size_t)digits);
	for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
		b->data[b->len++] = "0123456789abcdef"[value >> shift & 15];
}

void bytes_clear(struct bytes *b)
{
	b->len = 0;
}

void bytes_free(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){ 0 };
}
