/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/holder.h"

#include "core/znode/record.h"

void holder_begin(struct bytes *data, const char *host, enum kind kind)
{
	record_begin(data);
	record_text(data, "host", host);
	if (kind != KIND_LOCK)
		record_text(data, "kind", kind_word(kind));
}

void holder_write(struct bytes *data, const struct holder *h)
{
	record_int(data, "pid", h->pid);
	record_int(data, "uid", h->uid);
	record_slice(data, "command", h->command);
	record_slice(data, "name", h->name);
	record_text(data, "mode", mode_word(h->mode));
	record_int(data, "token", h->token);
	record_int(data, "holders", h->holders);
	record_int(data, "since", h->since_ms);
	record_int(data, "written", h->written_ms);
}

bool holder_fits(enum kind kind, struct slice data)
{
	struct slice word = record_get(data, "kind");

	if (!record_is_ours(data))
		return true;
	return slice_eq(word.len ? word : slice_of(kind_word(KIND_LOCK)), slice_of(kind_word(kind)));
}

bool holder_in_use(struct slice data)
{
	return !record_is_ours(data) || record_get(data, "held").len || record_get(data, "leader").len;
}

bool holder_tells(struct slice data)
{
	return record_get(data, "pid").len;
}
