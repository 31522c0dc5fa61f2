/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long something took, counted in fixed classes: class i has what took less than 4^i * 2^14 ns (16 us, 66 us, 0.26 ms,
 * 1 ms, ..., 73 minutes) and no less than the class before it; the last one has the rest. An instant of the core is that of
 * its event, so what begins and ends in one event takes 0.
 */
#pragma once

#include <stdint.h>

enum { HISTOGRAM_CLASSES = 16, HISTOGRAM_FIRST_BITS = 14 };

struct histogram {
	uint64_t sum_ns; /* begins anew at 2^64, as a counter may */
	uint64_t counts[HISTOGRAM_CLASSES];
};

/* The longest of the class; `i` below HISTOGRAM_CLASSES - 1. */
static inline uint64_t histogram_bound_ns(unsigned int i)
{
	return (UINT64_C(1) << (HISTOGRAM_FIRST_BITS + 2 * i)) - 1;
}

/* It took that long, at least 0. */
static inline void histogram_add(struct histogram *h, int64_t took_ns)
{
	unsigned int bits = 63 ^ (unsigned int)__builtin_clzll((uint64_t)took_ns >> (HISTOGRAM_FIRST_BITS - 1) | 1);
	unsigned int i = (bits + 1) / 2;

	h->sum_ns += (uint64_t)took_ns;
	h->counts[i < HISTOGRAM_CLASSES ? i : HISTOGRAM_CLASSES - 1]++;
}
