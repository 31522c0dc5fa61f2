/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

enum { MAP_FIRST_SIZE = 16, MAP_STEP = 4 };

static uint64_t rotate(uint64_t x, int bits)
{
	return (x << bits) | (x >> (64 - bits));
}

static inline __attribute__((always_inline)) void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

uint64_t map_hash(const struct map *m, const void *data, size_t len)
{
	const unsigned char *at = data;
	uint64_t v[4] = {
		m->key[0] ^ 0x736f6d6570736575u,
		m->key[1] ^ 0x646f72616e646f6du,
		m->key[0] ^ 0x6c7967656e657261u,
		m->key[1] ^ 0x7465646279746573u,
	};
	uint64_t word = 0;
	size_t left = len;

	for (; left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	memcpy(&word, at, left);
	word |= (uint64_t)len << 56;
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void table_init(struct map_table *t, size_t size)
{
	t->buckets = mem_new_array(size, sizeof(*t->buckets));
	t->mask = size - 1;
}

void map_init(struct map *m, uint64_t key0, uint64_t key1)
{
	*m = (struct map){ .key = { key0, key1 } };
	table_init(&m->now, MAP_FIRST_SIZE);
}

void map_deinit(struct map *m)
{
	assert(m->count == 0);
	mem_free(m->now.buckets);
	mem_free(m->old.buckets);
	m->now.buckets = m->old.buckets = NULL;
}

static struct map_node **bucket_of(const struct map *m, uint64_t hash)
{
	if (m->old.buckets && (hash & m->old.mask) >= m->moved)
		return &m->old.buckets[hash & m->old.mask];
	return &m->now.buckets[hash & m->now.mask];
}

static void move_some(struct map *m)
{
	for (int i = 0; i < MAP_STEP && m->old.buckets; i++) {
		struct map_node *node = m->old.buckets[m->moved], *next;

		for (; node; node = next) {
			struct map_node **to = &m->now.buckets[node->hash & m->now.mask];

			next = node->next;
			node->next = *to;
			*to = node;
		}
		m->old.buckets[m->moved++] = NULL;
		if (m->moved > m->old.mask) {
			mem_free(m->old.buckets);
			m->old.buckets = NULL;
		}
	}
}

static struct map_node *same_hash(struct map_node *node, uint64_t hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct map_node *map_first(const struct map *m, uint64_t hash)
{
	return same_hash(*bucket_of(m, hash), hash);
}

struct map_node *map_next(const struct map_node *node)
{
	return same_hash(node->next, node->hash);
}

void map_add(struct map *m, struct map_node *node, uint64_t hash)
{
	struct map_node **bucket;

	move_some(m);
	if (!m->old.buckets && m->count > m->now.mask) {
		m->old = m->now;
		m->moved = 0;
		table_init(&m->now, (m->old.mask + 1) * 2);
	}
	bucket = bucket_of(m, hash);
	node->hash = hash;
	node->next = *bucket;
	*bucket = node;
	m->count++;
}

void map_remove(struct map *m, struct map_node *node)
{
	struct map_node **at = bucket_of(m, node->hash);

	while (*at != node) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = node->next;
	node->next = NULL;
	m->count--;
}

size_t map_buckets(const struct map *m)
{
	return m->now.mask + 1 + (m->old.buckets ? m->old.mask + 1 : 0);
}

struct map_node *map_bucket(const struct map *m, size_t i)
{
	assert(i < map_buckets(m));
	return i <= m->now.mask ? m->now.buckets[i] : m->old.buckets[i - m->now.mask - 1];
}
