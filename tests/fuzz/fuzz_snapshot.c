/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorded snapshot with changes, sealed again: what an earlier or later version might write, or somebody who means harm.
 * Three bytes of the input are one change. Whatever comes: it is refused with a sentence, or the broker that comes of it is
 * sound, goes on, and has a snapshot that is read as well. It is run in the project's directory.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/port/entry.h"
#include "core/snapshot.h"
#include "fuzz.h"
#include "fuzz_broker.h"

enum { ENTRIES_MAX = 1024, NUMBERS_MAX = 4096, BASE_MAX = 1 << 16, CHANGES_MAX = 2 };

static struct slice base(void)
{
	static char text[BASE_MAX];
	static struct slice body;
	struct bytes why = { 0 };
	FILE *f;

	if (body.data)
		return body;
	f = fopen("tests/unit/snapshot_1.txt", "rb");
	assert(f);
	body = seal_open((struct slice){ text, fread(text, 1, sizeof(text), f) }, &why);
	assert(body.data);
	fclose(f);
	return body;
}

/* Where the entries begin; one more for the end. */
static size_t entries(struct slice body, size_t at[ENTRIES_MAX + 1])
{
	struct bytes why = { 0 };
	struct entry_reader r;
	struct entry e;
	size_t count = 0;

	entry_reader_init(&r, body, &why);
	do
		at[count++] = body.len - r.rest.len;
	while (count <= ENTRIES_MAX && entry_next(&r, &e));
	entry_reader_deinit(&r);
	bytes_free(&why);
	return count - 1;
}

static struct slice part(const struct bytes *text, size_t from, size_t to)
{
	return (struct slice){ text->data + from, to - from };
}

/* In the place of the bytes from `from` to `to`. */
static void put(struct bytes *text, size_t from, size_t to, struct slice what)
{
	struct bytes made = { 0 };

	bytes_slice(&made, part(text, 0, from));
	bytes_slice(&made, what);
	bytes_slice(&made, part(text, to, text->len));
	bytes_free(text);
	*text = made;
}

/* A whole entry goes, comes again, or comes later. */
static void change_entry(struct bytes *text, unsigned int which, unsigned int how)
{
	size_t at[ENTRIES_MAX + 1], count = entries(bytes_view(text), at), i, j;
	struct bytes entry = { 0 };

	if (!count)
		return;
	i = which % count;
	j = i + 1 + how / 3 % (count - i);
	bytes_slice(&entry, part(text, at[i], at[i + 1]));
	if (how % 3 > 0)
		put(text, at[j], at[j], bytes_view(&entry));
	if (how % 3 != 1)
		put(text, at[i], at[i + 1], SLICE(""));
	bytes_free(&entry);
}

/* A number becomes another one, mostly of a kind that matters. */
static void change_number(struct bytes *text, unsigned int which, unsigned int how)
{
	static const char *const numbers[] = { "0",
					       "1",
					       "2",
					       "3",
					       "4",
					       "-1",
					       "5",
					       "7",
					       "100",
					       "1023",
					       "1024",
					       "65536",
					       "1000000000",
					       "4294967295",
					       "4294967296",
					       "4503599627370496",
					       "9223372036854775807",
					       "-9223372036854775808",
					       "2305843009213693952" };
	size_t starts[NUMBERS_MAX], count = 0, i, end;

	for (i = 1; i + 2 < text->len && count < NUMBERS_MAX; i++)
		if (text->data[i] == ':' && text->data[i - 1] == '\n')
			starts[count++] = i + 1;
	if (!count)
		return;
	i = starts[which % count];
	end = (size_t)((char *)memchr(text->data + i, '\r', text->len - i) - text->data);
	put(text, i, end, slice_of(numbers[how % (sizeof(numbers) / sizeof(numbers[0]))]));
}

/* The bytes of the driver are mostly letters: they are spread over all that can be changed. */
static void change(struct bytes *text, const uint8_t *at)
{
	uint32_t spread = ((uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]) * 2654435761u;
	unsigned int which = spread >> 12, how = spread >> 4 & 0xff;

	switch (spread >> 28) {
	case 0:
		text->data[which % text->len] = (char)how;
		break;
	case 1:
	case 2:
	case 3:
		change_entry(text, which, how);
		break;
	default:
		change_number(text, which, how);
		break;
	}
}

static void restore(struct slice text)
{
	struct bytes why = { 0 }, again = { 0 };
	int64_t now_ns = 2000 * SECOND;
	struct broker *b = broker_restore(&conf, text, now_ns, &why);

	assert(b ? !why.len : why.len);
	if (b) {
		broker_snapshot(b, &again);
		broker_free(b);
		b = broker_restore(&conf, bytes_view(&again), now_ns, &why);
		assert(b);
		live(b, now_ns);
		broker_free(b);
	}
	bytes_free(&again);
	bytes_free(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes text = { 0 }, body = { 0 };
	size_t begin = seal_begin(&text);

	bytes_slice(&body, base());
	for (size_t i = 0; i + 3 <= size && i < 3 * CHANGES_MAX && body.len; i += 3)
		change(&body, data + i);
	bytes_slice(&text, bytes_view(&body));
	seal_end(&text, begin);
	restore(bytes_view(&text));
	bytes_free(&body);
	bytes_free(&text);
	return 0;
}
