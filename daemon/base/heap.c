/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include <assert.h>

#include "base/mem.h"

enum { HEAP_FIRST_SIZE = 64 };

void heap_deinit(struct heap *h)
{
	assert(h->count == 0);
	mem_free(h->timers);
	*h = (struct heap){ 0 };
}

static void put(struct heap *h, struct timer *t, size_t place)
{
	h->timers[place] = t;
	t->place = place;
}

static void sift_up(struct heap *h, struct timer *t, size_t place)
{
	while (place > 1 && h->timers[place / 2]->due_ns > t->due_ns) {
		put(h, h->timers[place / 2], place);
		place /= 2;
	}
	put(h, t, place);
}

static void sift_down(struct heap *h, struct timer *t, size_t place)
{
	for (;;) {
		size_t child = place * 2;

		if (child > h->count)
			break;
		if (child < h->count && h->timers[child + 1]->due_ns < h->timers[child]->due_ns)
			child++;
		if (h->timers[child]->due_ns >= t->due_ns)
			break;
		put(h, h->timers[child], place);
		place = child;
	}
	put(h, t, place);
}

void heap_set(struct heap *h, struct timer *t, int64_t due_ns)
{
	int64_t was = t->due_ns;

	t->due_ns = due_ns;
	if (t->place) {
		if (due_ns < was)
			sift_up(h, t, t->place);
		else
			sift_down(h, t, t->place);
		return;
	}
	if (h->count + 1 >= h->cap) {
		h->cap = h->cap ? h->cap * 2 : HEAP_FIRST_SIZE;
		h->timers = mem_resize(h->timers, h->cap * sizeof(struct timer *));
	}
	sift_up(h, t, ++h->count);
}

void heap_set_by(struct heap *h, struct timer *t, int64_t due_ns)
{
	if (!t->place || t->due_ns > due_ns)
		heap_set(h, t, due_ns);
}

void heap_unset(struct heap *h, struct timer *t)
{
	struct timer *last;
	size_t place = t->place;

	if (!place)
		return;
	assert(h->timers[place] == t);
	t->place = 0;
	last = h->timers[h->count--];
	if (last == t)
		return;
	if (place > 1 && h->timers[place / 2]->due_ns > last->due_ns)
		sift_up(h, last, place);
	else
		sift_down(h, last, place);
}
