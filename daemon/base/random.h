/* SPDX-License-Identifier: Apache-2.0 */
/* A small seeded generator (splitmix64), for nonces and jitter: one number gives away all others, so none is a secret. */
#pragma once

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 .. bound-1; bound at least 1. */
static inline int64_t random_below(struct random *r, int64_t bound)
{
	return (int64_t)(random_next(r) % (uint64_t)bound);
}
