/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "number.h"

/* No int64_t has more digits, and this many nines still fit in a uint64_t. */
enum { DIGITS_MAX = 19 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits at text[at], after a minus or not; `*end` is behind the last. NUMBER_MORE: the text ends with them. */
static enum number_result digits(struct slice text, size_t at, bool negative, int64_t *value, size_t *end)
{
	uint64_t sum = 0, most = (uint64_t)INT64_MAX + negative;
	size_t i = at;

	while (i < text.len && is_digit(text.data[i]) && i - at < DIGITS_MAX)
		sum = sum * 10 + (uint64_t)(text.data[i++] - '0');
	*end = i;
	if (i > at && text.data[at] == '0' && (i - at > 1 || negative))
		return NUMBER_BROKEN;
	if (sum > most)
		return NUMBER_BROKEN;
	*value = (int64_t)(negative ? -sum : sum);
	if (i == text.len)
		return NUMBER_MORE;
	return i > at ? NUMBER_DONE : NUMBER_BROKEN;
}

/* Each step writes two digits: most numbers written are tokens, which have 15. */
char *number_write(int64_t value, char *end)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	/* The magnitude of INT64_MIN fits in an unsigned only. */
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char *at = end;

	for (; rest >= 10; rest /= 100)
		at = memcpy(at - 2, pairs + rest % 100 * 2, 2);
	if (rest > 0 || at == end)
		*--at = (char)('0' + rest);
	if (value < 0)
		*--at = '-';
	return at;
}

bool number_parse(struct slice text, int64_t *value)
{
	bool negative = text.len > 0 && text.data[0] == '-';
	int64_t parsed;
	size_t end;

	if (digits(text, negative, negative, &parsed, &end) != NUMBER_MORE || end == negative)
		return false;
	*value = parsed;
	return true;
}

struct number_line number_long_line(struct slice input, size_t at)
{
	bool negative = at < input.len && input.data[at] == '-';
	struct number_line line = { 0 };
	size_t end;

	line.result = digits(input, at + negative, negative, &line.value, &end);
	if (line.result != NUMBER_DONE)
		return line;
	if (input.data[end] != '\r')
		line.result = NUMBER_BROKEN;
	else if (input.len - end < 2)
		line.result = NUMBER_MORE;
	else if (input.data[end + 1] != '\n')
		line.result = NUMBER_BROKEN;
	line.bytes = (uint32_t)(end + 2 - at);
	return line;
}
