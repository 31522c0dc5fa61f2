/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/holder.h"

#include "core/znode/record.h"

void holder_begin(struct bytes *data, const char *host, enum kind kind)
{
	record_begin(data);
	bytes_format(data, "host=%s\n", host);
	if (kind != KIND_LOCK)
		bytes_format(data, "kind=%s\n", kind_word(kind));
}

void holder_write(struct bytes *data, const struct holder *h)
{
	bytes_format(data, "pid=%d\nuid=%d\ncommand=%s\nname=%s\n", h->pid, h->uid, h->command, h->name);
	bytes_format(data, "mode=%s\ntoken=%d\nholders=%d\n", mode_word(h->mode), h->token, h->holders);
	bytes_format(data, "since=%d\nwritten=%d\n", h->since_ms, h->written_ms);
}

const char *holder_other_kind(enum kind kind, struct slice data)
{
	struct slice word = record_get(data, "kind");
	enum kind other = KIND_LOCK;
	bool known = !word.len || kind_of_word(word, &other);

	if (!record_is_ours(data) || (known && other == kind))
		return NULL;
	return known ? kind_noun(other) : "something else";
}

bool holder_in_use(struct slice data)
{
	return !record_is_ours(data) || record_get(data, "held").len || record_get(data, "leader").len;
}
