/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "resp.h"

#include <assert.h>
#include <stdlib.h>

#include "number.h"

enum { VALUES_FIRST = 16 };

void resp_replies_init(struct resp_replies *r, size_t values_max, size_t reply_bytes_max)
{
	assert(values_max > 0 && reply_bytes_max > 0);
	*r = (struct resp_replies){ .values_max = values_max, .reply_bytes_max = reply_bytes_max, .bulk = -1 };
}

void resp_replies_deinit(struct resp_replies *r)
{
	free(r->values);
	*r = (struct resp_replies){ 0 };
}

static enum resp_result broken(struct resp_replies *r, const char *error)
{
	r->error = error;
	return RESP_BROKEN;
}

/*
 * Appends a value whose text begins at `start` in the input. The input may move before the reply is whole, so
 * until then `span`, which is 1 for every value but a container, keeps the start instead.
 */
static enum resp_result value_add(struct resp_replies *r, enum resp_type type, size_t start, size_t len,
				  int64_t integer)
{
	if (r->count == r->values_max)
		return broken(r, "too many values in a reply");
	if (r->count == r->cap) {
		r->cap = r->cap ? r->cap * 2 : VALUES_FIRST;
		r->values = realloc(r->values, r->cap * sizeof(*r->values));
		if (!r->values)
			abort();
	}
	r->values[r->count++] = (struct resp_value){ type, { NULL, len }, integer, start };
	return RESP_DONE;
}

static bool container(enum resp_type type)
{
	return type == RESP_ARRAY || type == RESP_MAP || type == RESP_PUSH;
}

/* A value is whole, and so are the containers whose last value it is. */
static void value_end(struct resp_replies *r)
{
	while (r->depth > 0 && --r->stack[r->depth - 1].left == 0) {
		size_t value = r->stack[--r->depth].value;

		r->values[value].span = r->count - value;
	}
}

static enum resp_result leaf(struct resp_replies *r, enum resp_type type, size_t start, size_t len, int64_t integer)
{
	enum resp_result result = value_add(r, type, start, len, integer);

	if (result == RESP_DONE)
		value_end(r);
	return result;
}

/* r->bulk bytes of body and the end of line. */
static enum resp_result read_body(struct resp_replies *r, struct slice input)
{
	size_t start = r->at, len = (size_t)r->bulk;

	if (input.len - start < len + 2)
		return RESP_MORE;
	if (input.data[start + len] != '\r' || input.data[start + len + 1] != '\n')
		return broken(r, "a bulk string is longer than announced");
	r->at += len + 2;
	r->bulk = -1;
	if (r->bulk_type == '=') {
		if (len < 4 || input.data[start + 3] != ':')
			return broken(r, "a verbatim string without its format");
		start += 4;
		len -= 4;
	}
	return leaf(r, r->bulk_type == '!' ? RESP_ERROR : RESP_BULK, start, len, 0);
}

static enum resp_result read_bulk(struct resp_replies *r, struct slice input, char type, int64_t length, size_t body)
{
	if (length == -1 && type == '$') {
		r->at = body;
		return leaf(r, RESP_NIL, 0, 0, 0);
	}
	if (length < 0 || body + 2 > r->reply_bytes_max || (uint64_t)length > r->reply_bytes_max - body - 2)
		return broken(r, "invalid bulk length");
	r->at = body;
	r->bulk = length;
	r->bulk_type = type;
	return read_body(r, input);
}

static enum resp_result read_container(struct resp_replies *r, char type, int64_t items)
{
	enum resp_type kind = type == '%' ? RESP_MAP : type == '>' ? RESP_PUSH : RESP_ARRAY;
	uint64_t values = (uint64_t)items;
	enum resp_result result;

	if (items == -1 && type == '*')
		return leaf(r, RESP_NIL, 0, 0, 0);
	if (items < 0 || values > r->values_max || (type == '%' && (values *= 2) > r->values_max))
		return broken(r, "invalid multibulk length");
	if (type == '>' && r->depth > 0)
		return broken(r, "a push within a reply");
	if (items > 0 && r->depth == RESP_DEPTH_MAX)
		return broken(r, "a reply is nested too deep");
	result = value_add(r, kind, 1, 0, items);
	if (result != RESP_DONE)
		return result;
	if (items > 0) {
		r->stack[r->depth].value = r->count - 1;
		r->stack[r->depth++].left = (size_t)values;
	} else {
		value_end(r);
	}
	return RESP_DONE;
}

