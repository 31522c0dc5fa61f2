/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hold_record.h"

#include <assert.h>
#include <string.h>

enum { TEXTS = 6 };

static void texts_of(struct hold_record *h, struct slice *ret[TEXTS])
{
	ret[0] = &h->name;
	ret[1] = &h->command;
	ret[2] = &h->data;
	ret[3] = &h->before;
	ret[4] = &h->holder;
	ret[5] = &h->holder_command;
}

void hold_record_write(const struct hold_record *h, struct bytes *out)
{
	struct hold_record copy = *h;
	struct slice *texts[TEXTS];

	bytes_append(out, h, sizeof(*h));
	texts_of(&copy, texts);
	for (int i = 0; i < TEXTS; i++)
		bytes_slice(out, *texts[i]);
}

struct hold_record hold_record_read(struct slice bytes)
{
	struct slice *texts[TEXTS];
	struct hold_record h;
	size_t at = sizeof(h);

	assert(bytes.len >= sizeof(h));
	memcpy(&h, bytes.data, sizeof(h));
	texts_of(&h, texts);
	for (int i = 0; i < TEXTS; i++) {
		texts[i]->data = bytes.data + at;
		at += texts[i]->len;
	}
	assert(at <= bytes.len);
	return h;
}

struct slice hold_record_command(struct slice program, struct slice connection_name)
{
	return slice_is(program, "lockbroker") && connection_name.len ? connection_name : program;
}
