/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "resp.h"

#include <assert.h>

#include "number.h"

enum { LINE_BYTES_MAX = 1 + NUMBER_CHARS_MAX + 2 };

/*
 * A type, a number and the end of the line, to where there is room for LINE_BYTES_MAX; returns where it ends. Few words
 * are longer than 99 bytes.
 */
static inline char *put_line(char *at, char type, int64_t value)
{
	*at++ = type;
	if (value >= 0 && value < 100) {
		unsigned int small = (unsigned int)value;

		if (small >= 10)
			*at++ = (char)('0' + small / 10);
		*at++ = (char)('0' + small % 10);
	} else {
		char *end = at + NUMBER_CHARS_MAX, *from = number_write(value, end);

		memmove(at, from, (size_t)(end - from));
		at += end - from;
	}
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

static void line_int(struct bytes *out, char type, int64_t value)
{
	bytes_reserve(out, LINE_BYTES_MAX);
	out->len = (size_t)(put_line(out->data + out->len, type, value) - out->data);
}

/* Appends `text` as part of a line: what would end the line becomes a space. */
static void line_text(struct bytes *out, struct slice text)
{
	size_t begin = out->len;

	bytes_slice(out, text);
	for (size_t i = begin; i < out->len; i++)
		if (out->data[i] == '\r' || out->data[i] == '\n')
			out->data[i] = ' ';
}

void resp_status(struct bytes *out, const char *text)
{
	bytes_char(out, '+');
	line_text(out, slice_of(text));
	bytes_append(out, "\r\n", 2);
}

void resp_error(struct bytes *out, enum error_code code, struct slice sentence)
{
	bytes_char(out, '-');
	bytes_text(out, error_word(code));
	bytes_char(out, ' ');
	line_text(out, sentence);
	bytes_append(out, "\r\n", 2);
}

void resp_integer(struct bytes *out, int64_t value)
{
	line_int(out, ':', value);
}

void resp_bulk(struct bytes *out, struct slice text)
{
	line_int(out, '$', (int64_t)text.len);
	bytes_slice(out, text);
	bytes_append(out, "\r\n", 2);
}

void resp_nil(struct bytes *out, int version)
{
	bytes_text(out, version >= 3 ? "_\r\n" : "$-1\r\n");
}

void resp_nil_array(struct bytes *out, int version)
{
	bytes_text(out, version >= 3 ? "_\r\n" : "*-1\r\n");
}

void resp_array(struct bytes *out, size_t items)
{
	line_int(out, '*', (int64_t)items);
}

void resp_map(struct bytes *out, size_t pairs, int version)
{
	if (version >= 3)
		line_int(out, '%', (int64_t)pairs);
	else
		line_int(out, '*', (int64_t)pairs * 2);
}

void resp_push(struct bytes *out, size_t items, int version)
{
	line_int(out, version >= 3 ? '>' : '*', (int64_t)items);
}

void resp_request(struct bytes *out, size_t argc, const struct slice *argv)
{
	size_t room = LINE_BYTES_MAX;
	char *at;

	assert(argc > 0);
	for (size_t i = 0; i < argc; i++)
		room += LINE_BYTES_MAX + argv[i].len + 2;
	bytes_reserve(out, room);
	at = put_line(out->data + out->len, '*', (int64_t)argc);
	for (size_t i = 0; i < argc; i++) {
		at = put_line(at, '$', (int64_t)argv[i].len);
		if (argv[i].len > 0)
			memcpy(at, argv[i].data, argv[i].len);
		at += argv[i].len;
		*at++ = '\r';
		*at++ = '\n';
	}
	out->len = (size_t)(at - out->data);
}
