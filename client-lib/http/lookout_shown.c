/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/lookout_shown.h"

#include <stdlib.h>
#include <string.h>

/* Locks of this host in byte order of their names, and the places of those that are looked at. */
struct known {
	struct sighting **list;
	size_t count;
	size_t *wanted, wanted_count;
	int64_t now_ms;
};

static bool is_new(int64_t instant_ms, int64_t now_ms)
{
	return instant_ms != INT64_MIN && now_ms - instant_ms < LOOKOUT_SHOWN_MS;
}

static void collect(void *of, struct sighting *s)
{
	struct known *k = of;

	if (!s->here)
		return;
	if (is_new(s->shown_ms, k->now_ms) && !is_new(s->first_ms, k->now_ms))
		k->wanted[k->wanted_count++] = k->count;
	k->list[k->count++] = s;
}

static struct slice common(struct slice a, struct slice b)
{
	size_t len = 0;

	while (len < a.len && len < b.len && a.data[len] == b.data[len])
		len++;
	return (struct slice){ a.data, len };
}

/* No more than LOOKOUT_SHOWN_GROUP locks have the prefix that those between the two have in common. */
static bool fits(const struct known *k, size_t from, size_t to)
{
	struct slice prefix = common(k->list[from]->name, k->list[to]->name);

	while (from > 0 && to - from < LOOKOUT_SHOWN_GROUP && sighting_begins(k->list[from - 1], prefix))
		from--;
	while (to + 1 < k->count && to - from < LOOKOUT_SHOWN_GROUP && sighting_begins(k->list[to + 1], prefix))
		to++;
	return to - from < LOOKOUT_SHOWN_GROUP;
}

/* The pattern of all names that begin so. */
static void write_pattern(struct slice prefix, struct bytes *ret)
{
	for (size_t i = 0; i < prefix.len; i++) {
		if (strchr("*?[\\", prefix.data[i]))
			bytes_char(ret, '\\');
		bytes_char(ret, prefix.data[i]);
	}
	bytes_char(ret, '*');
}

static bool ask(struct lookout *l, struct slice prefix, broker_answered answered)
{
	struct bytes pattern = { 0 };
	struct slice words[] = { SLICE("LOCKS"), SLICE(""),      SLICE("ORDER"),
				 SLICE("name"),  SLICE("COUNT"), SLICE(LOOKOUT_SHOWN_COUNT_TEXT) };
	bool asked;

	write_pattern(prefix, &pattern);
	words[1] = bytes_view(&pattern);
	asked = broker_ask(l->near, answered, l, sizeof(words) / sizeof(words[0]), words);
	bytes_free(&pattern);
	if (asked)
		bytes_set(&l->shown[l->shown_asked++], prefix);
	return asked;
}

/* The first one behind the last one that was asked for. */
static size_t begin_at(const struct lookout *l, const struct known *k)
{
	for (size_t i = 0; i < k->wanted_count; i++)
		if (slice_order(k->list[k->wanted[i]]->name, bytes_view(&l->shown_after)) > 0)
			return i;
	return 0;
}

/* For each question the daemon walks over all of its locks: those of a second are about LOOKOUT_SHOWN_WALKED in all. */
static size_t questions(const struct lookout *l)
{
	size_t affordable = LOOKOUT_SHOWN_WALKED / (l->near_count + 1);

	return affordable < 1 ? 1 : affordable > LOOKOUT_SHOWN_QUESTIONS ? LOOKOUT_SHOWN_QUESTIONS : affordable;
}

static bool ask_groups(struct lookout *l, const struct known *k, broker_answered answered)
{
	size_t at = begin_at(l, k), done = 0, most = questions(l);

	while (done < k->wanted_count && l->shown_asked < most) {
		size_t first = at, last;

		do
			last = at++;
		while (at < k->wanted_count && fits(k, k->wanted[first], k->wanted[at]));
		if (!ask(l, common(k->list[k->wanted[first]]->name, k->list[k->wanted[last]]->name), answered))
			return false;
		bytes_set(&l->shown_after, k->list[k->wanted[last]]->name);
		done += at - first;
		at %= k->wanted_count;
	}
	return true;
}

bool lookout_shown_ask(struct lookout *l, broker_answered answered)
{
	size_t most = l->sightings.count + 1;
	struct known k = { .list = calloc(most, sizeof(struct sighting *)),
			   .wanted = calloc(most, sizeof(size_t)),
			   .now_ms = lookout_now_ms() };
	bool asked;

	if (!k.list || !k.wanted)
		abort();
	l->shown_asked = l->shown_answered = 0;
	sightings_walk(&l->sightings, collect, &k);
	asked = ask_groups(l, &k, answered);
	free(k.list);
	free(k.wanted);
	return asked;
}

struct slice lookout_shown_next(struct lookout *l)
{
	return bytes_view(&l->shown[l->shown_answered++]);
}
