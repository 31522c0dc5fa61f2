/* SPDX-License-Identifier: Apache-2.0 */
/* The one source of chance of a run: the same seed gives the same run on every machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state;
	/* What a fuzzer chooses (tests/fuzz/fuzz_core.c), one choice after the other; 0 leaves it to chance. */
	const uint8_t *chosen;
	size_t chosen_left;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	if (r->chosen_left) {
		r->chosen_left--;
		z += *r->chosen++ * 0x9e3779b97f4a7c15u;
	}
	return z ^ (z >> 31);
}

/* 0 .. bound - 1; bound is at least 1. */
static inline uint32_t rng_below(struct rng *r, uint32_t bound)
{
	return (uint32_t)(((rng_next(r) >> 32) * bound) >> 32);
}

/* low .. high, both possible. */
static inline int64_t rng_between(struct rng *r, int64_t low, int64_t high)
{
	return low + (int64_t)(rng_next(r) % (uint64_t)(high - low + 1));
}

static inline bool rng_percent(struct rng *r, uint32_t percent)
{
	return rng_below(r, 100) < percent;
}
