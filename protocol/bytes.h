/*
 * A growable run of bytes that somebody owns. Zero-initialised is empty and valid. Running out of memory ends
 * the process (abort): what can grow is bounded by limits long before that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "slice.h"

struct bytes {
	char *data;
	size_t len, cap;
};

void bytes_reserve(struct bytes *b, size_t more);
void bytes_append(struct bytes *b, const void *data, size_t len);
void bytes_slice(struct bytes *b, struct slice s);
void bytes_text(struct bytes *b, const char *text);
void bytes_char(struct bytes *b, char c);
void bytes_int(struct bytes *b, int64_t value);
/* Lower-case hexadecimal, exactly `digits` long (1..16). */
void bytes_hex(struct bytes *b, uint64_t value, int digits);
/* Forgets the content and keeps the memory. */
void bytes_clear(struct bytes *b);
/* Frees; the struct is empty and valid again. */
void bytes_free(struct bytes *b);

static inline struct slice bytes_view(const struct bytes *b)
{
	return (struct slice){ b->data, b->len };
}
