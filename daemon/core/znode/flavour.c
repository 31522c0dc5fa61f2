/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/flavour.h"

#include <assert.h>

#include "core/znode/record.h"
#include "protocol/name.h"

enum { WORD_SHOWN_BYTES = 32 };

static const struct {
	const char *word, *exclusive, *shared;
} flavours[] = {
	[FLAVOUR_RW] = { "rw", "__WRIT__", "__READ__" },
	[FLAVOUR_MUTEX] = { "mutex", "lock-", NULL },
	[FLAVOUR_KAZOO] = { "kazoo", "__lock__", "__rlock__" },
	[FLAVOUR_SLOTS] = { "leases", "lease-", NULL },
};

const char *flavour_word(enum flavour flavour)
{
	return flavours[flavour].word;
}

const char *flavour_tag(enum flavour flavour, enum mode mode)
{
	return mode == MODE_SHARED ? flavours[flavour].shared : flavours[flavour].exclusive;
}

enum mode flavour_claim_mode(enum flavour flavour, enum mode wanted)
{
	return flavours[flavour].shared ? wanted : MODE_EXCLUSIVE;
}

/* NULL: the name has none of the configured prefixes. */
static const struct broker_prefix *find(const struct broker_conf *conf, struct slice name)
{
	const struct broker_prefix *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < conf->prefix_count; i++) {
		const struct broker_prefix *p = &conf->prefixes[i];
		size_t len = strlen(p->prefix);

		if (len > best_len && name.len >= len && memcmp(name.data, p->prefix, len) == 0) {
			best = p;
			best_len = len;
		}
	}
	return best;
}

enum flavour flavour_place(const struct broker_conf *conf, struct slice name, struct bytes *path)
{
	const struct broker_prefix *p = find(conf, name);
	bool mapped = p && p->path[0];
	size_t skip = mapped ? strlen(p->prefix) : 0;

	assert(name.len > skip);
	bytes_text(path, mapped ? p->path : conf->root);
	bytes_char(path, '/');
	name_encode((struct slice){ name.data + skip, name.len - skip }, path);
	return p ? p->flavour : FLAVOUR_RW;
}

int64_t flavour_remove_idle_ns(const struct broker_conf *conf, struct slice name)
{
	const struct broker_prefix *p = find(conf, name);

	return p ? p->remove_idle_ns : 0;
}

bool flavour_has_place(const struct broker_conf *conf, struct slice name)
{
	const struct broker_prefix *p = find(conf, name);

	return !p || !p->path[0] || name.len > strlen(p->prefix);
}

/* The data can hold anything: other software may have written them. */
static void add_word(struct bytes *text, const char *before, struct slice word)
{
	if (word.len > WORD_SHOWN_BYTES)
		word.len = WORD_SHOWN_BYTES;
	bytes_format(text, "%s%q", before, word);
}

void flavour_say_mismatch(struct bytes *text, enum kind kind, enum flavour flavour, struct slice data)
{
	add_word(text, "that name's directory in ZooKeeper is of kind ", record_get(data, "kind"));
	add_word(text, " and flavour ", record_get(data, "flavour"));
	add_word(text, ", not ", slice_of(kind_word(kind)));
	add_word(text, " and ", slice_of(flavour_word(flavour)));
	/* Nobody may remove the others. */
	if (!slice_is(record_get(data, "flavour"), flavour_word(FLAVOUR_KAZOO)))
		bytes_text(text, ", until some minutes after its last use");
}

bool flavour_fits(enum kind kind, enum flavour flavour, struct slice data)
{
	if (!record_is_ours(data))
		return true;
	return slice_eq(record_get(data, "kind"), slice_of(kind_word(kind))) &&
	       slice_is(record_get(data, "flavour"), flavour_word(flavour));
}
