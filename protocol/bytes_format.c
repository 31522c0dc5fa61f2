/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bytes_format.h"

#include <assert.h>

static void put(struct bytes *b, char conversion, const struct bytes_value *v)
{
	assert(v->is_number ? conversion == 'd' || conversion == 'x' : conversion == 's' || conversion == 'q');
	if (conversion == 'd')
		bytes_int(b, v->number);
	else if (conversion == 'x')
		bytes_hex(b, (uint64_t)v->number, 16);
	else if (conversion == 'q')
		bytes_quote(b, v->text);
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
