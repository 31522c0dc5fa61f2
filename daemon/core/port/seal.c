/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/seal.h"

#include <assert.h>
#include <string.h>

#include "protocol/bytes_format.h"
#include "protocol/number.h"

static const char MAGIC[] = "lockbroker state ";

enum { MAGIC_BYTES = sizeof(MAGIC) - 1, LINE_BYTES = MAGIC_BYTES + 1 + 1 + 16 + 1 + 16 + 1 };

/* Four words at a time, each in a lane of its own: a processor works on all of them at once. */
enum { LANES = 4, LANES_BYTES = LANES * sizeof(uint64_t) };

static const uint64_t FACTORS[] = { 0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f };

static uint64_t rotate(uint64_t x, int bits)
{
	return (x << bits) | (x >> (64 - bits));
}

static inline void add_words(uint64_t lanes[LANES], const char *at)
{
	uint64_t words[LANES];

	memcpy(words, at, sizeof(words));
	for (int i = 0; i < LANES; i++)
		lanes[i] = rotate(lanes[i] + words[i] * FACTORS[1], 31) * FACTORS[0];
}

uint64_t seal_checksum(struct slice bytes)
{
	uint64_t lanes[LANES] = { 1, 2, 3, 4 }, sum = bytes.len;
	char last[LANES_BYTES] = { 0 };
	size_t at = 0;

	for (; bytes.len - at >= LANES_BYTES; at += LANES_BYTES)
		add_words(lanes, bytes.data + at);
	if (at < bytes.len)
		memcpy(last, bytes.data + at, bytes.len - at);
	add_words(lanes, last);
	for (int i = 0; i < LANES; i++)
		sum = rotate(sum ^ lanes[i], 27) * FACTORS[0] + FACTORS[1];
	return sum ^ sum >> 32;
}

static void write_line(struct bytes *line, int64_t version, struct slice body)
{
	bytes_format(line, "%s%d %x %x\n", MAGIC, version, body.len, seal_checksum(body));
}

size_t seal_begin(struct bytes *text)
{
	size_t begin = text->len;

	bytes_reserve(text, LINE_BYTES);
	text->len += LINE_BYTES;
	return begin;
}

void seal_end(struct bytes *text, size_t begin)
{
	struct slice body = { text->data + begin + LINE_BYTES, text->len - begin - LINE_BYTES };
	struct bytes line = { 0 };

	write_line(&line, SEAL_VERSION, body);
	assert(line.len == LINE_BYTES);
	memcpy(text->data + begin, line.data, line.len);
	bytes_free(&line);
}

/* False: it is no such line. */
static bool read_version(struct slice text, int64_t *ret)
{
	const char *at = text.data + MAGIC_BYTES, *end;

	if (text.len <= MAGIC_BYTES || memcmp(text.data, MAGIC, MAGIC_BYTES) != 0)
		return false;
	end = memchr(at, ' ', text.len - MAGIC_BYTES);
	return end && number_parse((struct slice){ at, (size_t)(end - at) }, ret);
}

struct slice seal_open(struct slice text, struct bytes *why)
{
	struct bytes line = { 0 };
	struct slice body;
	int64_t version;
	bool same;

	if (!read_version(text, &version)) {
		bytes_text(why, "it is not the state of a lockbrokerd");
		return (struct slice){ 0 };
	}
	if (version < SEAL_VERSION - 1 || version > SEAL_VERSION + 1) {
		bytes_format(why, "it is of version %d, and this lockbrokerd reads %d to %d", version, SEAL_VERSION - 1,
			     SEAL_VERSION + 1);
		return (struct slice){ 0 };
	}
	if (text.len < LINE_BYTES) {
		bytes_text(why, "it is cut short");
		return (struct slice){ 0 };
	}
	body = (struct slice){ text.data + LINE_BYTES, text.len - LINE_BYTES };
	write_line(&line, version, body);
	same = slice_eq(bytes_view(&line), (struct slice){ text.data, LINE_BYTES });
	bytes_free(&line);
	if (!same)
		bytes_text(why, "it is cut short or garbled");
	return same ? body : (struct slice){ 0 };
}