/* Types whose line is one number: an integer, or the length of what follows. */
static enum resp_result read_number(struct resp_replies *r, struct slice input, char type)
{
	bool bulk = type == '$' || type == '=' || type == '!';
	struct number_line line = number_line(input, r->at + 1);
	size_t at = r->at + 1 + line.bytes;

	if (line.result == NUMBER_MORE)
		return RESP_MORE;
	if (line.result == NUMBER_BROKEN)
		return broken(r, type == ':' ? "invalid integer"
				 : bulk      ? "invalid bulk length"
					     : "invalid multibulk length");
	if (at > r->reply_bytes_max)
		return broken(r, "too big a reply");
	if (bulk)
		return read_bulk(r, input, type, line.value, at);
	r->at = at;
	return type == ':' ? leaf(r, RESP_INTEGER, 0, 0, line.value) : read_container(r, type, line.value);
}

/* A big number: digits of any count, after a minus or plus or not. */
static bool digits_only(const char *text, size_t len)
{
	size_t i = len > 0 && (text[0] == '-' || text[0] == '+');

	if (i == len)
		return false;
	while (i < len && text[i] >= '0' && text[i] <= '9')
		i++;
	return i == len;
}

static enum resp_result read_line_value(struct resp_replies *r, char type, const char *text, size_t start, size_t len)
{
	switch (type) {
	case '+':
		return leaf(r, RESP_STATUS, start, len, 0);
	case '-':
		return leaf(r, RESP_ERROR, start, len, 0);
	case ',':
		if (len > 0)
			return leaf(r, RESP_DOUBLE, start, len, 0);
		break;
	case '(':
		if (digits_only(text, len))
			return leaf(r, RESP_BULK, start, len, 0);
		break;
	case '#':
		if (len == 1 && (*text == 't' || *text == 'f'))
			return leaf(r, RESP_BOOL, 0, 0, *text == 't');
		break;
	case '_':
		if (len == 0)
			return leaf(r, RESP_NIL, 0, 0, 0);
		break;
	}
	return broken(r, "invalid value");
}

/* Types that are all in one line. */
static enum resp_result read_line(struct resp_replies *r, struct slice input, char type)
{
	size_t start = r->at + 1, end = input.len < r->reply_bytes_max ? input.len : r->reply_bytes_max;
	size_t from = r->looked > start ? r->looked : start;
	const char *text = input.data + start;
	const char *newline = end > from ? memchr(input.data + from, '\n', end - from) : NULL;
	size_t len;

	if (!newline) {
		r->looked = end;
		return end < r->reply_bytes_max ? RESP_MORE : broken(r, "too big a reply");
	}
	len = (size_t)(newline - text);
	if (len == 0 || memchr(text, '\r', len) != newline - 1)
		return broken(r, "a line does not end as it should");
	r->at = start + len + 1;
	return read_line_value(r, type, text, start, len - 1);
}

static enum resp_result read_value(struct resp_replies *r, struct slice input)
{
	char type;

	if (r->bulk >= 0)
		return read_body(r, input);
	if (r->at == input.len)
		return RESP_MORE;
	type = input.data[r->at];
	switch (type) {
	case ':':
	case '$':
	case '=':
	case '!':
	case '*':
	case '~':
	case '%':
	case '>':
		return read_number(r, input, type);
	case '+':
	case '-':
	case ',':
	case '(':
	case '#':
	case '_':
		return read_line(r, input, type);
	default:
		return broken(r, "unknown type of a value");
	}
}

enum resp_result resp_read_reply(struct resp_replies *r, struct slice input, size_t *used)
{
	enum resp_result result;

	if (r->error)
		return RESP_BROKEN;
	if (r->ended) {
		r->ended = false;
		r->at = r->looked = r->count = 0;
	}
	do
		result = read_value(r, input);
	while (result == RESP_DONE && r->depth > 0);
	if (result != RESP_DONE)
		return result;
	for (size_t i = 0; i < r->count; i++)
		if (!container(r->values[i].type)) {
			r->values[i].text.data = input.data + r->values[i].span;
			r->values[i].span = 1;
		}
	r->ended = true;
	*used = r->at;
	return RESP_DONE;
}
