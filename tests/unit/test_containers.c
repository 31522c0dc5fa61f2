/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table and the heap of timers: against a plain list, and what one operation may cost at most. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "base/container.h"
#include "base/heap.h"
#include "base/map.h"

enum { NODES = 20000, TIMERS = 500, STEPS = 50000 };

struct entry {
	struct map_node node;
	uint32_t key;
	bool in;
};

/* The same numbers in each run. */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static uint64_t hash_of(const struct map *m, uint32_t key)
{
	return map_hash(m, &key, sizeof(key));
}

static struct entry *find(const struct map *m, uint32_t key)
{
	struct map_node *node;

	for (node = map_first(m, hash_of(m, key)); node; node = map_next(node))
		if (container_of(node, struct entry, node)->key == key)
			return container_of(node, struct entry, node);
	return NULL;
}

/* Buckets that were moved from the old table to the new one. */
static size_t moved_since(const struct map *m, const struct map *before)
{
	if (before->old.buckets && !m->old.buckets)
		return before->old.mask + 1 - before->moved;
	return m->old.buckets && m->old.buckets == before->old.buckets ? m->moved - before->moved : 0;
}

TEST(test_a_map_grows_a_few_buckets_at_a_time)
{
	struct entry *entries = calloc(NODES, sizeof(*entries));
	struct map m;
	uint32_t i;

	map_init(&m, 1, 2);
	for (i = 0; i < NODES; i++) {
		struct map before = m;

		entries[i].key = i;
		map_add(&m, &entries[i].node, hash_of(&m, i));
		assert_true(moved_since(&m, &before) <= 4);
		/* The one before it is empty when a table is full, so there are never more than two. */
		assert_true(m.now.buckets == before.now.buckets || !before.old.buckets);
		assert_ptr_equal(find(&m, i), &entries[i]);
		assert_ptr_equal(find(&m, i / 2), &entries[i / 2]);
	}
	assert_int_equal(m.count, NODES);
	assert_true(m.now.mask + 1 >= NODES && m.now.mask + 1 < 4 * NODES);
	for (i = 0; i < NODES; i++) {
		assert_ptr_equal(find(&m, i), &entries[i]);
		map_remove(&m, &entries[i].node);
		assert_null(find(&m, i));
	}
	map_deinit(&m);
	free(entries);
}

TEST(test_a_map_under_random_use)
{
	struct entry entries[300] = { 0 };
	uint64_t random = 7;
	size_t count = 0;
	struct map m;

	map_init(&m, 3, 4);
	for (int step = 0; step < STEPS; step++) {
		struct entry *e = &entries[next_random(&random) % 300];

		e->key = (uint32_t)(e - entries);
		assert_ptr_equal(find(&m, e->key), e->in ? e : NULL);
		if (e->in)
			map_remove(&m, &e->node);
		else
			map_add(&m, &e->node, hash_of(&m, e->key));
		e->in = !e->in;
		count += e->in ? 1 : (size_t)-1;
		assert_int_equal(m.count, count);
	}
	for (size_t i = 0; i < 300; i++)
		if (entries[i].in)
			map_remove(&m, &entries[i].node);
	map_deinit(&m);
}

TEST(test_nodes_of_one_hash_are_all_found)
{
	struct entry entries[40] = { 0 };
	struct map_node *node;
	size_t found = 0;
	struct map m;

	map_init(&m, 5, 6);
	for (size_t i = 0; i < 40; i++)
		map_add(&m, &entries[i].node, i % 2 ? 99 : 99 + 4096 * i);
	for (node = map_first(&m, 99); node; node = map_next(node))
		found++;
	assert_int_equal(found, 21);
	for (size_t i = 0; i < 40; i++)
		map_remove(&m, &entries[i].node);
	map_deinit(&m);
}

TEST(test_the_hash_depends_on_the_key_and_on_all_bytes)
{
	struct map a, b;
	char text[24] = "0123456789abcdefghijklm";

	map_init(&a, 1, 2);
	map_init(&b, 1, 3);
	assert_true(map_hash(&a, text, 23) == map_hash(&a, text, 23));
	assert_true(map_hash(&a, text, 23) != map_hash(&b, text, 23));
	for (size_t i = 0; i < 23; i++) {
		uint64_t before = map_hash(&a, text, 23);

		text[i] ^= 1;
		assert_true(map_hash(&a, text, 23) != before);
		text[i] ^= 1;
		assert_true(map_hash(&a, text, i) != map_hash(&a, text, i + 1));
	}
	map_deinit(&a);
	map_deinit(&b);
}

/* ---- timers ---- */

static int64_t earliest(const struct timer *timers)
{
	int64_t found = INT64_MAX;

	for (size_t i = 0; i < TIMERS; i++)
		if (timers[i].place && timers[i].due_ns < found)
			found = timers[i].due_ns;
	return found;
}

TEST(test_the_earliest_timer_comes_first)
{
	struct timer timers[TIMERS] = { 0 };
	struct heap h = { 0 };
	uint64_t random = 11;

	assert_null(heap_first(&h));
	for (int step = 0; step < STEPS / 10; step++) {
		struct timer *t = &timers[next_random(&random) % TIMERS];
		int64_t due_ns = next_random(&random) % 1000, was_ns = t->place ? t->due_ns : INT64_MAX;

		switch (next_random(&random) % 4) {
		case 0:
			heap_unset(&h, t);
			assert_int_equal(t->place, 0);
			break;
		case 1:
			heap_set_by(&h, t, due_ns);
			assert_true(t->due_ns == (due_ns < was_ns ? due_ns : was_ns));
			break;
		default:
			heap_set(&h, t, due_ns);
			assert_true(t->due_ns == due_ns);
			break;
		}
		assert_true((heap_first(&h) ? heap_first(&h)->due_ns : INT64_MAX) == earliest(timers));
	}
	for (int64_t last = 0; heap_first(&h); heap_unset(&h, heap_first(&h))) {
		assert_true(heap_first(&h)->due_ns >= last);
		last = heap_first(&h)->due_ns;
	}
	assert_int_equal(h.count, 0);
	heap_deinit(&h);
}
