/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both readers over any bytes, cut into reads as the first byte says. Whatever comes: no crash, no read past the
 * end, progress with every whole value, and the words and trees lie in the input.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Idaemon tests/fuzz/fuzz_resp.c protocol/?*.c
 */
#include <assert.h>
#include <stdlib.h>

#include "fuzz.h"
#include "protocol/resp.h"

static bool within(struct slice part, struct slice whole, const struct bytes *scratch)
{
	if (part.len == 0)
		return true;
	return (part.data >= whole.data && part.data + part.len <= whole.data + whole.len) ||
	       (part.data >= scratch->data && part.data + part.len <= scratch->data + scratch->len);
}

static enum resp_result request(struct resp_reader *r, struct slice input, size_t *used)
{
	enum resp_result result = resp_read_request(r, input, used);

	if (result == RESP_DONE) {
		assert(r->argc <= r->args_max && *used <= r->request_bytes_max);
		for (size_t i = 0; i < r->argc; i++)
			assert(within(r->argv[i], input, &r->scratch));
	}
	return result;
}

static enum resp_result reply(struct resp_replies *r, struct slice input, size_t *used)
{
	static const struct bytes none;
	enum resp_result result = resp_read_reply(r, input, used);

	if (result == RESP_DONE) {
		assert(r->count > 0 && r->count <= r->values_max && *used <= r->reply_bytes_max);
		assert(r->values[0].span == r->count);
		for (size_t i = 0; i < r->count; i++) {
			assert(r->values[i].span >= 1 && r->values[i].span <= r->count - i);
			assert(within(r->values[i].text, input, &none));
		}
	}
	return result;
}

/* `reader` is of requests, or of replies when `replies`. */
static void run(void *reader, bool replies, const uint8_t *data, size_t size, size_t step)
{
	size_t from = 0, to = 0;

	for (;;) {
		struct slice input = { malloc(to - from + 1), to - from };
		size_t used = 0;
		enum resp_result result;

		assert(input.data);
		if (to > from)
			memcpy((char *)input.data, data + from, to - from);
		result = replies ? reply(reader, input, &used) : request(reader, input, &used);
		assert((result == RESP_DONE) == (used > 0) && used <= input.len);
		free((char *)input.data);
		from += used;
		if (result == RESP_BROKEN || (result == RESP_MORE && to == size))
			return;
		if (result == RESP_MORE)
			to = size - to > step ? to + step : size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resp_reader r;
	struct resp_replies a;
	size_t step = size ? (size_t)data[0] + 1 : 1;

	if (size > 0) {
		data++;
		size--;
	}
	resp_reader_init(&r, 16, 1024);
	run(&r, false, data, size, step);
	resp_reader_deinit(&r);
	resp_replies_init(&a, 64, 1024);
	run(&a, true, data, size, step);
	resp_replies_deinit(&a);
	return 0;
}
