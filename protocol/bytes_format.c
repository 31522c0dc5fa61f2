/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bytes_format.h"

#include <assert.h>

static void put_shown(struct bytes *b, struct slice text)
{
	bool cut = text.len > BYTES_SHOWN_MAX;

	bytes_quote(b, (struct slice){ text.data, cut ? BYTES_SHOWN_MAX : text.len });
	if (!cut)
		return;
	b->len--; /* the closing quote */
	bytes_text(b, "...\"");
}

static bool is_bare(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~' || strchr("\"\\=", text.data[i]))
			return false;
	return text.len > 0 && text.len <= BYTES_SHOWN_MAX;
}

static void put(struct bytes *b, char conversion, const struct bytes_value *v)
{
	assert(strchr(v->is_number ? "dx" : "sqnv", conversion));
	if (conversion == 'd')
		bytes_int(b, v->number);
	else if (conversion == 'x')
		bytes_hex(b, (uint64_t)v->number, 16);
	else if (conversion == 'q')
		bytes_quote(b, v->text);
	else if (conversion == 'n' || (conversion == 'v' && !is_bare(v->text)))
		put_shown(b, v->text);
	else
		bytes_slice(b, v->text);
}

void bytes_format_values(struct bytes *b, const char *format, const struct bytes_value *values, size_t count)
{
	const char *at;
	size_t i = 0;

	for (; (at = strchr(format, '%')); format = at + 2) {
		bytes_append(b, format, (size_t)(at - format));
		assert(i < count);
		put(b, at[1], &values[i++]);
	}
	assert(i == count);
	bytes_text(b, format);
}
