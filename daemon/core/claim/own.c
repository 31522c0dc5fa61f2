/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/own.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/claim/directories.h"
#include "core/port/event.h"

static bool carries_name(struct slice child, const struct claim *c)
{
	struct contender parsed;

	return child.len >= c->name_len + CONTENDER_DIGITS && child.len <= c->name_len + CONTENDER_DIGITS + 1 &&
	       memcmp(child.data, c->name, c->name_len) == 0 && contender_parse(child, c->directory->flavour, &parsed);
}

bool own_is(struct slice child, const struct claim *c)
{
	return c->named ? slice_eq(child, slice_of(c->name)) : carries_name(child, c);
}

static int by_name(const void *a, const void *b)
{
	return slice_order(**(const struct slice *const *)a, **(const struct slice *const *)b);
}

struct own own_begin(const struct directory *d, const struct event *event)
{
	size_t count = event->zk_answered.count;
	struct own o = { .list = event->zk_answered.children };

	o.children = mem_new_array(count + 1, sizeof(*o.children));
	o.known = mem_new_array(count + 1, sizeof(*o.known));
	for (size_t i = 0; i < count; i++)
		if (directory_is_ours(d, o.list[i]))
			o.children[o.count++] = &o.list[i];
	qsort(o.children, o.count, sizeof(*o.children), by_name);
	return o;
}

void own_end(struct own *o)
{
	mem_free(o->children);
	mem_free(o->known);
}

/* The place of the first that is not before the name, in the order of names: that name, or what begins with it. */
static size_t place(const struct own *o, struct slice name)
{
	size_t low = 0, high = o->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (slice_order(*o->children[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct slice *own_find(const struct own *o, const struct claim *c)
{
	size_t at = place(o, slice_of(c->name));

	return at < o->count && own_is(*o->children[at], c) ? o->children[at] : NULL;
}

void own_note(struct own *o, const struct directory *d)
{
	const struct claim *c;

	CLAIM_FOREACH(c, d)
		for (size_t i = place(o, slice_of(c->name)); i < o->count && own_is(*o->children[i], c); i++)
			o->known[o->children[i] - o->list] = true;
}
