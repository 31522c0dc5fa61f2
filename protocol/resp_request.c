/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "resp.h"

#include <assert.h>
#include <stdlib.h>

#include "number.h"

enum {
	INLINE_BYTES_MAX = 64 * 1024,
	WORDS_FIRST = 16,
};

void resp_reader_init(struct resp_reader *r, size_t args_max, size_t request_bytes_max)
{
	assert(args_max > 0 && args_max <= INT64_MAX && request_bytes_max > 0 && request_bytes_max <= INT64_MAX / 2);
	*r = (struct resp_reader){ .args_max = args_max, .request_bytes_max = request_bytes_max, .length = -1 };
}

void resp_reader_deinit(struct resp_reader *r)
{
	free(r->argv);
	free(r->starts);
	bytes_free(&r->scratch);
	*r = (struct resp_reader){ 0 };
}

static enum resp_result broken(struct resp_reader *r, const char *error)
{
	r->error = error;
	return RESP_BROKEN;
}

/* "expected <what>, got '<c>'". */
static enum resp_result unexpected(struct resp_reader *r, const char *what, unsigned char c)
{
	struct bytes *text = &r->scratch;

	bytes_clear(text);
	bytes_text(text, "expected ");
	bytes_text(text, what);
	bytes_text(text, ", got '");
	if (c > 0x20 && c < 0x7f) {
		bytes_char(text, (char)c);
	} else {
		bytes_text(text, "\\x");
		bytes_hex(text, c, 2);
	}
	bytes_append(text, "'", 2);
	return broken(r, text->data);
}

size_t resp_reader_memory(const struct resp_reader *r)
{
	return r->argv_cap * sizeof(*r->argv) + r->starts_cap * sizeof(*r->starts) + r->scratch.cap;
}

/* Grows with the words that are really here, never with a number that was announced. */
static void words_grow(struct resp_reader *r)
{
	size_t cap = r->argv_cap ? r->argv_cap * 2 : WORDS_FIRST;

	r->argv = realloc(r->argv, cap * sizeof(*r->argv));
	if (!r->argv)
		abort();
	r->argv_cap = cap;
}

/* ---- arrays of bulk strings ---- */

/* The request is not whole: the input may have moved when the rest is here. */
static void words_wait(struct resp_reader *r, struct slice input)
{
	if (r->starts_cap < r->argc) {
		r->starts = realloc(r->starts, r->argv_cap * sizeof(*r->starts));
		if (!r->starts)
			abort();
		r->starts_cap = r->argv_cap;
	}
	for (; r->started < r->argc; r->started++)
		r->starts[r->started] = (size_t)(r->argv[r->started].data - input.data);
}

static void words_resume(struct resp_reader *r, struct slice input)
{
	for (size_t i = 0; i < r->started; i++)
		r->argv[i].data = input.data + r->starts[i];
	r->started = 0;
}

/* The length of the word at input[*at]; *at is moved to its bytes. */
static inline enum resp_result read_length(struct resp_reader *r, struct slice input, size_t *at, int64_t *length)
{
	struct number_line line;

	if (*at == input.len)
		return RESP_MORE;
	if (input.data[*at] != '$')
		return unexpected(r, "'$'", (unsigned char)input.data[*at]);
	line = number_line(input, *at + 1);
	if (line.result != NUMBER_DONE)
		return line.result == NUMBER_MORE ? RESP_MORE : broken(r, "invalid bulk length");
	*at += 1 + line.bytes;
	*length = line.value;
	if (*length < 0 || *at + (size_t)*length + 2 > r->request_bytes_max)
		return broken(r, "invalid bulk length");
	return RESP_DONE;
}

static enum resp_result read_words(struct resp_reader *r, struct slice input)
{
	enum resp_result result = RESP_DONE;
	size_t at = r->at, argc = r->argc;
	int64_t length = r->length;

	for (; argc < r->announced; argc++) {
		if (length < 0 && (result = read_length(r, input, &at, &length)) != RESP_DONE)
			break;
		if (input.len - at < (size_t)length + 2) {
			result = RESP_MORE;
			break;
		}
		if (memcmp(input.data + at + length, "\r\n", 2) != 0)
			return broken(r, "a bulk string is longer than announced");
		if (argc == r->argv_cap)
			words_grow(r);
		r->argv[argc] = (struct slice){ input.data + at, (size_t)length };
		at += (size_t)length + 2;
		length = -1;
	}
	r->at = at;
	r->argc = argc;
	r->length = length;
	if (result == RESP_MORE)
		words_wait(r, input);
	else if (r->started)
		words_resume(r, input);
	return result;
}

static enum resp_result read_count(struct resp_reader *r, struct slice input)
{
	struct number_line line = number_line(input, 1);

