/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of intrusive nodes that grows a few buckets at a time, so that no single insertion pays for all others.
 * The hash is keyed (SipHash-1-3), so that nobody can choose names that collide.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_node {
	struct map_node *next;
	uint64_t hash;
};

struct map_table {
	struct map_node **buckets;
	size_t mask;
};

struct map {
	uint64_t key[2];
	size_t count;
	struct map_table now, old; /* while growing, buckets of `old` below `moved` are empty */
	size_t moved;
};

void map_init(struct map *m, uint64_t key0, uint64_t key1);
/* The nodes belong to the caller; the map must be empty. */
void map_deinit(struct map *m);
uint64_t map_hash(const struct map *m, const void *data, size_t len);
/*
 * The first node with that hash, then the next one after `node`, NULL at the end: the caller compares keys.
 * Nothing may be added or removed between the two calls.
 */
struct map_node *map_first(const struct map *m, uint64_t hash);
struct map_node *map_next(const struct map_node *node);
/* Visits the structs with that hash, whose node is `field`. container.h is needed. */
#define MAP_FOREACH(entry, m, hash, field) \
	for (struct map_node *node_ = map_first(m, hash); \
	     node_ && ((entry) = container_of(node_, __typeof__(*(entry)), field)); node_ = map_next(node_))
void map_add(struct map *m, struct map_node *node, uint64_t hash);
void map_remove(struct map *m, struct map_node *node);
/*
 * For a look at all nodes in pieces: the first node of each bucket (NULL: it is empty) leads to the others by `next`. A
 * node that is added, or is moved while the table grows, between two pieces may be seen twice or not at all.
 */
size_t map_buckets(const struct map *m);
struct map_node *map_bucket(const struct map *m, size_t i);
