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

const char *holder_other_kind(enum kind kind, struct slice data)
{
	struct slice word = record_get(data, "kind");
	int other = KIND_LOCK;

	while (word.len && other < KINDS && !slice_is(word, kind_word((enum kind)other)))
		other++;
	if (!record_is_ours(data) || other == (int)kind)
		return NULL;
	return other < KINDS ? kind_noun((enum kind)other) : "something else";
}

bool holder_in_use(struct slice data)
{
	return !record_is_ours(data) || record_get(data, "held").len || record_get(data, "leader").len;
}

bool holder_tells(struct slice data)
{
	return record_get(data, "pid").len;
}