	if (line.result != NUMBER_DONE)
		return line.result == NUMBER_MORE ? RESP_MORE : broken(r, "invalid multibulk length");
	/* As Redis does: an empty array, and the null one, is a request to be skipped. */
	if (line.value < -1 || line.value > (int64_t)r->args_max)
		return broken(r, "invalid multibulk length");
	r->at = 1 + line.bytes;
	r->announced = line.value < 0 ? 0 : (size_t)line.value;
	r->state = RESP_IN_WORDS;
	return RESP_DONE;
}

/* ---- inline requests ---- */

static bool blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' ^ 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that an escape within double quotes stands for; line[*at] is behind the backslash, and moved past. */
static char unescape(struct slice line, size_t *at)
{
	static const char letters[] = "nrtba", bytes[] = "\n\r\t\b\a";
	char c = line.data[(*at)++];
	const char *letter = memchr(letters, c, sizeof(letters) - 1);
	int high, low;

	if (letter)
		return bytes[letter - letters];
	if (c != 'x' || line.len - *at < 2)
		return c;
	high = hex(line.data[*at]);
	low = hex(line.data[*at + 1]);
	if (high < 0 || low < 0)
		return c;
	*at += 2;
	return (char)(high << 4 | low);
}

/* line[*at] is behind the opening quote; moved behind the closing one. False when there is none. */
static bool read_quoted(struct resp_reader *r, struct slice line, size_t *at, char quote)
{
	while (*at < line.len) {
		char c = line.data[(*at)++];

		if (c == quote)
			/* A closing quote ends the word, as in Redis. */
			return *at == line.len || blank(line.data[*at]);
		if (c == '\\' && *at < line.len && (quote == '"' || line.data[*at] == '\''))
			c = quote == '"' ? unescape(line, at) : line.data[(*at)++];
		bytes_char(&r->scratch, c);
	}
	return false;
}

/* The word at line[*at], which is not a blank. A word without quotes stays where it is. */
static bool read_word(struct resp_reader *r, struct slice line, size_t *at, struct slice *word)
{
	size_t begin = *at, scratch_begin = r->scratch.len;

	while (*at < line.len && !blank(line.data[*at]) && line.data[*at] != '"' && line.data[*at] != '\'')
		(*at)++;
	*word = (struct slice){ line.data + begin, *at - begin };
	if (*at == line.len || blank(line.data[*at]))
		return true;
	/* Words never get longer by losing their quotes, so this is enough for the line, and nothing moves later. */
	bytes_reserve(&r->scratch, line.len - begin);
	bytes_slice(&r->scratch, *word);
	(*at)++;
	if (!read_quoted(r, line, at, line.data[*at - 1]))
		return false;
	*word = (struct slice){ r->scratch.data + scratch_begin, r->scratch.len - scratch_begin };
	return true;
}

static enum resp_result read_line_words(struct resp_reader *r, struct slice line)
{
	size_t at = 0;

	bytes_clear(&r->scratch);
	for (;;) {
		while (at < line.len && blank(line.data[at]))
			at++;
		if (at == line.len)
			return RESP_DONE;
		if (r->argc == r->args_max)
			return broken(r, "too many words in an inline request");
		if (r->argc == r->argv_cap)
			words_grow(r);
		if (!read_word(r, line, &at, &r->argv[r->argc]))
			return broken(r, "unbalanced quotes in request");
		r->argc++;
	}
}

/* r->at: no end of line before it. */
static enum resp_result read_line(struct resp_reader *r, struct slice input)
{
	size_t most = r->request_bytes_max < INLINE_BYTES_MAX ? r->request_bytes_max : INLINE_BYTES_MAX;
	size_t end = input.len < most ? input.len : most;
	const char *newline = memchr(input.data + r->at, '\n', end - r->at);

	r->at = newline ? (size_t)(newline - input.data) + 1 : end;
	if (newline)
		return read_line_words(r, (struct slice){ input.data, r->at - 1 });
	return end < most ? RESP_MORE : broken(r, "too big inline request");
}

/* ---- either ---- */

static enum resp_result read_start(struct resp_reader *r, struct slice input)
{
	unsigned char first;

	r->at = r->argc = 0;
	if (input.len == 0)
		return RESP_MORE;
	first = (unsigned char)input.data[0];
	if (first == '*')
		return read_count(r, input);
	/* Replies, the typed values of RESP3 and binary junk are not lines of words. */
	if ((first < 0x20 && !blank((char)first)) || first >= 0x7f || strchr("$:+-_#,(!=%~>|;.", first))
		return unexpected(r, "'*' or a word", first);
	r->state = RESP_IN_LINE;
	return RESP_DONE;
}

enum resp_result resp_read_request(struct resp_reader *r, struct slice input, size_t *used)
{
	enum resp_result result = r->error ? RESP_BROKEN : RESP_DONE;

	if (result == RESP_DONE && r->state == RESP_AT_START)
		result = read_start(r, input);
	if (result == RESP_DONE)
		result = r->state == RESP_IN_WORDS ? read_words(r, input) : read_line(r, input);
	if (result == RESP_DONE) {
		r->state = RESP_AT_START;
		*used = r->at;
	}
	return result;
}
